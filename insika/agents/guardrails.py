"""Content safety as a profile says it: what may be said to the agent, and what may leave in its answers.

On unless it is switched off. `guardrails: false` switches all of it off, `input: false` and `output: false` one side;
null is the same as leaving the key out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator

from insika.agents.names import ModelRef
from insika.choices import Language, Strictness
from insika.documents import JsonObject
from insika.parsing import Document, did_you_mean, shown
from insika.readings.folding import folded_pattern
from insika.regex import LinearRegex

DEFAULT = "default"
"""Among the responses: the one of every category that has none."""
INJECTION, ABUSE = "injection", "abuse"
MODERATED = "moderated"
"""What a moderator refuses, for whatever reason."""

Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
"""A name that a profile gives: small letters, digits, hyphens and underscores, a letter first."""
_Known = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
_Reply = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]

_FINDS_NOTHING = "must not match the empty text"


def _is_pattern(pattern: str) -> str:
    if LinearRegex(folded_pattern(pattern), ignore_case=True).found_in(b""):
        raise ValueError(_FINDS_NOTHING)
    return pattern


_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_is_pattern)]


def _is_recognisable(kept: str) -> str:
    if sum(sign.isalnum() for sign in kept) < 4:
        raise ValueError("must have at least 4 letters or digits")
    return kept


_Kept = Annotated[str, StringConstraints(max_length=100), AfterValidator(_is_recognisable)]


class OwnPattern(Document):
    """A text in which `pattern` is found is refused, unless `unless` is found near it. Both are in RE2's syntax, and
    find without regard to case, accents and disguises. `view`: text as it stands, or its words alone, with one space
    between them."""

    id: Word
    category: Word = "own"
    pattern: _Pattern
    unless: _Pattern | None = None
    view: Literal["text", "words"] = "text"

    @property
    def folded(self) -> str:
        return folded_pattern(self.pattern)

    @property
    def folded_unless(self) -> str:
        return folded_pattern(self.unless or "")


class OwnRedaction(Document):
    """What matches `pattern` (RE2's syntax, case matters) leaves an answer as `replacement`. `at_most`: the most
    characters that a match may have; an answer is streamed so many characters late."""

    kind: Word
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
    at_most: Annotated[int, Field(ge=1, le=256)] = 64
    replacement: Annotated[str, StringConstraints(max_length=200)] = "[removed]"

    @field_validator("pattern")
    @classmethod
    def _finds_something(cls, pattern: str) -> str:
        if LinearRegex(pattern).at(b"", 0, 0) is not None:
            raise ValueError(_FINDS_NOTHING)
        return pattern


class Guardrails(Document):
    """`responses`: what a person reads instead of an answer, by category. `moderator`: a model that is asked too.

    `languages` None: the patterns of all. `remove`: ids of patterns, and kinds of what is redacted, that do not count.
    `add` and `redact`: what counts besides. `keep`: what may be said although it looks like something redacted, such as
    the shop's own bank account."""

    input: bool = True
    output: bool = True
    strictness: Strictness = Strictness.MEDIUM
    moderator: ModelRef | None = None
    languages: tuple[Language, ...] | None = None
    remove: tuple[_Known, ...] = ()
    add: Annotated[tuple[OwnPattern, ...], Field(max_length=200)] = ()
    redact: Annotated[tuple[OwnRedaction, ...], Field(max_length=50)] = ()
    keep: tuple[_Kept, ...] = ()
    responses: Mapping[Word, _Reply] = Field(default_factory=dict)

    @field_validator("responses")
    @classmethod
    def _answers_a_category(cls, responses: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        known = [DEFAULT, INJECTION, ABUSE, MODERATED, *(own.category for own in info.data.get("add", ()))]
        for category in responses:
            if category not in known:
                raise ValueError(
                    f"no text is refused as {shown(category)}; there are: {', '.join(dict.fromkeys(known))}"
                    f"{did_you_mean(category, known)}"
                )
        return responses

    @field_validator("add")
    @classmethod
    def _ids_differ(cls, added: tuple[OwnPattern, ...]) -> tuple[OwnPattern, ...]:
        ids = [own.id for own in added]
        if len(set(ids)) < len(ids):
            raise ValueError("two patterns have the same id")
        return added


def switched(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """A profile as it was written, with the switch `guardrails: false` (or true) as the mapping that it stands for."""
    switch = written.get("guardrails")
    if not isinstance(switch, bool):
        return written
    spelt = JsonObject(written)
    spelt.repeated = getattr(written, "repeated", ())
    spelt["guardrails"] = {} if switch else {"input": False, "output": False}
    return spelt
