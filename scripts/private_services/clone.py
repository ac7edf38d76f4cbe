"""Which services a clone has up, remembered in its folder `.services` for the next command."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from .together import PrivateServices


class Clone:
    """`root` is its top folder."""

    def __init__(self, root: Path) -> None:
        self._home = root / ".services"
        self._pointer = self._home / "folder"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time; another waits."""
        self._home.mkdir(exist_ok=True)
        with (self._home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def services(self) -> PrivateServices | None:
        """Those that were brought up here, whether or not they still run."""
        try:
            return PrivateServices.load(Path(self._pointer.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def remember(self, services: PrivateServices) -> None:
        self._pointer.write_text(str(services.folder), encoding="utf-8")

    def forget(self) -> None:
        self._pointer.unlink(missing_ok=True)
