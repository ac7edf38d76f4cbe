"""The JSON Schema of a profile, for editors: it completes keys, says what they mean, and marks most mistakes while one
types. `load_profile` has the last word: what only it can see (which tools there are, whether `default` is a route) is
not said here.

In draft 7, which every editor reads, and without references, behind which draft 7 reads nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from insika.agents.profile import Profile
from insika.agents.profile_words import MEANINGS
from insika.agents.routes import RESERVED

Schema = dict[str, Any]

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_NULL: Final[Schema] = {"type": "null"}
_URL: Final = r"^https?://[^\s/?#@]+([/?#]\S*)?$"
_ROUTE_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


def profile_schema() -> Schema:
    """The same for one version of Insika, whatever is configured."""
    raw = Profile.model_json_schema(mode="validation")
    schema = _plain(raw, raw["$defs"])
    properties = schema["properties"]
    for key in ("tools_allow", "tools_allow_groups"):
        properties[key] = _without_null(properties[key])
    limits = properties["limits"]
    limits["properties"]["steer_join"] = _or_null({"type": "string", "pattern": "%\\{message\\}"})
    limits["not"] = {
        "required": ["on_exhausted", "max_tool_calls"],
        "properties": {"on_exhausted": {"const": "synthesize"}, "max_tool_calls": _NULL},
    }
    _section(properties["alerts"])["properties"]["webhook"] = _or_null({"type": "string", "pattern": _URL})
    guardrails = properties["guardrails"]
    _section(guardrails)["properties"]["responses"]["additionalProperties"] = False
    guardrails["anyOf"].insert(1, {"type": "boolean"})
    properties["routes"] = _or_null(_routes(_section(properties["routes"])))
    _describe(schema, ())
    return {"$schema": DRAFT, "title": "An agent of Insika", **schema}


def schema_text() -> str:
    """As it is shipped, in the file beside this one."""
    return json.dumps(profile_schema(), indent=2, ensure_ascii=False) + "\n"


def _plain(schema: Any, models: Mapping[str, Any]) -> Any:
    """Without references, titles, docstrings and the defaults of whole sections."""
    if isinstance(schema, list):
        return [_plain(inner, models) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if (reference := schema.get("$ref")) is not None:
        own = {key: inner for key, inner in schema.items() if key != "$ref"}
        return _plain({**models[reference.rpartition("/")[2]], **own}, models)
    return {
        key: {name: _plain(inner, models) for name, inner in value.items()}
        if key in ("properties", "patternProperties")
        else value
        if key == "default"
        else _plain(value, models)
        for key, value in schema.items()
        if key not in ("title", "description", "$defs") and not (key == "default" and _says_nothing(value))
    }


def _says_nothing(default: object) -> bool:
    return default is None or isinstance(default, dict | list)


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, _NULL]}


def _without_null(schema: Schema) -> Schema:
    (only,) = [choice for choice in schema["anyOf"] if choice != _NULL]
    return {**only}


def _section(schema: Schema) -> Schema:
    """Of a section that may be null: what it is otherwise."""
    found: Schema = next((choice for choice in schema.get("anyOf", ()) if "properties" in choice), schema)
    return found


def _routes(split: Schema) -> Schema:
    """As people write it: routes beside the reserved words."""
    properties = split["properties"]
    route = properties["routes"]["additionalProperties"]
    description = route["properties"]["description"]
    rules = [
        {"not": {"required": ["stuck", "delegate"], "properties": {"stuck": {"const": True}, "delegate": _TEXT}}},
        {
            "if": {"required": ["message"], "properties": {"message": _TEXT}},
            "then": {"required": ["stuck"], "properties": {"stuck": {"const": True}}},
        },
    ]
    return {
        "type": "object",
        "properties": {name: properties[name] for name in RESERVED},
        "additionalProperties": {"anyOf": [description, {**route, "allOf": rules}]},
        "propertyNames": {"pattern": _ROUTE_NAME},
        "required": ["default"],
        "minProperties": 2,
    }


_TEXT: Final[Schema] = {"type": "string"}


def _describe(schema: Schema, path: tuple[str, ...]) -> None:
    """Say what each key means, where it stands."""
    for choice in schema.get("anyOf", ()):
        _describe(choice, path)
    for key, inner in schema.get("properties", {}).items():
        here = (*path, key)
        inner["description"] = MEANINGS[".".join(here)]
        _describe(inner, here)
    further = schema.get("additionalProperties", schema.get("items"))
    if isinstance(further, dict):
        _describe(further, (*path, "*"))
