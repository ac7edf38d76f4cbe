"""What becomes of each message from the queues of jobs, over a store in the way of which the test stands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

import actors.ingress
from actors.broker.gate import Gate
from actors.broker.handing_back import HandBack
from actors.broker.intake import Intake
from actors.broker.messages import Delivery
from actors.broker.outage import Outage
from insika.storage.port import StoreRefused
from insika.storage.rows import RejectedJob
from insika.testing import Say, Script
from tests.actor_world import SECRET, Process, profile, unavailable

ECHO = Script([lambda scene: Say(f"re {scene.text}")])
JOB = {"session": "s", "agent": "agent", "text": "hello"}
RAW = json.dumps(JOB).encode()


class Desk:
    """One intake over a process's door and store."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.gate = Gate()
        self.probing = True
        self.outage = Outage([self.gate], self._probe, process.clock, sleep=self._sleep)
        self.intake = Intake(process.ingress, process.store, self.outage)  # type: ignore[arg-type]

    async def _probe(self) -> None:
        if not self.probing:
            raise unavailable()

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def kept(self) -> list[RejectedJob]:
        """The oldest first."""
        return list(reversed(await self.process.store.real.rejected_jobs()))

    def without(self, *operations: str, error: Callable[[], Exception] = unavailable, when: str = "before") -> None:
        async def hook(at: str, operation: str) -> None:
            if at == when and operation in operations:
                raise error()

        self.process.store.hook = hook

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self.outage.watch())
        yield
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@pytest.fixture
async def desk(place_for: Any, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(actors.ingress, "PATIENCE_S", 0.0)
    return Desk(await place_for(ECHO).process())


async def test_a_job_is_taken_and_runs(desk: Desk) -> None:
    await desk.intake.take(Delivery(RAW, message_id="m-1"))
    await desk.process.idle()
    assert await desk.process.answers() == ["re hello"]
    assert await desk.kept() == []


async def test_the_broker_s_id_makes_a_repeat_a_duplicate(desk: Desk) -> None:
    for _ in range(3):
        await desk.intake.take(Delivery(RAW, message_id="m-1", deliveries=2))
    await desk.process.idle()
    assert await desk.process.said() == ["hello"]


async def test_an_envelope_is_taken_for_the_job_in_it(desk: Desk) -> None:
    envelope = {"actor_name": "accept_turn", "queue_name": "x", "args": [JOB], "kwargs": {}, "options": {"eta": 10**15}}
    await desk.intake.take(Delivery(json.dumps(envelope).encode(), message_id="m-1"))
    await desk.process.idle()
    assert await desk.process.said() == ["hello"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"{" * 300_000,
        b"x" * (20 * 1024 * 1024),
        json.dumps([JOB]).encode(),
        b"\x1f\x8b\x08",
    ],
    ids=["empty", "no JSON", "not UTF-8", "300 KiB", "20 MiB", "a list", "compressed"],
)
async def test_what_cannot_be_read_is_kept_as_it_came(desk: Desk, body: bytes) -> None:
    await desk.intake.take(Delivery(body, message_id="m-1"))
    (kept,) = await desk.kept()
    assert (kept.raw, kept.source, kept.requeued_at) == (body, "amqp", None)
    assert kept.error["field"] == "body"
    assert kept.error["message_id"] == "m-1"


async def test_of_a_batch_only_what_a_public_channel_may_not_be_taken_for_is_kept(place_for: Any) -> None:
    channel = {"id": "open", "url": "https://shop.example/hook", "secret": SECRET, "public": True}
    process = await place_for(ECHO).process(
        profile(), profile(id="bounded", limits={"chat_rate_limit": 5}), settings={"channels": [channel]}
    )
    desk = Desk(process)
    jobs = [
        {**JOB, "id": "1", "agent": "bounded", "channel": "open"},
        {**JOB, "id": "2", "channel": "open"},
        {**JOB, "id": "3", "session": "t"},
    ]
    dealt = await desk.intake.take_all([Delivery(json.dumps(job).encode()) for job in jobs])
    assert dealt == {0, 1, 2}
    (kept,) = await desk.kept()
    assert (json.loads(kept.raw)["id"], kept.error["field"], kept.source) == ("2", "channel", "amqp")
    assert [row.job_id for session in ("s", "t") for row in await process.mail(session)] == ["1", "3"]


