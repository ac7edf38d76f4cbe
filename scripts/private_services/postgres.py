"""A private PostgreSQL 15 or newer that trusts whoever reaches it on loopback, and is as durable as by default."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from .accounts import Account
from .ports import LOOPBACK
from .processes import wait_until_gone, working_in
from .programs import postgres_program
from .server import PrivateServer, ServerError

_SETTINGS = {
    "max_connections": "300",
    # Over TCP only: the path of a Unix socket may have some hundred characters, and a temporary folder's may be longer.
    "unix_socket_directories": "",
    "listen_addresses": LOOPBACK,
    "lc_messages": "C",
    "log_line_prefix": "%m [%p] ",
}
_CHILDREN_LEAVE_WITHIN_S = 20.0
_STATUS_LINE = 7
"""Of postmaster.pid, counted from 0; the first holds the process's number. pg_ctl waits for the same."""


class PostgresServer(PrivateServer):
    name = "postgres"
    stop_signal = signal.SIGINT  # ends its connections; SIGTERM would wait for all of them to leave

    def __init__(
        self, folder: Path, account: Account, changed: Callable[[], None], settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder, account, changed)
        self._settings = {**_SETTINGS, **(settings or {})}

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://postgres@{LOOPBACK}:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """Its URL. Raises ServerError, for instance when there is one of that name."""
        where = ["--host", LOOPBACK, "--port", str(self.port), "--username", "postgres", "--no-password"]
        made = subprocess.run(
            [postgres_program("createdb"), *where, name],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise ServerError(f"postgres: {made.stderr.strip()}")
        return self.url_of(name)

    def stop_at_once(self) -> None:
        """In its immediate mode: connections are cut, nothing is tidied up, and the next start recovers."""
        self._end(signal.SIGQUIT)

    def discard(self) -> None:
        """Leaves no postmaster.pid either: the number in it may be another process's by now, or a zombie's."""
        super().discard()
        # The children of a postmaster that somebody else has killed leave when they notice.
        if wait_until_gone(working_in(self._data), _CHILDREN_LEAVE_WITHIN_S):
            (self._data / "postmaster.pid").unlink(missing_ok=True)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _prepare(self) -> None:
        locale = "C" if sys.platform == "darwin" else "C.UTF-8"
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", f"--locale={locale}", "--no-sync"]
        self._complete([postgres_program("initdb"), "--pgdata", str(self._data), *options], self._environment())
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as configuration:
            for name, value in self._settings.items():
                configuration.write("{} = '{}'\n".format(name, value.replace("'", "''")))

    def _run(self) -> None:
        command = [postgres_program("postgres"), "-D", str(self._data), "-p", str(self.port)]
        self._spawn(command, self._environment())

    def _answers(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        ready = len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"
        return ready and [int(lines[0])] == [process.pid for process in self._processes]

    def _environment(self) -> Mapping[str, str]:
        """Nothing of the caller's own: PGDATA, PGPORT and the like would lead elsewhere."""
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), "LC_ALL": "C"}
