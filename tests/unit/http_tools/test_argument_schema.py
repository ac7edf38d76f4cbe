"""Which schemas can be kept, and what fits them."""

from __future__ import annotations

from typing import Any

import pytest

from insika.http_tools.argument_schema import ArgumentSchema, always_there, schema_problems

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order": {"type": "string", "pattern": r"^\d{4}$"},
        "count": {"type": "integer", "minimum": 1, "default": 1},
        "how": {"enum": ["fast", "slow"]},
        "to": {"$ref": "#/$defs/address"},
    },
    "required": ["order"],
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 5}},
            "required": ["city"],
            "additionalProperties": False,
        }
    },
}


def told(schema: dict[str, Any]) -> dict[str, str]:
    return {".".join(map(str, path)): why for path, why in schema_problems(schema)}


def refused(arguments: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> dict[str, str]:
    return {".".join(map(str, path)): why for path, why in ArgumentSchema(schema).problems(arguments)}


def test_what_fits_has_no_problems() -> None:
    assert told(SCHEMA) == {}
    assert refused({"order": "1234", "count": 2, "how": "fast", "to": {"city": "Ulm"}}) == {}


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({}, {"order": "is required and was not given"}),
        ({"order": 1}, {"order": "must be a string"}),
        ({"order": "s3cret"}, {"order": r'must match "^\\d{4}$"'}),
        ({"order": "1234", "count": True}, {"count": "must be a whole number"}),
        ({"order": "1234", "count": 0}, {"count": "must be at least 1"}),
        ({"order": "1234", "how": "s3cret"}, {"how": 'must be one of "fast", "slow"'}),
        ({"order": "1234", "to": {}}, {"to.city": "is required and was not given"}),
        ({"order": "1234", "to": {"city": "s3cret"}}, {"to.city": "must have at most 5 characters"}),
        ({"order": "1234", "Order": "1"}, {"Order": "there is no such argument (there are: order, count, how, to)"}),
        ({"order": "1234", "to": {"city": "U", "x": 1}}, {"to.x": "there is no such argument (there are: city)"}),
    ],
)
def test_what_does_not_fit_is_told_by_path_and_never_with_the_value(
    arguments: dict[str, Any], problems: dict[str, str]
) -> None:
    assert refused(arguments) == problems
    assert "s3cret" not in str(problems)


def test_all_that_does_not_fit_is_told_at_once() -> None:
    assert set(refused({"count": 0, "how": 1})) == {"count", "how", "order"}


def test_defaults_stand_for_what_was_not_given() -> None:
    schema = ArgumentSchema(SCHEMA)
    assert schema.completed({"order": "1234"}) == {"count": 1, "order": "1234"}
    assert schema.completed({"order": "1234", "count": 5})["count"] == 5
    assert always_there(SCHEMA) == {"order", "count"}


def test_a_plain_schema_admits_no_other_arguments_and_says_so_to_the_model() -> None:
    assert ArgumentSchema({"type": "object"}).told == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert refused({"x": 1}, {"type": "object"}) == {"x": "there is no such argument (there are: none)"}


def test_a_schema_that_says_what_else_it_admits_is_left_as_it_is() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert ArgumentSchema(schema).told["additionalProperties"] == {"type": "integer"}
    assert refused({"x": 1}, schema) == {}
    assert refused({"x": "y"}, schema) == {"x": "must be a whole number"}


def test_a_pattern_is_matched_in_a_time_that_does_not_explode() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(\w+\s?)*$"}}}
    assert refused({"a": "x" * 5_000 + "!"}, schema).keys() == {"a"}


def test_a_schema_that_refers_to_itself_ends() -> None:
    tree: dict[str, Any] = {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}},
    }
    assert told(tree) == {}
    assert refused({"node": {"child": {"child": 5}}}, tree) == {"node.child.child": "must be an object"}
    endless = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert refused({"a": 1}, endless) == {"": "they are nested too deeply"}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({}, "type"),
        ({"type": "string"}, "type"),
        ({"type": ["object", "null"]}, "type"),
        ({"type": "objekt"}, "type"),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, "anyOf"),
        ({"type": "object", "properties": []}, "properties"),
        ({"type": "object", "properties": {"a": 5}}, "properties.a"),
        ({"type": "object", "properties": {"a b": {}}}, "properties.a b"),
        ({"type": "object", "properties": {"x" * 65: {}}}, "properties." + "x" * 65),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "properties.a.type"),
        ({"type": "object", "properties": {"a": {"minimum": "3"}}}, "properties.a.minimum"),
        ({"type": "object", "properties": {"a": {"pattern": "["}}}, "properties.a.pattern"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}}, "properties.a.pattern"),
        ({"type": "object", "properties": {"a": {"items": {"pattern": r"(.)\1"}}}}, "properties.a.items.pattern"),
        ({"type": "object", "properties": {"a": {"anyOf": [{"pattern": "("}]}}}, "properties.a.anyOf.0.pattern"),
        ({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}, "properties.a.default"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "properties.a.$ref"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}}, "properties.a.$ref"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "properties.a.$ref"),
        ({"type": "object", "properties": {"a": {"$dynamicRef": "#a"}}}, "properties.a.$dynamicRef"),
        ({"type": "object", "$id": "https://example.com/s"}, "$id"),
        ({"type": "object", "patternProperties": {"^a": {}}}, "patternProperties"),
    ],
)
def test_a_schema_that_cannot_be_kept_is_refused_at_its_path(schema: dict[str, Any], path: str) -> None:
    assert list(told(schema)) == [path]


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = {"type": "object", "properties": {"type": {"type": "string"}, "$ref": {}, "pattern": {"type": "string"}}}
    assert set(told(schema)) == {"properties.$ref"}  # for its sign, not for its meaning
    del schema["properties"]["$ref"]
    assert told(schema) == {}
    assert refused({"type": 1, "pattern": "["}, schema) == {"type": "must be a string"}
