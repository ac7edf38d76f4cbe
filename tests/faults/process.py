"""The shop as a process of its own, made to be killed: `python -m tests.faults.process FOLDER OPTIONS`.

Jobs and commands come in as JSON lines, events go out as JSON lines; OPTIONS, a JSON object, are the fields of
`Options`. It drains and ends on SIGTERM or when its input does, if it lives so long.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from actors.embedded import Embedded
from actors.environment import read_environment
from actors.ingress import Kept
from insika.crash_points import CrashPoint
from tests.faults.lives import AheadClock
from tests.faults.scenes import tell
from tests.faults.shop import Gates, raw, shop_parts

GO_ON, AGAIN = signal.SIGUSR1, signal.SIGUSR2


@dataclass(frozen=True, slots=True)
class Options:
    """`point`: where `by` happens to it when it comes there for the `nth` time; "" is nowhere. By "SIGKILL" it dies; by
    "SIGSTOP" it is stopped, with all its threads, until it is continued and told GO_ON (or AGAIN); by "hold" only its
    event loop is held, until it is told GO_ON. `ahead_s`: how far its clock is ahead. `held`: tools and the model wait
    at their gates. `story`: tell the story by itself, with this agent. `wait`: begin only when told to."""

    point: str = ""
    nth: int = 1
    by: str = "SIGKILL"
    ahead_s: float = 0.0
    held: bool = False
    story: str = ""
    wait: bool = False


class SelfInflicted:
    """A crash hook that is no simulation."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._met: Counter[str] = Counter()

    def __call__(self, point: CrashPoint, /) -> None:
        self._met[point] += 1
        if point == self._options.point and self._met[point] == self._options.nth:
            self._suffer()

    def _suffer(self) -> None:
        if self._options.by == "hold":
            say("held", point=self._options.point)
            signal.sigwait({GO_ON})
            return
        told = AGAIN
        while told == AGAIN:
            os.kill(os.getpid(), signal.Signals[self._options.by])
            told = signal.sigwait({GO_ON, AGAIN})


def say(kind: str, **fields: Any) -> None:
    os.write(sys.stdout.fileno(), json.dumps({"event": kind, **fields}).encode() + b"\n")


class Shop:
    def __init__(self, insika: Embedded, gates: Gates) -> None:
        self._insika = insika
        self._gates = gates

    async def obey(self, command: dict[str, Any]) -> None:
        match command:
            case {"take": job}:
                taken = await self._insika.ingress.take(raw(job))
                if isinstance(taken, Kept):
                    say("kept_aside", id=job["id"], **taken.error.as_dict())
                else:
                    say("verdict", id=job["id"], verdict=str(taken.verdict), turn=taken.turn_id, state=taken.turn_state)
            case {"open": gate}:
                self._gates.open(gate)
            case {"idle": name}:
                await self._insika.runtime.idle()
                say("idle", name=name)
            case _:
                raise ValueError(f"no such command: {command}")

    async def tell_events(self) -> None:
        with self._insika.events.subscribe() as events:
            async for event in events:
                fields = event.as_dict()
                say(fields.pop("type"), **fields)


async def serve(folder: Path, options: Options) -> None:
    gates, stop = Gates(held=options.held or bool(options.story)), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    if options.wait:
        say("waiting")
        await commands.readline()
    parts = shop_parts(folder, AheadClock(options.ahead_s), gates, SelfInflicted(options))
    async with await Embedded.open(read_environment(), parts) as insika:
        shop = Shop(insika, gates)
        telling = asyncio.create_task(shop.tell_events())
        say("ready")
        if options.story:
            await tell(insika, gates, options.story)
        working = asyncio.create_task(_obey_all(shop, commands))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
        say("draining")
    working.cancel()
    telling.cancel()
    say("drained")


async def _obey_all(shop: Shop, commands: asyncio.StreamReader) -> None:
    while line := await commands.readline():
        await shop.obey(json.loads(line))


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
    signal.pthread_sigmask(signal.SIG_BLOCK, {GO_ON, AGAIN})
    asyncio.run(serve(Path(sys.argv[1]), Options(**json.loads(sys.argv[2]))))
