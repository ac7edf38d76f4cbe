"""What becomes of B and C, which a person writes while A is somewhere on its way: every mode at every moment.

Of each message its verdict: (a)ccepted, (m)erged, (s)teered, (i)nterrupting. Then the turns, in the order in which they
were started: `BC` began with both, `A+BC` was joined by both at a boundary, `~BC` took them over from a turn that could
not take them; `A!` was cut, `A-` failed, all others were completed. Which worker comes to it may change none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.faults.shop import job

MATRIX = """
                   followup        collect         steer           interrupt
before             aa A B C        mm ABC          mm ABC          aa A B C
model              aa A B C        am A BC         ss A ~BC        ai A! B C
tool               aa A B C        am A BC         ss A+BC         ai A! B C
boundary           aa A B C        am A BC         ss A+BC         ai A! B C
answered           aa A B C        am A BC         ss A ~BC        ai A! B C
ended              aa A- B C       am A- BC        am A- BC        aa A- B C
asking             aa A B C        am A BC         ss A+BC         ai A! B C
suspended          aa A B C        am A BC         ss A+BC         ai A! B C
paused             aa A B C        am A BC         ss A+BC         ai A! B C
paused_before      aa A B C        mm ABC          mm ABC          aa A B C
"""
MODES: Mapping[str, tuple[str, str, str]] = {
    "followup": ("followup", "followup", "followup"),
    "collect": ("collect", "collect", "collect"),
    "steer": ("steer", "steer", "steer"),
    "interrupt": ("followup", "followup", "interrupt"),
}
"""In which modes A, B and C are sent (and what else a test may send, like C). An interrupt comes when another message
waits already, which keeps its place."""
DEBOUNCED = ("collect", "steer")
"""The agents of these modes wait for a moment of quiet before they begin."""

SAYS: Mapping[str, str] = {
    "before": "A",
    "model": "A: letter ~ {gate}",
    "tool": "A: letter@{gate} letter",
    "boundary": "A: letter",
    "answered": "A: letter",
    "ended": "A: letter | fail",
    "asking": "A: charge letter",
    "suspended": "A: charge letter",
    "paused": "A: letter@{gate} | letter",
    "paused_before": "A",
}
"""What A has its turn do: see `tests.faults.shop`. Every `charge` needs a person's approval."""
HELD_AT: Mapping[str, str] = {
    "before": "start",
    "model": "end",
    "boundary": "cross_boundary",
    "answered": "commit",
    "asking": "suspend",
    "ended": "release",
    "paused_before": "start",
}
"""Before which operation of the store the owner is held, beside what the tool and the model hold. A turn whose model
is held only comes to its end when it is cut."""
UNOWNED = ("suspended", "paused", "paused_before")
"""At these moments nobody owns the session. A worker is killed while it takes the session up again."""

APPROVED = ("asking", "suspended")
"""At these moments somebody was asked, and approves once B and C were accepted. Not where an owner that is about to
wait for that must see an interrupt: nothing else may keep it from waiting."""

CALLS: Mapping[str, str] = {
    "model": "done",
    "tool": "done done",
    "boundary": "done",
    "answered": "done",
    "ended": "done",
    "asking": "done done",
    "suspended": "done done",
    "paused": "done done",
}
"""How A's calls end when nothing comes in between."""
CUT_CALLS: Mapping[str, str] = {
    "tool": "done not_run",
    "asking": "not_run done",
    "suspended": "not_run done",
    "paused": "done",
}
"""How they end in a turn that is cut, where that makes a difference: what runs, runs to its end."""
LEFT_CALLS: Mapping[str, str] = {"tool": "unknown"}
"""How the one ends that was under way in a worker that left or died, where one was."""
TOLD = frozenset(
    {
        "turn_coalesced",
        "turn_steered",
        "turn_steer_released",
        "turn_suspended",
        "turn_held",
        "turn_interrupted",
        "turn_completed",
        "turn_failed",
        "turn_cancelled",
        "approval_requested",
    }
)
"""The events that tell how a message fared."""


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the matrix in the hands of one fate: the same worker, another one, or one that was killed. Its name
    is its session's, and says to every process where it is to be held."""

    mode: str
    moment: str
    fate: str
    verdicts: str
    turns: str

    @property
    def name(self) -> str:
        return f"{self.mode}.{self.moment}.{self.fate}"

    def says(self, letter: str) -> dict[str, Any]:
        """The job of A, B, C and so on."""
        text = letter if letter != "A" else SAYS[self.moment].format(gate=gate_of(self.moment, self.fate))
        mode = MODES[self.mode][min("ABC".find(letter), 2)]
        return job(self.name, letter, text, self.mode, queue_mode=mode)

    @property
    def cut(self) -> bool:
        return "A!" in self.turns

    @property
    def approved(self) -> bool:
        return self.moment in APPROVED and not (self.cut and self.moment == "asking")

    @property
    def calls(self) -> str:
        """How A's calls end, in announced order."""
        calls = CALLS.get(self.moment, "")
        if self.cut:
            calls = CUT_CALLS.get(self.moment, calls)
        if self.fate != "same" and self.moment in LEFT_CALLS:
            calls = " ".join([LEFT_CALLS[self.moment], *calls.split()[1:]])
        return calls

    @property
    def answers(self) -> list[str]:
        """What is delivered. The shop's model names all that was said since it last answered."""
        answers, heard = [], ""
        for turn in self.turns.split():
            heard += "".join(letter for letter in turn if letter.isalpha())
            if turn[-1] not in "!-":
                answers.append("Done: " + ", ".join(heard))
                heard = ""
        return answers

    @property
    def events(self) -> set[str]:
        """Those of TOLD that there must be, once or more often."""
        turns = self.turns.split()
        said = {"turn_completed"}
        said |= {"turn_steered"} if any("+" in turn for turn in turns) else set()
        said |= {"turn_steer_released"} if any(turn[0] == "~" for turn in turns) else set()
        said |= {"turn_coalesced"} if any(turn[:2].isalpha() and len(turn) > 1 for turn in turns) else set()
        said |= {"turn_interrupted", "turn_cancelled"} if self.cut else set()
        said |= {"turn_failed"} if "A-" in turns else set()
        said |= {"approval_requested"} if self.moment in APPROVED else set()
        said |= {"turn_suspended"} if self.moment == "suspended" else set()
        said |= {"turn_held"} if self.moment == "paused" else set()
        return said


def gate_of(moment: str, fate: str) -> str:
    """The gate behind which everything of one moment and fate is held."""
    return f"{moment}.{fate}"


def cases(fate: str) -> list[Case]:
    """The whole matrix for one fate."""
    head, *lines = MATRIX.strip("\n").splitlines()
    modes = head.split()
    columns = [head.index(mode) for mode in modes] + [None]
    found = []
    for line in lines:
        for mode, begin, end in zip(modes, columns, columns[1:], strict=False):
            verdicts, turns = line[begin:end].strip().split(" ", 1)
            found.append(Case(mode, line.split()[0], fate, verdicts, turns))
    return found
