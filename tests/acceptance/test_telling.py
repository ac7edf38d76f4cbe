"""A command that writes to the store tells the processes that run, and never waits long or fails over it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from actors.broker.preflight import require_broker
from actors.broker.topology import OUTBOX, SESSIONS
from actors.environment import Environment, QueueType
from actors.parts import Parts
from actors.processes.worker import run_worker
from insika.clock import SystemClock
from insika.coordination.redis.coordination import RedisCoordination
from insika.ports import ModelEvent, ModelRequest, TextDelta
from insika.providers.catalog import ModelCatalog
from insika.storage.postgres.schema import migrate
from tests.amqp_wire import drain
from tests.command_line import SIGKILL, SIGTERM, Folder, folder, wait_for

AGENT = "id: shop\nmodel: offline/demo\n"
SCRIPTS = """
from insika.testing import Call, Fail, Say, Script
from insika.tools import tool


@tool
def nothing() -> None:
    "Does nothing."


broken = Script([Fail("it is not here", fatal=True)])
asking = Script([Call("nothing", {}), Say("Done.")])
"""
HOUR = "3600"


@pytest.fixture
def cluster(tmp_path: Path, fresh_postgres_url: str, clean_amqp_url: str, redis_url: str) -> Iterator[Folder]:
    """Nothing runs yet. With leases of an hour nobody looks by himself within the time of a test."""
    migrate(fresh_postgres_url)
    asyncio.run(require_broker(clean_amqp_url, QueueType.QUORUM))
    variables = {
        "INSIKA_DATABASE_URL": fresh_postgres_url,
        "INSIKA_AMQP_URL": clean_amqp_url,
        "INSIKA_REDIS_URL": redis_url,
        "INSIKA_TOOLS": "scripts.py",
        "INSIKA_LEASE_S": HOUR,
        "INSIKA_DRAIN_S": "0",
    }
    with folder(tmp_path, **variables) as made:
        made.write("scripts.py", SCRIPTS)
        made.must("agents", "apply", str(made.write("shop.yaml", AGENT)))
        yield made


def hints(cluster: Folder) -> list[str]:
    url = cluster.environment["INSIKA_AMQP_URL"]
    assert drain(url, OUTBOX) == []
    return [body.decode() for _, body in drain(url, SESSIONS)]


class Silent:
    """A model that is asked, and never says a word."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked.set()
        await asyncio.Event().wait()
        yield TextDelta("never")


async def test_a_running_turn_is_cut_while_its_model_is_silent(cluster: Folder) -> None:
    """What would find the wish without a signal is the renewal of the lease, a third of an hour later."""
    model, stop = Silent(), asyncio.Event()
    variables = {name.removeprefix("INSIKA_").lower(): value for name, value in cluster.environment.items()}
    parts = Parts(ModelCatalog({"offline": model}))
    worker = asyncio.create_task(run_worker(Environment.model_validate(variables), parts, stop))
    sending = await asyncio.to_thread(cluster.must, "send", "--session", "ana", "--agent", "shop", "hello", "--json")
    await model.asked.wait()
    cancelled = await asyncio.to_thread(cluster.must, "turns", "cancel", sending.json["turn_id"])
    assert cancelled.out == f"turn {sending.json['turn_id']} was cancelled\n"
    stop.set()
    await worker


def test_whatever_is_asked_of_a_session_wakes_it(cluster: Folder) -> None:
    hello = ("send", "--session", "ana", "--agent", "shop", "--id", "m1", "hello", "--json")
    turn = cluster.must(*hello).json["turn_id"]
    (ana,) = hints(cluster)
    assert ana.isdigit()
    cluster.must("sessions", "pause", "ana")
    assert hints(cluster) == [ana]
    cluster.must("sessions", "resume", "ana")
    assert hints(cluster) == [ana]
    cluster.must("sessions", "withdraw", "ana", "m1", "--no-wait")
    assert hints(cluster) == [ana]
    cluster.must("turns", "cancel", turn, "--no-wait")
    assert hints(cluster) == [ana]
    assert cluster.insika("send", "--session", "ben", "--agent", "later", "hello").code == 1
    assert hints(cluster) == []
    cluster.must("agents", "apply", str(cluster.write("later.yaml", "id: later\nmodel: offline/broken\n")))
    cluster.must("rejected", "requeue", "1")
    (ben,) = hints(cluster)
    assert ben != ana
    failing = cluster.start("worker")
    wait_for(lambda: cluster.must("sessions", "show", "ben", "--json").json["turns"][0]["state"] == "failed", "its end")
    assert failing.signal(SIGKILL) == -SIGKILL
    drain(cluster.environment["INSIKA_AMQP_URL"], SESSIONS)
    cluster.must("sessions", "retry", "ben")
    assert hints(cluster) == [ben]


def test_a_decision_wakes_the_session_and_another_worker_goes_on(cluster: Folder) -> None:
    careful = "id: careful\nmodel: offline/asking\napprovals_required: [nothing]\n"
    cluster.must("agents", "apply", str(cluster.write("careful.yaml", careful)))
    first = cluster.start("worker")
    turn = cluster.must("send", "--session", "ana", "--agent", "careful", "go", "--json").json["turn_id"]
    wait_for(lambda: cluster.must("turns", "show", turn, "--json").json["state"] == "waiting", "the question")
    assert first.signal(SIGTERM) == 0
    drain(cluster.environment["INSIKA_AMQP_URL"], SESSIONS)
    (question,) = cluster.must("approvals", "list", "--json").json
    assert (question["tool"], question["arguments"], question["session"]) == ("nothing", {}, "ana")
    decided = cluster.must("approvals", "approve", question["approval_id"][:10], "--by", "ann", "--json").json
    assert (decided["counted"], decided["decided_by"]) == (True, "ann")
    assert len(hints(cluster)) == 1
    late = cluster.insika("approvals", "reject", question["approval_id"])
    assert (late.code, "ann approved the call at" in late.err) == (1, True)
    cluster.start("worker")
    wait_for(lambda: cluster.must("turns", "show", turn, "--json").json["state"] == "completed", "the answer")


def test_those_who_watch_hear_of_what_a_command_handed_in(cluster: Folder, redis_url: str) -> None:
    sent = cluster.must("send", "--session", "watched", "--agent", "shop", "hello", "--json").json

    async def told() -> list[str]:
        async with RedisCoordination(redis_url, SystemClock()) as coordination:
            events = await coordination.events.since(0, limit=100_000)
            return [event.type for event in events if event.turn_id == sent["turn_id"]]

    assert asyncio.run(told()) == ["turn_accepted"]


@contextlib.contextmanager
def silence() -> Iterator[int]:
    """A port on which somebody takes connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield listening.getsockname()[1]


@contextlib.contextmanager
def nobody() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("away", [silence, nobody])
def test_services_that_are_away_cost_a_moment_and_no_word(cluster: Folder, away) -> None:
    with away() as port:
        cluster.environment["INSIKA_AMQP_URL"] = f"amqp://guest:guest@127.0.0.1:{port}/"
        cluster.environment["INSIKA_REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
        sent = cluster.must("send", "--session", "ana", "--agent", "shop", "hello", "--json")
        assert (sent.json["verdict"], sent.err) == ("accepted", "")
        cancelled = cluster.must("turns", "cancel", sent.json["turn_id"], "--no-wait", "--json")
        assert (cancelled.json["turn_state"], cancelled.err) == ("queued", "")
