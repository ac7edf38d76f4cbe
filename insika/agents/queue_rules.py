"""What becomes of messages that arrive while a session is busy, as one layer says it: an agent, or the platform.

A key that a layer gives counts, also when it is null or 0 (off); one that it leaves out is the next layer's to say.
Hence `given`, which tells the two apart. The defaults below are those of a platform that says nothing either.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator

from insika.choices import QueueMode
from insika.parsing import Document

MESSAGE_PLACE = "%{message}"
"""Where a steered text goes in `steer_join`."""


class QueueRules(Document):
    """Null and 0 mean off: no debounce, no steering, no limit to the mailbox. Of `queue_mode` it means followup.

    `debounce_ms` is the quiet that ends a collection, `debounce_max_ms` how long it may last at most: waiting without
    end is no setting, so null and 0 there mean the default.
    """

    queue_mode: QueueMode | None = QueueMode.FOLLOWUP
    debounce_ms: Annotated[int, Field(ge=0, le=3_600_000)] | None = 0
    debounce_max_ms: Annotated[int, Field(ge=0, le=86_400_000)] | None = 10_000
    steer_max_messages: Annotated[int, Field(ge=0, le=1_000)] | None = 5
    steer_join: str | None = None
    mailbox_max: Annotated[int, Field(ge=0, le=1_000_000)] | None = 50

    @field_validator("steer_join")
    @classmethod
    def _holds_the_message(cls, template: str | None) -> str | None:
        if template is not None and MESSAGE_PLACE not in template:
            raise ValueError(f"must hold {MESSAGE_PLACE}, or the customer's words would be lost")
        return template

    def given(self) -> dict[str, Any]:
        """The queue rules that this layer itself gives, null among them."""
        return {name: getattr(self, name) for name in QueueRules.model_fields if name in self.model_fields_set}
