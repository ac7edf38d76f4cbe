"""What commands print: tables and fields for people, one JSON document for programs.

On a terminal a table fits its width; anywhere else each row is one line, whole, so that it can be searched and cut.
What people and models said is printed here and nowhere logged; control characters in it are shown, never obeyed.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from insika.clock import DUE_NOW, NEVER

Cell = str | Text

_NO_TERMINAL_WIDTH = 100_000
_SHORT = 13
"""Of a UUID whose first twelve hex digits are the millisecond in which it was made, eight would be minutes."""
_REPLACED = {"\r": "\u240d", "\x1b": "\u241b"}
_NOT_SHOWN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_LINE_MARKS = str.maketrans({"\n": "\u240a", "\t": "\u2409"})


def on_terminal() -> bool:
    return sys.stdout.isatty()


def console() -> Console:
    """Standard output as rich sees it: styled on a terminal, unless NO_COLOR says otherwise."""
    fits = on_terminal()
    return Console(highlight=False, soft_wrap=not fits, width=None if fits else _NO_TERMINAL_WIDTH)


def print_json(document: Any) -> None:
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    click.echo(json.dumps(document, indent=2, ensure_ascii=not utf8))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    empty: str,
    whole: Collection[str] = (),
    cut: Collection[str] = (),
) -> None:
    """The columns in `whole` are never wrapped: they hold what one wants to copy. Those in `cut` end where the
    terminal does. `empty` stands for no rows."""
    if not rows:
        click.echo(empty)
        return
    fits = on_terminal()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=fits and bool(cut))
    for name in columns:
        if fits and name in cut:
            table.add_column(name.upper(), no_wrap=True, overflow="ellipsis", ratio=1)
        else:
            table.add_column(name.upper(), no_wrap=name in whole, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(on_one_line(cell)) for cell in row))
    print_rich(table)


def print_fields(fields: Mapping[str, Cell | None]) -> None:
    """Names and values, one a line; what is None is left out."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value is not None:
            table.add_row(name, value if isinstance(value, Text) else Text(on_one_line(value)))
    print_rich(table)


def print_heading(text: str) -> None:
    click.echo()
    console().print(Text(text, style="bold"))


def print_rich(what: RenderableType) -> None:
    """Anything rich can lay out, without the blanks it fills lines up with."""
    out = console()
    with out.capture() as captured:
        out.print(what)
    click.echo("\n".join(line.rstrip() for line in captured.get().removesuffix("\n").split("\n")))


def printable(text: str) -> str:
    """`text` with every control character made visible: what somebody wrote must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def on_one_line(text: str) -> str:
    """`printable`, line ends and tabs made visible too: a name must not look like another row of a listing."""
    return printable(text).translate(_LINE_MARKS)


def one_line(text: str, width: int = 60) -> str:
    """The beginning of `text`, on one line."""
    flat = " ".join(printable(text).split())
    return flat if len(flat) <= width else flat[: width - 1].rstrip() + "…"


def short_id(id_: str) -> str:
    """On a terminal enough of an id to know it by and to type; whole anywhere else."""
    kind, mark, rest = id_.rpartition("_")
    return f"{kind}{mark}{rest[:_SHORT]}" if on_terminal() else id_


def rfc3339(at: datetime | None) -> str | None:
    """For programs: UTC with a Z; None for what never comes, and for what is due without a time of its own."""
    if at is None or at in (DUE_NOW, NEVER):
        return None
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moment(at: datetime | None) -> str:
    """For people, in UTC to the second."""
    if at is None or at == NEVER:
        return "-"
    return "now" if at == DUE_NOW else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def how_long(seconds: float) -> str:
    """For people: the two largest units, cut off, never rounded up; what is over is 0 s."""
    left = max(0, int(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        amount, left = divmod(left, size)
        if amount or parts:
            parts.append((amount, unit))
        if len(parts) == 2:
            break
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount) or "0 s"


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _NOT_SHOWN:
        return character
    if unicodedata.category(character) == "Cf" and character in "\u200d\u200c":
        return character  # joins emoji, and letters in several scripts
    return _REPLACED.get(character, "\ufffd")
