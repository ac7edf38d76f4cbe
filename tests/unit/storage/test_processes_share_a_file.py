"""Several processes own sessions on one file while a producer writes; they die and oversleep. The rules hold."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

from insika.clock import NEVER, SystemClock
from insika.storage.rows import CallState, Ended, TurnState, Verdict
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import World, assert_valid_conversation, job

ROOT = Path(__file__).resolve().parents[3]
WORKER = Path(__file__).with_name("storage_worker.py")
SESSIONS, MESSAGES, PROCESSES = 3, 5, 2


def spawn(path: Path, seed: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(WORKER), str(path), str(seed)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


async def test_no_message_is_lost_or_run_twice_by_processes_that_die_and_oversleep(tmp_path: Path) -> None:
    path = tmp_path / "insika.db"
    migrate(path, SystemClock().now)
    store = SqliteStore.open(path, SystemClock().now)
    sessions = [f"s{n}" for n in range(SESSIONS)]
    said: dict[str, list[str]] = {name: [] for name in sessions}

    async def say(name: str, n: int) -> None:
        asked = job(f"{name} message {n}", session=name, job_id=str(n), mode="steer" if n % 2 else "followup")
        said[name].append(asked.text)
        assert (await store.accept(asked)).verdict in (Verdict.ACCEPTED, Verdict.STEERED)
        assert (await store.accept(asked.tried_anew("another"))).verdict is Verdict.DUPLICATE

    for name in sessions:
        await say(name, 0)
    seeds = itertools.count(1)
    workers = [spawn(path, next(seeds)) for _ in range(PROCESSES)]
    wrote: list[tuple[int, ...]] = []
    try:
        for n in range(1, MESSAGES):
            for name in sessions:
                await say(name, n)
        workers.append(spawn(path, next(seeds)))  # the others may have found nothing to do and gone home before the end
        while workers:
            output, _ = workers[0].communicate(timeout=60)
            wrote += [tuple(map(int, line.split())) for line in output.splitlines()]
            worker = workers.pop(0)
            assert worker.returncode in (0, 9)
            if worker.returncode == 9:
                workers.append(spawn(path, next(seeds)))
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    in_order_of_the_log = sorted(wrote, key=lambda line: (line[0], line[2]))
    assert in_order_of_the_log == sorted(wrote), "an owner wrote after another had taken its session"
    for name in sessions:
        await check(World(store, None, None), name, said[name])  # type: ignore[arg-type]
    await store.close()


async def check(world: World, name: str, said: list[str]) -> None:
    session = await world.session(name)
    assert (session.waiting, session.turn_id, session.open_calls) == (0, None, 0)
    assert session.lease_id is not None or session.due_at == NEVER
    mail = await world.store.mail(session.id)
    assert [row.text for row in mail] == said
    assert {row.ended for row in mail} == {Ended.TURN}
    log = await world.store.messages(session.id)
    assert_valid_conversation(log)
    positions = [entry.position for entry in log if entry.position is not None]
    assert sorted(positions) == list(range(1, len(said) + 1)), "each message is in the log once"
    opened = [entry.position or 0 for entry in log if entry.step == 0]
    assert opened == sorted(opened), "turns begin in the order of arrival"
    for turn in await world.store.turns(session.id):
        if turn.state is TurnState.QUEUED:
            assert turn.id not in {row.consumed_by for row in mail}
            continue
        assert turn.state is TurnState.COMPLETED
        calls = await world.store.calls(turn.id)
        assert {call.state for call in calls} <= {CallState.DONE, CallState.UNKNOWN}
        assert all(call.state != "open" for call in await world.store.model_calls(turn.id))
    rows = await world.store.database.read(  # type: ignore[attr-defined]
        lambda connection: connection.execute(
            "SELECT turn_id, count(*) FROM outbox WHERE session_id = ? GROUP BY turn_id", (session.id,)
        ).fetchall()
    )
    completed = {turn.id for turn in await world.store.turns(session.id) if turn.state is TurnState.COMPLETED}
    assert dict(rows) == dict.fromkeys(completed, 1), "one answer for each turn"