async def test_of_an_envelope_the_job_is_kept_so_that_it_can_be_handed_in_again(desk: Desk) -> None:
    job = {**JOB, "agent": "nobody"}
    await desk.intake.take(Delivery(json.dumps({"actor_name": "accept_turn", "args": [job]}).encode()))
    (kept,) = await desk.kept()
    assert json.loads(kept.raw) == job


@pytest.mark.parametrize(("body", "operation"), [(RAW, "accept"), (b"no job", "reject")])
async def test_while_the_store_is_away_a_job_goes_back_and_nothing_more_is_read(
    desk: Desk, body: bytes, operation: str
) -> None:
    desk.without(operation)
    with pytest.raises(HandBack, match="the store does not answer"):
        await desk.intake.take(Delivery(body))
    assert not desk.gate.is_open


async def test_a_job_that_was_written_and_not_confirmed_is_no_second_one_when_it_comes_again(desk: Desk) -> None:
    desk.without("accept", when="after")
    with pytest.raises(HandBack):
        await desk.intake.take(Delivery(RAW, message_id="m-1"))
    desk.without()
    await desk.intake.take(Delivery(RAW, message_id="m-1", deliveries=2))
    await desk.process.sweep()  # nobody could wake it
    await desk.process.idle()
    assert await desk.process.said() == ["hello"]


async def test_a_job_that_meets_a_defect_is_kept_aside_and_does_not_hold_up_the_line(desk: Desk) -> None:
    desk.without("accept", error=lambda: StoreRefused("a constraint"))
    await desk.intake.take(Delivery(RAW, message_id="m-1"))
    (kept,) = await desk.kept()
    assert kept.raw == RAW
    assert "an error of type StoreRefused" in kept.error["message"]
    assert desk.gate.is_open


async def test_a_suspect_is_kept_before_it_is_read_and_marked_when_it_did_no_harm(desk: Desk) -> None:
    suspect = Delivery(RAW, message_id="m-1", deliveries=3)
    number = await desk.intake.keep_suspect(suspect)
    (kept,) = await desk.kept()
    assert (kept.id, kept.raw, kept.requeued_at) == (number, RAW, None)
    assert "was delivered 3 times" in kept.error["message"]
    assert "accept" not in desk.process.store.operations

    await desk.intake.try_suspect(suspect, number)
    await desk.process.idle()
    assert await desk.process.said() == ["hello"]
    (kept,) = await desk.kept()
    assert kept.requeued_at is not None


async def test_a_suspect_waits_for_the_store_since_no_broker_will_send_it_again(desk: Desk) -> None:
    suspect = Delivery(RAW, message_id="m-1", deliveries=3)
    number = await desk.intake.keep_suspect(suspect)
    desk.without("accept")
    desk.probing = False
    closed = asyncio.Event()
    desk.gate.listen(closed.set)
    async with desk.watched():
        trying = asyncio.create_task(desk.intake.try_suspect(suspect, number))
        await closed.wait()
        assert not trying.done()
        desk.without()
        desk.probing = True
        await trying
    await desk.process.idle()
    assert await desk.process.said() == ["hello"]
    assert desk.gate.is_open


async def test_a_suspect_that_cannot_even_be_kept_goes_back(desk: Desk) -> None:
    desk.without("reject")
    with pytest.raises(HandBack):
        await desk.intake.keep_suspect(Delivery(RAW, deliveries=7))
    assert not desk.gate.is_open


async def test_a_dead_letter_is_kept_unread_with_what_it_died_of(desk: Desk) -> None:
    await desk.intake.keep_dead(Delivery(RAW, message_id="m-1", died_of="the queue was full"))
    (kept,) = await desk.kept()
    assert (kept.raw, kept.source) == (RAW, "dead-letter")
    assert kept.error["message"] == "body: RabbitMQ took it off insika.turns: the queue was full"
    assert await desk.process.select("SELECT * FROM mailbox") == []


async def test_a_dead_letter_goes_back_while_the_store_is_away(desk: Desk) -> None:
    desk.without("reject")
    with pytest.raises(HandBack):
        await desk.intake.keep_dead(Delivery(RAW))
    assert not desk.gate.is_open


