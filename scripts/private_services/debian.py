"""Installs Debian packages such that nothing of them runs: neither now nor at the next boot of the machine.

Debian's packages start their server when they are installed, unless a program called policy-rc.d forbids it. One that
does is put there while apt-get runs; what was there before comes back afterwards, also after a run that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_FORBIDDEN = 101
"""What policy-rc.d says when an action is not allowed (invoke-rc.d(8))."""
_OURS = "# Put here by Insika's scripts/services while it installs packages. If none of them runs, remove it.\n"
_APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120")
_SAID_LINES = 15


class InstallError(Exception):
    """The message ends with what apt-get said last."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The machine's policy-rc.d, and the lock of those who replace it for a while."""

    file: Path = Path("/usr/sbin/policy-rc.d")
    lock: Path = Path("/run/insika-packages.lock")

    @contextlib.contextmanager
    def nothing_started(self) -> Iterator[None]:
        """Inside, no package's script may start, stop or restart a server. One at a time; another waits."""
        with self.lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self._put_back()
            if self._forbids():
                yield
                return
            if self.file.exists():
                self.file.rename(self._aside)
            self.file.write_text(f"#!/bin/sh\n{_OURS}exit {_FORBIDDEN}\n", encoding="utf-8")
            self.file.chmod(0o755)
            try:
                yield
            finally:
                self._put_back()

    def restore(self) -> None:
        """What one that was killed has left behind is put right, unless another is at work just now."""
        if self.lock.exists():
            with self.lock.open("w") as held, contextlib.suppress(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._put_back()

    @property
    def _aside(self) -> Path:
        return self.file.with_name(f"{self.file.name}.before-insika")

    def _put_back(self) -> None:
        if self.file.is_file() and _OURS in self.file.read_text(encoding="utf-8", errors="replace"):
            self.file.unlink()
        if self._aside.exists() and not self.file.exists():
            self._aside.rename(self.file)

    def _forbids(self) -> bool:
        if not os.access(self.file, os.X_OK):
            return False
        return subprocess.run([self.file, "rabbitmq-server", "start"], check=False).returncode == _FORBIDDEN


def install(packages: Sequence[str], tell: Callable[[str], None], policy: Policy | None = None) -> None:
    """Under `policy`, by default the machine's. Raises InstallError."""
    tell(f"Installing {', '.join(packages)} with apt-get; no server of them is started or enabled ...")
    begun = time.monotonic()
    try:
        with (policy or Policy()).nothing_started():
            wanted = ["install", "-y", "--no-install-recommends", *packages]
            said = _apt(wanted, tell)
            if said is not None:
                # A new machine has no lists of packages yet, and an old one may have outdated lists.
                said = _apt(["update"], tell) or _apt(wanted, tell)
    finally:
        for package in packages:
            _disable(package)
    if said is not None:
        raise InstallError(f"apt-get could not install {', '.join(packages)}:\n{said}")
    tell(f"Installed after {time.monotonic() - begun:.0f} s.")


def _apt(arguments: Sequence[str], tell: Callable[[str], None]) -> str | None:
    """None when it went well, else the end of what it said."""
    # A file and no pipe, which whatever stays running after an installation would hold open.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        apt = subprocess.Popen(
            [*_APT, *arguments],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # an interrupt in the terminal is not for it
        )
        try:
            status = apt.wait()
        except BaseException:
            tell("Waiting for apt-get to finish: packages that are half installed would be in everybody's way ...")
            apt.wait()
            raise
        said.seek(0)
        return None if status == 0 else "\n".join(said.read().strip().splitlines()[-_SAID_LINES:])


def _disable(package: str) -> None:
    """So that it stays off when the machine starts again. Erlang's epmd knows systemd only."""
    commands = [["update-rc.d", package, "disable"]]
    if package == "rabbitmq-server":
        commands.append(["systemctl", "disable", "epmd.socket", "epmd.service"])
    for command in commands:
        if shutil.which(command[0]):
            subprocess.run(command, capture_output=True, check=False)
