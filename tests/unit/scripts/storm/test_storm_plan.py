"""The plan of a storm: the same for the same seed, everything in it, and no turn's owners struck too often."""

from __future__ import annotations

import itertools
import json

import pytest

from scripts.storm.options import Options
from scripts.storm.plan import Kind, make_plan, write_plan

COSTLY = {Kind.POSTGRES_FAST, Kind.POSTGRES_IMMEDIATE, Kind.POSTGRES_KILL}
SEEDS = range(20)


def costs_owners(fault):
    on = fault.targets[0].partition("-")[0]
    return fault.kind in COSTLY or (fault.kind in (Kind.KILL, Kind.PAUSE) and on in ("worker", "postgres"))


def options(seed, seconds=100.0, **others):
    return Options(seconds=seconds, seed=seed, jobs=100, **others)


def test_the_seed_decides():
    assert make_plan(options(1)) == make_plan(options(1))
    assert make_plan(options(1)) != make_plan(options(2))


@pytest.mark.parametrize("seed", SEEDS)
def test_owners_are_given_time_between_what_costs_them_their_sessions(seed):
    of_lease = options(seed).lease_s
    costly = [fault for fault in make_plan(options(seed)) if costs_owners(fault)]
    for first, second in itertools.pairwise(costly):
        assert second.at_s >= first.at_s + first.lasts_s + of_lease + 3.4


@pytest.mark.parametrize("seed", SEEDS)
def test_two_minutes_have_every_kind_in_them(seed):
    plan = make_plan(options(seed, 120.0))
    assert {fault.kind for fault in plan} == set(Kind)
    struck = {target for fault in plan for target in fault.targets}
    assert struck >= {"worker-1", "worker-2", "postgres", "rabbitmq", "redis"}
    assert {target.partition("-")[0] for target in struck} >= {"ingress", "outbox", "clock"}


@pytest.mark.parametrize("seed", SEEDS)
def test_workers_are_paused_beyond_their_lease(seed):
    pauses = [f for f in make_plan(options(seed)) if f.kind is Kind.PAUSE and f.targets[0].startswith("worker")]
    assert pauses
    assert all(fault.lasts_s > options(seed).lease_s for fault in pauses)


def test_faults_are_in_the_order_of_time_and_within_the_storm():
    times = [fault.at_s for fault in make_plan(options(3))]
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 100


def test_there_are_only_targets_that_there_are():
    plan = make_plan(options(4, workers=3, ingresses=1, outboxes=1))
    targets = {target for fault in plan for target in fault.targets}
    assert targets <= {"worker-1", "worker-2", "worker-3", "ingress-1", "outbox-1", "clock-1"} | {
        "postgres",
        "rabbitmq",
        "redis",
    }
    assert "worker-3" in targets


def test_the_plan_is_written_down_with_its_seed(tmp_path):
    plan = make_plan(options(5))
    write_plan(plan, options(5), tmp_path / "plan.json")
    told = json.loads((tmp_path / "plan.json").read_text())
    assert told["options"]["seed"] == 5
    assert len(told["faults"]) == len(plan)
    assert told["faults"][0]["kind"] == plan[0].kind
