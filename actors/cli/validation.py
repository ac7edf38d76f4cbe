"""Checks configuration files and tells every mistake in them, each by its file and path."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import click

from actors.cli.output import on_one_line, print_json
from insika.errors import InvalidConfiguration

Problem = tuple[str, str]
"""Dotted path ("" is the top level) and what is wrong there."""


class Document(Protocol):
    def revision(self) -> str: ...


Loaded = TypeVar("Loaded", bound=Document)


@dataclass(frozen=True, slots=True)
class Validated(Generic[Loaded]):
    """One file. `warnings` do not make it invalid. `loaded` is None for a file that cannot be read as what it should
    be; `id` is the agent's, None for settings."""

    file: Path
    problems: Sequence[Problem] = ()
    warnings: Sequence[Problem] = ()
    loaded: Loaded | None = None
    id: str | None = None

    @property
    def valid(self) -> bool:
        return not self.problems


def validated(
    files: Sequence[Path],
    load: Callable[[Path], Loaded],
    *,
    problems: Callable[[Loaded], Sequence[Problem]] = lambda loaded: (),
    warnings: Callable[[Loaded], Sequence[Problem]] = lambda loaded: (),
) -> list[Validated[Loaded]]:
    """Every file is read, whatever is wrong with those before it; an id that two of them give is a mistake too.

    `problems` and `warnings` say what the process has against a file that is well-formed."""
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
        checked.append(Validated(file, [*clash, *problems(loaded)], warnings(loaded), loaded, id_))
    return checked


def print_validated(checked: Sequence[Validated[Loaded]], *, as_json: bool, changed: Collection[str] = ()) -> None:
    """What was found in each file. `changed`: the revisions that being applied made a difference; only JSON tells."""
    if as_json:
        print_json([_as_json(one, changed) for one in checked])
        return
    for one in checked:
        if one.valid:
            click.echo(f"{one.file}: valid" + (f", agent {one.id}" if one.id is not None else ""))
            tell_warnings(one)
        else:
            tell_problems(one)


def refuse_faulty(context: click.Context, checked: Sequence[Validated[Loaded]], *, as_json: bool) -> None:
    """Ends the command when a file has a mistake: nothing is to be applied then."""
    faulty = [one for one in checked if not one.valid]
    if not faulty:
        return
    if as_json:
        print_validated(checked, as_json=True)
    else:
        for one in faulty:
            tell_problems(one)
        click.echo("Nothing was applied.", err=True)
    context.exit(1)


def tell_problems(one: Validated[Loaded]) -> None:
    """On standard error, one a line; warnings with them."""
    click.echo(f"{one.file}: not valid", err=True)
    for path, why in one.problems:
        click.echo(on_one_line(f"  {path or '(top level)'}: {why}"), err=True)
    tell_warnings(one)


def tell_warnings(one: Validated[Loaded]) -> None:
    for path, why in one.warnings:
        click.echo(on_one_line(f"  warning: {path}: {why}"), err=True)


def _as_json(one: Validated[Loaded], changed: Collection[str]) -> dict[str, object]:
    revision = one.loaded.revision() if one.loaded is not None else None
    return {
        "file": str(one.file),
        "id": one.id,
        "valid": one.valid,
        "changed": revision in changed,
        "revision": revision,
        "problems": [{"path": path, "message": why} for path, why in one.problems],
        "warnings": [{"path": path, "message": why} for path, why in one.warnings],
    }
