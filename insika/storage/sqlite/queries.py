"""The statements, each a file under queries/sqlite, read once and used as it stands."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def sql(name: str) -> str:
    """The text of one statement, e.g. `intake/insert_mail`."""
    return resources.files("insika.storage").joinpath("queries", "sqlite", f"{name}.sql").read_text(encoding="utf-8")
