"""What a script can make a hosted model do beyond what `insika.providers.script` knows.

The fakes run the same scripts as the offline provider, so that a test can be moved from one to the other. These steps
wrap the house's own: thinking before a step, an answer that hits the output limit, a model that declines, and any
trouble a vendor can make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from insika.providers.script import Call, Calls, Say
from tests.vendors.troubles import Trouble

Plain = Say | Call | Calls
DISTURBED = Say("This answer was to be disturbed.")


@dataclass(frozen=True, slots=True)
class Think:
    """Think `text` first. A request that asks for no thinking gets `step` alone. With `hidden`, the vendor does not
    show what was thought: Anthropic sends a `redacted_thinking` block, the others send nothing."""

    text: str
    step: Plain | CutOff
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class CutOff:
    """Reach the output limit in the middle of `step`: half of its last call's arguments, or half of its text, and
    `stop_reason: max_tokens` or `finish_reason: length`."""

    step: Plain


@dataclass(frozen=True, slots=True)
class Decline:
    """Break off with `stop_reason: refusal` or `finish_reason: content_filter` after `text`."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Charge:
    """Say `step`, and send `usage` in place of what the fake has counted: a recording, as `recordings` gives it."""

    step: Plain | Think
    usage: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Make:
    """Make `trouble`; `step` is what the stream holds as far as it goes."""

    trouble: Trouble
    step: Plain | Think | CutOff = DISTURBED
