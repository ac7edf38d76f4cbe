from __future__ import annotations

from datetime import UTC, datetime

from structlog.testing import capture_logs

from actors.turn_lines import TurnLines
from insika.events import Event, EventType
from insika.testing import Call, RecordingEvents, Say, Script

AT = datetime(2026, 3, 1, tzinfo=UTC)


def test_every_event_is_handed_on_and_only_an_end_is_logged() -> None:
    events = RecordingEvents()
    lines = TurnLines(events)
    told = [Event(type, AT, "t", "s", "a") for type in EventType]
    with capture_logs() as logs:
        for event in told:
            lines.publish(event)
    assert events.events == told
    assert len(logs) == 3
    assert {line["event"] for line in logs} == {"turn"}


async def test_a_turn_leaves_one_line_that_says_how_it_went_and_not_what_was_said(place_for) -> None:
    place = place_for(Script([Call("look", {"n": 1}, text="Wait."), Say("A secret answer.")]))
    with capture_logs() as logs:
        process = await place.process()
        accepted = await process.send("a secret question")
        await process.idle()
    (line,) = [line for line in logs if line["event"] == "turn"]
    assert (line["turn_id"], line["session"], line["agent"]) == (accepted.turn_id, "s", "agent")
    assert (line["outcome"], line["steps"], line["attempt"]) == ("completed", 2, 1)
    assert line["usage"]["output"] > 0
    assert set(line["timing"]) == {"total_ms", "model_ms", "tools_ms"}
    assert "secret" not in str(line)
