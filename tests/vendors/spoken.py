"""What a model says to one request, when the script has been asked: the same for both wire formats."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from insika.providers.script import Call, Calls, Cut, Fail, Say
from tests.vendors.steps import Charge, CutOff, Decline, Make, Think
from tests.vendors.troubles import Cuts, Refuses, Trouble

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class SpokenCall:
    """`raw` is the arguments as the model writes them, which need not be JSON. `id` is None when the vendor makes it
    up."""

    name: str
    raw: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Spoken:
    """`cut`: the output limit was reached. `declined`: the model would not go on. `trouble`: what the script wants to
    go wrong. `charged`: the usage that is sent in place of the fake's own."""

    text: str = ""
    calls: tuple[SpokenCall, ...] = ()
    thinking: str = ""
    hidden: bool = False
    cut: bool = False
    declined: bool = False
    trouble: Trouble | None = None
    charged: Mapping[str, Any] | None = None

    @property
    def output_tokens(self) -> int:
        said = len(self.text) + sum(len(call.name) + len(call.raw) for call in self.calls)
        return max(1, tokens(said) + self.thinking_tokens)

    @property
    def thinking_tokens(self) -> int:
        return tokens(len(self.thinking))


def tokens(characters: int) -> int:
    """One for four characters, begun ones counted whole."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def spoken(step: object) -> Spoken:
    """Raises TypeError for what is no step."""
    match step:
        case Say(text):
            return Spoken(text)
        case Call():
            return Spoken(step.text, (_call(step),))
        case Calls(calls, text):
            return Spoken(text, tuple(_call(call) for call in calls))
        case Fail():
            headers = {} if step.retry_after is None else {"retry-after": f"{step.retry_after:g}"}
            return Spoken(trouble=Refuses(400 if step.fatal else 503, step.message, headers=headers))
        case Cut():
            return replace(spoken(step.step), trouble=CutInText(step.after_chunks))
        case Think():
            return replace(spoken(step.step), thinking=step.text, hidden=step.hidden)
        case CutOff():
            return _halved(spoken(step.step))
        case Decline():
            return Spoken(step.text, declined=True)
        case Charge():
            return replace(spoken(step.step), charged=step.usage)
        case Make():
            return replace(spoken(step.step), trouble=step.trouble)
    raise TypeError(f"{step!r} is no step of a script")


@dataclass(frozen=True, slots=True)
class CutInText(Cuts):
    """`after` counts pieces of text instead of events: what the house's own `Cut` means."""


def pieces(text: str, size: int = 7) -> list[str]:
    """In no more than `size` characters each: words, escapes and JSON are cut wherever it falls."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def made_id(seed: object, index: int) -> str:
    """24 letters and digits; the same request gives the same, so that a script's ids do not depend on a counter."""
    return hashlib.sha256(json.dumps([seed, index], default=str).encode()).hexdigest()[:24]


def _call(call: Call) -> SpokenCall:
    raw = json.dumps(dict(call.arguments), ensure_ascii=False) if call.malformed is None else call.malformed
    return SpokenCall(call.name, raw, call.id)


def _halved(whole: Spoken) -> Spoken:
    calls: Sequence[SpokenCall] = whole.calls
    if calls:
        last = replace(calls[-1], raw=calls[-1].raw[: len(calls[-1].raw) // 2])
        return replace(whole, calls=(*calls[:-1], last), cut=True)
    return replace(whole, text=whole.text[: len(whole.text) // 2], cut=True)
