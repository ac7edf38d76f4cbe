"""The statements, each a file under queries/postgres, read once. What explains them stays in the file."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def sql(name: str) -> str:
    """The text of one statement, e.g. `intake/accept`, without comments and indentation.

    Only where it has at most 4,096 bytes then does psycopg remember how to read it."""
    file = resources.files("insika.storage").joinpath("queries", "postgres", f"{name}.sql")
    lines = file.read_text(encoding="utf-8").splitlines()
    return "\n".join(line.strip() for line in lines if not line.lstrip().startswith("--"))
