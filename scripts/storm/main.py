"""`scripts/chaos`: reads the command line, runs one storm, and prints its verdict."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from rich.console import Console

from scripts.storm.folder import Folder
from scripts.storm.options import Options
from scripts.storm.storm import storm
from scripts.storm.verdict import Verdict, show

_JOBS_PER_S = 20
_DESCRIPTION = """\
Runs the whole cluster on private services and strikes it: processes are killed, paused beyond their lease and told to
end, RabbitMQ, PostgreSQL and Redis are killed, restarted, paused and flushed, while numbered jobs come in. Then it lets
everything come to rest, and judges what is left by the tables, the tools' journal, the receiver's and the producer's
books. Ends with 0 when every rule holds, with 1 when one is broken; then everything is kept, and it says where.
"""


def main() -> int:
    given = _arguments()
    seconds = given.minutes * 60
    options = Options(
        seconds=seconds,
        seed=given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000),
        jobs=given.jobs if given.jobs is not None else int(seconds * _JOBS_PER_S),
        sessions=given.sessions,
        workers=given.workers,
        queue_type=given.queue_type,
    )
    folder = Folder(Path(tempfile.mkdtemp(prefix="insika-storm-")))
    # With --json, standard output is for the object alone.
    stream = sys.stderr if given.json else sys.stdout
    logging.getLogger("insika.producer").setLevel(logging.ERROR)  # what it met stands in its book
    try:
        verdict = asyncio.run(_until_told_to_stop(storm(options, folder, lambda line: _tell(line, stream))))
    except (KeyboardInterrupt, asyncio.CancelledError):
        _tell(f"stopped, and with it all that it had started; what was written down is in {folder.path}", sys.stderr)
        return 128 + signal.SIGINT
    except BaseException:
        _tell(f"there is no verdict; what was written down until here is in {folder.path}", sys.stderr)
        raise
    folder.verdict.write_text(json.dumps(verdict.as_dict(), indent=1), encoding="utf-8")
    if given.json:
        sys.stdout.write(json.dumps(verdict.as_dict()) + "\n")
    else:
        show(verdict, Console(width=160, highlight=False))
    if verdict.good and not given.keep:
        shutil.rmtree(folder.path)
    else:
        _tell(f"everything that was written down is in {folder.path}", stream)
    _tell(f"seed {options.seed}: {'every rule holds' if verdict.good else 'NOT every rule holds'}", stream)
    return 0 if verdict.good else 1


async def _until_told_to_stop(work: Coroutine[Any, Any, Verdict]) -> Verdict:
    """SIGTERM ends it as an interrupt does: everything that it has started ends with it."""
    running = asyncio.current_task()
    if running is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    return await work


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=2.0, help="how long faults strike; 2 unless given")
    parser.add_argument(
        "--seed", type=int, help="of jobs and faults; the same gives the same plan. Random unless given"
    )
    parser.add_argument("--jobs", type=int, help=f"in all; {_JOBS_PER_S} a second unless given")
    parser.add_argument("--sessions", type=int, default=200, help="that the jobs belong to; 200 unless given")
    parser.add_argument("--workers", type=int, default=2, help="processes that run turns; 2 unless given")
    parser.add_argument("--queue-type", choices=("quorum", "classic"), default="quorum", help="of RabbitMQ's queues")
    parser.add_argument("--keep", action="store_true", help="keep what was written down also when every rule holds")
    parser.add_argument("--json", action="store_true", help="the verdict as one JSON object on standard output")
    given = parser.parse_args()
    for name in ("minutes", "jobs", "sessions", "workers"):
        if (value := getattr(given, name)) is not None and value <= 0:
            parser.error(f"--{name} must be above 0")
    return given


def _tell(line: str, stream: object = sys.stdout) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", file=stream, flush=True)  # type: ignore[call-overload]


if __name__ == "__main__":
    sys.exit(main())
