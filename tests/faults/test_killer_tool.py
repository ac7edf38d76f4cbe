"""Fault 26: a tool that ends its process, in real processes with other turns in them.

Each time the turn is tried again; at the third death it fails where all can see it, and no other turn does.
"""

from __future__ import annotations

import json

import pytest

from actors.receiver import Receiver
from tests.faults.child import Child
from tests.faults.lives import OUTLIVES_EVERYTHING_S
from tests.faults.shop import SECRET, configured, diary_entries, job
from tests.faults.verdict import Evidence, delivering, judge, settled, uncertain

EXIT_OF_A_KILLED_ONE = 137
INNOCENTS = [job(f"s{number}", f"innocent-{number}", f"I{number}: look_up@hold | charge letter") for number in range(6)]
KILLER = job("killer", "killer-1", "K: letter | bomb@fuse")
NEXT = job("killer", "killer-2", "K2: charge", queue_mode="followup")
JOBS = [*INNOCENTS[:3], KILLER, *INNOCENTS[3:]]


@pytest.fixture
async def shop(tmp_path):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield configured(tmp_path, receiver.url), received


async def all_within_a_tool(child):
    for innocent in INNOCENTS:
        await child.hears("tool_called", session=innocent["session"], tool="look_up")
    await child.hears("tool_called", session="killer", tool="bomb")


async def test_at_the_third_death_the_turn_fails_visibly_and_no_other_does(tmp_path, shop):
    environment, received = shop
    async with Child(tmp_path, environment, "first", held=True) as first:
        for each in JOBS:
            await first.send(each)
        await first.send(NEXT)
        await all_within_a_tool(first)
        first.command(open="fuse")
        assert await first.ends() == EXIT_OF_A_KILLED_ONE
    async with Child(tmp_path, environment, "second", held=True, ahead_s=OUTLIVES_EVERYTHING_S) as second:
        await all_within_a_tool(second)
        second.command(open="fuse")
        assert await second.ends() == EXIT_OF_A_KILLED_ONE
    async with Child(tmp_path, environment, "third", ahead_s=2 * OUTLIVES_EVERYTHING_S) as third:
        assert await third.ends() == EXIT_OF_A_KILLED_ONE
        assert not [told for told in third.told if told["event"] == "turn_failed"]
    cut = delivering(tmp_path / "insika.db")
    async with Child(tmp_path, environment, "fourth", ahead_s=3 * OUTLIVES_EVERYTHING_S) as fourth:
        await fourth.hears("ready")
        await settled(tmp_path / "insika.db")
        await fourth.hears("turn_failed")
        failed = [told for told in fourth.told if told["event"] == "turn_failed"]
    assert [(told["session"], told["error"]) for told in failed] == [("killer", "worker_lost")]
    evidence = Evidence.gathered(tmp_path, received)
    judge(evidence, [*JOBS, NEXT], gone=3, failures={"killer-1"})
    assert json.loads(evidence.of_turn("killer-1")["error"])["type"] == "worker_lost"
    assert len([run for run in diary_entries(tmp_path, "tool") if run["tool"] == "bomb"]) == 3
    assert uncertain(evidence) == cut
