"""Asks a running RabbitMQ node by the Erlang distribution, in some 10 ms where rabbitmqctl takes half a second.

Over AMQP nobody can make a virtual host. `erl_call` comes with Erlang itself, so wherever RabbitMQ runs, it is there.
What is evaluated is written here, and whatever is put into it is checked: a name never becomes code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ANSWER_S = 60.0


class ConsoleError(Exception):
    """The node did not do what it was asked."""


@dataclass(frozen=True, slots=True)
class RabbitConsole:
    """`node` as in `insika@localhost`, its `cookie`, and the port of the epmd that knows it."""

    node: str
    cookie: str
    epmd_port: int

    def evaluate(self, expression: str, patience_s: float = _ANSWER_S) -> str:
        """What the node makes of an Erlang expression, as text. Raises ConsoleError with the node's own words, or when
        it does not answer within `patience_s`."""
        # Two that ask at once under one name would take each other for a broken connection.
        asker = f"insika-{uuid.uuid4().hex[:12]}"
        command = [_erl_call(), "-h", asker, "-sname", self.node, "-c", self.cookie, "-e"]
        try:
            answer = subprocess.run(
                command,
                input=f"{expression}.\n",
                env={**os.environ, "ERL_EPMD_PORT": str(self.epmd_port)},
                capture_output=True,
                text=True,
                timeout=patience_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ConsoleError(f"RabbitMQ node {self.node} did not answer within {patience_s:g} s") from None
        said = answer.stdout.strip()
        if answer.returncode != 0 or not said.startswith("{ok, ") or not said.endswith("}"):
            raise ConsoleError(f"RabbitMQ node {self.node}: {(said or answer.stderr).strip()}")
        return said.removeprefix("{ok, ")[:-1]

    def add_vhost(self, name: str) -> None:
        """An empty virtual host in which guest may do everything."""
        vhost = _binary(name)
        self.evaluate(
            f'rabbit_vhost:add({vhost}, <<"insika">>), rabbit_auth_backend_internal:set_permissions('
            f'<<"guest">>, {vhost}, <<".*">>, <<".*">>, <<".*">>, <<"insika">>)'
        )

    def remove_vhost(self, name: str) -> None:
        """With all that is in it; connections to it are closed. None there is fine."""
        vhost = _binary(name)
        self.evaluate(f'rabbit_vhost:exists({vhost}) andalso rabbit_vhost:delete({vhost}, <<"insika">>)')

    def empty_vhost(self, name: str) -> None:
        """Nothing is left of its queues, exchanges and policies, and nobody is connected to it."""
        self.remove_vhost(name)
        self.add_vhost(name)


def _binary(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"a virtual host here is named by letters, digits, dots and dashes; not {name!r}")
    return f'<<"{name}">>'


def _erl_call() -> str:
    found = shutil.which("erl_call")
    if found is None:
        raise ConsoleError("erl_call is not on the PATH; it comes with Erlang (Debian: erlang-base)")
    return found
