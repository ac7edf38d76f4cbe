"""The outbox's SQL, one statement a file, by dialect and by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources


def statements(dialect: str) -> Mapping[str, str]:
    """Name to text, for every `queries/<dialect>/<name>.sql`."""
    folder = resources.files("outbox").joinpath("queries", dialect)
    return {
        file.name.removesuffix(".sql"): file.read_text("utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }
