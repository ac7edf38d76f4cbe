"""Where an agent's operators are told of trouble, as a profile says it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, field_serializer

from insika.parsing import Document
from insika.urls import webhook_url


class Alerts(Document):
    """`webhook`: the URL that `budget_warning`, `breaker_open` and `delivery_failed` are POSTed to, signed with
    INSIKA_WEBHOOK_SECRET. Null: nobody is told."""

    webhook: Annotated[str, AfterValidator(webhook_url)] | None = None

    @field_serializer("webhook")
    def _as_written(self, webhook: str | None) -> str | None:
        return webhook


NO_ALERTS = Alerts()
