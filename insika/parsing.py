"""How a document becomes a checked, immutable value, and its mistakes sentences that a person can act on.

Every mistake is a dotted path and what was expected there; all of them are told at once.

Values are named when they help ("got 0"), never below a path that may hold a secret.
"""

from __future__ import annotations

import difflib
import json
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from insika.documents import Path, dotted, flaws, kind, plain
from insika.errors import InvalidConfiguration

Problem = tuple[Path, str]
"""Where, and what is wrong there."""


class Document(BaseModel):
    """Base of everything that is read from a profile or the settings: immutable, without room for mistyped keys, and
    without guesses (the string "5" is no number)."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


Model = TypeVar("Model", bound=BaseModel)

_LONGEST_VALUE = 60
_KEY_ITSELF = "[key]"
"""How pydantic marks a mistake in a mapping's key, rather than below it."""

_SENTENCES: Mapping[str, str] = {
    "missing": "is required",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "value_error": "{error}",
    "assertion_error": "{error}",
}
_WITHOUT_VALUE = frozenset({"missing", "value_error", "assertion_error"})


def parse_document(
    model: type[Model],
    data: object,
    where: str,
    *,
    more_problems: Callable[[Mapping[str, object]], Iterable[Problem]],
    secret: Callable[[Path], bool] = lambda path: False,
    written_as: Callable[[Path], Path] = lambda path: path,
) -> Model:
    """`data` as a `model`, or InvalidConfiguration with every mistake in it.

    `more_problems` looks at the document as plain data and names what the model cannot know. It has the word on what
    it names: nothing else is said about the same place or what lies below it. `written_as` tells where the document
    holds what stands at a path of the model, where the two differ.
    """
    not_json = flaws(data)
    found = [(flaw.path, flaw.why) for flaw in not_json]
    if any(flaw.fatal for flaw in not_json):
        raise invalid(where, found)
    if not isinstance(data, Mapping):
        raise invalid(where, [((), f"must be a mapping, got {kind(data)}")])
    document = plain(data)
    found.extend(more_problems(document))
    parsed: Model | None = None
    try:
        parsed = model.model_validate_json(json.dumps(document))
    except ValidationError as error:
        mistakes = [(written_as(path), why) for path, why in validation_problems(error, model, secret)]
        found.extend(_not_below(found, mistakes))
    if parsed is None or found:
        raise invalid(where, sorted(found, key=lambda problem: _position(document, problem[0])))
    return parsed


def invalid(where: str, problems: Iterable[Problem]) -> InvalidConfiguration:
    return InvalidConfiguration(where, [(dotted(path), why) for path, why in problems])


def validation_problems(
    error: ValidationError, model: type[BaseModel], secret: Callable[[Path], bool] = lambda path: False
) -> list[Problem]:
    """One problem for each mistake that pydantic found, in its order."""
    problems = []
    for details in error.errors(include_url=False):
        path = tuple(step for step in details["loc"] if step != _KEY_ITSELF)
        problems.append((path, _sentence(details, model, hidden=secret(path))))
    return problems


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean x?` when `word` is close to one of the known ones, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _sentence(details: ErrorDetails, model: type[BaseModel], *, hidden: bool) -> str:
    type_, path, value, context = details["type"], details["loc"], details["input"], details.get("ctx", {})
    if type_ == "extra_forbidden":
        return f"unknown key{did_you_mean(str(path[-1]), _known_keys(model, path[:-1]))}"
    if type_ not in _SENTENCES:
        return details["msg"]
    whole = {name: int(it) if isinstance(it, float) and it.is_integer() else it for name, it in context.items()}
    sentence = _SENTENCES[type_].format_map(whole)
    if hidden or type_ in _WITHOUT_VALUE:
        return sentence
    # YAML reads yes, no, on and off as booleans; whoever wrote one of these words will not find a boolean in the file.
    hint = "; put it in quotes" if isinstance(value, bool) and type_ in ("string_type", "enum") else ""
    return f"{sentence}, got {shown(value)}{hint}"


def shown(value: object) -> str:
    """A value as an error message names it: short ones as they are, others by their kind and length."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST_VALUE else f"a string of {len(value)} characters"
    return kind(value)


def _position(document: object, path: Path) -> tuple[int, ...]:
    """Where `path` stands in the document, to be sorted by; what is missing there comes after its neighbours."""
    position: list[int] = []
    for step in path:
        children = (
            document
            if isinstance(document, Mapping)
            else dict(enumerate(document if isinstance(document, list) else ()))
        )
        if step not in children:
            return (*position, len(children))
        position.append(list(children).index(step))
        document = children[step]
    return tuple(position)


def _not_below(named: list[Problem], problems: Iterable[Problem]) -> list[Problem]:
    places = [path for path, _ in named]
    return [(path, why) for path, why in problems if not any(path[: len(place)] == place for place in places)]


def _known_keys(model: type[BaseModel], path: Path) -> list[str]:
    """The keys that may stand at `path` of a `model`."""
    at: object = model
    for step in path:
        found = _model_in(at)
        # A key or position of a mapping or list of models is no field: it stays with what the mapping or list holds.
        if found is not None and step in found.model_fields:
            at = found.model_fields[str(step)].annotation
    found = _model_in(at)
    return list(found.model_fields) if found is not None else []


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation is about: itself, or what a list, a mapping or an option of it holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        if (found := _model_in(argument)) is not None:
            return found
    return None
