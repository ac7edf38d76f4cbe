"""What a chat shows of reasoning: whole lines as they come, in their place, and void when their request failed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from actors.cli.chat.thoughts import LINE_MAX, Thoughts
from insika.events import Event, EventType

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def event(type: str, turn: str = "t1", *, step: int = 1, attempt: int = 1, epoch: int = 1, **data: Any) -> Event:
    return Event(type, NOW, turn, "ana", "shop", None, epoch, step, attempt, data)


def think(text: str, turn: str = "t1", **place: int) -> Event:
    return event(EventType.THINKING, turn, text=text, **place)


def content(turn: str = "t1", **place: int) -> Event:
    return event(EventType.CONTENT, turn, text="never shown here", **place)


def failure(turn: str = "t1", **place: int) -> Event:
    data = {"model": "anthropic/claude", "action": "retryable", "status": 529, "retry_after": None}
    return event(EventType.PROVIDER_FAILURE, turn, **data, **place)


def plain(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


def shown(*events: Event) -> list[str]:
    thoughts = Thoughts("ana")
    for each in events:
        thoughts.read([each])
    return plain(thoughts.rest(thoughts.last))


def test_a_line_is_shown_when_it_is_whole_and_the_last_when_the_model_speaks() -> None:
    assert shown(think("The customer "), think("asks\nfor")) == ["  ~ The customer asks"]
    assert shown(think("one\n\ntwo"), content()) == ["  ~ one", "  ~ two"]
    assert shown(think("one"), event(EventType.INTERMEDIATE, text="")) == ["  ~ one"]
    assert shown(think("one"), think("two", step=2)) == ["  ~ one"]
    assert shown(think("one"), event(EventType.TURN_COMPLETED, step=0)) == ["  ~ one"]


def test_what_has_no_line_end_is_shown_in_pieces_that_end_at_a_space() -> None:
    words = " ".join(["word"] * 100)
    lines = shown(think(words), content())
    assert all(len(line) <= LINE_MAX + len("  ~ ") for line in lines)
    assert " ".join(line.removeprefix("  ~ ") for line in lines) == words
    unbroken = shown(think("x" * (2 * LINE_MAX + 5)), content())
    assert [len(line) - len("  ~ ") for line in unbroken] == [LINE_MAX, LINE_MAX, 5]


def test_what_a_failed_request_had_shown_is_void() -> None:
    (whole, told) = shown(think("A plan\nwith a beg"), failure())
    assert whole == "  ~ A plan"
    assert told == (
        "[a request to anthropic/claude failed (HTTP 529); what stands above with ~ was part of it, and is void]"
    )
    assert shown(failure()) == ["[a request to anthropic/claude failed (HTTP 529)]"]
    again = shown(think("A plan\n"), failure(), think("Another\n", attempt=2), failure(attempt=2))
    assert again[2] == "  ~ Another"
    assert "is void" in again[3]
    assert "is void" not in shown(think("A plan\n"), failure(), failure(attempt=2))[2]


def test_what_comes_late_is_not_shown() -> None:
    assert shown(think("two\n", attempt=2), think("one\n", attempt=1)) == ["  ~ two"]
    assert shown(think("two\n", epoch=2), think("one\n", epoch=1)) == ["  ~ two"]


def test_other_sessions_are_not_shown() -> None:
    other = Event(EventType.THINKING, NOW, "t9", "ben", "shop", None, 1, 1, 1, {"text": "mine\n"})
    of_a_tenant = Event(EventType.THINKING, NOW, "t9", "ana", "shop", "acme", 1, 1, 1, {"text": "mine\n"})
    assert shown(other, of_a_tenant) == []


def test_thoughts_stand_before_what_came_of_them_and_behind_what_came_before() -> None:
    thoughts = Thoughts("ana")
    thoughts.read([think("first\n"), content(), think("second\n", step=2), think("next turn\n", "t2")])
    assert plain(thoughts.before(("t1", 0))) == []
    assert plain(thoughts.before(("t1", 1))) == ["  ~ first"]
    assert plain(thoughts.before(("t1", 2))) == ["  ~ second"]
    assert plain(thoughts.rest(thoughts.last)) == ["  ~ next turn"]
    assert plain(thoughts.rest(thoughts.last)) == []


def test_what_came_during_a_look_waits_for_the_next_unless_its_place_was_found() -> None:
    thoughts = Thoughts("ana")
    thoughts.read([think("before\n", step=2)])
    last = thoughts.last
    thoughts.read([think("and during\n", step=2), think("a step later\n", step=3)])
    assert plain(thoughts.before(("t1", 2))) == ["  ~ before", "  ~ and during"]
    assert plain(thoughts.rest(last)) == []
    assert plain(thoughts.before(("t1", 3))) == ["  ~ a step later"]


def test_a_line_that_is_not_whole_stands_before_what_was_said_with_it_all_the_same() -> None:
    thoughts = Thoughts("ana")
    thoughts.read([think("half a li")])
    assert plain(thoughts.before(("t1", 0))) == []
    assert plain(thoughts.before(("t1", 1))) == ["  ~ half a li"]


def test_a_terminal_is_not_steered_by_a_thought_and_shows_it_dimmed() -> None:
    thoughts = Thoughts("ana")
    thoughts.read([think("\x1b[2Jgone\n")])
    (line,) = thoughts.rest(thoughts.last)
    assert "\x1b" not in line.plain
    assert line.style == "dim"
