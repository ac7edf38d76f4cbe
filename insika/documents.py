"""Data from outside before anything is known about its meaning: is it JSON at all, and where is it not?

Jobs, profiles and settings pass here first, so that what follows may trust that there are only objects, lists, text,
numbers, booleans and null, of bounded depth and size. No I/O; no text of a document in any message but names of keys.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any, NoReturn

from insika.text import clean_text, is_clean, loses_nothing

Path = tuple[str | int, ...]
"""Where something stands: keys of objects and positions in lists, from 0."""

MAX_DEPTH = 64
MAX_VALUES = 200_000
_LONGEST_KEY = 64
_SIGNS_WITH = "whsec_"
_INT_64 = 2**63
_CONTAINERS = (dict, list, tuple, Mapping)
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "a boolean"),  # before the numbers, which it is one of in Python
    ((int, float), "a number"),
    (str, "a string"),
    (Mapping, "an object"),
    ((list, tuple), "a list"),
)


class JsonObject(dict[str, Any]):
    """An object as it was parsed; `repeated` are the keys it gave more than once, which JSON leaves undefined."""

    repeated: tuple[str, ...] = ()


class _NoConstant(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that keeps a document from being plain JSON.

    `cleanable`: it is a text that only has to be cleaned. `fatal`: what lies below `path` was not looked at.
    """

    path: Path
    why: str
    cleanable: bool = False
    fatal: bool = False


def dotted(path: Path) -> str:
    """`limits.max_tool_calls`, `channels.0.url`. Keys are shown without control characters and at most 64 long, and
    one that looks like a secret not at all."""
    return ".".join(_shown(step) if isinstance(step, str) else str(step) for step in path)


def kind(value: object) -> str:
    """What a value is, without saying what is in it."""
    for types, name in _KINDS:
        if isinstance(value, types):
            return name
    return f"a value of type {type(value).__name__}"


def parse_json(text: str) -> object:
    """The value of a JSON text. Repeated keys are kept for `flaws` to name. Raises ValueError, with position but
    without content, for what is not JSON (RFC 8259), NaN and Infinity among it, and for nesting too deep to parse."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (line {error.lineno} column {error.colno})") from None
    except _NoConstant as error:
        raise ValueError(str(error)) from None
    except ValueError:
        # The one other refusal of `json`: int() protects itself against thousands of digits.
        raise ValueError("it holds a number of too many digits") from None


def flaws(document: object) -> list[Flaw]:
    """Everything that is wrong with `document` as JSON, in the order in which it stands there."""
    found: list[Flaw] = []
    pending: list[tuple[Path, object]] = [((), document)]
    looked_at = 0
    while pending:
        path, value = pending.pop()
        looked_at += 1
        if looked_at > MAX_VALUES:
            return [*found, Flaw((), f"must hold at most {MAX_VALUES} values", fatal=True)]
        if _is_sound(value):
            continue
        if isinstance(value, _CONTAINERS):
            if len(path) >= MAX_DEPTH:
                # Stopping here also keeps a document that holds itself from being followed for ever.
                return [*found, Flaw(path[:8], f"must not be nested deeper than {MAX_DEPTH}", fatal=True)]
            pending.extend(reversed(_children(path, value)))
        found.extend(_own_flaws(path, value))
    return found


def plain(value: object) -> Any:
    """A deep copy in dicts and lists only, its text cleaned. For documents whose flaws are known and not fatal: what is
    not JSON turns into null, and every key into text."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict | Mapping):
        return {clean_text(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, int | float):
        return value if _is_sayable(value) else None
    return None


def canonical_json(value: object) -> str:
    """One spelling for equal values: keys in order, no white space. Raises ValueError for what is not plain JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_digest(value: object) -> str:
    """SHA-256 of the canonical JSON, in hex: equal for equal values, however their keys are ordered."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _is_sound(value: object) -> bool:
    """Whether a value is certainly in order. Most are; this keeps their price down."""
    if type(value) is str:
        return value.isascii() and "\0" not in value
    return value is None or value is True or value is False or (type(value) is int and -_INT_64 <= value < _INT_64)


def _own_flaws(path: Path, value: object) -> Iterator[Flaw]:
    if isinstance(value, dict | Mapping):
        for key in value:
            if not isinstance(key, str):
                yield Flaw((*path, str(key)), f"the key must be a string, got {kind(key)}; put it in quotes")
            elif not is_clean(key):
                yield Flaw((*path, key), "the key must not hold NUL or a surrogate")
        for key in value.repeated if isinstance(value, JsonObject) else ():
            yield Flaw((*path, key), "the key is given more than once")
    elif isinstance(value, str):
        if not loses_nothing(value):
            yield Flaw(path, "must not hold NUL or a lone surrogate", cleanable=True)
    elif isinstance(value, int | float):
        if not _is_sayable(value):
            yield Flaw(path, "must be a finite number of double precision's range")
    elif not (value is None or isinstance(value, list | tuple)):
        hint = "; put it in quotes" if isinstance(value, date | time) else ""
        yield Flaw(path, f"must be something that JSON has, got {kind(value)}{hint}")


def _is_sayable(number: float) -> bool:
    """Numbers that every JSON reader takes (RFC 8259, section 6)."""
    return number.bit_length() <= 1024 if isinstance(number, int) else math.isfinite(number)


def _children(path: Path, value: Mapping[Any, object] | list[object] | tuple[object, ...]) -> list[tuple[Path, object]]:
    if isinstance(value, dict | Mapping):
        return [((*path, str(key)), inner) for key, inner in value.items()]
    return [((*path, at), inner) for at, inner in enumerate(value)]


def _object(pairs: Sequence[tuple[str, Any]]) -> JsonObject:
    parsed = JsonObject(pairs)
    if len(parsed) < len(pairs):
        times = Counter(name for name, _ in pairs)
        parsed.repeated = tuple(name for name, count in times.items() if count > 1)
    return parsed


def _no_constant(name: str) -> NoReturn:
    raise _NoConstant(f"{name} is not a number in JSON")


def _shown(key: str) -> str:
    if key.startswith(_SIGNS_WITH):
        return f"{_SIGNS_WITH}***"  # a signing secret that was written in the place of a key
    legible = "".join(character if character.isprintable() else "\ufffd" for character in clean_text(key))
    return legible if len(legible) <= _LONGEST_KEY else f"{legible[: _LONGEST_KEY - 1]}…"
