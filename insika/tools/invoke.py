"""Runs one announced call of a tool and says what became of it. Whatever the tool does, one outcome comes back.

Nothing is recorded, counted or retried here, and no policy is asked: the loop has done that before.
"""

from __future__ import annotations

import asyncio
import enum
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from insika.messages import Halt, ToolCall
from insika.text import clean_text, truncate
from insika.tools.conversion import NotText, as_text, clean
from insika.tools.threads import Ended, NotStarted, Raised, Returned, ToolThreads, TurnThreads
from insika.tools.tool import InvalidArguments, OutcomeUnknown, Tool, ToolContext, ToolError
from insika.turn import sentences

MAX_OUTPUT_BYTES = 64 * 1024
"""UTF-8 bytes of one result, the note about the cut included."""
MAX_REASON_BYTES = 2 * 1024
"""UTF-8 bytes of what an exception says of itself."""
_QUICKLY_TOLD = (str, Halt, int, float, type(None))
GRACE_S = 1.0
"""Seconds that an async tool has to clean up after it was cut, before it is left to itself."""


class OutcomeKind(enum.StrEnum):
    DONE = "done"
    ERROR = "error"
    """It failed, or was not run at all; either way this is known."""
    CUT = "cut"
    """It was running at its time limit, or lost sight of what it had begun: with a side effect, nobody knows what
    became of it."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What the model is told of one call. `halts`: the tool returned a `Halt`, whose content `content` is."""

    kind: OutcomeKind
    content: str
    is_error: bool = False
    halts: bool = False

    @property
    def result(self) -> str | Halt:
        """As those rules want it that must tell a `Halt` from a text."""
        return Halt(self.content) if self.halts else self.content


def refuse_call(tool: Tool, call: ToolCall) -> ToolOutcome | None:
    """Why `call` cannot be run, or None if it can. `run_tool` asks the same; a caller that must record the start of a
    call asks first, so that a call that could never run is not recorded as started."""
    try:
        _bind(tool, call)
    except InvalidArguments as refused:
        return _invalid(tool, refused)
    return None


class OnRaised(Protocol):
    def __call__(self, tool: str, call_id: str, error: BaseException, /) -> None:
        """Hear of what a tool raised, which may quote anything. Must not raise."""
        ...


def nobody_hears(tool: str, call_id: str, error: BaseException, /) -> None:
    return None


async def run_tool(
    tool: Tool,
    call: ToolCall,
    context: ToolContext,
    timeout_s: float,
    threads: ToolThreads | TurnThreads,
    *,
    on_raised: OnRaised = nobody_hears,
) -> ToolOutcome:
    """Check the arguments, run `tool` once, and give its outcome. `timeout_s` is the limit in seconds for a tool that
    has none of its own; `on_raised` hears of an exception before it becomes a text for the model.

    Raises nothing but the caller's own cancellation, which also cancels an async tool; a blocking one runs on alone.
    """
    limit_s = timeout_s if tool.timeout_s is None else tool.timeout_s
    try:
        run = functools.partial(tool.invoke, _bind(tool, call), context)
        if tool.blocking:
            ended = await threads.run(lambda: _tell(run()), limit_s)
        else:
            ended = await _run_on_loop(lambda: _told_by(run(), threads, limit_s), limit_s)
    except InvalidArguments as refused:
        return _invalid(tool, refused)
    except NotStarted as why:
        return _failed(tool, f"it was not started, so it had no effect: {why}")
    except TimeoutError:
        return _cut_short(tool, sentences.tool_timed_out(tool.name, limit_s))
    if isinstance(ended, Returned):
        told: _Told = ended.value
        return ToolOutcome(OutcomeKind.DONE, told.text, halts=told.halts)
    if not isinstance(ended.error, NotText):
        on_raised(tool.name, call.id, ended.error)
    return _raised(tool, ended.error)


def _bind(tool: Tool, call: ToolCall) -> Mapping[str, Any]:
    if call.malformed is not None:
        raise InvalidArguments([("", "what was written is not a JSON object")])
    try:
        arguments = clean(call.arguments)
    except RecursionError:
        raise InvalidArguments([("", "they are nested too deeply")]) from None
    return tool.bind(arguments)


async def _run_on_loop(run: Callable[[], Awaitable[Any]], limit_s: float) -> Ended:
    # A task of its own, so that a tool which swallows its cancellation cannot hold up the turn, and so that a
    # CancelledError of the tool's own making is told from the caller's.
    task = asyncio.create_task(_guarded(run))
    try:
        await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        await _cut(task)
        raise
    if not task.done():
        await _cut(task)
        raise TimeoutError
    return task.result()


async def _guarded(run: Callable[[], Awaitable[Any]]) -> Ended:
    try:
        return Returned(await run())
    except BaseException as error:
        return Raised(error)


async def _cut(task: asyncio.Task[Ended]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_S)


@dataclass(frozen=True, slots=True)
class _Told:
    text: str
    halts: bool


def _tell(value: Any) -> _Told:
    """What a tool returned, as the model reads it. Takes as long as the value is large. Raises NotText."""
    return _Told(_bounded(as_text(value)), isinstance(value, Halt))


async def _told_by(running: Awaitable[Any], threads: ToolThreads | TurnThreads, limit_s: float) -> _Told:
    value = await running
    if isinstance(value, _QUICKLY_TOLD):
        return _tell(value)
    # A million rows take half a minute to write down: not on the loop that every session shares.
    ended = await threads.run(functools.partial(_tell, value), limit_s)
    if isinstance(ended, Raised):
        raise ended.error
    told: _Told = ended.value
    return told


def _invalid(tool: Tool, refused: InvalidArguments) -> ToolOutcome:
    problems = truncate(clean_text(str(refused)), MAX_REASON_BYTES)
    return ToolOutcome(OutcomeKind.ERROR, sentences.invalid_arguments(tool.name, problems), is_error=True)


def _failed(tool: Tool, reason: str) -> ToolOutcome:
    return ToolOutcome(OutcomeKind.ERROR, sentences.tool_failed(tool.name, reason), is_error=True)


def _raised(tool: Tool, error: BaseException) -> ToolOutcome:
    if isinstance(error, NotText):
        return _failed(tool, f"it ran to its end, but its result cannot be read: it is {error}")
    if isinstance(error, OutcomeUnknown):
        return _cut_short(tool, sentences.tool_failed(tool.name, _reason(error)))
    return _failed(tool, _reason(error))


def _cut_short(tool: Tool, harmless: str) -> ToolOutcome:
    """`harmless`: what is said of it where it changes nothing in the world."""
    content = sentences.UNKNOWN_OUTCOME if tool.side_effect else harmless
    return ToolOutcome(OutcomeKind.CUT, content, is_error=True)


def _reason(error: BaseException) -> str:
    try:
        said = str(error)
    except BaseException:
        said = ""  # an exception that cannot even say what it is, or that would end the process by saying it
    if not isinstance(error, ToolError | OutcomeUnknown):
        said = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return truncate(clean_text(said), MAX_REASON_BYTES)


def _bounded(text: str) -> str:
    size = len(text.encode())
    if size <= MAX_OUTPUT_BYTES:
        return text
    note = sentences.result_cut(size)
    return truncate(text, MAX_OUTPUT_BYTES - len(note.encode())) + note
