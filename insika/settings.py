"""The platform's settings: what holds for all agents, and where answers go.

Read by `load_settings` and never built otherwise. Values only: they come from a file or an operator's hand elsewhere.
Secrets never show in a repr or in `redacted`; only `document`, which is for the store, has them in clear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any

from pydantic import Field

from insika.agents.names import ModelRef
from insika.agents.profile import GivenThinking, Params
from insika.agents.queue_rules import QueueRules
from insika.channels import REVEAL_SECRETS, Channel
from insika.documents import Path, canonical_digest
from insika.http_tools.checks import http_tool_problems
from insika.http_tools.description import HttpTool
from insika.model_endpoints import HostedModels, endpoint_problems
from insika.parsing import Document, Problem, parse_document

_Window = Annotated[int, Field(gt=0, le=366 * 86_400)]
"""In seconds. `insika.limits.windows` counts in none that is longer."""


class EdgeLimits(Document):
    """Limits before a model is asked. Windows are in seconds; a limit that is null or 0 is off."""

    chat_rate_limit: Annotated[int, Field(ge=0)] | None = None
    chat_rate_window: _Window = 60
    agent_token_ceiling: Annotated[int, Field(ge=0)] | None = None
    agent_token_window: _Window = 86_400
    limit_response: str | None = None


class Settings(Document):
    """The platform's layer. `Settings()` is a platform that says nothing: no channels, every rule at its default."""

    queue: QueueRules = QueueRules()
    edge: EdgeLimits = EdgeLimits()
    thinking: GivenThinking = None
    model_params: dict[ModelRef, Params] = Field(default_factory=dict)
    fallback_models: tuple[ModelRef, ...] = ()
    channels: tuple[Channel, ...] = ()
    providers: tuple[HostedModels, ...] = ()
    http_tools: tuple[HttpTool, ...] = ()

    def channel(self, id: str) -> Channel | None:
        return next((channel for channel in self.channels if channel.id == id), None)

    def document(self) -> dict[str, Any]:
        """The settings as they were written, in plain JSON and with their secrets: `load_settings` makes the same
        settings of it. For the store, never for people."""
        return self.model_dump(mode="json", exclude_unset=True, context={REVEAL_SECRETS: True})

    def redacted(self) -> dict[str, Any]:
        """All settings in force, for people: defaults filled in, secrets and the queries of URLs hidden."""
        shown = self.model_dump(mode="json")
        for fields, provider in zip(shown["providers"], self.providers, strict=True):
            fields.update(base_url=provider.address, dialect=provider.speaks and str(provider.speaks))
        return shown

    def revision(self) -> str:
        """A digest of what was written, secrets among it: a changed secret is another revision."""
        return canonical_digest(self.document())


def load_settings(data: object, where: str) -> Settings:
    """The settings that `data` (YAML or JSON once parsed, or Python) describes; None, an empty file, says nothing.

    Raises InvalidConfiguration listing every mistake with its dotted path, and never a secret."""
    return parse_document(
        Settings,
        {} if data is None else data,
        where,
        more_problems=lambda document: chain(
            _repeated_channels(document),
            endpoint_problems(document),
            http_tool_problems(document),
        ),
        secret=_is_secret,
    )


def _is_secret(path: Path) -> bool:
    return "secret" in path or "url" in path or "providers" in path or "http_tools" in path


def _repeated_channels(document: Mapping[str, object]) -> Iterator[Problem]:
    channels = document.get("channels")
    first: dict[str, int] = {}
    for at, channel in enumerate(channels if isinstance(channels, list) else []):
        id_ = channel.get("id") if isinstance(channel, Mapping) else None
        if not isinstance(id_, str):
            continue
        if id_ in first:
            yield ("channels", at, "id"), f"is the id of channels.{first[id_]} already"
        first.setdefault(id_, at)
