"""Four processes of callers, and a barrier before all of them."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[3]
PROCESSES = 4


class CallerProcess:
    """What it says in trouble goes to the test's own error output."""

    def __init__(self, url: str, barrier: Path) -> None:
        command = [sys.executable, "-m", "tests.faults.redis.caller", url, str(barrier)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process ended"
        return json.loads(line)

    def die(self) -> None:
        self._process.kill()
        self._process.communicate()


class Callers:
    """Those of the processes that live. Time stands still but for what a test lets pass, in all of them alike."""

    def __init__(self, url: str, barrier: Path) -> None:
        self._url = url
        self._barrier = barrier
        self._elapsed_s = 0.0
        self._living: list[CallerProcess] = []

    def __enter__(self) -> Self:
        self._barrier.touch()
        self.revive()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._living:
            process.die()

    def revive(self) -> None:
        """One in the place of each that was killed."""
        new = [CallerProcess(self._url, self._barrier) for _ in range(PROCESSES - len(self._living))]
        self._living.extend(new)
        assert [process.hear() for process in new] == ["ready"] * len(new)

    def all(self, do: str, callers: int, *, advance_s: float = 0.0, **options: Any) -> list[Any]:
        """What each of so many callers is answered, by its number. Before, `advance_s` pass everywhere."""
        self._elapsed_s = round(self._elapsed_s + advance_s, 3)
        shares = [range(first, callers, len(self._living)) for first in range(len(self._living))]
        with self._barrier.open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for process, numbers in zip(self._living, shares, strict=True):
                command = {"do": do, "numbers": list(numbers), "elapsed_s": self._elapsed_s, "options": options}
                process.tell(command)
            for process in self._living:
                assert process.hear() == "waiting"
        answers: dict[int, Any] = {}
        for process, numbers in zip(self._living, shares, strict=True):
            answers.update(zip(numbers, process.hear(), strict=True))
        return [answers[number] for number in range(callers)]

    def one(self, do: str, **options: Any) -> Any:
        """What a caller of the first process is answered."""
        return self.all(do, 1, **options)[0]

    def kill_whoever_called(self, number: int) -> None:
        """With SIGKILL the process of that caller, as they were numbered while all processes lived."""
        assert len(self._living) == PROCESSES
        self._living.pop(number % PROCESSES).die()
