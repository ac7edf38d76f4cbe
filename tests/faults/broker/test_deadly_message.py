"""A message that ends the process that handles it: it comes three times at most, and takes nobody along for good."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from tests.actor_world import Process
from tests.broker_world import PATIENCE_S, ROOT, Door, Vhost, job

DEADLY = "the deadly one"
SESSIONS = 5


class Supervisor:
    """Starts the process again whenever it dies."""

    def __init__(self, vhost: Vhost, process: Process) -> None:
        database = str(process.place.path)
        self._command = [sys.executable, "-m", "tests.faults.broker.ingress_process"]
        self._command += [vhost.url, vhost.type, database, DEADLY]
        self.deaths = 0
        self._running = self._start()

    def look(self) -> None:
        if self._running.poll() is not None:
            assert self._running.returncode == 137
            self.deaths += 1
            self._running = self._start()

    def close(self) -> None:
        self._running.terminate()
        self._running.wait(PATIENCE_S)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, cwd=ROOT, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("at", [0, 50])
async def test_at_the_third_time_it_is_kept_aside_and_its_neighbours_are_accepted_once(
    quorum_vhost: Vhost, door: Callable[..., Awaitable[Door]], at: int
) -> None:
    texts = [f"{number:03}" for number in range(100)]
    texts[at] = DEADLY
    jobs = [job(text, session=f"s{number % SESSIONS}", id=f"j{number}") for number, text in enumerate(texts)]
    quorum_vhost.publish(jobs)
    desk = await door(quorum_vhost)  # to look at the store; it reads nothing
    supervisor = Supervisor(quorum_vhost, desk.process)
    try:

        async def through() -> bool:
            supervisor.look()
            return len(await desk.accepted()) == 99 and supervisor.deaths == 3

        await desk.until(through, "the last neighbour")
        await desk.until(lambda: _is_empty(quorum_vhost))
        supervisor.look()
    finally:
        supervisor.close()

    assert supervisor.deaths == 3
    rows = await desk.process.select(
        "SELECT s.name, m.text FROM mailbox m JOIN sessions s ON s.id = m.session_id ORDER BY s.name, m.position"
    )
    expected = [(f"s{n}", text) for n in range(SESSIONS) for text in texts[n::SESSIONS] if text != DEADLY]
    assert [(row["name"], row["text"]) for row in rows] == expected

    kept = await desk.kept()
    (guilty,) = [row for row in kept if row.requeued_at is None]
    assert guilty.raw == jobs[at]
    assert "was delivered 3 times and never dealt with" in guilty.error["message"]
    # Those who were near it were suspected with it, and are marked as living on.
    assert all(row.requeued_at is not None for row in kept if row is not guilty)


async def _is_empty(vhost: Vhost) -> bool:
    return vhost.waiting() == 0
