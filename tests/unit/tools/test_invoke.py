from __future__ import annotations

import asyncio
import dataclasses
import enum
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, computed_field

from insika.messages import Halt, ToolCall
from insika.tools import invoke
from insika.tools.invoke import MAX_OUTPUT_BYTES, OutcomeKind, ToolOutcome, refuse_call, run_tool
from insika.tools.python_tools import tool
from insika.tools.threads import ToolThreads
from insika.tools.tool import OutcomeUnknown, Tool, ToolContext, ToolError
from insika.turn import sentences

CONTEXT = ToolContext(tenant="", session="s", agent="a", turn_id="t", call_id="c1")
SHORT_S = 0.02
LONG_S = 30.0


async def run(made: Tool, arguments: dict[str, Any] | None = None, timeout_s: float = LONG_S) -> ToolOutcome:
    return await run_tool(made, ToolCall("c1", made.name, arguments or {}), CONTEXT, timeout_s, ToolThreads())


def sync_tool(body: Callable[[], Any], **options: Any) -> Tool:
    def named() -> Any:
        return body()

    return tool(name="named", **options)(named)


def async_tool(body: Callable[[], Awaitable[Any]], **options: Any) -> Tool:
    async def named() -> Any:
        return await body()

    return tool(name="named", **options)(named)


def returning(value: Any) -> Tool:
    return sync_tool(lambda: value)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    name: str
    secret: SecretStr = SecretStr("hunter2")


@dataclasses.dataclass
class Record:
    name: str
    inner: Model | None = None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        (None, ""),
        ("", ""),
        (0, "0"),
        (True, "true"),
        (1.5, "1.5"),
        (float("nan"), "null"),
        ({"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'),
        ([1, "2"], '[1,"2"]'),
        ((1, 2), "[1,2]"),
        (Colour.RED, '"red"'),
        (datetime(2030, 1, 1, tzinfo=UTC), '"2030-01-01T00:00:00Z"'),
        (Model(name="m"), '{"name":"m","secret":"**********"}'),
        (Record("r", Model(name="m")), '{"name":"r","inner":{"name":"m","secret":"**********"}}'),
        ({1: Record("r")}, '{"1":{"name":"r","inner":null}}'),
    ],
)
async def test_results_become_text(value: Any, text: str) -> None:
    assert await run(returning(value)) == ToolOutcome(OutcomeKind.DONE, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\0b\ud800c", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"),
        ({"k\0": ["v\udfff"]}, '{"k\N{REPLACEMENT CHARACTER}":["v\N{REPLACEMENT CHARACTER}"]}'),
        (Record("\0"), '{"name":"\N{REPLACEMENT CHARACTER}","inner":null}'),
        (Model(name="\ud800"), '{"name":"\N{REPLACEMENT CHARACTER}","secret":"**********"}'),
        (Halt("a\0"), "a\N{REPLACEMENT CHARACTER}"),
    ],
)
async def test_nul_and_lone_surrogates_never_come_out(value: Any, text: str) -> None:
    assert (await run(returning(value))).content == text


async def test_a_halt_is_seen_and_its_content_kept() -> None:
    outcome = await run(returning(Halt("that is all")))
    assert outcome == ToolOutcome(OutcomeKind.DONE, "that is all", halts=True)
    assert outcome.result == Halt("that is all")


async def test_a_text_is_no_halt() -> None:
    assert (await run(returning("x"))).result == "x"


async def test_an_async_tool_runs_on_the_loop() -> None:
    async def where() -> str:
        return str(threading.current_thread() is threading.main_thread())

    assert (await run(async_tool(where))).content == "True"


def recursive() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [object(), b"\xff", recursive(), {"x": object()}, lambda: None])
async def test_a_result_that_cannot_be_read_says_that_the_tool_ran(value: Any) -> None:
    outcome = await run(returning(value))
    assert outcome.is_error
    assert "it ran to its end, but its result cannot be read" in outcome.content
    assert "0x" not in outcome.content


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such order"), "named failed: ValueError: no such order"),
        (KeyError("x"), "named failed: KeyError: 'x'"),
        (RuntimeError(), "named failed: RuntimeError"),
        (ToolError("The shop is closed."), "named failed: The shop is closed."),
        (SystemExit(3), "named failed: SystemExit: 3"),
        (KeyboardInterrupt(), "named failed: KeyboardInterrupt"),
        (asyncio.CancelledError(), "named failed: CancelledError"),
        (TimeoutError("upstream"), "named failed: TimeoutError: upstream"),
        (ValueError("a\0\ud800"), "named failed: ValueError: a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
    ],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_whatever_a_tool_raises_is_an_error_result(error: BaseException, said: str, kind: str) -> None:
    def fail() -> None:
        raise error

    async def fail_on_loop() -> None:
        raise error

    outcome = await run(sync_tool(fail) if kind == "sync" else async_tool(fail_on_loop))
    assert outcome == ToolOutcome(OutcomeKind.ERROR, sentences.MARK + said, is_error=True)


