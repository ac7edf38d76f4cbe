from __future__ import annotations

import pytest

from insika.agents.precedence import first_present, job_queue_mode, queue_mode_in_force
from insika.choices import Origin, QueueMode


def test_the_strongest_layer_that_has_the_key_wins() -> None:
    assert first_present("k", {"k": 1}, {"k": 2}, default=9) == 1
    assert first_present("k", {"other": 1}, {"k": 2}, default=9) == 2
    assert first_present("k", {}, {}, default=9) == 9
    assert first_present("k", default=9) == 9


@pytest.mark.parametrize("off", [None, 0])
def test_a_key_that_is_present_wins_though_it_says_off(off: int | None) -> None:
    assert first_present("k", {"k": off}, {"k": 2}, default=9) == off


@pytest.mark.parametrize("mode", [None, *QueueMode])
def test_a_customer_gets_the_mode_of_the_job(mode: QueueMode | None) -> None:
    assert job_queue_mode(Origin.CUSTOMER, mode) is mode


@pytest.mark.parametrize("mode", [None, *QueueMode])
@pytest.mark.parametrize("origin", [Origin.ENGINE, Origin.SCHEDULED])
def test_what_no_person_wrote_waits_for_its_own_turn(origin: Origin, mode: QueueMode | None) -> None:
    assert job_queue_mode(origin, mode) is QueueMode.FOLLOWUP


def test_the_mode_in_force_goes_down_the_layers() -> None:
    agent, platform = {"queue_mode": QueueMode.STEER}, {"queue_mode": QueueMode.INTERRUPT}
    assert queue_mode_in_force(QueueMode.FOLLOWUP, QueueMode.COLLECT, agent, platform) is QueueMode.FOLLOWUP
    assert queue_mode_in_force(None, QueueMode.COLLECT, agent, platform) is QueueMode.COLLECT
    assert queue_mode_in_force(None, None, agent, platform) is QueueMode.STEER
    assert queue_mode_in_force(None, None, {}, platform) is QueueMode.INTERRUPT
    assert queue_mode_in_force(None, None, {}, {}) is QueueMode.FOLLOWUP


def test_a_mode_that_is_off_is_followup_and_hides_the_platforms() -> None:
    assert queue_mode_in_force(None, None, {"queue_mode": None}, {"queue_mode": QueueMode.STEER}) is QueueMode.FOLLOWUP
