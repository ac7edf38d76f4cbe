"""`insika dev` ends when it is told to, whatever its tools do; and what breaks it is not let do so for ever."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import SIGTERM, Folder, folder, wait_for

STUBBORN = """
import asyncio
from insika.tools import tool

@tool(timeout=0.2)
async def order_lookup(order_id: str) -> dict:
    while True:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            pass
"""
BREAKS_THE_LOOP = """
import asyncio
from insika.tools import tool

async def leave():
    raise SystemExit(1)

@tool
async def order_lookup(order_id: str) -> dict:
    with open("runs", "a") as runs:
        runs.write("run\\n")
    task = asyncio.create_task(leave())
    await asyncio.sleep(60)
    return {}
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Folder]:
    with folder(tmp_path, INSIKA_LEASE_S="1", INSIKA_DRAIN_S="1", INSIKA_TOOLS="tools.py") as made:
        made.must("migrate")
        made.write("demo.yaml", "id: demo\nmodel: offline/demo\n")
        yield made


def sent(place: Folder) -> str:
    place.must("agents", "apply", "demo.yaml")
    job = place.must("send", "--session", "ana", "--agent", "demo", "where is order 1234?", "--json").json
    return str(job["turn_id"])


def turn(place: Folder, turn_id: str) -> dict[str, object]:
    shown: dict[str, object] = place.must("turns", "show", turn_id, "--json").json
    return shown


def test_a_task_that_will_not_be_cancelled_keeps_no_process_from_ending(place: Folder) -> None:
    place.write("tools.py", STUBBORN)
    turn_id = sent(place)
    worker = place.start("dev", stdin=subprocess.DEVNULL)
    wait_for(lambda: turn(place, turn_id)["state"] == "completed", "the answer")
    assert worker.signal(SIGTERM) == 0


def test_a_tool_that_breaks_its_process_is_given_up_after_the_third(place: Folder) -> None:
    place.write("tools.py", BREAKS_THE_LOOP)
    turn_id = sent(place)
    for _ in range(3):
        assert place.start("dev", stdin=subprocess.DEVNULL).wait() != 0
    last = place.start("dev", stdin=subprocess.DEVNULL)
    wait_for(lambda: turn(place, turn_id)["state"] == "failed", "the end of the turn")
    assert last.signal(SIGTERM) == 0
    error = turn(place, turn_id)["error"]
    assert isinstance(error, dict)
    assert error["type"] == "worker_lost"
    assert (place.path / "runs").read_text().splitlines() == ["run"] * 3
