"""A private RabbitMQ node, 3.10 or newer, with an epmd, a cookie and ports of its own; everything on loopback.

The node of a package that is installed beside it, its plugins and its configuration are neither read nor touched.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .accounts import Account
from .console import ConsoleError, RabbitConsole
from .ports import LOOPBACK, free_ports
from .programs import erlang_program, rabbitmq_program
from .server import PrivateServer, ServerError

_NODE = "insika@localhost"
_ON_LOOPBACK = "-kernel inet_dist_use_interface {127,0,0,1}"
_CTL_S = 60
_WRITE_NAMES = '[dets:sync(T) || T <- dets:all(), is_atom(T), string:find(atom_to_list(T), "directory") =/= nomatch]'
_WRITE_NAMES_S = 2.0


class RabbitServer(PrivateServer):
    """`settings` are lines of rabbitmq.conf: `{"consumer_timeout": "5000", "heartbeat": "5"}`."""

    name = "rabbitmq"

    def __init__(
        self, folder: Path, account: Account, changed: Callable[[], None], settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder, account, changed)
        self._settings = settings or {}
        self._cookie = secrets.token_hex(16)
        self._epmd_port = 0
        self._node_port = 0

    @property
    def url(self) -> str:
        return self.url_of("/")

    def url_of(self, vhost: str) -> str:
        return f"amqp://guest:guest@{LOOPBACK}:{self.port}/{vhost.replace('/', '%2F')}"

    @property
    def console(self) -> RabbitConsole:
        """The quick way to ask the node for something."""
        return RabbitConsole(_NODE, self._cookie, self._epmd_port)

    def ctl(self, *arguments: str) -> str:
        """What `rabbitmqctl` prints, in half a second or so. Raises ServerError with what it complains about."""
        done = subprocess.run(
            [rabbitmq_program("rabbitmqctl"), "--quiet", *arguments],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_CTL_S,
            check=False,
            **self.account.popen(),
        )
        if done.returncode != 0:
            raise ServerError(f"rabbitmqctl {' '.join(arguments)}: {(done.stdout + done.stderr).strip()}")
        printed: str = done.stdout
        return printed

    def kill(self) -> None:
        """As for every server, but first the names of new quorum queues are on disk. RabbitMQ writes them half a second
        after the last one was declared; killed before, it comes back with a queue that never gets a leader and answers
        nobody (seen with 3.10). No client can do anything about that, so no test of one may stumble over it."""
        try:
            self.console.evaluate(_WRITE_NAMES, _WRITE_NAMES_S)
        except ConsoleError:
            pass  # it is paused, or does not live any more
        super().kill()

    def describe(self) -> dict[str, Any]:
        own = {"node": _NODE, "cookie": self._cookie, "epmd_port": self._epmd_port, "node_port": self._node_port}
        return {**super().describe(), **own}

    def remember(self, described: Mapping[str, Any]) -> None:
        super().remember(described)
        self._cookie = described["cookie"]
        self._epmd_port = described["epmd_port"]
        self._node_port = described["node_port"]

    def _prepare(self) -> None:
        self.account.write(self.folder / ".erlang.cookie", self._cookie, 0o400)
        self.account.write(self.folder / "enabled_plugins", "[].\n")
        self.account.write(self.folder / "advanced.config", "[].\n")
        self.account.write(self.folder / "rabbitmq-env.conf", "")

    @property
    def _ports(self) -> Sequence[int]:
        return [self.port, self._epmd_port, self._node_port]

    def _choose_ports(self) -> None:
        self.port, self._epmd_port, self._node_port = free_ports(3)
        lines = {"listeners.tcp.1": f"{LOOPBACK}:{self.port}", "log.console": "true", "log.file": "false"}
        text = "".join(f"{name} = {value}\n" for name, value in {**lines, **self._settings}.items())
        self.account.write(self.folder / "rabbitmq.conf", text)

    def _run(self) -> None:
        # In the foreground, by ourselves: the one that a node starts for itself would outlive it.
        self._spawn([erlang_program("epmd"), "-port", str(self._epmd_port), "-address", LOOPBACK], self._environment())
        self._spawn([rabbitmq_program("rabbitmq-server")], self._environment())

    def _answers(self) -> bool:
        try:
            return self.console.evaluate("rabbit_boot_state:get()") == "ready"
        except ConsoleError:
            return False

    def _environment(self) -> Mapping[str, str]:
        """Nothing of the caller's own, where RABBITMQ_ and ERL_ variables would lead elsewhere."""
        folder = self.folder
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C" if not Path("/usr/lib/locale/C.utf8").exists() else "C.UTF-8",
            "HOME": str(folder),
            "ERL_CRASH_DUMP_SECONDS": "0",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            # Then the script becomes the node; else it is a parent of the node that might die without it.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": _NODE,
            "RABBITMQ_USE_LONGNAME": "false",
            "RABBITMQ_LOG": "-color",
            "RABBITMQ_BASE": str(folder),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(folder / "feature_flags"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ON_LOOPBACK,
            "RABBITMQ_CTL_ERL_ARGS": _ON_LOOPBACK,
        }
