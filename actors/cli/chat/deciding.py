"""A person's word, in a chat, on the calls that wait for it.

A word never decides about something the person has not read: a bare one counts only while exactly one question is open
and it is the one last shown; otherwise the word names the question. What is open is read from the store at that moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from actors.cli.chat.follower import Follower
from actors.cli.chat.screen import Screen
from actors.cli.chat.view import asks, chat_id, decided, left_open, note, settled
from actors.cli.short_ids import BEGINNING_MIN
from actors.control import Control
from insika.clock import SystemClock
from insika.storage.rows import ApprovalDecision, ApprovalSummary

_WORD = re.compile(r"(y|yes|n|no)(?:\s+(\S+))?", re.IGNORECASE)


class Questions:
    """Those of one session. `decider` is who decides."""

    def __init__(self, control: Control, screen: Screen, follower: Follower, decider: str) -> None:
        self._control = control
        self._screen = screen
        self._follower = follower
        self._decider = decider
        self._known: dict[str, ApprovalSummary] = {}
        self._mine: set[str] = set()
        self._last: str | None = None

    def tell_settled(self, questions: Sequence[ApprovalSummary]) -> None:
        """Show what became of questions that were shown before; not of those about which this chat has decided."""
        for each in questions:
            if each.approval.id not in self._mine:
                self._screen.show(settled(each, SystemClock().now()))

    def ask(self, questions: Sequence[ApprovalSummary]) -> None:
        """Show what is asked now."""
        alone = len(self._follower.questions) == 1
        for each in questions:
            self._show(each, alone=alone)

    async def take(self, line: str) -> bool:
        """Whether this line was a word on a question; if so, it is obeyed, or it is said why not. Raises
        StoreUnavailable when it is not known whether the decision was taken."""
        word = _WORD.fullmatch(line.strip())
        if word is None:
            if self._last not in {each.approval.id for each in self._follower.questions}:
                self._last = None  # the talk has gone on: the next bare word is meant for somebody else
            return False
        waiting = await self._follower.open_questions()
        verdict = ApprovalDecision.APPROVED if word[1].lower().startswith("y") else ApprovalDecision.REJECTED
        if word[2] is None:
            return await self._bare(verdict, waiting)
        return await self._named(word[1], word[2].lower(), verdict, waiting)

    async def tell_left(self) -> None:
        """Of whoever leaves: what waits for a person still, and how to decide about it. Raises StoreUnavailable."""
        for each in await self._follower.open_questions():
            self._screen.show(left_open(each, SystemClock().now()))

    async def _bare(self, verdict: ApprovalDecision, waiting: Sequence[ApprovalSummary]) -> bool:
        last, ids = self._last, [each.approval.id for each in waiting]
        if ids == [last]:
            await self._decide(waiting[0], verdict)
            return True
        if last is not None and last not in ids:
            # The word was meant for a question that somebody else, or the time, has settled.
            await self._decide(self._known[last], verdict)
            if not waiting:
                return True
        elif not waiting:
            return False
        if len(waiting) == 1:
            self._screen.show(note("nothing was decided by this; one question waits, so write y or n to this one:"))
            self._show(waiting[0], alone=True)
            return True
        self._screen.show(note(f"nothing was decided by this; {len(waiting)} questions wait, so say which:"))
        for each in waiting:
            self._show(each, alone=False)
        return True

    async def _named(
        self, word: str, given: str, verdict: ApprovalDecision, waiting: Sequence[ApprovalSummary]
    ) -> bool:
        known = {**self._known, **{each.approval.id: each for each in waiting}}
        meant = [each for id_, each in known.items() if id_.startswith(given)]
        if meant and len(given) < BEGINNING_MIN and given not in known:
            self._screen.show(note(f"nothing was decided by this; write at least {BEGINNING_MIN} characters of the id"))
        elif len(meant) == 1:
            await self._decide(meant[0], verdict)
        elif meant:
            named = ", ".join(each.approval.id for each in meant)
            self._screen.show(note(f"nothing was decided by this; it may be any of: {named}"))
        elif waiting and len(word) == 1:
            named = ", ".join(chat_id(each.approval.id) for each in waiting)
            self._screen.show(note(f"nothing was decided by this; no question has such an id; there are: {named}"))
        else:
            return False
        return True

    async def _decide(self, question: ApprovalSummary, verdict: ApprovalDecision) -> None:
        id_ = question.approval.id
        self._mine.add(id_)  # before the write: whoever follows the session may see it first
        try:
            made = await self._control.decide(id_, verdict, by=self._decider)
        except BaseException:
            self._mine.discard(id_)
            raise
        if self._last == id_:
            self._last = None
        if made is not None:
            self._follower.decided(id_)
            self._screen.show(decided(made, question))

    def _show(self, question: ApprovalSummary, *, alone: bool) -> None:
        self._known[question.approval.id] = question
        self._last = question.approval.id
        for line in asks(question, SystemClock().now(), alone=alone):
            self._screen.show(line)
