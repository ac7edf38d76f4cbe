"""The closed sets of words that jobs, profiles and settings may use, and how they are read.

Only words: what they do is decided where they are used.
"""

from __future__ import annotations

import enum


class QueueMode(enum.StrEnum):
    """What becomes of a message that arrives while its session is busy."""

    FOLLOWUP = "followup"
    COLLECT = "collect"
    STEER = "steer"
    INTERRUPT = "interrupt"


class Origin(enum.StrEnum):
    """Who wrote a message. What the engine or a timer wrote never steers or interrupts a person's turn."""

    CUSTOMER = "customer"
    ENGINE = "engine"
    SCHEDULED = "scheduled"


class OnExhausted(enum.StrEnum):
    """What ends a turn whose tool calls are used up: an error, or one last answer without tools."""

    RAISE = "raise"
    SYNTHESIZE = "synthesize"


class Thinking(enum.StrEnum):
    """How much a model may reason before it answers. `off` and `on` are switches, the rest are efforts."""

    OFF = "off"
    ON = "on"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Strictness(enum.StrEnum):
    """How much of what looks wrong is stopped: only what is plain, what is very likely, or all that is like it."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    def covered_by(self, other: Strictness) -> bool:
        """What counts from here on counts at `other` too."""
        order = list(Strictness)
        return order.index(self) <= order.index(other)


class Language(enum.StrEnum):
    """The languages for which there are patterns of what must not be said."""

    EN = "en"
    PT = "pt"
    ES = "es"
    DE = "de"
    FR = "fr"


class Guarantee(enum.StrEnum):
    """What is done with a delivery whose outcome nobody can know: left to the operator, or sent again and marked."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"


class Split(enum.StrEnum):
    """Whether an answer is delivered in one piece or a paragraph at a time."""

    WHOLE = "whole"
    PARAGRAPHS = "paragraphs"


def words(choices: type[enum.StrEnum]) -> str:
    """The allowed words, for an error message."""
    return ", ".join(choices)


def read_thinking(value: object) -> Thinking | None:
    """None for null and blank (nothing said, the next layer decides). True and False are `on` and `off`, because YAML
    reads those words so. Raises ValueError for anything else that is not one of the words."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool):
        return Thinking.ON if value else Thinking.OFF
    if isinstance(value, str) and value.strip().lower() in list(Thinking):
        return Thinking(value.strip().lower())
    raise ValueError(f"must be one of {words(Thinking)}")


def read_queue_mode(value: object) -> QueueMode | None:
    """None for null and blank. Raises ValueError for anything else that is not one of the words."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str) and value in list(QueueMode):
        return QueueMode(value)
    raise ValueError(f"must be one of {words(QueueMode)}")
