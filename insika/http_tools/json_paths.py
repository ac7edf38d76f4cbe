"""JSON paths (RFC 9535), compiled where they are read and asked of what a service answered.

The functions `match` and `search` are left out: their patterns would run, without any limit, on text that a stranger
wrote and on the loop that all sessions share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jsonpath import CompoundJSONPath, JSONPath, JSONPathEnvironment
from jsonpath.exceptions import JSONPathError


class NotFound(Exception):
    """A path cannot be followed here. The message says why, without what is there."""


@dataclass(frozen=True, slots=True)
class Path:
    """`single`: it leads to one place at most, so that what it finds is a value, and not a list of values."""

    text: str
    compiled: JSONPath | CompoundJSONPath

    @property
    def single(self) -> bool:
        return isinstance(self.compiled, JSONPath) and self.compiled.singular_query()

    def find(self, document: Any) -> list[Any]:
        """All that is there, in order. Raises NotFound for a document that is nested too deeply."""
        try:
            return list(self.compiled.findall(document))
        except (JSONPathError, RecursionError):
            raise NotFound(f"{self.text} cannot be followed there: it is nested too deeply") from None


class _Environment(JSONPathEnvironment):
    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        for name in ("match", "search"):
            self.function_extensions.pop(name)


_READER = _Environment(strict=True)


def compile_path(text: str) -> Path:
    """Raises ValueError for what is no JSON path."""
    if not text.startswith("$"):
        raise ValueError("must be a JSON path, which begins with $, like $.order.status")
    try:
        return Path(text, _READER.compile(text))
    except JSONPathError as error:
        raise ValueError(f"must be a JSON path, like $.order.status: {error.args[0]}") from None
    except RecursionError:
        raise ValueError("must be a JSON path, like $.order.status; this one is nested too deeply") from None


def same(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def is_path(text: str) -> str:
    """`text`, where it is a JSON path. Raises ValueError."""
    compile_path(text)
    return text
