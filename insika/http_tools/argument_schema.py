"""The JSON Schema of a tool's arguments: whether it is one that can be kept, and what fits it.

A subset of draft 2020-12, such that checking what a model wrote reads nothing from elsewhere and takes a bounded time:
references lead to `$defs` of the same schema, and patterns are those of an engine without backtracking (Rust's regex,
as for Python tools). `format` is told to the model and not checked.

Of the schema's top, vendors want an object without alternatives, and names of letters, digits, `_`, `.` and `-`
(platform.claude.com, "Define tools"; developers.openai.com, "Function calling"; and, where neither page says it, what
both APIs answer to `oneOf`, `anyOf` or `allOf` there: langchain-ai/langchainjs 9804, anthropics/claude-code 5973).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from pydantic_core import SchemaError, SchemaValidator, core_schema
from referencing.jsonschema import EMPTY_REGISTRY

from insika.documents import Path
from insika.http_tools.schema_words import problems_of
from insika.parsing import Problem

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_BY_NAME = ("properties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LEFT_OUT = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "patternProperties")
_NOT_AT_THE_TOP = ("allOf", "anyOf", "enum", "not", "oneOf")
_PLAIN = frozenset(
    {"$comment", "$defs", "$schema", "definitions", "description", "properties", "required", "title", "type"}
)
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_REFERENCE = re.compile(r"#/(\$defs|definitions)/([^/%~]+)")


class ArgumentSchema:
    """A schema in which `schema_problems` found nothing. `told` is what the model is told: one that says nothing of
    further arguments admits none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.told = {**schema, "properties": schema.get("properties", {})}
        if _PLAIN.issuperset(schema):
            self.told["additionalProperties"] = False
        self._validator = _Validator(self.told, registry=EMPTY_REGISTRY)
        self._defaults = dict(_defaults(self.told))

    def completed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, with the defaults of those that were not given."""
        return {**{name: value for name, value in self._defaults.items() if name not in arguments}, **arguments}

    def problems(self, arguments: Mapping[str, Any]) -> list[Problem]:
        """What does not fit, by path; empty when all does."""
        try:
            found = {problem for error in self._validator.iter_errors(arguments) for problem in problems_of(error)}
        except RecursionError:
            return [((), "they are nested too deeply")]
        return sorted(found, key=lambda problem: (list(map(str, problem[0])), problem[1]))


def schema_problems(schema: Mapping[str, Any]) -> Iterator[Problem]:
    """Why this cannot be the schema of a tool's arguments, by path within it."""
    wrong = [_as_of_a_schema(problem) for error in _META.iter_errors(schema) for problem in problems_of(error)]
    if wrong:
        yield from dict.fromkeys(wrong)
        return
    if schema.get("type") != "object":
        yield ("type",), "must be object: a tool's arguments have names"
    for keyword in _NOT_AT_THE_TOP:
        if keyword in schema:
            yield (keyword,), "must not stand at the top, where model vendors refuse it"
    for name in schema.get("properties", {}):
        if not _PROPERTY.fullmatch(name):
            yield ("properties", name), "must have a name of 1 to 64 letters, digits, _, . and -"
    unusable = [problem for path, each in _schemas_in(schema, ()) for problem in _unusable(schema, path, each)]
    yield from unusable
    if not unusable:
        yield from _wrong_defaults(schema)


def _as_of_a_schema(problem: Problem) -> Problem:
    path, why = problem
    if path[-1:] == ("type",) and path[-2:-1] != ("properties",):
        return path, f"must be one of {', '.join(_TYPES)}, or a list of them"
    return path, why


def always_there(schema: Mapping[str, Any]) -> set[str]:
    """The arguments that every call has: those it must give, and those with a default."""
    return {*schema.get("required", ()), *(name for name, _ in _defaults(schema))}


def _defaults(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, each in schema.get("properties", {}).items():
        if isinstance(each, Mapping) and "default" in each:
            yield name, each["default"]


def _wrong_defaults(schema: Mapping[str, Any]) -> Iterator[Problem]:
    check = _Validator(schema, registry=EMPTY_REGISTRY)
    for name, default in _defaults(schema):
        try:
            fits = check.evolve(schema=schema["properties"][name]).is_valid(default)
        except RecursionError:
            fits = False
        if not fits:
            yield ("properties", name, "default"), "must fit the schema that it is the default of"


def _schemas_in(schema: Any, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """`schema` and all schemas within it."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for keyword, value in schema.items():
        if keyword in _SINGLE:
            yield from _schemas_in(value, (*path, keyword))
        elif keyword in _LISTED:
            for at, each in enumerate(value):
                yield from _schemas_in(each, (*path, keyword, at))
        elif keyword in _BY_NAME:
            for name, each in value.items():
                yield from _schemas_in(each, (*path, keyword, name))


def _unusable(root: Mapping[str, Any], path: Path, schema: Mapping[str, Any]) -> Iterator[Problem]:
    for keyword in _LEFT_OUT:
        if keyword in schema:
            yield (*path, keyword), "is not supported here; write the properties out in place, or into $defs"
    if "$ref" in schema:
        leads = _REFERENCE.fullmatch(schema["$ref"])
        if leads is None or leads[2] not in root.get(leads[1], {}):
            yield (*path, "$ref"), "must lead to a schema in $defs of these parameters, like #/$defs/address"
    if "pattern" in schema:
        try:
            _pattern(schema["pattern"])
        except SchemaError as error:
            why = str(error).strip().rsplit("error: ", 1)[-1]
            yield (*path, "pattern"), f"must be a pattern that can be matched without backtracking: {why}"


def _pattern(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def _check_pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _pattern(pattern).isinstance_python(instance):
        yield ValidationError("does not match")


_Validator = extend(Draft202012Validator, {"pattern": _check_pattern})
_META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
