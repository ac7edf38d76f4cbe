"""Asks everybody who may know how the deployment is, all at once and each for a limited time, and has the answers
judged. Whoever does not answer is a finding, and keeps nobody else from being asked."""

from __future__ import annotations

import asyncio
import platform
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import urlsplit

import structlog

from actors.bounded import bounded
from actors.broker import inspection as broker
from actors.broker.errors import BrokerAway, BrokerRefuses
from actors.doctor import (
    alerts,
    channels,
    configuration,
    coordination,
    database,
    http_tools,
    models,
    queues,
    variables,
    work,
)
from actors.doctor.finding import Finding, fail
from actors.doctor.versions import PYTHON, new_enough
from actors.egress import egress_guard
from actors.environment import Environment
from actors.parts import Parts
from actors.stores import inspect_database
from actors.tool_set import tool_set
from insika.agents.profile import Profile
from insika.clock import Clock
from insika.config_files import load_profile_folder, load_settings_file
from insika.coordination.redis import inspection as redis
from insika.errors import InsikaError, InvalidConfiguration
from insika.model_endpoints import HostedModels
from insika.providers.catalog import ModelCatalog
from insika.settings import Settings
from insika.storage.inspection import Contents, Inspection

T = TypeVar("T")

_log = structlog.get_logger("insika.doctor")

STATEMENT_S = 5.0
SERVICE_S = 15.0
FILES_S = 5.0
NAMES_S = 4.0
"""How long each may take: a statement, a service with all that is asked of it, the files and modules that processes
read when they start, and the look-up of a name."""


@dataclass(frozen=True, slots=True)
class Files:
    """What the files say that processes apply when they start, and why some cannot be."""

    settings: Settings | None = None
    profiles: tuple[Profile, ...] = ()
    faults: tuple[Finding, ...] = ()


@dataclass(slots=True)
class _Heard:
    """What was learned, and what is to be said of those who taught nothing."""

    contents: Contents | None = None
    findings: list[Finding] = field(default_factory=list)


async def examine(
    environment: Environment, unknown: Iterable[tuple[str, str]], parts: Callable[[], Parts], clock: Clock
) -> Sequence[Finding]:
    """`unknown`: variables that nobody reads. `parts` loads the models and tools of this process; it may raise
    InvalidConfiguration, and anything that a user's module does. Takes at most about 20 s, and never raises for what
    it finds."""
    heard, about_broker, about_redis, files, here = await asyncio.gather(
        _database(environment, clock),
        _broker(environment),
        _redis(environment, clock),
        _files(environment),
        _parts(parts),
    )
    contents = heard.contents
    findings = [new_enough("python", "Python", platform.python_version(), PYTHON)]
    findings += variables.judged(environment, unknown)
    findings += heard.findings
    if isinstance(about_broker, broker.BrokerFacts):
        sessions, deliveries = (contents.sessions, contents.deliveries) if contents else (None, None)
        findings += queues.judged(about_broker, sessions, deliveries)
    elif about_broker is not None:
        findings.append(about_broker)
    findings += about_redis
    findings += files.faults
    findings += await _configured(environment, contents, files, here)
    if contents is not None:
        findings += work.judged(contents)
    return findings


async def _database(environment: Environment, clock: Clock) -> _Heard:
    shown = f"The database {environment.database_shown}"
    do = "Check INSIKA_DATABASE_URL, and that the server runs and lets this machine in."

    def ask() -> Inspection:
        return inspect_database(environment, clock, late_s=work.LATE_S, answer_s=STATEMENT_S)

    try:
        found = await bounded(ask, SERVICE_S)
    except TimeoutError:
        return _Heard(findings=[fail(database.ABOUT, f"{shown} did not answer within {SERVICE_S:g} s.", do)])
    except InsikaError as error:
        return _Heard(findings=[fail(database.ABOUT, f"{shown} cannot be used: {error.message.rstrip('.')}.", do)])
    except Exception as error:
        return _Heard(findings=[_unforeseen(database.ABOUT, shown, error)])
    return _Heard(found.contents, list(database.judged(found, environment.database_shown)))


async def _broker(environment: Environment) -> broker.BrokerFacts | Finding | None:
    """None: there is none to ask."""
    if environment.amqp_url is None:
        return None
    url = environment.amqp_url.get_secret_value()
    do = "Start it, or check INSIKA_AMQP_URL; jobs stay with their producers until then."
    try:
        return await bounded(lambda: broker.inspect(url, environment.queue_type), SERVICE_S)
    except TimeoutError:
        return fail(queues.BROKER, f"RabbitMQ did not answer within {SERVICE_S:g} s.", do)
    except BrokerAway as error:
        return fail(queues.BROKER, f"{error.message}.", do)
    except (BrokerRefuses, InvalidConfiguration) as error:
        return fail(queues.BROKER, f"{error.message}.", "Mend that; processes end at their start until then.")
    except Exception as error:
        return _unforeseen(queues.BROKER, "RabbitMQ", error)


