"""Gates that are files, so that a test can hold and let go what runs in any number of processes.

A gate is open while its file exists. Whoever waits looks again and again: nothing else reaches into a process that is
not ours to change.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

FOLDER = "FAULTS_FOLDER"
"""The variable that tells a process of the test's folder."""
LOOKS_S = 0.02


class FileGates:
    """As `tests.faults.shop.Gates`; nothing waits at a gate without a name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def open(self, name: str) -> None:
        (self._folder / name).touch()

    def close(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def is_open(self, name: str) -> bool:
        return (self._folder / name).exists()

    async def passed(self, name: str) -> None:
        while name and not self.is_open(name):  # noqa: ASYNC110 - a file tells nobody that it is there
            await asyncio.sleep(LOOKS_S)

    def passed_by_thread(self, name: str) -> None:
        while name and not self.is_open(name):
            time.sleep(LOOKS_S)


def gates_of(folder: Path) -> FileGates:
    return FileGates(folder / "gates")
