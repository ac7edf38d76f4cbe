"""Whatever goes into a tool or comes out of it, stores and vendors can hold it, and nothing else escapes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from insika.messages import Halt, ToolCall
from insika.policy.tool_lists import allowed_tools
from insika.tools.conversion import as_text, clean
from insika.tools.invoke import MAX_OUTPUT_BYTES, run_tool
from insika.tools.python_tools import tool
from insika.tools.threads import ToolThreads
from insika.tools.tool import InvalidArguments, ToolContext

CONTEXT = ToolContext("", "s", "a", "t", "c")

any_text = st.text(st.characters(), max_size=20) | st.sampled_from(["\0", "\ud800", "a\udfff", "\ud83d\ude00", "😀"])
clean_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def json_values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | texts
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
    )


def holdable(text: str) -> bool:
    return "\0" not in text and bool(text.encode("utf-8") or True)


@given(json_values(clean_texts))
def test_clean_json_comes_back_as_it_was(value: Any) -> None:
    if isinstance(value, str):
        assert as_text(value) == value
    elif value is None:
        assert as_text(value) == ""
    else:
        assert json.loads(as_text(value)) == value


@given(json_values(any_text))
def test_any_json_becomes_text_that_can_be_held(value: Any) -> None:
    assert holdable(as_text(value))
    assert clean(clean(value)) == clean(value)


results = st.one_of(
    json_values(any_text),
    st.binary(max_size=8),
    st.builds(Halt, any_text),
    st.sets(st.integers(), max_size=3),
    st.just(object()),
    st.integers(50_000, 90_000).map(lambda n: "€" * n),
    st.integers(10_000, 40_000).map(lambda n: ["\0"] * n),
)


@settings(deadline=None)
@given(results)
def test_any_result_gives_an_outcome_that_can_be_held_and_is_bounded(value: Any) -> None:
    @tool
    async def give() -> Any:
        return value

    outcome = asyncio.run(run_tool(give, ToolCall("c", "give"), CONTEXT, 30, ToolThreads()))
    assert holdable(outcome.content)
    assert len(outcome.content.encode()) <= MAX_OUTPUT_BYTES
    assert outcome.halts == isinstance(value, Halt)
    assert outcome.content or not outcome.is_error


@given(st.builds(Exception, any_text) | st.builds(KeyError, json_values(any_text)))
def test_any_error_gives_an_outcome_that_can_be_held(error: Exception) -> None:
    @tool
    async def fail() -> None:
        raise error

    outcome = asyncio.run(run_tool(fail, ToolCall("c", "fail"), CONTEXT, 30, ToolThreads()))
    assert outcome.is_error
    assert holdable(outcome.content)


class Line(BaseModel):
    title: str
    amount: int = 1


@tool
def typed(
    order: int, kind: Literal["a", "b"], lines: Sequence[Line] = (), note: Annotated[str, Field(max_length=5)] = ""
) -> None:
    return None


SECRET = "sk-7f3e9"
names = st.sampled_from(["order", "kind", "lines", "note", "title", "amount", "x"])
secrets = st.just(SECRET) | st.integers() | st.just("a") | st.none()
with_secrets = st.recursive(
    secrets, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(names, with_secrets, max_size=5))
def test_arguments_fit_or_are_refused_without_showing_a_value(arguments: dict[str, Any]) -> None:
    refused: InvalidArguments | None = None
    bound: Mapping[str, Any] = {}
    try:
        bound = typed.bind(arguments)
    except InvalidArguments as error:
        refused = error
    if refused is None:
        assert set(bound) == {"order", "kind", "lines", "note"}
        assert set(arguments) <= set(bound)
    else:
        assert refused.problems
        assert SECRET not in str(refused)


@given(st.dictionaries(any_text, json_values(any_text), max_size=4))
def test_no_arguments_at_all_can_do_more_than_be_refused(arguments: dict[str, Any]) -> None:
    call = ToolCall("c", "typed", arguments)
    outcome = asyncio.run(run_tool(typed, call, CONTEXT, 30, ToolThreads()))
    assert outcome.is_error
    assert holdable(outcome.content)


tool_names = st.sampled_from(["a", "b", "c", "A"])
groups = st.sampled_from(["g", "h", "a"])
lists = st.none() | st.lists(tool_names, max_size=3)


@given(
    st.dictionaries(tool_names, st.none() | groups, max_size=4), lists, lists, st.none() | st.lists(groups, max_size=2)
)
def test_the_lists_let_through_what_the_contract_says(
    registered: dict[str, str | None],
    allow: list[str] | None,
    deny: list[str] | None,
    allow_groups: list[str] | None,
) -> None:
    allowed = allowed_tools(registered.items(), tools_allow=allow, tools_deny=deny, tools_allow_groups=allow_groups)
    assert list(allowed) == [name for name in registered if name in allowed]
    for name, group in registered.items():
        named = allow is not None and name in allow
        grouped = allow_groups is not None and group in allow_groups
        undeclared = allow is None and allow_groups is None
        assert (name in allowed) == (name not in (deny or []) and (undeclared or named or grouped))
