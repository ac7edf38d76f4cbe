"""The three servers together, in one temporary folder, and the record by which any process can find and end them.

Each folder says which process its servers are for. When that one is gone without having ended them, whoever comes next
does it, so that a killed test run leaves nothing running for long.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from .accounts import Account
from .postgres import PostgresServer
from .processes import Process
from .rabbitmq import RabbitServer
from .redis import RedisServer
from .server import PrivateServer

ALL = ("rabbitmq", "redis", "postgres")
"""In the order in which they are launched: the slowest first."""
_PREFIX = "insika-services-"
_RECORD = "services.json"


def silent(_line: str) -> None:
    pass


class PrivateServices:
    """Made by `start` or `load`. `owner`: the process that they are for; None when they stay until they are stopped."""

    def __init__(
        self,
        folder: Path,
        which: Iterable[str],
        owner: Process | None,
        *,
        rabbitmq_settings: Mapping[str, str] | None = None,
        postgres_settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.owner = owner
        self._writing = threading.Lock()
        rabbitmq = RabbitServer(
            folder / "rabbitmq", Account.of_package("rabbitmq"), self._write_down, rabbitmq_settings
        )
        postgres = PostgresServer(
            folder / "postgres", Account.of_package("postgres"), self._write_down, postgres_settings
        )
        redis = RedisServer(folder / "redis", Account.of_package("redis"), self._write_down)
        known: dict[str, PrivateServer] = {"rabbitmq": rabbitmq, "redis": redis, "postgres": postgres}
        self.rabbitmq, self.postgres, self.redis = rabbitmq, postgres, redis
        self.servers = [known[name] for name in ALL if name in set(which)]

    @classmethod
    def start(
        cls,
        folder: Path | None = None,
        which: Iterable[str] = ALL,
        *,
        rabbitmq_settings: Mapping[str, str] | None = None,
        postgres_settings: Mapping[str, str] | None = None,
        tell: Callable[[str], None] = silent,
    ) -> Self:
        """Starts them in a new folder within `folder`, by default the system's for temporary files, and waits until
        each answers. They are for the calling process. Raises ServerError, MissingProgram or PermissionError, and has
        then ended what it had started."""
        end_abandoned(tell)
        home = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
        # The servers' accounts must pass through; what is theirs in it is closed to all others.
        home.chmod(0o711 if os.geteuid() == 0 else 0o700)
        services = cls(
            home,
            which,
            Process.of(os.getpid()),
            rabbitmq_settings=rabbitmq_settings,
            postgres_settings=postgres_settings,
        )
        services._write_down()
        try:
            services.bring_up(tell)
        except BaseException:
            services.stop()
            raise
        return services

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Those of another process, or of an earlier one. Raises FileNotFoundError when nothing is recorded there."""
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        owner = record["owner"] and Process(**record["owner"])
        services = cls(folder, [name for name in ALL if name in record], owner)
        for server in services.servers:
            server.remember(record[server.name])
        return services

    @property
    def running(self) -> bool:
        return all(server.running for server in self.servers)

    def bring_up(self, tell: Callable[[str], None] = silent) -> None:
        """Starts those that do not run, side by side, and waits for all."""
        begun = time.monotonic()
        for server in self.servers:
            server.launch()
        for server in reversed(self.servers):
            server.wait()
            tell(f"  {server.name:<9} answers on port {server.port} after {time.monotonic() - begun:.1f} s")

    def stop(self) -> None:
        """Ends all of them and removes their data; at once, since nothing of it is to be kept."""
        for server in self.servers:
            server.discard()
        # The record goes last: what cannot be removed now is found by it later.
        for server in self.servers:
            if server.folder.exists():
                shutil.rmtree(server.folder)
        shutil.rmtree(self.folder)

    def keep(self) -> None:
        """They stay when the calling process ends."""
        self.owner = None
        self._write_down()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _write_down(self) -> None:
        # Two servers may be started at once, each from a thread of its own.
        with self._writing:
            record: dict[str, Any] = {server.name: server.describe() for server in self.servers}
            record["owner"] = self.owner and {"pid": self.owner.pid, "started": self.owner.started}
            draft = self.folder / f"{_RECORD}.draft"
            draft.touch(mode=0o600)
            draft.write_text(json.dumps(record), encoding="utf-8")
            draft.replace(self.folder / _RECORD)


def end_abandoned(tell: Callable[[str], None] = silent) -> None:
    """Ends what belongs to processes that are gone."""
    for folder, record in records():
        if record.get("owner") and not Process(**record["owner"]).alive:
            tell(f"Ending the services in {folder}, which a process that is gone has left behind ...")
            # Somebody else may just be doing the same.
            with contextlib.suppress(OSError):
                PrivateServices.load(folder).stop()


def records() -> Iterator[tuple[Path, dict[str, Any]]]:
    """What this user's services have written down in the system's folder for temporary files, the newest first."""
    folders = [folder for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if _is_ours(folder)]
    for folder in sorted(folders, key=lambda folder: folder.stat().st_ctime, reverse=True):
        with contextlib.suppress(FileNotFoundError):
            yield folder, json.loads((folder / _RECORD).read_text(encoding="utf-8"))


def _is_ours(folder: Path) -> bool:
    """A record of somebody else's might name any process."""
    try:
        return folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid()
    except OSError:
        return False
