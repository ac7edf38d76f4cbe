from __future__ import annotations

import enum
import functools
import json
import types
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr

from insika.tools.python_tools import collect, tool
from insika.tools.tool import InvalidArguments, Tool, ToolContext


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Line(BaseModel):
    title: str
    amount: int = 1


OrderId = Annotated[str, Field(pattern=r"^\d{3,8}$", description="Digits only")]


@tool
def bare(text: str) -> str:
    """Say it again."""
    return text


@tool(name="lookup", group="orders", side_effect=True, idempotent=True, repeatable=True, timeout=2.5)
def full(order_id: OrderId, when: date | None = None, *, lines: list[Line] = []) -> Any:  # noqa: B006
    """Find an order.

    By its number.
    """
    return order_id, when, lines


@tool
async def with_context(context: ToolContext, size: Size, kind: Literal["a", "b"] = "a") -> str:
    return f"{context.call_id} {size} {kind}"


def test_a_bare_decorator_takes_name_and_description_from_the_function() -> None:
    assert bare.name == "bare"
    assert bare.description == "Say it again."
    assert bare.blocking
    assert (bare.side_effect, bare.idempotent, bare.repeatable) == (False, False, False)
    assert bare.group is None
    assert bare.timeout_s is None


def test_every_option_reaches_the_tool() -> None:
    assert (full.name, full.group, full.timeout_s) == ("lookup", "orders", 2.5)
    assert full.side_effect
    assert full.idempotent
    assert full.repeatable
    assert full.description == "Find an order.\n\nBy its number."


def test_a_tool_called_directly_is_its_function() -> None:
    assert bare("x") == "x"
    assert bare(text="x") == "x"


def test_the_schema_describes_the_arguments_and_admits_no_others() -> None:
    schema = full.parameters
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["order_id"]
    assert schema["properties"]["order_id"] == {
        "type": "string",
        "pattern": r"^\d{3,8}$",
        "description": "Digits only",
    }
    assert list(schema["properties"]) == ["order_id", "when", "lines"]


def test_a_property_called_title_survives_the_removal_of_titles() -> None:
    line = full.parameters["$defs"]["Line"]
    assert line["properties"]["title"] == {"type": "string"}
    assert "title" not in full.parameters


def test_the_schema_is_the_same_bytes_each_time() -> None:
    def make() -> Tool:
        return tool(full.function)

    assert json.dumps(make().parameters) == json.dumps(make().parameters)


def test_the_context_parameter_is_no_argument_and_is_filled_in() -> None:
    assert list(with_context.parameters["properties"]) == ["size", "kind"]
    context = ToolContext("", "s", "a", "t", "call_7")
    bound = with_context.bind({"size": "l"})
    coroutine = with_context.invoke(bound, context)
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    assert ended.value.value == "call_7 Size.LARGE a"


def test_the_model_cannot_fill_the_context() -> None:
    with pytest.raises(InvalidArguments, match="context: there is no such argument"):
        with_context.bind({"size": "s", "context": {"tenant": "other"}})


def test_arguments_are_read_as_json_writes_them() -> None:
    bound = full.bind({"order_id": "1234", "when": "2030-01-02", "lines": [{"title": "x", "amount": "3"}]})
    assert bound == {"order_id": "1234", "when": date(2030, 1, 2), "lines": [Line(title="x", amount=3)]}


def test_defaults_are_filled_in_and_not_shared() -> None:
    first = full.bind({"order_id": "1234"})
    first["lines"].append("x")
    assert full.bind({"order_id": "1234"})["lines"] == []


def test_names_that_pydantic_keeps_for_itself_can_be_arguments() -> None:
    @tool
    def odd(schema: int, _private: int, model_config: int, copy: int = 4) -> int:
        return schema + _private + model_config + copy

    assert list(odd.parameters["properties"]) == ["schema", "_private", "model_config", "copy"]
    assert odd.bind({"schema": 1, "_private": 2, "model_config": 3}) == {
        "schema": 1,
        "_private": 2,
        "model_config": 3,
        "copy": 4,
    }
    with pytest.raises(InvalidArguments):
        odd.bind({"argument_0": 1, "_private": 2, "model_config": 3})