async def _redis(environment: Environment, clock: Clock) -> list[Finding]:
    if environment.redis_url is None:
        return []
    url = environment.redis_url.get_secret_value()
    # Its client would look the name up on a thread that the end of this process waits for.
    unknown = await _addresses(urlsplit(url).hostname or "localhost")
    if isinstance(unknown, str):
        return [coordination.away(f"The host of Redis cannot be found: {unknown}")]
    try:
        async with asyncio.timeout(SERVICE_S):
            return list(coordination.judged(await redis.inspect(url, clock.now)))
    except TimeoutError:
        finding = coordination.away(f"Redis did not answer within {SERVICE_S:g} s")
    except redis.RedisAway as error:
        finding = coordination.away(error)
    except redis.RedisRefuses as error:
        finding = coordination.refused(error)
    except InvalidConfiguration as error:
        finding = fail(coordination.ABOUT, f"{error.message}.", "Set INSIKA_REDIS_URL right.")
    except Exception as error:
        finding = _unforeseen(coordination.ABOUT, "Redis", error)
    return [finding]


def _unforeseen(about: str, who: str, error: Exception) -> Finding:
    """A fault of ours must not keep the rest from being told."""
    _log.error("not examined", about=about, exc_info=error)
    what = f"{who} could not be looked at ({type(error).__name__})."
    return fail(about, what, "Look at it by hand, and report what is logged here as a fault of Insika.")


async def _files(environment: Environment) -> Files:
    settings_file, folder = environment.settings, environment.agents_dir
    faults: list[Finding] = []

    async def read(variable: str, load: Callable[[], T], otherwise: T) -> T:
        try:
            return await bounded(load, FILES_S)
        except InvalidConfiguration as error:
            faults.append(configuration.unreadable_file(variable, error))
        except TimeoutError:
            faults.append(configuration.unreadable_file(variable, f"it was not read within {FILES_S:g} s"))
        return otherwise

    settings = None
    if settings_file is not None:
        settings = await read("INSIKA_SETTINGS", lambda: load_settings_file(settings_file), None)
    profiles: Sequence[Profile] = ()
    if folder is not None:
        profiles = await read("INSIKA_AGENTS_DIR", lambda: load_profile_folder(folder), profiles)
    return Files(settings, tuple(profiles), tuple(faults))


async def _parts(parts: Callable[[], Parts]) -> Parts | Finding:
    try:
        return await bounded(parts, FILES_S)
    except InvalidConfiguration as error:
        return configuration.unusable_tools(error)
    except TimeoutError:
        return configuration.unusable_tools(f"it was not imported within {FILES_S:g} s")
    except Exception as error:
        return configuration.unusable_tools(f"{type(error).__name__} was raised while it was imported")


async def _configured(
    environment: Environment, contents: Contents | None, files: Files, here: Parts | Finding
) -> list[Finding]:
    """What is in force, and what will be as soon as a process applies the files."""
    findings: list[Finding] = []
    stored = contents.profiles if contents is not None else ()
    row = contents.settings if contents is not None else None
    settings = configuration.read_settings(row) if row is not None or files.settings is None else files.settings
    if isinstance(settings, Finding):
        findings.append(settings)
    profiles, unreadable = configuration.read_profiles(stored)
    findings += unreadable
    names = {revision.name for revision in stored}
    profiles += [profile for profile in files.profiles if profile.id not in names]
    if isinstance(here, Finding):
        findings.append(here)
    elif isinstance(settings, Settings):
        tools = tool_set(environment, here)
        findings += http_tools.named(settings, tools)
        here = replace(here, tools=tools.under(settings))
    given = settings.providers if isinstance(settings, Settings) else ()
    if contents is not None or profiles:
        findings += configuration.judged(profiles, None if isinstance(here, Finding) else here, given)
    if isinstance(here, Parts):
        findings += await _models(profiles, here.models, given)
    if isinstance(settings, Settings):
        findings += configuration.public(profiles, settings)
        findings += await _places(environment, settings, profiles, told=contents is not None)
    return findings


async def _models(profiles: Sequence[Profile], catalog: ModelCatalog, given: Sequence[HostedModels]) -> list[Finding]:
    used = models.used(profiles, catalog, given)
    hosts = sorted({one.host for one in used})
    return list(models.judged(used, dict(zip(hosts, await asyncio.gather(*map(_addresses, hosts)), strict=True))))


async def _places(
    environment: Environment, settings: Settings, profiles: Sequence[Profile], *, told: bool
) -> list[Finding]:
    """Where answers, alerts and HTTP tools go. `told`: also say that there are no channels."""
    guard = egress_guard(environment)
    named = channels.hosts(settings.channels, guard) | http_tools.hosts(settings.http_tools, guard)
    hosts = sorted(named | alerts.hosts(profiles, guard))
    resolved = dict(zip(hosts, await asyncio.gather(*map(_addresses, hosts)), strict=True))
    delivered = channels.judged(settings.channels, guard, resolved) if told or settings.channels else ()
    signed = environment.webhook_secret is not None
    told_of = alerts.judged(profiles, guard, resolved, signed=signed)
    return [*delivered, *told_of, *http_tools.reached(settings.http_tools, guard, resolved)]


async def _addresses(host: str) -> Sequence[str] | str:
    """Or why there are none."""
    try:
        found = await bounded(lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM), NAMES_S)
    except TimeoutError:
        return f"nobody knew it within {NAMES_S:g} s"
    except OSError as error:
        return error.strerror or type(error).__name__
    return [str(address[4][0]) for address in found]
