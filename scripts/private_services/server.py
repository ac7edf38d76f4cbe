"""One private server: its life, whatever it serves. What is special about each stands in its own file.

Its port and its data stay the same through every stop, kill and restart, so that its clients find it again. Only what
was started here is ever signalled.
"""

from __future__ import annotations

import abc
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from .accounts import Account
from .ports import free_ports, is_free
from .processes import MARK, Process, families, freeze, kill, marked, thaw, uninterrupted, wait_until_gone

_ANSWERS_WITHIN_S = 120.0
_STOPS_WITHIN_S = 60.0
_DIES_WITHIN_S = 20.0
_LOOK_AGAIN_S = 0.05
_TRIES = 10
_TRY_AGAIN_S = 0.5
_TAIL_LINES = 25


class ServerError(Exception):
    """A server that does not do what it must; the message ends with the tail of its log."""


class PrivateServer(abc.ABC):
    """A server in `folder`, which it makes. `changed` is called whenever what must be written down about it changed."""

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, folder: Path, account: Account, changed: Callable[[], None]) -> None:
        self.folder = folder
        self.account = account
        self.port = 0
        self._changed = changed
        self._children: list[subprocess.Popen[bytes]] = []
        self._processes: list[Process] = []
        self._has_answered = False
        self._log_begins = 0

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """Where clients find it, with the name and password they need."""

    @property
    def running(self) -> bool:
        """Paused is running, too."""
        self._reap()
        return bool(self._processes) and all(process.alive for process in self._processes)

    def start(self) -> None:
        """Starts it unless it runs, and waits until it answers. Raises ServerError."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Starts it unless it runs, and does not wait."""
        if self.running:
            return
        self.discard()
        if not self.folder.exists():
            self.account.make_folder(self.folder)
            self._prepare()
        if not self._has_answered:
            self._choose_ports()
        self._log_begins = self._log_size()
        self._run()

    def wait(self) -> None:
        """Until it answers. A port that another has taken meanwhile is chosen anew, as long as nobody was told it."""
        deadline = time.monotonic() + _ANSWERS_WITHIN_S
        tries = _TRIES
        while not (self.running and self._answers()):
            if not self.running:
                if not self._may_try_again() or tries == 0:
                    raise self._error("ended before it answered")
                tries -= 1
                time.sleep(_TRY_AGAIN_S if self._has_answered else 0)
                self.launch()
            elif time.monotonic() > deadline:
                raise self._error(f"did not answer within {_ANSWERS_WITHIN_S:g} s")
            time.sleep(_LOOK_AGAIN_S)
        self._has_answered = True
        self._changed()

    def stop(self) -> None:
        """As its operator would. What has not ended after a minute is killed."""
        self._end(self.stop_signal)

    def kill(self) -> None:
        """SIGKILL for it and all that it started. Returns when none of them is left."""
        self.discard()

    def discard(self) -> None:
        """Like `kill`, but nothing that it might still have to write matters."""
        doomed = [*self._processes, *marked(str(self.folder))]
        if not self._gone(kill(doomed), _DIES_WITHIN_S):
            raise self._error("survived SIGKILL")
        self._forget()

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """SIGSTOP for it and all that it started: it keeps its connections, and answers nobody."""
        freeze(self._processes)

    def resume(self) -> None:
        thaw(self._processes)

    def log_tail(self) -> str:
        """The last lines that it wrote since it was started."""
        return "\n".join(self._log().splitlines()[-_TAIL_LINES:])

    def describe(self) -> dict[str, Any]:
        """What another process needs to reach it and to end it."""
        processes = [{"pid": process.pid, "started": process.started} for process in self._processes]
        return {"port": self.port, "has_answered": self._has_answered, "processes": processes}

    def remember(self, described: Mapping[str, Any]) -> None:
        """Take over the server that `describe` told of."""
        self.port = described["port"]
        self._has_answered = described["has_answered"]
        self._processes = [Process(**process) for process in described["processes"]]

    @abc.abstractmethod
    def _prepare(self) -> None:
        """What must be in the new folder before the first start."""

    @abc.abstractmethod
    def _run(self) -> None:
        """Spawn what it consists of."""

    @abc.abstractmethod
    def _answers(self) -> bool:
        """Whether this very server, and not another on its port, serves clients."""

    @property
    def _ports(self) -> Sequence[int]:
        """All on which it listens."""
        return [self.port]

    def _choose_ports(self) -> None:
        [self.port] = free_ports(1)

    def _spawn(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # Whoever is told to leave between the start and the record would leave a server behind.
        with self._log_file.open("ab") as log, uninterrupted():
            child = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**environment, MARK: str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self.account.popen(),
            )
            self._children.append(child)
            self._processes.append(Process.of(child.pid))
            self._changed()

    def _complete(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Runs what prepares the server to its end; it is killed like the server itself. Raises ServerError."""
        self._spawn(command, environment)
        if self._children[-1].wait() != 0:
            raise self._error(f"could not be prepared by {command[0]}")
        self._forget()

    @property
    def _log_file(self) -> Path:
        return self.folder / "log"

    def _log_size(self) -> int:
        return self._log_file.stat().st_size if self._log_file.exists() else 0

    def _log(self) -> str:
        if not self._log_file.exists():
            return ""
        return self._log_file.read_bytes()[self._log_begins :].decode("utf-8", errors="replace")

    def _end(self, number: signal.Signals) -> None:
        self.resume()
        family = families(self._processes)
        for process in self._processes:
            process.signal(number)
        if not self._gone(family, _STOPS_WITHIN_S):
            self.discard()
        self._forget()

    def _may_try_again(self) -> bool:
        """Whether it ended because a port was taken. Some servers say so and some only end, and who took it may have
        left again."""
        return "address already in use" in self._log().lower() or not all(map(is_free, self._ports))

    def _error(self, what: str) -> ServerError:
        return ServerError(f"{self.name} {what}. The end of its log, {self._log_file}:\n{self.log_tail()}")

    def _gone(self, processes: Sequence[Process], patience_s: float) -> bool:
        gone = wait_until_gone(processes, patience_s)
        self._reap()
        return gone

    def _reap(self) -> None:
        for child in self._children:
            child.poll()

    def _forget(self) -> None:
        self._children, self._processes = [], []
        self._changed()