def test_a_default_written_as_a_field_is_a_default() -> None:
    @tool
    def limited(count: int = Field(5, gt=0, description="How many")) -> int:
        return count

    assert limited.bind({}) == {"count": 5}
    assert limited.parameters["properties"]["count"]["exclusiveMinimum"] == 0
    with pytest.raises(InvalidArguments, match="count: "):
        limited.bind({"count": 0})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "order_id: is required and was not given"),
        ({"order_id": "12x"}, "order_id: String should match pattern"),
        ({"order_id": 1234}, "order_id: Input should be a valid string"),
        ({"order_id": "1234", "lines": [{"title": "t", "amount": "many"}]}, "lines.0.amount: "),
        ({"order_id": "1234", "colour": "red"}, "colour: there is no such argument (there are: order_id, when, lines)"),
    ],
)
def test_what_does_not_fit_is_named_by_path(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        full.bind(arguments)
    assert said in str(refused.value)


def test_no_value_is_repeated_in_what_is_said() -> None:
    with pytest.raises(InvalidArguments) as refused:
        full.bind({"order_id": "sk-secret", "when": "sk-secret", "lines": "sk-secret"})
    assert "sk-secret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_all_mistakes_are_named_but_not_without_end() -> None:
    with pytest.raises(InvalidArguments) as refused:
        full.bind({"order_id": "1234", **{f"x{n}" * 200: n for n in range(100)}})
    assert "and 92 more" in str(refused.value)
    assert len(str(refused.value)) < 8 * 2 * 300 + 100


@pytest.mark.parametrize("bad", [{"text": object()}, {"text": {1, 2}}])
def test_arguments_that_json_cannot_hold_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments, match="not a JSON object"):
        bare.bind(bad)


def test_a_parameter_without_a_type_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="parameter loose has no type"):

        @tool
        def untyped(loose) -> None:  # type: ignore[no-untyped-def]
            return None


@pytest.mark.parametrize("source", ["def f(*xs: int): ...", "def f(**xs: int): ...", "def f(x: int, /): ..."])
def test_parameters_that_cannot_be_named_are_refused(source: str) -> None:
    names: dict[str, Any] = {"__name__": "made"}
    exec(source, names)
    with pytest.raises(TypeError, match="cannot be filled by name"):
        tool(names["f"])


def test_a_type_without_a_schema_is_refused_by_parameter() -> None:
    with pytest.raises(TypeError, match="type of parameter broken"):

        @tool
        def unschemable(fine: int, broken: types.FrameType) -> None:
            return None


def test_an_annotation_that_cannot_be_found_says_where_types_must_be() -> None:
    with pytest.raises(TypeError, match="top level of its module"):

        @tool
        def lost(x: Nowhere) -> None:  # type: ignore[name-defined] # noqa: F821
            return None


def test_a_generator_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be a generator"):

        @tool
        def many(x: int) -> Any:
            yield x


def test_only_functions_become_tools() -> None:
    with pytest.raises(TypeError, match="goes on a function, got partial"):
        tool(functools.partial(bare.function, "x"))


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 65, "a.b", "a\n"])
def test_a_name_that_vendors_refuse_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="tool name"):
        tool(name=name)(bare.function)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_time_limit_must_be_positive(timeout: float) -> None:
    with pytest.raises(ValueError, match="must be above 0 seconds"):
        tool(timeout=timeout)(bare.function)


def test_collect_finds_each_tool_of_a_module_once() -> None:
    module = types.ModuleType("shop")
    module.__dict__.update(bare=bare, again=bare, full=full, other=3, function=bare.function)
    assert collect(module) == [bare, full]


def test_defining_a_tool_leaves_nothing_behind_elsewhere() -> None:
    module = types.ModuleType("empty")
    tool(bare.function)
    assert collect(module) == []


def test_the_idempotency_key_is_of_one_call_only() -> None:
    base = ("tenant", "session", "agent", "turn", "call")
    contexts = [ToolContext(*base)]
    for place in (0, 1, 3, 4):
        changed = [*base]
        changed[place] += "x"
        contexts.append(ToolContext(*changed))
    # the same characters, divided otherwise
    contexts.append(ToolContext("tenan", "tsession", "agent", "turn", "call"))
    keys = {context.idempotency_key for context in contexts}
    assert len(keys) == len(contexts)
    assert all(len(key) == 64 for key in keys)
    assert ToolContext(*base).idempotency_key == contexts[0].idempotency_key


def test_a_secret_argument_is_not_shown_by_the_bound_value() -> None:
    @tool
    def login(password: SecretStr) -> str:
        return password.get_secret_value()

    assert "hunter2" not in repr(login.bind({"password": "hunter2"}))