async def test_an_exception_that_cannot_say_what_it_is_is_an_error_result() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def fail() -> None:
        raise Mute

    assert (await run(sync_tool(fail))).content.endswith("failed: Mute")


async def test_a_long_error_is_cut() -> None:
    def fail() -> None:
        raise ValueError("€" * 100_000)

    content = (await run(sync_tool(fail))).content
    assert invoke.MAX_REASON_BYTES - 10 < len(content.encode()) < invoke.MAX_REASON_BYTES + 100


@pytest.mark.parametrize("value", ["x" * 200_000, "😀" * 50_000, ["é" * 200_000], Halt("x" * 200_000)])
async def test_a_long_result_is_cut_and_says_so(value: Any) -> None:
    content = (await run(returning(value))).content
    assert MAX_OUTPUT_BYTES - 8 <= len(content.encode()) <= MAX_OUTPUT_BYTES
    assert sentences.MARK in content[-200:]
    assert "\N{REPLACEMENT CHARACTER}" not in content


async def test_a_result_of_exactly_the_most_is_whole() -> None:
    text = "x" * MAX_OUTPUT_BYTES
    assert (await run(returning(text))).content == text


@tool
def typed(order_id: int, note: str = "") -> str:
    return f"{order_id} {note}"


async def test_arguments_are_checked_before_the_call() -> None:
    outcome = await run(typed, {"order_id": "x", "colour": "red"})
    assert outcome.kind is OutcomeKind.ERROR
    assert outcome.is_error
    assert "typed was not run" in outcome.content
    assert "order_id: " in outcome.content
    assert "colour: there is no such argument" in outcome.content


async def test_arguments_are_cleaned_before_they_are_checked() -> None:
    outcome = await run(typed, {"order_id": 1, "note": "a\0\ud800"})
    assert outcome.content == "1 a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"
    assert not outcome.is_error


async def test_an_unknown_argument_with_a_nul_in_its_name_is_named_clean() -> None:
    outcome = await run(typed, {"order_id": 1, "b\0ad": 2})
    assert "b\N{REPLACEMENT CHARACTER}ad: there is no such argument" in outcome.content


async def test_a_call_that_was_no_json_object_is_not_run() -> None:
    call = ToolCall("c1", "typed", malformed='{"order_id": 12')
    outcome = await run_tool(typed, call, CONTEXT, LONG_S, ToolThreads())
    assert outcome.kind is OutcomeKind.ERROR
    assert "not a JSON object" in outcome.content
    assert refuse_call(typed, call) == outcome


async def test_arguments_without_a_bottom_are_refused() -> None:
    arguments: dict[str, Any] = {}
    arguments["note"] = arguments
    outcome = await run(typed, arguments)
    assert "nested too deeply" in outcome.content


async def test_asking_first_gives_the_same_refusal_and_none_for_a_good_call() -> None:
    bad = ToolCall("c1", "typed", {"order_id": "x"})
    assert refuse_call(typed, bad) == await run(typed, {"order_id": "x"})
    assert refuse_call(typed, ToolCall("c1", "typed", {"order_id": "7"})) is None


async def test_the_context_reaches_the_tool() -> None:
    @tool
    def who(context: ToolContext) -> str:
        return context.idempotency_key

    assert (await run(who)).content == CONTEXT.idempotency_key


async def test_a_blocking_tool_is_given_up_at_its_limit(gate: threading.Event) -> None:
    outcome = await run(sync_tool(gate.wait), timeout_s=SHORT_S)
    said = sentences.tool_timed_out("named", SHORT_S)
    assert outcome == ToolOutcome(OutcomeKind.CUT, said, is_error=True)


async def test_an_async_tool_is_cancelled_at_its_limit() -> None:
    seen: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cleaned up")

    outcome = await run(async_tool(hang), timeout_s=SHORT_S)
    assert outcome.kind is OutcomeKind.CUT
    assert seen == ["cleaned up"]


