"""Two real processes on one file, with many sessions, while one or the other is killed and started anew, or
sleeps past its leases.

The producers behave as good ones do: each sends its messages in order, and again, under the same id, to whoever lives,
until it has heard a verdict. What must hold at the end is in `verdict`.
"""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import AsyncExitStack

import pytest

from actors.embedded import Embedded
from actors.receiver import Receiver
from tests.faults.child import Child, Gone
from tests.faults.lives import OUTLIVES_EVERYTHING_S, AheadClock
from tests.faults.shop import ONE_AT_A_TIME, SECRET, TWO_AT_ONCE, Gates, configured, job, shop_parts
from tests.faults.verdict import BREATH_S, Evidence, can_be_written, delivering, judge, rows, settled, uncertain, until

SESSIONS = 20
JOBS_EACH = 7
KILLS, PAUSES = 4, 2
LEASE_S = 1.0
PLANS = ("charge look_up", "look_up charge | letter weigh", "reserve | charge letter | look_up", "")


def drawn(session, dice):
    """What one person writes: numbered, some of it meant to join the turn that runs, one of it made to fail."""
    agent, failing = dice.choice([ONE_AT_A_TIME, TWO_AT_ONCE]), dice.randrange(JOBS_EACH)
    for number in range(JOBS_EACH):
        plan = "fail" if number == failing else dice.choice(PLANS)
        mode = "followup" if number == failing else dice.choice(["followup", "steer", "steer"])
        yield job(session, f"{session}-{number}", f"{session}.{number}: {plan}", agent, queue_mode=mode)


class Pair:
    """Two processes, of which each is replaced when it has been killed."""

    def __init__(self, folder, environment, dice, stack):
        self.folder, self.environment, self.dice, self.stack = folder, environment, dice, stack
        self.living, self.heard, self.started = [], 0, 0
        self.cut = set()

    async def start_one(self):
        self.started += 1
        child = Child(self.folder, self.environment, f"process-{self.started}")
        await self.stack.enter_async_context(child)
        await child.hears("ready")
        self.living.append(child)

    async def send(self, job):
        while True:
            child = self.dice.choice(self.living)
            try:
                told = await child.send(job)
            except (Gone, ConnectionError):
                await asyncio.sleep(BREATH_S)
                continue
            assert told["verdict"] in ("accepted", "steered", "duplicate")
            self.heard += 1
            return

    async def after(self, count):
        """A victim, once so many jobs were accepted."""
        await until(lambda: self.heard >= count, "for jobs to be accepted")
        # Three deaths end a turn, whoever is to blame: nobody's may be there twice already.
        deaths = "SELECT 1 FROM sessions WHERE deaths > 1"
        await until(lambda: not rows(self.folder / "insika.db", deaths), "for what was cut to get on")
        return self.dice.choice(self.living)

    async def kill(self, victim):
        self.living.remove(victim)
        victim.signal(signal.SIGKILL)
        assert await victim.ends() == -signal.SIGKILL
        self.cut |= delivering(self.folder / "insika.db")
        await self.start_one()

    async def pause(self, victim):
        """Until everything that was in its hands is in the other's."""
        await stop_outside_a_write(victim, self.folder)
        held = leases(self.folder)
        await until(lambda: not held & leases(self.folder), "for its leases to run out")
        victim.signal(signal.SIGCONT)


async def stop_outside_a_write(child, folder):
    """See `Child.stopped_at_its_point`."""
    database = folder / "insika.db"
    while True:
        child.signal(signal.SIGSTOP)
        await child.stopped()
        if can_be_written(database):
            return
        child.signal(signal.SIGCONT)
        await until(lambda: can_be_written(database), "for it to end its write")


def leases(folder):
    return {
        row["lease_id"] for row in rows(folder / "insika.db", "SELECT lease_id FROM sessions WHERE lease_id NOTNULL")
    }


async def send_all(pair, jobs):
    for each in jobs:
        await pair.send(each)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_two_processes_on_one_file_hold_every_rule_while_they_are_killed(tmp_path, seed):
    dice, received = random.Random(seed), []
    people = {f"s{number}": list(drawn(f"s{number}", dice)) for number in range(SESSIONS)}
    jobs = [each for of_person in people.values() for each in of_person]
    blows = sorted(dice.sample(range(len(jobs) // 10, len(jobs) * 9 // 10), KILLS + PAUSES))
    pauses = set(dice.sample(blows, PAUSES))
    async with Receiver([SECRET], on_received=received.append) as receiver, AsyncExitStack() as stack:
        environment = configured(tmp_path, receiver.url, lease_s=LEASE_S, order_wait_s=0.3)
        pair = Pair(tmp_path, environment, dice, stack)
        await asyncio.gather(pair.start_one(), pair.start_one())
        async with asyncio.TaskGroup() as sending:
            for of_person in people.values():
                sending.create_task(send_all(pair, of_person))
            for count in blows:
                victim = await pair.after(count)
                await (pair.pause(victim) if count in pauses else pair.kill(victim))
        await settled(tmp_path / "insika.db", claims_too=False)
        for child in pair.living:
            child.signal(signal.SIGTERM)
            assert await child.ends() == 0, child.log
        ahead = AheadClock(OUTLIVES_EVERYTHING_S)
        async with await Embedded.open(environment, shop_parts(tmp_path, ahead, Gates(held=False))):
            await settled(tmp_path / "insika.db")
    evidence = Evidence.gathered(tmp_path, received)
    judge(
        evidence, jobs, gone=KILLS + PAUSES + 2, failures={each["id"] for each in jobs if each["text"].endswith("fail")}
    )
    assert uncertain(evidence) <= pair.cut
    assert sum(row["verdict"] == "steered" for row in evidence.mailbox) > 0
    for session, of_person in people.items():
        (row,) = [each for each in evidence.sessions if each["name"] == session]
        mail = sorted(
            (each for each in evidence.mailbox if each["session_id"] == row["id"]), key=lambda m: m["position"]
        )
        assert [each["job_id"] for each in mail] == [each["id"] for each in of_person]
