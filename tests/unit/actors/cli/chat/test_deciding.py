"""What a person's word in a chat decides about, and what it must never decide about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from rich.text import Text

from actors.cli.chat.deciding import Questions
from actors.cli.chat.follower import Follower
from actors.control import Control
from insika.clock import ManualClock
from insika.storage.rows import ApprovalDecision, ApprovalRow, Decided
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import Owner, Rows, World

APPROVED, REJECTED = ApprovalDecision.APPROVED, ApprovalDecision.REJECTED


class Chat:
    """One session with questions, without the talk around them. `shown`: since the last look at it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.follower = Follower(world.store, "s")
        self.questions = Questions(cast("Control", self), self, self.follower, "me")
        self._shown: list[str] = []

    async def decide(self, approval_id: str, decision: ApprovalDecision, *, by: str) -> Decided | None:
        return await self.world.store.decide(approval_id, decision, by=by, reason="")

    def show(self, text: Text) -> None:
        self._shown.append(text.plain)

    async def look(self) -> str:
        news = await self.follower.look()
        self.questions.tell_settled(news.settled)
        self.questions.ask(news.asked)
        return self.shown()

    async def write(self, line: str) -> str | None:
        """What was shown; None: the line goes to the agent."""
        taken = await self.questions.take(line)
        return self.shown() if taken else None

    def shown(self) -> str:
        shown, self._shown = "\n".join(self._shown), []
        return shown


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    clock = ManualClock()
    migrate(tmp_path / "insika.db", clock.now)
    store = SqliteStore.open(tmp_path / "insika.db", clock.now)

    async def peek(_: str) -> Rows:
        return []

    yield Chat(World(store, clock, peek))
    await store.close()


IDS = {"c1": "1111aaaa0000", "c2": "2222bbbb0000", "c3": "2222bbbb1111"}


async def asking(chat: Chat, *call_ids: str) -> Owner:
    """A turn that has asked about these calls, and still runs."""
    owner = await chat.world.own((await chat.world.say("hello")).session_id)
    await owner.start()
    await owner.append(*call_ids)
    asks = [owner.question(call_id, id=IDS[call_id]) for call_id in call_ids]
    assert await owner.store.ask_approvals(owner.fence, owner.seen, owner.turn_id, asks)
    return owner


async def decisions(chat: Chat) -> dict[str, Any]:
    rows: Sequence[ApprovalRow] = [each.approval for each in await chat.world.store.approvals()]
    return {row.call_id: row.decision for row in rows}


async def test_the_only_question_is_shown_with_its_id_and_decided_by_a_bare_word(chat: Chat) -> None:
    await asking(chat, "c1")
    told = await chat.look()
    assert 'May look_up {"n": 1} run? Write y or n, within ' in told
    assert "question 1111aaaa;" in told
    assert await chat.write("Yes") == '[approved: look_up {"n": 1} (question 1111aaaa)]'
    assert await decisions(chat) == {"c1": APPROVED}
    assert not await chat.look(), "whoever decided need not be told that it is decided"
    assert await chat.write("y") is None, "with nothing to decide it is a message like any other"


async def test_of_several_a_bare_word_decides_nothing_and_is_no_message(chat: Chat) -> None:
    await asking(chat, "c1", "c2")
    told = await chat.look()
    assert "Write y 1111aaaa or n 1111aaaa" in told
    assert "Write y 2222bbbb or n 2222bbbb" in told
    refused = await chat.write("y")
    assert refused is not None
    assert "nothing was decided by this; 2 questions wait, so say which" in refused
    assert await decisions(chat) == {"c1": None, "c2": None}
    assert await chat.write("n 2222bbbb") == '[rejected: look_up {"n": 1} (question 2222bbbb)]'
    assert await decisions(chat) == {"c1": None, "c2": REJECTED}


async def test_a_bare_word_does_not_slip_to_a_question_that_was_not_the_last_shown(chat: Chat) -> None:
    await asking(chat, "c1", "c2")
    await chat.look()
    await chat.world.store.decide(IDS["c2"], REJECTED, by="ann", reason="no")
    told = await chat.write("y")  # before the chat has seen it
    assert told is not None
    assert "(question 2222bbbb): this did not count: ann rejected the call" in told
    assert "one question waits" in told
    assert "question 1111aaaa;" in told
    assert await decisions(chat) == {"c1": None, "c2": REJECTED}
    await chat.write("y")
    assert await decisions(chat) == {"c1": APPROVED, "c2": REJECTED}


async def test_a_question_settled_elsewhere_is_told_and_a_word_on_it_goes_nowhere_else(chat: Chat) -> None:
    await asking(chat, "c1")
    await chat.look()
    await chat.world.store.decide(IDS["c1"], APPROVED, by="ann", reason="")
    assert await chat.look() == '[no longer asked: look_up {"n": 1} (question 1111aaaa): approved by ann]'
    told = await chat.write("y")
    assert told is not None
    assert "this did not count: ann approved the call" in told
    assert await chat.write("y") is None


async def test_once_the_talk_has_gone_on_a_bare_word_is_for_the_agent(chat: Chat) -> None:
    await asking(chat, "c1")
    await chat.look()
    await chat.world.store.decide(IDS["c1"], APPROVED, by="ann", reason="")
    await chat.look()
    assert await chat.write("thank you") is None
    assert await chat.write("y") is None


async def test_a_word_that_comes_after_the_time_says_so(chat: Chat) -> None:
    await asking(chat, "c1")
    await chat.look()
    chat.world.clock.advance(601)
    told = await chat.write("y")
    assert told is not None
    assert "its time was over" in told
    assert (await decisions(chat))["c1"] is ApprovalDecision.EXPIRED


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("y 222", "at least 4 characters"),
        ("y 2222", "it may be any of: 2222bbbb0000, 2222bbbb1111"),
        ("n 9999", "no question has such an id; there are: 1111aaaa, 2222bbbb"),
    ],
)
async def test_an_id_that_names_no_question_decides_nothing(chat: Chat, line: str, told: str) -> None:
    await asking(chat, "c1", "c2", "c3")
    await chat.look()
    shown = await chat.write(line)
    assert shown is not None
    assert told in shown
    assert set((await decisions(chat)).values()) == {None}


async def test_a_sentence_is_no_word_on_a_question(chat: Chat) -> None:
    await asking(chat, "c1")
    await chat.look()
    for line in ("yes please", "no thanks", "y not wait", "yesterday"):
        assert await chat.write(line) is None
    assert await decisions(chat) == {"c1": None}


async def test_who_leaves_is_told_what_waits_and_how_to_decide(chat: Chat) -> None:
    await asking(chat, "c1")
    await chat.questions.tell_left()
    told = chat.shown()
    assert "waits for a person" in told
    assert "insika approvals approve 1111aaaa0000 (or reject)" in told