async def test_a_tool_with_a_side_effect_cut_at_its_limit_is_unknown(gate: threading.Event) -> None:
    outcome = await run(sync_tool(gate.wait, side_effect=True), timeout_s=SHORT_S)
    assert outcome == ToolOutcome(OutcomeKind.CUT, sentences.UNKNOWN_OUTCOME, is_error=True)


async def test_a_tool_with_a_side_effect_that_lost_sight_of_it_is_unknown() -> None:
    def lose() -> str:
        raise OutcomeUnknown("the line went dead")

    outcome = await run(sync_tool(lose, side_effect=True))
    assert outcome == ToolOutcome(OutcomeKind.CUT, sentences.UNKNOWN_OUTCOME, is_error=True)


async def test_a_harmless_tool_that_lost_sight_of_its_call_says_why_it_failed() -> None:
    async def lose() -> str:
        raise OutcomeUnknown("the line went dead")

    outcome = await run(async_tool(lose))
    said = sentences.tool_failed("named", "the line went dead")
    assert outcome == ToolOutcome(OutcomeKind.CUT, said, is_error=True)


async def test_a_tools_own_limit_comes_before_the_profiles(gate: threading.Event) -> None:
    outcome = await run(sync_tool(gate.wait, timeout=SHORT_S), timeout_s=LONG_S)
    assert outcome.kind is OutcomeKind.CUT


async def test_an_async_tool_that_swallows_its_cancellation_does_not_hold_up_the_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(invoke, "GRACE_S", SHORT_S)
    release = asyncio.Event()

    async def stubborn() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    outcome = await run(async_tool(stubborn), timeout_s=SHORT_S)
    assert outcome.kind is OutcomeKind.CUT
    release.set()
    await asyncio.sleep(0)


async def test_the_callers_cancellation_passes_and_reaches_an_async_tool() -> None:
    seen: list[str] = []
    started = asyncio.Event()

    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    running = asyncio.create_task(run(async_tool(hang)))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["cancelled"]


async def test_the_callers_cancellation_passes_a_blocking_tool(gate: threading.Event) -> None:
    loop = asyncio.get_running_loop()
    started = asyncio.Event()

    def hang() -> None:
        loop.call_soon_threadsafe(started.set)
        gate.wait()

    running = asyncio.create_task(run(sync_tool(hang)))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_call_that_finds_no_thread_is_known_not_to_have_run(gate: threading.Event) -> None:
    threads = ToolThreads(slots=1)
    held = asyncio.create_task(threads.run(gate.wait, LONG_S))
    await asyncio.sleep(0)
    made = sync_tool(lambda: "x", side_effect=True)
    outcome = await run_tool(made, ToolCall("c1", "named"), CONTEXT, SHORT_S, threads)
    assert outcome.kind is OutcomeKind.ERROR
    assert "it was not started, so it had no effect" in outcome.content
    gate.set()
    await held


class Priced(BaseModel):
    """Its price is worked out when it is written down."""

    @computed_field
    @property
    def price(self) -> int:
        return {}["price"]


@pytest.mark.parametrize("made", [sync_tool(Priced), async_tool(lambda: asyncio.sleep(0, Priced()))])
async def test_a_result_whose_own_code_fails_is_an_error_for_the_model(made):
    outcome = await run(made)

    assert (outcome.kind, outcome.is_error) == (OutcomeKind.ERROR, True)
    assert "ran to its end" in outcome.content


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_large_result_is_not_written_down_on_the_loop(blocking):
    written_by: list[int] = []

    class Rows(Mapping[str, int]):
        def __getitem__(self, key):
            return 1

        def __iter__(self):
            written_by.append(threading.get_ident())
            return iter(["row"])

        def __len__(self):
            return 1

    made = sync_tool(Rows) if blocking else async_tool(lambda: asyncio.sleep(0, Rows()))
    outcome = await run(made)

    assert outcome.content == '{"row":1}'
    assert written_by
    assert threading.get_ident() not in written_by


async def test_an_exception_that_ends_processes_when_it_is_read_is_an_error_for_the_model():
    class Poisonous(Exception):
        def __str__(self) -> str:
            raise SystemExit(1)

    def body() -> None:
        raise Poisonous

    outcome = await run(sync_tool(body))

    assert (outcome.kind, outcome.content) == (OutcomeKind.ERROR, sentences.tool_failed("named", "Poisonous"))
