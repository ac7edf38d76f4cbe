"""The environment variables that the processes obey, read once, at boot.

Only their shape is checked here; nothing is opened or connected. Secrets do not show in a repr or an error.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from insika.channels import signing_secret
from insika.errors import InvalidConfiguration
from insika.parsing import did_you_mean, validation_problems

_PREFIX = "INSIKA_"
_READ_ELSEWHERE = ("INSIKA_LOG_LEVEL", "INSIKA_RECEIVE_SECRETS")
"""By the command line itself."""
_FOR_TESTS = "INSIKA_TEST_"
DEPTH_CAP = 5
_POSTGRES = ("postgresql", "postgres")


class QueueType(enum.StrEnum):
    """What kind of queue RabbitMQ keeps jobs and hints in. Quorum queues survive the loss of a node."""

    QUORUM = "quorum"
    CLASSIC = "classic"


def sqlite_file(url: str) -> Path:
    """The file of a SQLite URL, `sqlite:///relative.db` or `sqlite:////absolute.db` URL.

    Raises ValueError, without the URL, which may hold a password."""
    parts = urlsplit(url)
    if parts.scheme != "sqlite":
        given = f"a {parts.scheme} URL" if parts.scheme else "no URL"
        raise ValueError(
            "must be a SQLite URL like sqlite:///insika.db, or one like postgresql://user:password@host:5432/insika; "
            f"got {given}"
        )
    file = unquote(parts.path)[1:]
    foreign = parts.netloc or parts.query or parts.fragment or not url.lower().startswith("sqlite:///")
    if foreign or not file or "\0" in file or file.endswith("/") or file == ":memory:":
        raise ValueError("must name a file: sqlite:///relative.db or sqlite:////absolute/path.db")
    return Path(file)


def _unescaped(parts: SplitResult) -> bool:
    """A slash in the password ends the host too early, and what follows would be taken for a path and shown."""
    return "@" in f"{parts.path}{parts.query}{parts.fragment}"


_ESCAPE = "has an @ behind its host: in a password, write / as %2F, @ as %40, ? as %3F and # as %23"


def _is_database(url: SecretStr) -> SecretStr:
    parts = urlsplit(url.get_secret_value())
    if parts.scheme in _POSTGRES and _unescaped(parts):
        raise ValueError(_ESCAPE)
    if parts.scheme not in _POSTGRES:
        sqlite_file(url.get_secret_value())
    elif not parts.path.strip("/"):
        raise ValueError("must name a database: postgresql://user:password@host:5432/insika")
    return url


def _speaks(*schemes: str) -> AfterValidator:
    """A URL with one of these schemes. The error does not show the URL, which may hold a password."""

    def check(url: SecretStr) -> SecretStr:
        parts = urlsplit(url.get_secret_value())
        if _unescaped(parts):
            raise ValueError(_ESCAPE)
        if parts.scheme not in schemes or not parts.hostname:
            raise ValueError(f"must be a URL like {schemes[0]}://user:password@host, but it is something else")
        return url

    return AfterValidator(check)


def _is_signing_secret(secret: SecretStr) -> SecretStr:
    signing_secret(secret.get_secret_value())
    return secret


def _listed(text: object) -> object:
    return [part.strip() for part in text.split(",") if part.strip()] if isinstance(text, str) else text


class Environment(BaseSettings):
    """Each field is the variable of the same name in capitals, with `INSIKA_` before it; an empty one counts as absent.

    `settings` and `agents_dir`: a YAML file and a folder of profiles, read at boot. `tools`: Python modules, with
    commas between them. `egress_*` widen what deliveries may reach, which is https on public addresses;
    `egress_hosts` are host names with commas between them. `lease_s`: how long a silent owner keeps its sessions.
    `drain_s`: how long a worker that is told to stop lets its turns reach a boundary. `slots`: turns at once in one
    worker. `subagent_depth_cap`: how often a turn may be handed from agent to agent; 0 is never. `turn_timing`: measure
    turns step by step, and tell. `amqp_url` and `redis_url`: absent in a process that does all the work by itself.
    `queue_type`: how queues are declared that do not exist yet.
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    database_url: Annotated[SecretStr, AfterValidator(_is_database)] = SecretStr("sqlite:///./insika.db")
    amqp_url: Annotated[SecretStr, _speaks("amqp", "amqps")] | None = None
    redis_url: Annotated[SecretStr, _speaks("redis", "rediss")] | None = None
    queue_type: QueueType = QueueType.QUORUM
    settings: Path | None = None
    agents_dir: Path | None = None
    tools: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)] = ()
    webhook_secret: Annotated[SecretStr, AfterValidator(_is_signing_secret)] | None = None
    egress_allow_http: bool = False
    egress_allow_private: bool = False
    egress_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)] = ()
    lease_s: Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)] = 15.0
    drain_s: Annotated[float, Field(ge=0, le=3_600, allow_inf_nan=False)] = 20.0
    slots: Annotated[int, Field(ge=1, le=100_000)] = 200
    subagent_depth_cap: Annotated[int, Field(ge=0, le=1_000)] = DEPTH_CAP
    turn_timing: bool = False

    @property
    def on_postgres(self) -> bool:
        return urlsplit(self.database_url.get_secret_value()).scheme in _POSTGRES

    @property
    def database_shown(self) -> str:
        """Which database, for people to read: its file, or its URL without what is secret in it."""
        if not self.on_postgres:
            return str(self.database_file)
        parts = urlsplit(self.database_url.get_secret_value())
        hosts = (parts.netloc.rpartition("@")[2] or "localhost").split(",")  # libpq takes several
        with_ports = (host if ":" in host.rpartition("]")[2] else f"{host}:5432" for host in hosts)
        return f"{parts.scheme}://{','.join(with_ports)}{parts.path}"

    @property
    def database_file(self) -> Path:
        """The file of a SQLite database. Raises ValueError for another database."""
        return sqlite_file(self.database_url.get_secret_value())


def unknown_variables(names: Iterable[str]) -> Sequence[tuple[str, str]]:
    """Those that look as if they were meant for Insika and are not read by it, each with a guess at what was meant."""
    known = [_PREFIX + name.upper() for name in Environment.model_fields] + list(_READ_ELSEWHERE)
    return [
        (name, f"is not a variable that Insika reads{did_you_mean(name.upper(), known)}")
        for name in sorted(names)
        if name.upper().startswith(_PREFIX) and not name.upper().startswith(_FOR_TESTS) and name.upper() not in known
    ]


def read_environment() -> Environment:
    """The environment of this process. Raises InvalidConfiguration naming every variable that is wrong."""
    try:
        return Environment()
    except ValidationError as error:
        problems = validation_problems(error, Environment)
        raise InvalidConfiguration(
            "the environment", [(_PREFIX + str(path[0]).upper(), why) for path, why in problems]
        ) from None
