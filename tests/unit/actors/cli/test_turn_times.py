"""A turn's time as people read it."""

from __future__ import annotations

import json

import pytest

from actors.cli.turn_times import step_rows, times_shown

BRIEF = {"total_ms": 3421.6, "model_ms": 3200.0, "tools_ms": 120.4}
DETAILED = {
    "queued_ms": 12.0,
    "prepare_ms": 0.4,
    "model": [
        {"step": 1, "attempts": 2, "ms": 2200.0, "ttft_ms": 310.2},
        {"step": 2, "attempts": 1, "ms": 1000.0, "ttft_ms": None},
    ],
    **BRIEF,
}


@pytest.mark.parametrize(
    ("timing", "shown"),
    [
        ({}, None),
        ({"total_ms": 3}, "3 ms"),
        (BRIEF, "3.4 s (model 3.2 s, tools 120 ms)"),
        (DETAILED, "3.4 s (queued 12 ms, prepared 0 ms, model 3.2 s, tools 120 ms)"),
    ],
)
def test_a_turn_s_time_fits_one_line(timing, shown):
    assert times_shown(timing) == shown


def test_the_steps_are_rows_where_they_were_measured():
    assert step_rows(BRIEF) == []
    assert step_rows(DETAILED) == [("1", "2", "2.2 s", "310 ms"), ("2", "1", "1.0 s", "-")]


@pytest.mark.parametrize("timing", [{}, BRIEF, DETAILED])
def test_the_command_shows_what_the_row_holds(command_line, timing):
    async def fill(world) -> str:
        said = await world.say()
        owner = await world.own(said.session_id)
        await owner.start()
        assert await owner.commit(timing=timing)
        return said.turn_id

    turn_id = command_line.seed(fill)
    told = command_line.run("turns", "show", turn_id).output
    assert ("(queued 12 ms" in told) == ("queued_ms" in timing)
    assert ("3.4 s" in told) == bool(timing)
    assert ("Model time" in told) == ("model" in timing)
    assert command_line.json("turns", "show", turn_id)["timing"] == json.loads(json.dumps(timing))
