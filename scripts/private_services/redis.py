"""A private Redis 7. What it has acknowledged is in its file before the answer, so a kill loses nothing of it."""

from __future__ import annotations

import os
import re
import socket

from .ports import LOOPBACK
from .programs import redis_program
from .server import PrivateServer

_ANSWER_S = 1.0


class RedisServer(PrivateServer):
    name = "redis"
    databases = 64

    @property
    def url(self) -> str:
        return f"redis://{LOOPBACK}:{self.port}/0"

    def _prepare(self) -> None:
        pass

    def _run(self) -> None:
        options = {
            "port": str(self.port),
            "bind": LOOPBACK,
            "dir": str(self.folder),
            "databases": str(self.databases),
            "save": "",
            "appendonly": "yes",
            # The system keeps what is written, also when the process is killed; only the machine must not go down.
            "appendfsync": "no",
            # Else the title is written over the environment, and with it over the mark.
            "set-proc-title": "no",
        }
        command = [redis_program(), *(part for name, value in options.items() for part in (f"--{name}", value))]
        self._spawn(command, {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"})

    def _answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=_ANSWER_S) as connection:
                connection.sendall(b"INFO server\r\nQUIT\r\n")
                said = b"".join(iter(lambda: connection.recv(65_536), b""))
        except OSError:
            return False
        found = re.search(rb"process_id:(\d+)", said)
        return found is not None and [int(found[1])] == [process.pid for process in self._processes]
