"""Whether the environment says what its processes need, and nothing that nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from actors.doctor.finding import Finding, fail, ok, warn
from actors.environment import Environment
from insika.errors import InvalidConfiguration

ABOUT = "environment"
SHORT_LEASE_S = 5.0


def unreadable(error: InvalidConfiguration) -> Iterator[Finding]:
    for name, why in error.problems:
        yield fail(ABOUT, f"{name} {why.rstrip('.')}.", f"Set {name} right, or unset it.")


def judged(environment: Environment, unknown: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """`unknown`: variables that look as if they were meant for Insika, and why they do nothing."""
    for name, why in unknown:
        yield warn(ABOUT, f"{name} {why}.", "Correct its name, or unset it.")
    if environment.lease_s < SHORT_LEASE_S:
        what = f"INSIKA_LEASE_S is {environment.lease_s:g}: a process that is held up for a moment loses its sessions."
        yield warn(ABOUT, what, "Use 15; a shorter lease only hastens the takeover after a process died.")
    if environment.amqp_url is None:
        yield from _alone(environment)
    else:
        yield from _cluster(environment)


def _alone(environment: Environment) -> Iterator[Finding]:
    """`insika dev` and what embeds it."""
    if environment.on_postgres:
        what = "INSIKA_AMQP_URL is not set, so `insika ingress`, `worker`, `outbox` and `clock` will not start."
        yield warn(ABOUT, what, "Set it to amqp://user:password@host:5672/vhost; `insika dev` works without.")
    else:
        yield ok(ABOUT, "RabbitMQ and Redis do not apply: one process does all the work (`insika dev`).")


def _cluster(environment: Environment) -> Iterator[Finding]:
    complete = True
    if not environment.on_postgres:
        complete = False
        what = "The database is a SQLite file, which only processes on this machine share, and write to in turns."
        yield warn(ABOUT, what, "Set INSIKA_DATABASE_URL to postgresql://user:password@host:5432/insika.")
    if environment.redis_url is None:
        complete = False
        what = "INSIKA_REDIS_URL is not set: signals and events stay within each process."
        yield warn(ABOUT, what, "Set it to redis://host:6379/0, so that a cancel is heard at once.")
    if not environment.tools:
        complete = False
        what = "INSIKA_TOOLS is not set, so agents are offered the sample tools."
        yield warn(ABOUT, what, "Name the modules with your tools, in the environment of each worker.")
    if complete:
        yield ok(ABOUT, "It names a database, RabbitMQ, Redis and tools.")
