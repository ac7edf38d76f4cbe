"""Who a server runs as: the account that its package made, when this is root; else whoever runs this.

PostgreSQL refuses to run as root, and the others had better not.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Account:
    """`name` is "" for whoever runs this."""

    name: str = ""

    @classmethod
    def of_package(cls, name: str) -> Account:
        if os.geteuid() != 0:
            return cls()
        try:
            pwd.getpwnam(name)
        except KeyError:
            return cls()
        return cls(name)

    def popen(self) -> dict[str, Any]:
        """The arguments of subprocess that make a child run as this account."""
        if not self.name:
            return {}
        entry = pwd.getpwnam(self.name)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        if self.name:
            shutil.chown(path, self.name, pwd.getpwnam(self.name).pw_gid)

    def make_folder(self, path: Path) -> None:
        """A folder of this account alone, in one that it may pass through. Raises PermissionError when it may not."""
        for parent in path.resolve().parents if self.name else []:
            if not parent.stat().st_mode & stat.S_IXOTH:
                raise PermissionError(f"user {self.name} may not enter {parent}; choose a folder that all may enter")
        path.mkdir(mode=0o700)
        self.own(path)

    def write(self, path: Path, text: str, mode: int = 0o600) -> None:
        """A file that this account owns."""
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        self.own(path)
