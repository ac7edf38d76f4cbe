"""The process that the demo runs its conversation in, and kills: `python -m actors.demo.process DIRECTORY`.

It is `insika dev` without a terminal: jobs come in as JSON lines, events go out as JSON lines. Its model is paced so
that a person can follow, its tools keep a journal so that the demo can count their runs. It ends when its input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from actors.embedded import Embedded, Parts
from actors.environment import read_environment
from actors.ingress import Kept
from actors.samples.demo_tools import demo_tools
from insika.ports import ModelRequest
from insika.providers.catalog import ModelCatalog
from insika.providers.demo_script import demo_script
from insika.providers.offline import OfflineProvider
from insika.tools.registry import ToolRegistry

JOURNAL = "tool-runs.jsonl"
WORD_S = 0.03
TOOL_S = 0.25


async def at_reading_pace(request: ModelRequest, chunk: int, /) -> None:
    await asyncio.sleep(WORD_S)


class ToolJournal:
    """Every run of a tool, on the disk before the tool goes on."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def __call__(self, name: str, run: Mapping[str, Any], /) -> None:
        self._file.write(json.dumps({"tool": name, **run}).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def say(kind: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": kind, **fields}) + "\n")
    sys.stdout.flush()


async def tell_events(insika: Embedded) -> None:
    with insika.events.subscribe() as events:
        say("ready")
        async for event in events:
            fields = event.as_dict()
            say(fields.pop("type"), **fields)


async def take_jobs(insika: Embedded) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        taken = await insika.ingress.take(line)
        if isinstance(taken, Kept):
            say("job_kept_aside", number=taken.number, **taken.error.as_dict())
        else:
            say("verdict", verdict=str(taken.verdict), turn_id=taken.turn_id)


async def main(directory: Path) -> None:
    journal = ToolJournal(directory / JOURNAL)
    parts = Parts(
        ModelCatalog({"offline": OfflineProvider({"demo": demo_script()}, at_reading_pace)}),
        ToolRegistry(demo_tools(journal, pause_s=TOOL_S)),
    )
    async with await Embedded.open(read_environment(), parts) as insika:
        telling = asyncio.create_task(tell_events(insika))
        await take_jobs(insika)
        telling.cancel()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(file=sys.stderr))
    asyncio.run(main(Path(sys.argv[1])))
