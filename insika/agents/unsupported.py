"""The keys of the contract that this version knows but does not enforce.

A protection that is written down and not kept would be a lie, so a document that asks for one of these is refused at
its path. What asks for nothing (null, false, empty) is accepted. Whoever builds a layer deletes its entry here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from insika.documents import Path
from insika.parsing import Problem, did_you_mean

WHY = "is not enforced by this version of Insika; remove it"
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """`path` is dotted; `*` stands for any key or position. `keys` are those that the section may hold (empty: any).
    `off` are the values that ask for nothing, beside null, false and what is empty."""

    path: str
    keys: tuple[str, ...] = ()
    off: tuple[str | int, ...] = ()


IN_PROFILES: tuple[Unsupported, ...] = (
    Unsupported("guardrails.moderator"),
)


def refusals(document: Mapping[str, object], unsupported: tuple[Unsupported, ...]) -> Iterator[Problem]:
    """Each place of `document` that asks for something of the list, and each unknown key in a section that asks for
    nothing."""
    for entry in unsupported:
        for path, value in _places(document, tuple(entry.path.split(".")), ()):
            if not _asks_for_nothing(value, entry.off):
                yield path, WHY
            elif isinstance(value, Mapping) and entry.keys:
                for key in value:
                    if key not in entry.keys:
                        yield (*path, key), f"unknown key{did_you_mean(key, entry.keys)}"


def _places(value: object, pattern: tuple[str, ...], path: Path) -> Iterator[tuple[Path, object]]:
    if not pattern:
        yield path, value
        return
    step, rest = pattern[0], pattern[1:]
    if isinstance(value, Mapping):
        for key in value if step == _ANY else [step] if step in value else []:
            yield from _places(value[key], rest, (*path, key))
    elif isinstance(value, list) and step == _ANY:
        for at, inner in enumerate(value):
            yield from _places(inner, rest, (*path, at))


def _asks_for_nothing(value: object, off: tuple[str | int, ...]) -> bool:
    if value is None or value is False:
        return True
    if isinstance(value, Mapping):
        return all(_asks_for_nothing(inner, ()) for inner in value.values())
    if isinstance(value, list):
        return not value
    said = value.strip().lower() if isinstance(value, str) else value
    return not isinstance(said, bool) and said in off
