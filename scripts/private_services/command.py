"""`scripts/services`: the verbs, what they print, and with which status they end.

Standard output is for what `env` prints and for what is told on the way by the others; errors go to standard error.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from . import debian
from .clone import Clone
from .packages import NotInstalled, install_missing
from .programs import MissingProgram
from .server import ServerError
from .together import PrivateServices, end_abandoned

_DATABASE = "insika"
_USE = 'Use them: eval "$(scripts/services env)"   Stop them: scripts/services down'
_EPILOG = """\
verbs:
  up             start RabbitMQ, PostgreSQL and Redis on free loopback ports, with data in a temporary folder; on Debian
                 and Ubuntu, as root, what is missing is installed; up again says that they run, and starts what died
  env            print the variables that lead to them, for: eval "$(scripts/services env)"
  down           stop them and remove their data
  run COMMAND    run a command with these variables; when they are not up, they are there for as long as it runs
"""


def main(root: Path, arguments: Sequence[str]) -> int:
    """The exit status. `root` is the top of the clone."""
    parser = argparse.ArgumentParser(
        prog="scripts/services",
        description="Private RabbitMQ, PostgreSQL and Redis for trying things out and for the tests.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=("up", "env", "down", "run"))
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="after run")
    given = parser.parse_args(arguments)
    if (given.verb == "run") != bool(given.command):
        parser.error("run needs a command, and the other verbs take nothing more")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    clone = Clone(root)
    try:
        if given.verb == "run":
            return _run(clone, given.command)
        {"up": _up, "env": _env, "down": _down}[given.verb](clone)
    except (ServerError, MissingProgram, NotInstalled, OSError) as error:
        sys.stderr.write(f"scripts/services: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def variables(services: PrivateServices) -> Mapping[str, str]:
    """By which Insika and its tests find them."""
    postgres, rabbitmq, redis = services.postgres, services.rabbitmq, services.redis
    return {
        "INSIKA_DATABASE_URL": postgres.url_of(_DATABASE),
        "INSIKA_AMQP_URL": rabbitmq.url,
        "INSIKA_REDIS_URL": redis.url,
        "INSIKA_TEST_POSTGRES_URL": postgres.url,
        "INSIKA_TEST_AMQP_URL": rabbitmq.url,
        "INSIKA_TEST_REDIS_URL": redis.url,
    }


def _up(clone: Clone) -> None:
    with clone.locked():
        services = clone.services()
        if services is None:
            services = _started(_tell)
            clone.remember(services)
            _tell(f"They are up. {_USE}")
        elif services.running:
            _tell(f"They are up already, with their data in {services.folder}. {_USE}")
        else:
            _tell(f"Not all of them run any more. Starting the others again, with the data in {services.folder} ...")
            services.bring_up(_tell)
            _tell(f"They are up. {_USE}")
        services.keep()


def _started(tell: Callable[[str], None]) -> PrivateServices:
    install_missing(tell)
    tell("Starting private RabbitMQ, PostgreSQL and Redis, which takes 5 to 10 s ...")
    services = PrivateServices.start(tell=tell)
    try:
        services.postgres.create_database(_DATABASE)
    except BaseException:
        services.stop()
        raise
    return services


def _env(clone: Clone) -> None:
    services = clone.services()
    if services is None or not services.running:
        raise ServerError("they are not up; say scripts/services up")
    for name, value in variables(services).items():
        _tell(f"export {name}={shlex.quote(value)}")


def _down(clone: Clone) -> None:
    begun = time.monotonic()
    with clone.locked():
        services = clone.services()
        if services is not None:
            services.stop()
        clone.forget()
    end_abandoned(_tell)
    if os.geteuid() == 0:
        debian.Policy().restore()
    if services is None:
        _tell("They were not up.")
    else:
        _tell(f"Stopped, and their data is removed, after {time.monotonic() - begun:.1f} s.")


def _run(clone: Clone, command: Sequence[str]) -> int:
    services = clone.services()
    if services is not None and services.running:
        _tell("Using the services that are up already.")
        return _child(command, variables(services))
    with _started(_tell) as services:
        status = _child(command, variables(services))
        _tell("Stopping the services ...")
    end_abandoned()
    return status


def _child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Its status, as a shell tells it. An interrupt reaches it from the terminal, and a request to end is passed on;
    either way it is awaited."""
    child = subprocess.Popen(command, env={**os.environ, **environment})
    while child.returncode is None:
        try:
            child.wait()
        except KeyboardInterrupt:
            pass  # the terminal has told the child, too
        except SystemExit:
            child.terminate()
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
