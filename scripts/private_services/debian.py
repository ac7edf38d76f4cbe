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
from pathlib import Path

_POLICY = Path("/usr/sbin/policy-rc.d")
_LOCK = Path("/run/insika-packages.lock")
_FORBIDDEN = 101
"""What policy-rc.d says when an action is not allowed (invoke-rc.d(8))."""
_OURS = "# Put here by Insika's scripts/services while it installs packages. If none of them runs, remove it.\n"
_APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120")
_SAID_LINES = 15


class InstallError(Exception):
    """The message ends with what apt-get said last."""


def install(packages: Sequence[str], tell: Callable[[str], None]) -> None:
    """Raises InstallError."""
    tell(f"Installing {', '.join(packages)} with apt-get; no server of them is started or enabled ...")
    begun = time.monotonic()
    try:
        with nothing_started():
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


@contextlib.contextmanager
def nothing_started(policy: Path = _POLICY, lock: Path = _LOCK) -> Iterator[None]:
    """Inside, no package's script may start, stop or restart a server. One at a time; another waits."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        _put_back(policy)
        if _forbids(policy):
            yield
            return
        if policy.exists():
            policy.rename(_aside(policy))
        policy.write_text(f"#!/bin/sh\n{_OURS}exit {_FORBIDDEN}\n", encoding="utf-8")
        policy.chmod(0o755)
        try:
            yield
        finally:
            _put_back(policy)


def restore(policy: Path = _POLICY, lock: Path = _LOCK) -> None:
    """What one that was killed has left behind is put right, unless another is at work just now."""
    if lock.exists():
        with lock.open("w") as held, contextlib.suppress(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _put_back(policy)


def _put_back(policy: Path) -> None:
    if policy.is_file() and _OURS in policy.read_text(encoding="utf-8", errors="replace"):
        policy.unlink()
    if _aside(policy).exists() and not policy.exists():
        _aside(policy).rename(policy)


def _aside(policy: Path) -> Path:
    return policy.with_name(f"{policy.name}.before-insika")


def _forbids(policy: Path) -> bool:
    if not os.access(policy, os.X_OK):
        return False
    return subprocess.run([policy, "rabbitmq-server", "start"], check=False).returncode == _FORBIDDEN


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
