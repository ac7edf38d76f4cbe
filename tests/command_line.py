"""What the acceptance tests of the command line share: real processes, each in its folder, over its own database."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

PATIENCE_S = 60.0
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Running:
    """A process with pipes. What it prints is read with `until`."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def printed(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def type(self, line: str) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        pipe.write(line.encode() + b"\n")
        pipe.flush()

    def end_of_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def until(self, pattern: str) -> re.Match[str]:
        return wait_for(lambda: re.search(pattern, self.printed), lambda: f"{pattern!r} in:\n{self.printed}")

    def signal(self, number: int) -> int:
        """Send it, and wait for the end. The exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)


@dataclass
class Folder:
    """A folder in which commands are run. `environment` is what they see beside PATH and HOME."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _logs: list[IO[bytes]] = field(default_factory=list)

    def insika(self, *arguments: str, input: str | None = None) -> Result:
        done = subprocess.run(
            self._command(arguments),
            cwd=self.path,
            env=self.seen(),
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def must(self, *arguments: str) -> Result:
        done = self.insika(*arguments)
        assert done.code == 0, done
        return done

    def start(self, *arguments: str, stdin: int = subprocess.PIPE) -> Running:
        log = self.path / f"process-{len(self._started)}.log"
        handle = log.open("wb")
        process = subprocess.Popen(
            self._command(arguments),
            cwd=self.path,
            env=self.seen(),
            stdin=stdin,
            stdout=handle,
            stderr=subprocess.STDOUT,
        )
        self._started.append(process)
        self._logs.append(handle)
        return Running(process, log)

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.write_text(text, encoding="utf-8")
        return file

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE_S)
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        for handle in self._logs:
            handle.close()

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "actors.cli.main", *arguments]

    def seen(self) -> Mapping[str, str]:
        """The whole environment of a command that is run here."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("INSIKA_")}
        repository = str(Path(__file__).resolve().parents[1])
        return {**kept, "PYTHONPATH": repository, "NO_COLOR": "1", **self.environment}


@contextlib.contextmanager
def folder(path: Path, **environment: str) -> Iterator[Folder]:
    made = Folder(path, dict(environment))
    try:
        yield made
    finally:
        made.end()


def wait_for(look: Callable[[], Any], what: Callable[[], str] | str) -> Any:
    """What `look` gives once it gives something. Other processes have to get there; nothing is measured."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"never came: {what() if callable(what) else what}")
        time.sleep(0.05)
    return found


SIGTERM, SIGINT, SIGKILL = signal.SIGTERM, signal.SIGINT, signal.SIGKILL
