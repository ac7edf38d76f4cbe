"""An agent as data: what it is, what it may call, and what bounds it.

A profile is read by `load_profile` and never built otherwise, so that everything in it has been checked; it is
immutable, and any change makes another revision. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, field_validator

from insika.agents.alerts import Alerts
from insika.agents.budget import Budget
from insika.agents.guardrails import Guardrails, switched
from insika.agents.limits import Limits
from insika.agents.names import Id, ModelRef
from insika.agents.policies import PolicyName
from insika.agents.reliability import Reliability
from insika.agents.routes import Routes, as_written
from insika.choices import Thinking, read_thinking
from insika.documents import Path, canonical_digest
from insika.parsing import Document, parse_document

_Names = tuple[Annotated[str, StringConstraints(min_length=1, max_length=128)], ...]


_AS_WRITTEN = WithJsonSchema({"enum": [*Thinking, True, False, None]})  # YAML reads on and off as booleans
GivenThinking = Annotated[Thinking | None, BeforeValidator(read_thinking), _AS_WRITTEN]
"""None: this layer leaves it to the next."""


class Params(Document):
    """What is passed on to a model. `max_tokens`: the most that one answer may have, reasoning included; null leaves it
    to the provider's adapter, which takes as much as it knows the model to give within reason."""

    thinking: GivenThinking = None
    max_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


class EdgeStream(Document):
    """Whether streaming clients of the HTTP edge also get the model's reasoning and its narration between tools."""

    thinking: bool = False
    intermediate: bool = False


class Profile(Document):
    """One agent.

    `tools_allow` None: every tool; empty: none. `tools_allow_groups` (None: not given) alone allows only those groups,
    an empty one none; both together unite; `tools_deny` wins over both. A person approves each call of a tool that
    `approvals_required` names before it runs. Of `budget`, `reliability`, `routes` and `alerts` null is as good as left
    out: no cap, one attempt, no classifier, nobody told.
    """

    id: Id
    model: ModelRef
    instructions: str = ""
    tools_allow: _Names | None = None
    tools_allow_groups: _Names | None = None
    tools_deny: _Names = ()
    policies: tuple[PolicyName, ...] = ()
    approvals_required: _Names = ()
    limits: Limits = Limits()
    params: Params = Params()
    edge_stream: EdgeStream | None = EdgeStream()

    budget: Budget | None = None
    reliability: Reliability | None = None
    routes: Routes | None = None
    alerts: Alerts | None = None

    guardrails: Guardrails | None = None

    @field_validator("tools_allow", "tools_allow_groups")
    @classmethod
    def _null_is_neither_all_nor_none(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names is None:  # written as null; a key that is left out is not validated
            raise ValueError("must not be null: leave the key out to allow every tool, or write [] to allow none")
        return names

    @property
    def guards(self) -> Guardrails:
        """The guardrails in force: those that are given, or the default ones."""
        return Guardrails() if self.guardrails is None else self.guardrails

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    @property
    def model_name(self) -> str:
        """The model's name within its provider."""
        return self.model.partition("/")[2]

    def document(self) -> dict[str, Any]:
        """The profile as it was written, in plain JSON: `load_profile` makes the same profile of it. What was left
        out stays out, because a key that is present means more than its default."""
        return self.model_dump(mode="json", exclude_unset=True)

    def revision(self) -> str:
        """A digest of what was written: equal for equal documents, however their keys are ordered."""
        return canonical_digest(self.document())


def load_profile(data: object, where: str) -> Profile:
    """The profile that `data` (YAML or JSON once parsed, or Python) describes; `where` names its source in errors.

    Raises InvalidConfiguration listing every mistake with its dotted path."""
    return parse_document(
        Profile,
        switched(data) if isinstance(data, Mapping) else data,
        where,
        more_problems=lambda _: (),
        written_as=_written_as,
    )


def _written_as(path: Path) -> Path:
    """Where the document holds what stands at `path` of the profile."""
    return (*path[:1], *as_written(path[1:])) if path[:1] == ("routes",) else path
