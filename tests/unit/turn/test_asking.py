"""One step's request, attempt by attempt: what is tried again, what is told, what is booked, and what is kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from insika.clock import ManualClock
from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.messages import NO_USAGE, ToolCall, Usage, assistant
from insika.ports import TextDelta, ThinkingDelta, UsageSoFar
from insika.reliability.attempts import UNSENT_WAITS_S, GiveUp, OneAttempt, TryAgain
from insika.turn.log import Answer, Failure, Superseded
from insika.turn.run import TurnLoop
from tests.loop_doubles import MODEL, Turn, forever, identity
from tests.spoken_models import SpokenModel, finished, unsent

SECRET = "key sk-123 of ana@example.com"


class TryThrice(OneAttempt):
    """A policy that lets a second model have a go, and a third."""

    async def after(self, failed, left_s):
        if len(failed) == 3:
            return GiveUp(failed[-1].error)
        return TryAgain(0.1 * len(failed), f"other/m{len(failed)}")


def rows(turn: Turn):
    return [(row.step, row.attempt, row.model, row.state) for row in turn.log.model_calls.values()]


def failures(turn: Turn):
    return [data for kind, data in turn.emit.events if kind == "provider_failure"]


async def test_a_connection_that_failed_twice_before_it_was_made_costs_nothing_and_shows_nothing():
    model = SpokenModel([unsent()], [unsent()], [TextDelta("Done."), finished()])
    turn = await Turn(model).run()

    assert isinstance(turn.log.ended, Answer)
    assert turn.slept == [UNSENT_WAITS_S[1]]
    assert rows(turn) == [(1, 1, MODEL, "estimated"), (1, 2, MODEL, "estimated"), (1, 3, MODEL, "measured")]
    assert [row.usage for row in turn.log.model_calls.values()] == [NO_USAGE, NO_USAGE, Usage(10, 5)]
    assert turn.log.ended.usage == Usage(10, 5)
    assert [event for event in turn.events if event != "provider_failure"] == ["content"]
    assert turn.event("content") == {"step": 1, "attempt": 3, "text": "Done."}
    assert model.requests[0] == model.requests[2]


async def test_a_connection_that_cannot_be_made_at_all_fails_the_turn():
    turn = await Turn(SpokenModel(*[[unsent()]] * 3)).run()

    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.type == "provider_unavailable"
    assert [attempt for _, attempt, _, _ in rows(turn)] == [1, 2, 3]
    assert turn.log.ended.usage + turn.log.ended.estimate == NO_USAGE


async def test_every_failure_is_told_in_numbers_only():
    error = ProviderError(f"429: {SECRET}", action=FailureAction.RATE_LIMITED_LONG, status=429, retry_after=90.0)
    turn = await Turn(SpokenModel([TextDelta("half"), error])).run()

    assert failures(turn) == [
        {
            "step": 1,
            "attempt": 1,
            "model": MODEL,
            "action": "rate_limited_long",
            "status": 429,
            "retry_after": 90.0,
        }
    ]
    assert SECRET not in str(failures(turn))


async def test_a_turn_that_a_vendor_asks_to_wait_says_for_how_long():
    error = ProviderError("slow down", action=FailureAction.RATE_LIMITED_SHORT, status=429, retry_after=7.5)
    turn = await Turn(SpokenModel([error])).run()

    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.as_dict() == {
        "type": "provider_unavailable",
        "message": "slow down",
        "retry_after": 7.5,
    }
    assert len(rows(turn)) == 1


async def test_a_defect_of_a_provider_is_told_as_fatal():
    turn = await Turn(SpokenModel([RuntimeError(SECRET)])).run()

    (failure,) = failures(turn)
    assert (failure["action"], failure["status"], failure["retry_after"]) == ("fatal", 0, None)


async def test_of_a_failed_attempt_nothing_is_kept_and_the_next_is_built_anew_from_the_log():
    call = assistant("Let me see.", ToolCall("a", "look", {"n": 1}))
    model = SpokenModel(
        [finished(call)],
        [ThinkingDelta("hm"), TextDelta("I thi"), ProviderError("cut", status=500)],
        [TextDelta("It is "), ProviderError("cut again")],
        [TextDelta("Done."), finished()],
    )
    turn = Turn(model)
    turn.attempts = TryThrice()
    await turn.run()

    assert isinstance(turn.log.ended, Answer)
    assert turn.log.ended.content == "Done."
    first, *again = model.requests[1:]
    assert [request.messages for request in again] == [first.messages] * 2
    assert [request.reference for request in model.requests] == [MODEL, MODEL, "other/m1", "other/m2"]
    assert rows(turn) == [
        (1, 1, MODEL, "measured"),
        (2, 1, MODEL, "estimated"),
        (2, 2, "other/m1", "estimated"),
        (2, 3, "other/m2", "measured"),
    ]
    assert turn.slept == [0.1, 0.2]
    assert [(data["step"], data["attempt"]) for kind, data in turn.emit.events if kind == "content"] == [
        (2, 1),
        (2, 2),
        (2, 3),
    ]
    spent = sum((row.usage for row in turn.log.model_calls.values()), NO_USAGE)
    assert turn.log.ended.usage == spent
    assert all(row.usage.input > 0 and row.usage.output > 0 for row in turn.log.model_calls.values())


async def test_a_policy_that_gives_up_ends_the_turn_with_the_last_error():
    model = SpokenModel(*[[ProviderError(f"failure {n}", retry_after=float(n))] for n in (1, 2, 3)])
    turn = Turn(model)
    turn.attempts = TryThrice()
    await turn.run()

    assert isinstance(turn.log.ended, Failure)
    assert (turn.log.ended.error.message, turn.log.ended.error.retry_after) == ("failure 3", 3.0)
    assert [failure["attempt"] for failure in failures(turn)] == [1, 2, 3]
    spent = sum((row.usage for row in turn.log.model_calls.values()), NO_USAGE)
    assert turn.log.ended.usage + turn.log.ended.estimate == spent


async def test_the_turn_s_time_goes_on_while_it_waits_for_another_attempt():
    clock = ManualClock()
    turn = Turn(SpokenModel([unsent()], [unsent()], [finished()]), clock=clock, time_s=10.0)

    async def overslept(seconds: float) -> None:
        clock.advance(60)

    turn.sleep = overslept
    await turn.run()

    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.type == "timeout"
    assert len(turn.model.requests) == 2


async def test_a_turn_is_cut_while_it_waits_for_another_attempt():
    turn = Turn(SpokenModel([unsent()], [unsent()], [finished()]))
    waiting = asyncio.Event()

    async def sleeps(seconds: float) -> None:
        waiting.set()
        await forever()

    turn.sleep = sleeps
    ports = turn.ports()
    loop = TurnLoop(identity(turn.limits), turn.log.state(fresh=True), ports)
    running = asyncio.create_task(loop.run())
    await waiting.wait()
    assert loop.asking
    loop.cut()
    with pytest.raises(Superseded):
        await running
    assert loop.owed == NO_USAGE


async def test_an_attempt_after_a_death_books_the_lost_one_and_counts_it_once():
    turn = Turn(SpokenModel([finished()]))
    turn.log.state(fresh=True)  # whoever had it died while the model talked
    await turn.run(fresh=False)

    assert isinstance(turn.log.ended, Answer)
    lost, answered = turn.log.model_calls.values()
    assert (lost.state, answered.state) == ("estimated", "measured")
    assert lost.usage.input > 0
    assert turn.log.ended.usage == lost.usage + answered.usage


async def test_an_attempt_that_its_owner_had_booked_is_not_counted_again():
    turn = Turn(SpokenModel([finished()]))
    (open_row,) = turn.log.model_calls.values()
    handed_over = replace(open_row, state="estimated", usage=Usage(input=300))
    turn.log.model_calls[next(iter(turn.log.model_calls))] = handed_over
    await turn.run(fresh=False)

    assert isinstance(turn.log.ended, Answer)
    assert turn.log.ended.usage == Usage(input=300) + Usage(10, 5)


# --- what an abandoned request is booked at ---------------------------------------------------------------------------


async def test_a_stream_that_breaks_off_is_booked_by_what_it_told_and_at_least_what_it_said():
    so_far = Usage(input=1200, output=1, cache_read=800, cache_write=100)
    model = SpokenModel([UsageSoFar(so_far), ThinkingDelta("x" * 40), TextDelta("y" * 40), ProviderError("cut")])
    turn = await Turn(model).run()

    (row,) = turn.log.model_calls.values()
    assert row.state == "estimated"
    assert row.usage == Usage(input=1200, output=20, cache_read=800, cache_write=100)


async def test_what_a_stream_told_last_counts():
    told = [UsageSoFar(Usage(input=10)), UsageSoFar(Usage(input=12, output=500))]
    turn = await Turn(SpokenModel([*told, TextDelta("well"), ProviderError("cut")])).run()

    (row,) = turn.log.model_calls.values()
    assert row.usage == Usage(input=12, output=500)


async def test_what_one_attempt_told_is_not_booked_for_the_next():
    turn = Turn(SpokenModel([UsageSoFar(Usage(input=9000)), ProviderError("cut")], [ProviderFatal("no")]))

    class TryTwice(OneAttempt):
        async def after(self, failed, left_s):
            return GiveUp(failed[-1].error) if len(failed) == 2 else TryAgain(0.0, failed[-1].model)

    turn.attempts = TryTwice()
    await turn.run()

    first, second = turn.log.model_calls.values()
    assert first.usage.input == 9000
    assert second.usage.input < 9000


async def test_usage_that_a_vendor_did_not_tell_is_marked_as_estimated():
    call = assistant("", ToolCall("a", "look", {"n": 1}))
    turn = await Turn(SpokenModel([finished(call, measured=False)], [finished(measured=False)])).run()

    assert [row.state for row in turn.log.model_calls.values()] == ["estimated", "estimated"]
    assert [row.usage for row in turn.log.model_calls.values()] == [Usage(10, 5)] * 2
    assert isinstance(turn.log.ended, Answer)
    assert turn.log.ended.usage == Usage(20, 10)


async def test_the_tools_of_an_abandoned_request_are_estimated_too():
    plain = Turn(SpokenModel([ProviderError("cut")]))
    plain.tools.tools.clear()
    await plain.run()
    offered = await Turn(SpokenModel([ProviderError("cut")])).run()

    (without,), (with_tools,) = plain.log.model_calls.values(), offered.log.model_calls.values()
    assert with_tools.usage.input > without.usage.input + len(offered.tools.tools)


@pytest.mark.parametrize("usage", [Usage(input=10**19), Usage(output=-1), Usage(cache_read=2**62)])
async def test_a_count_that_no_model_can_have_is_booked_as_an_estimate(usage: Usage):
    turn = await Turn(SpokenModel([TextDelta("Done."), finished(usage=usage)])).run()
    (row,) = turn.log.model_calls.values()
    assert row.state == "estimated"
    assert 0 < row.usage.total < 10_000


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
async def test_a_request_that_was_refused_before_anything_was_said_costs_nothing(status: int):
    turn = await Turn(SpokenModel([ProviderError("refused", status=status)])).run()
    (row,) = turn.log.model_calls.values()
    assert row.usage.total == 0


@pytest.mark.parametrize("said", [[UsageSoFar(Usage(input=9))], [TextDelta("Well")]])
async def test_an_error_in_the_midst_of_a_stream_does_not_make_it_free(said):
    turn = await Turn(SpokenModel([*said, ProviderError("overloaded", status=529)])).run()
    (row,) = turn.log.model_calls.values()
    assert row.usage.total > 0