def job_of(session: str, text: str) -> Delivery:
    return Delivery(json.dumps({**JOB, "session": session, "text": text}).encode(), message_id=f"{session}-{text}")


async def test_jobs_that_came_together_keep_their_order_within_a_session(desk: Desk) -> None:
    batch = [job_of(session, str(n)) for n in range(5) for session in ("a", "b")]
    assert await desk.intake.take_all(batch) == frozenset(range(10))
    for session in ("a", "b"):
        row = await desk.process.row(session)
        mail = await desk.process.store.real.mail(row.id)
        assert [each.text for each in mail] == ["0", "1", "2", "3", "4"]


async def test_a_job_that_goes_back_takes_along_those_of_its_session_and_no_others(desk: Desk) -> None:
    """Otherwise the later one would be accepted before the earlier one comes again."""
    real = desk.process.store.real.accept

    async def away_for_the_second(job: Any) -> Any:
        if job.text == "a2":
            raise unavailable()
        return await real(job)

    desk.process.ingress._store = SimpleNamespace(accept=away_for_the_second)  # type: ignore[assignment]
    batch = [job_of("a", "a1"), job_of("a", "a2"), job_of("b", "b1"), job_of("a", "a3"), job_of("b", "b2")]
    assert await desk.intake.take_all(batch) == {0, 2, 4}
    row = await desk.process.row("a")
    assert [each.text for each in await desk.process.store.real.mail(row.id)] == ["a1"]


async def test_rubbish_among_jobs_is_kept_and_holds_up_nobody(desk: Desk) -> None:
    batch = [job_of("a", "1"), Delivery(b"\xff"), Delivery(b'{"session": 1}'), job_of("a", "2")]
    assert await desk.intake.take_all(batch) == {0, 1, 2, 3}
    assert {kept.raw for kept in await desk.kept()} == {b"\xff", b'{"session": 1}'}
    await desk.process.idle()
    assert await desk.process.said("a") == ["1", "2"]


def asked_of(desk: Desk) -> list[str]:
    """What the door asks the store from now on."""
    asked: list[str] = []

    async def hook(at: str, operation: str) -> None:
        if at == "before":
            asked.append(operation)

    desk.process.store.hook = hook
    return asked


async def test_jobs_that_came_together_are_asked_about_together(desk: Desk) -> None:
    asked = asked_of(desk)
    assert await desk.intake.take_all([job_of("a", "1"), job_of("b", "1"), job_of("a", "2")]) == {0, 1, 2}
    assert [it for it in asked if it.startswith("accept")] == ["accept_all"]
    await desk.process.idle()
    assert await desk.process.said("a") == ["1", "2"]
    assert await desk.process.said("b") == ["1"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", [unavailable, lambda: StoreRefused("a constraint")], ids=["away", "a defect"])
async def test_what_could_not_be_accepted_together_is_accepted_one_by_one_and_once(
    desk: Desk, when: str, error: Callable[[], Exception]
) -> None:
    """Also what has no id but the one that was made for it here."""
    desk.without("accept_all", error=error, when=when)
    nameless = Delivery(json.dumps({**JOB, "session": "a", "text": "nameless"}).encode())
    assert await desk.intake.take_all([job_of("a", "1"), nameless, job_of("b", "1")]) == {0, 1, 2}
    assert desk.gate.is_open
    assert await desk.kept() == []
    await desk.process.sweep()
    await desk.process.idle()
    assert await desk.process.said("a") == ["1", "nameless"]
    assert await desk.process.said("b") == ["1"]


async def test_a_job_that_something_must_be_found_out_about_is_not_overtaken(desk: Desk) -> None:
    batch = [job_of("a", "1"), job_of("a", "2"), job_of("b", "1"), job_of("c", "1"), job_of("a", "3")]
    read = desk.process.ingress.read
    unread = batch[1].body
    desk.process.ingress.read = lambda raw, **how: None if raw == unread else read(raw, **how)  # type: ignore[method-assign]
    asked = asked_of(desk)
    assert await desk.intake.take_all(batch) == {0, 1, 2, 3, 4}
    assert [it for it in asked if it.startswith("accept")] == ["accept_all", "accept", "accept"]
    row = await desk.process.row("a")
    assert [each.text for each in await desk.process.store.real.mail(row.id)] == ["1", "2", "3"]
