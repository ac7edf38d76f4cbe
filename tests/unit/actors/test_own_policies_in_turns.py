"""A turn of an agent that names policies of its user's: which let it begin, and what becomes of it otherwise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors.admission import Admitted, Applicant, EveryoneAdmitted, Refused
from actors.own_policies import MAX_REASON_BYTES, PolicedAdmissions
from insika.agents.profile import load_profile
from insika.errors import PolicyDenied
from insika.policy import Allow, Arrival, Deny, policy
from insika.policy.own import OwnPolicies, OwnPolicy
from insika.providers.script import Call, Say
from insika.storage.rows import TurnState
from insika.testing import Script
from insika.tools.threads import ToolThreads
from tests.actor_world import CHANNEL, Gate, Process, profile
from tests.routed_models import front, models, orders

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def deciding(name: str, decision: Allow | Deny, seen: list[Arrival] | None = None) -> OwnPolicy:
    @policy(name)
    def decide(turn: Arrival) -> Allow | Deny:
        if seen is not None:
            seen.append(turn)
        return decision

    return decide


YES, NO = deciding("yes", Allow()), deciding("no", Deny("closed on Sundays"))


def naming(*names: str) -> dict[str, Any]:
    return profile(policies=list(names))


async def say(process: Process, text: str = "hello", **fields: Any) -> Any:
    accepted = await process.send(text, **fields)
    await process.idle()
    return await process.turn(accepted.turn_id)


async def test_a_denied_turn_fails_with_the_policy_and_its_reason_and_says_nothing(place_for) -> None:
    place = place_for(Script(afterwards=Say("Done.")))
    process = await place.process(naming("yes", "no"), policies=[YES, NO])
    turn = await say(process, channel=CHANNEL)

    assert (turn.state, turn.outcome) == (TurnState.FAILED, "failed")
    assert turn.error == {
        "type": "policy_denied",
        "message": "policy 'no' does not let this turn begin: closed on Sundays",
        "field": "policies",
    }
    assert await process.store.real.model_calls(turn.id) == ()
    assert await process.select("SELECT 1 FROM outbox") == []
    assert [event.data["error"] for event in process.events.of("turn_failed")] == ["policy_denied"]
    assert process.events.of("turn_started") == []
    assert await process.said() == ["hello"]


async def test_only_the_policies_that_a_profile_names_are_asked(place_for) -> None:
    seen: list[Arrival] = []
    process = await place_for(Script(afterwards=Say("Done."))).process(
        naming("tool_allowlist", "yes", "approval_required"), policies=[YES, NO, deciding("other", Deny("no"), seen)]
    )
    assert (await say(process)).outcome == "completed"
    assert seen == []


async def test_the_first_policy_that_denies_ends_it(place_for) -> None:
    seen: list[Arrival] = []
    process = await place_for(Script()).process(
        naming("no", "after"), policies=[NO, deciding("after", Deny("late"), seen)]
    )
    assert "closed on Sundays" in (await say(process)).error["message"]
    assert seen == []


async def test_a_policy_gets_the_turn_and_not_more(place_for) -> None:
    seen: list[Arrival] = []
    place = place_for(Script(afterwards=Say("Done.")))
    process = await place.process(naming("look"), policies=[deciding("look", Allow(), seen)])
    turn = await say(process, "two books", tenant="acme", customer="c-7", channel=CHANNEL, recipient="+49 30")
    assert seen == [
        Arrival("acme", "s", "agent", turn.id, ("two books",), CHANNEL, "+49 30", "c-7", "customer", place.clock.now())
    ]


async def test_a_policy_is_asked_once_in_a_turn_that_is_taken_up_again(place_for) -> None:
    seen: list[Arrival] = []
    own = deciding("look", Allow(), seen)
    place = place_for(Script([Call("look", {"n": 1}), Say("Done.")]))
    place.shop.gates["look", 1] = gate = Gate()
    first = await place.process(naming("look"), policies=[own])
    await first.send("hello")
    await gate.reached()
    await first.die()
    place.shop.gates.clear()
    second = await place.process(naming("look"), policies=[own])
    place.clock.advance(20)
    await second.sweep()
    await second.idle()
    assert await second.answers() == ["Done."]
    assert len(seen) == 1


async def test_a_policy_that_this_process_does_not_know_lets_no_turn_begin(place_for) -> None:
    process = await place_for(Script()).process(naming("yess"), policies=[YES])
    error = (await say(process)).error
    assert error["type"] == "policy_denied"
    assert "INSIKA_TOOLS" in error["message"]
    assert "did you mean yes?" in error["message"]


async def test_the_profile_in_force_when_the_turn_begins_has_the_word(place_for) -> None:
    process = await place_for(Script(afterwards=Say("Done."))).process(naming("no"), policies=[NO])
    assert (await say(process)).state is TurnState.FAILED
    await process.begin([profile()])
    assert (await say(process)).state is TurnState.COMPLETED


async def test_a_denied_turn_counts_in_the_edge_limits_and_a_limited_one_reaches_no_policy(place_for) -> None:
    seen: list[Arrival] = []
    process = await place_for(Script()).process(
        profile(policies=["look"], limits={"chat_rate_limit": 1}), policies=[deciding("look", Deny("no"), seen)]
    )
    assert [(await say(process)).outcome for _ in range(2)] == ["failed", "limited"]
    assert len(seen) == 1


# --- in doubt, no


@policy("raises")
def raises(turn: Arrival) -> Allow:
    raise RuntimeError(f"what {turn.texts} said")


@policy("raises_later")
async def raises_later(turn: Arrival) -> Allow:
    raise RuntimeError(f"what {turn.texts} said")


@policy("exits")
def exits(turn: Arrival) -> Allow:
    raise SystemExit(3)


@policy("exits_later")
async def exits_later(turn: Arrival) -> Allow:
    raise SystemExit(3)


@policy("cancels")
async def cancels(turn: Arrival) -> Allow:
    raise asyncio.CancelledError


@policy("nothing")
def nothing(turn: Arrival) -> Allow:
    return None  # type: ignore[return-value]


@policy("truth")
async def truth(turn: Arrival) -> Allow:
    return True  # type: ignore[return-value]


@policy("silent")
def silent(turn: Arrival) -> Deny:
    return Deny(" \n")


@policy("talkative")
def talkative(turn: Arrival) -> Deny:
    return Deny("no\0 " + "ü" * 10_000)


@policy("hangs")
async def hangs(turn: Arrival) -> Allow:
    await asyncio.Event().wait()
    return Allow()


@policy("clings")
async def clings(turn: Arrival) -> Allow:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        pass
    return Allow()


async def asked(own: OwnPolicy, timeout_s: float = 20.0) -> tuple[str, list[dict[str, Any]]]:
    """The message of the denial, and what was logged."""
    admissions = PolicedAdmissions(EveryoneAdmitted(), OwnPolicies([own]), ToolThreads(), timeout_s)
    agent = load_profile(naming(own.name), "test")
    with capture_logs() as logs:
        admission = await admissions.ask(agent, Applicant("", "s", "t", NOW, ("my secret",)))
    assert isinstance(admission, Refused), admission
    assert isinstance(admission.error, PolicyDenied)
    return admission.error.message, list(logs)


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (raises, "it raised RuntimeError"),
        (raises_later, "it raised RuntimeError"),
        (exits, "it raised SystemExit"),
        (exits_later, "it raised SystemExit"),
        (cancels, "it raised CancelledError"),
        (nothing, "it returned NoneType, which is neither"),
        (truth, "it returned bool, which is neither"),
        (silent, "it gives no reason"),
    ],
    ids=lambda value: getattr(value, "name", "says"),
)
async def test_a_policy_that_gives_no_decision_denies(own: OwnPolicy, says: str) -> None:
    message, logs = await asked(own)
    assert says in message
    assert "secret" not in f"{message} {logs}"


async def test_a_raised_error_is_logged_by_its_place() -> None:
    _, (line,) = await asked(raises)
    assert (line["event"], line["policy"], line["error"]) == ("policy_failed", "raises", "RuntimeError")
    assert "test_own_policies_in_turns.py:" in line["raised_at"]


async def test_a_reason_is_cleaned_and_kept_short() -> None:
    message, _ = await asked(talkative)
    assert "\0" not in message
    assert len(message.encode()) < MAX_REASON_BYTES + 100


@pytest.mark.parametrize("own", [hangs, clings], ids=lambda own: own.name)
async def test_a_policy_that_takes_too_long_denies(own: OwnPolicy) -> None:
    message, _ = await asked(own, timeout_s=0.01)
    assert "did not decide within 0.01 seconds" in message


async def test_a_policy_that_blocks_denies_and_costs_its_thread_alone() -> None:
    done = threading.Event()

    @policy("blocks")
    def blocks(turn: Arrival) -> Allow:
        done.wait(20)
        return Allow()

    message, _ = await asked(blocks, timeout_s=0.01)
    done.set()
    assert "did not decide" in message


async def test_a_turn_that_could_not_be_begun_at_once_is_not_asked_about_again() -> None:
    seen: list[Arrival] = []
    own = OwnPolicies([deciding("look", Allow(), seen)])
    admissions = PolicedAdmissions(EveryoneAdmitted(), own, ToolThreads())
    agent = load_profile(naming("look"), "test")

    def turn(id: str, *texts: str) -> Applicant:
        return Applicant("", "s", id, NOW, texts)

    questions: tuple[Callable[[], Applicant], ...] = (
        lambda: turn("t", "a"),
        lambda: turn("t", "a"),
        lambda: turn("t", "a", "b"),
        lambda: turn("u", "a"),
    )
    for question in questions:
        assert isinstance(await admissions.ask(agent, question()), Admitted)
    assert [(each.turn_id, each.texts) for each in seen] == [("t", ("a",)), ("t", ("a", "b")), ("u", ("a",))]


async def test_the_policies_of_an_agent_that_a_turn_is_handed_to_are_asked_too(place_for) -> None:
    seen: list[Arrival] = []
    process = await place_for(Script()).process(
        front(), orders(policies=["look", "no"]), model=models(), policies=[NO, deciding("look", Allow(), seen)]
    )
    turn = await say(process, "where is my order?")
    assert (turn.state, turn.error["type"]) == (TurnState.FAILED, "policy_denied")
    assert [(each.agent, each.texts) for each in seen] == [("orders", ("where is my order?",))]
    assert await process.answers() == []
