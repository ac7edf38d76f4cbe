"""What a chat shows of each thing that is said, and of how turns end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from actors.cli.chat.view import ended, said
from insika.messages import Message, Role, ToolCall, assistant, tool_result, user
from insika.storage.rows import LogEntry, TurnRow, TurnState, Verdict
from insika.turn import sentences

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def shown(message: Message, *, step: int = 1, position: int | None = None, **mine: Verdict) -> list[str]:
    known = {int(name[1:]): verdict for name, verdict in mine.items()}
    return [line.plain for line in said(LogEntry(1, "t1", 1, step, message, position), "shop", known)]


def turn(state: TurnState, **values: Any) -> TurnRow:
    defaults: dict[str, Any] = {
        "id": "t1",
        "session_id": 1,
        "position": 1,
        "state": state,
        "outcome": str(state),
        "attempt": 1,
        "agent": "shop",
        "channel": None,
        "recipient": "s",
        "origin": "customer",
        "profile_revision": None,
        "limits": None,
        "synthesized": False,
        "route": None,
        "timing": {},
        "error": None,
        "started_seq": None,
        "created_at": NOW,
        "started_at": NOW,
        "ended_at": NOW,
    }
    return TurnRow(**defaults | values)


def endings(row: TurnRow, *answered: str) -> list[str]:
    return [line.plain for line in ended(row, "s", answered=answered)]


def test_an_answer_bears_the_agents_name_and_narration_does_not() -> None:
    assert shown(assistant("Here you are.")) == ["shop: Here you are."]
    calls = (ToolCall("c1", "order_lookup"), ToolCall("c2", "refund"))
    assert shown(assistant("Let me see.", *calls)) == ["  Let me see.", "  · order_lookup", "  · refund"]
    assert shown(assistant("", calls[0])) == ["  · order_lookup"]


def test_a_result_is_shown_only_when_the_tool_failed() -> None:
    assert shown(tool_result("c1", "fine")) == []
    failed = tool_result("c1", sentences.tool_failed("refund", "no\nmoney"), is_error=True)
    assert shown(failed) == ["  tool failed: refund failed: no money"]


def test_the_engine_is_told_apart_from_people() -> None:
    assert shown(user(sentences.budget_answer_now(2)))[0].startswith("notice: You have 2 tool calls left")
    assert shown(user("from elsewhere"), step=0, position=3) == ["someone: from elsewhere"]


@pytest.mark.parametrize(
    ("step", "verdict", "told"),
    [
        (0, Verdict.ACCEPTED, []),
        (2, Verdict.STEERED, ["[your message joined the turn]"]),
        (0, Verdict.STEERED, ["[the turn ended first; your message got a turn of its own]"]),
    ],
)
def test_what_one_wrote_oneself_is_not_repeated(step: int, verdict: Verdict, told: list[str]) -> None:
    assert shown(user("mine"), step=step, position=3, p3=verdict) == told


def test_what_somebody_wrote_cannot_steer_the_terminal() -> None:
    assert shown(Message(Role.ASSISTANT, "\x1b[2J")) == ["shop: \u241b[2J"]


def test_a_turn_that_answered_needs_no_more_words() -> None:
    assert endings(turn(TurnState.COMPLETED), "t1") == []
    assert endings(turn(TurnState.COMPLETED)) == ["[the turn ended without an answer]"]
    (told,) = endings(turn(TurnState.COMPLETED, synthesized=True), "t1")
    assert "the tool calls were used up" in told


def test_a_turn_that_failed_says_why_and_how_to_run_it_again() -> None:
    error = {"type": "tool_limit", "message": "50 calls were made."}
    assert endings(turn(TurnState.FAILED, error=error)) == [
        "The turn failed. tool_limit: 50 calls were made. `insika sessions retry s` runs it once more."
    ]


def test_a_turn_that_was_cancelled_says_so() -> None:
    error = {"type": "cancelled", "message": "the turn was cancelled"}
    assert endings(turn(TurnState.CANCELLED, error=error)) == [
        "[the turn was cancelled: cancelled: the turn was cancelled]"
    ]


def test_a_turn_that_a_guard_refused_shows_what_the_person_was_told() -> None:
    reply, why = ended(turn(TurnState.REFUSED), "s", answered=(), reply="I cannot help with that.\x1b[2J")
    assert reply.plain == "shop: I cannot help with that.\u241b[2J"
    assert why.plain == "[a guard refused it: it and this safe reply are not part of the conversation]"
    (alone,) = endings(turn(TurnState.REFUSED))
    assert alone.startswith("[a guard refused it: ")


def test_a_model_that_failed_is_told_with_what_to_do() -> None:
    fatal = {"type": "provider_fatal", "message": "agent 'shop' cannot be run here: ANTHROPIC_API_KEY is not set"}
    (told,) = endings(turn(TurnState.FAILED, error=fatal))
    assert told == (
        "The turn failed. provider_fatal: agent 'shop' cannot be run here: ANTHROPIC_API_KEY is not set. Asking again "
        "as things stand would not help; when that is mended, `insika sessions retry s` runs it once more."
    )
    away = {"type": "provider_unavailable", "message": "anthropic answered 529"}
    (told,) = endings(turn(TurnState.FAILED, error=away))
    assert "It may be well again soon: `insika sessions retry s` runs it once more." in told


@pytest.mark.parametrize(
    ("type_", "after", "when"),
    [
        ("provider_unavailable", 7, "In about 7 s, "),
        ("circuit_open", 59.2, "In about 1 min, "),
        ("circuit_open", 299.6, "In about 5 min, "),
        ("budget_exceeded", 45_001.0, "In about 13 h, "),
        ("budget_exceeded", None, ""),
        ("provider_unavailable", 0, "It may be well again soon: "),
    ],
)
def test_a_failure_that_time_mends_says_after_how_long(type_: str, after: float | None, when: str) -> None:
    error = {"type": type_, "message": "not now", **({} if after is None else {"retry_after": after})}
    (told,) = endings(turn(TurnState.FAILED, error=error))
    assert told == f"The turn failed. {type_}: not now. {when}`insika sessions retry s` runs it once more."


def test_what_a_policy_denies_is_not_to_be_run_once_more() -> None:
    error = {"type": "policy_denied", "message": "too many turns"}
    assert endings(turn(TurnState.FAILED, error=error)) == ["The turn failed. policy_denied: too many turns."]
