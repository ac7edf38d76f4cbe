"""Checks configuration files and tells every mistake in them, each by its file and path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import click

from actors.cli.output import print_json, printable
from insika.errors import InvalidConfiguration


class Document(Protocol):
    def revision(self) -> str: ...


Loaded = TypeVar("Loaded", bound=Document)


@dataclass(frozen=True, slots=True)
class Validated(Generic[Loaded]):
    """One file. `problems`: dotted path ("" is the top level) and what is wrong there. `loaded` is None for a file
    that cannot be read as what it should be; `id` is the agent's, None for settings."""

    file: Path
    problems: Sequence[tuple[str, str]] = ()
    loaded: Loaded | None = None
    id: str | None = None

    @property
    def valid(self) -> bool:
        return not self.problems


def validated(files: Sequence[Path], load: Callable[[Path], Loaded]) -> list[Validated[Loaded]]:
    """Every file is read, whatever is wrong with those before it; an id that two of them give is a mistake too."""
    checked: list[Validated[Loaded]] = []
    owners: dict[str, Path] = {}
    for file in files:
        try:
            loaded = load(file)
        except InvalidConfiguration as error:
            checked.append(Validated(file, error.problems))
            continue
        id_ = getattr(loaded, "id", None)
        first = owners.setdefault(id_, file) if id_ is not None else file
        clash = [] if first == file else [("id", f"is the id of {first} already")]
        checked.append(Validated(file, clash, loaded, id_))
    return checked


def print_validation(checked: Sequence[Validated[Loaded]], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "file": str(one.file),
                    "valid": one.valid,
                    "id": one.id,
                    "problems": [{"path": path, "message": why} for path, why in one.problems],
                }
                for one in checked
            ]
        )
        return
    for one in checked:
        if one.valid:
            click.echo(f"{one.file}: valid" + (f", agent {one.id}" if one.id is not None else ""))
        else:
            tell_problems(one)


def tell_problems(one: Validated[Loaded]) -> None:
    """On standard error, one a line."""
    click.echo(f"{one.file}: not valid", err=True)
    for path, why in one.problems:
        click.echo(printable(f"  {path or '(top level)'}: {why}"), err=True)
