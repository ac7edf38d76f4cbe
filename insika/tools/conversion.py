"""What goes into a tool and what comes out of it, as values that text, JSON, stores and vendors can hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pydantic_core
from pydantic import BaseModel

from insika.messages import Halt
from insika.text import clean_text


class NotText(Exception):
    """A tool's result is neither text nor anything that JSON can hold. The message says why, without the value."""


def clean(value: Any) -> Any:
    """`value` with every text in it cleaned, keys too. Raises RecursionError for what contains itself."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(item) for item in value]
    return value


def as_text(result: Any) -> str:
    """A tool's result as the model reads it: text as it is, None as "", a `Halt`'s content, all else as compact JSON.

    Raises NotText.
    """
    if isinstance(result, Halt):
        result = result.content
    if result is None:
        return ""
    if isinstance(result, str):
        return clean_text(result)
    try:
        return pydantic_core.to_json(clean(_plain(result)), inf_nan_mode="null").decode()
    except Exception as error:  # a property, a serializer, a lazy mapping: whatever code the value brings along
        raise NotText(_why(result, error)) from error


def _plain(value: Any) -> Any:
    """Models and dataclasses as dictionaries, wherever they stand, so that `clean` can reach the texts in them."""
    if isinstance(value, BaseModel):
        return _plain(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


def _why(result: Any, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"a {type(result).__name__} that is nested too deeply or contains itself"
    return f"a {type(result).__name__} that cannot be written as JSON"
