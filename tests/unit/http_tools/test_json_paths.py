"""JSON paths: RFC 9535 without the functions that run patterns."""

from __future__ import annotations

import pytest

from insika.http_tools.json_paths import NotFound, compile_path

ORDERS = {"orders": [{"id": 1, "paid": True}, {"id": 2}], "a b": None}


@pytest.mark.parametrize(
    ("path", "single", "found"),
    [
        ("$", True, [ORDERS]),
        ("$.orders[0].id", True, [1]),
        ("$['a b']", True, [None]),
        ("$.nothing", True, []),
        ("$.orders[*].id", False, [1, 2]),
        ("$..id", False, [1, 2]),
        ("$.orders[?@.paid == true].id", False, [1]),
        ("$.orders[?length(@) > 1].id", False, [1]),
    ],
)
def test_a_path_finds_what_is_there(path: str, single: bool, found: list[object]) -> None:
    compiled = compile_path(path)
    assert (compiled.single, compiled.find(ORDERS)) == (single, found)


@pytest.mark.parametrize(
    "path", ["", "orders", "$.", "$[", "$.a | $.b", " $.a", "$.a[?match(@, 'x')]", "$.a[?search(@, '(a*)*')]"]
)
def test_what_is_no_path_is_said(path: str) -> None:
    with pytest.raises(ValueError, match="must be a JSON path"):
        compile_path(path)


def test_a_document_that_is_too_deep_is_not_searched() -> None:
    deep: object = None
    for _ in range(500):
        deep = {"a": deep}
    with pytest.raises(NotFound, match="too deeply"):
        compile_path("$..b").find(deep)
