"""What a JSON Schema expected where something did not fit, in words: by path, and never with the value itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError

from insika.documents import Path
from insika.parsing import Problem

_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_SENTENCES: Mapping[str, str] = {
    "pattern": "must match {}",
    "const": "must be {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be greater than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minItems": "must hold at least {}",
    "maxItems": "must hold at most {}",
    "minProperties": "must hold at least {}",
    "maxProperties": "must hold at most {}",
    "uniqueItems": "must not hold the same twice",
    "anyOf": "fits none of the forms that are allowed here",
    "oneOf": "must fit exactly one of the forms that are allowed here",
    "propertyNames": "holds a name that is not allowed",
    "contains": "does not hold what it must",
}


def problems_of(error: ValidationError) -> Iterator[Problem]:
    """What one mistake is about; several for an object in which several things are missing or too many."""
    path: Path = tuple(error.absolute_path)
    expected: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case "required":
            for name in expected:
                if name not in instance:
                    yield (*path, name), "is required and was not given"
        case "additionalProperties" if isinstance(error.schema, Mapping):
            known = list(error.schema.get("properties", ()))
            for name in instance:
                if name not in known:
                    yield (*path, name), f"there is no such argument (there are: {', '.join(known) or 'none'})"
        case "type":
            kinds = [expected] if isinstance(expected, str) else expected
            yield path, f"must be {' or '.join(_KINDS.get(kind, str(kind)) for kind in kinds)}"
        case "enum":
            yield path, f"must be one of {', '.join(_json(value) for value in expected)}"
        case keyword:
            sentence = _SENTENCES.get(str(keyword), f"does not fit the schema's {keyword}")
            yield path, sentence.format(_json(expected))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
