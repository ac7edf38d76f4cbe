"""The arguments of a Python tool: their JSON Schema, and the check of what a model wrote against it.

What fails is reported by path and expectation, never with the value: an argument may hold what no log should.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from insika.text import truncate
from insika.tools.tool import InvalidArguments

MAX_PROBLEMS = 8
"""More than these are counted, not listed: they are read by a model that pays for every word."""
MAX_PROBLEM_BYTES = 300


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument. `default` is `inspect.Parameter.empty` for one that must be given."""

    name: str
    annotation: Any
    default: Any


class ArgumentModel:
    """A set of parameters as pydantic sees them. Raises TypeError, naming the parameter, if one has a type that no
    JSON Schema describes."""

    def __init__(self, parameters: Sequence[Parameter], origin: str) -> None:
        # Fields get neutral names and the parameters' own as aliases: a parameter may be called `schema` or `_x`.
        self._names = {f"argument_{index}": parameter.name for index, parameter in enumerate(parameters)}
        fields = {field: _field(parameter) for field, parameter in zip(self._names, parameters, strict=True)}
        try:
            self._model: type[BaseModel] = create_model("Arguments", __config__=_CONFIG, **fields)
            self._schema = self._model.model_json_schema(schema_generator=_Schema)
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise TypeError(_undescribable(parameters, origin)) from error
        self._schema.pop("title", None)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, as one object that admits no others. Its keys have one fixed order."""
        return self._schema

    def bind(self, arguments: Mapping[str, Any], /) -> dict[str, Any]:
        """The arguments as the function takes them, defaults filled in. They are read as JSON, so that a date or an
        enum may be written as JSON can write it. Raises InvalidArguments."""
        try:
            read = self._model.model_validate_json(json.dumps(arguments))
        except ValidationError as error:
            raise InvalidArguments(self._problems(error)) from None
        except (TypeError, ValueError, RecursionError):
            raise InvalidArguments([("", "the arguments are not a JSON object")]) from None
        return {name: getattr(read, field) for field, name in self._names.items()}

    def _problems(self, error: ValidationError) -> list[tuple[str, str]]:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        return bounded([(_path(one["loc"]), self._why(one)) for one in found])

    def _why(self, problem: Mapping[str, Any]) -> str:
        if problem["type"] == "missing":
            return "is required and was not given"
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            known = ", ".join(self._names.values()) or "none"
            return f"there is no such argument (there are: {known})"
        return str(problem["msg"])


def bounded(problems: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first of these, each cut where it is too long, and how many more there are."""
    shown = [
        (truncate(path, MAX_PROBLEM_BYTES), truncate(why, MAX_PROBLEM_BYTES)) for path, why in problems[:MAX_PROBLEMS]
    ]
    if len(problems) > MAX_PROBLEMS:
        shown.append(("", f"and {len(problems) - MAX_PROBLEMS} more"))
    return shown


_CONFIG = ConfigDict(extra="forbid")


class _Schema(GenerateJsonSchema):
    """Without the titles that pydantic derives from names: they tell a model nothing and cost tokens each time."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _field(parameter: Parameter) -> Any:
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return (Annotated[parameter.annotation, Field(alias=parameter.name)], default)


def _path(location: Sequence[int | str]) -> str:
    return ".".join(str(part) for part in location)


def _undescribable(parameters: Sequence[Parameter], origin: str) -> str:
    for parameter in parameters:
        try:
            TypeAdapter(parameter.annotation).json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError):
            return (
                f"{origin}: no JSON Schema describes the type of parameter {parameter.name}; use one that JSON can hold"
            )
    return f"{origin}: no JSON Schema describes the parameters"
