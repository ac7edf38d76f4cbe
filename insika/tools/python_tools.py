"""Turns a typed Python function into a `Tool`: the schema comes from its signature, checked calls go to it.

There is no list of all tools here: `@tool` gives an object, and `collect` finds such objects in a module. Importing a
module of tools therefore changes nothing outside it.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from insika.tools.arguments import ArgumentModel, Parameter
from insika.tools.tool import Tool, ToolContext

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PythonTool(Tool, Generic[P, R]):
    """A tool made from `function`. Called directly it is that function, unchecked: handy in the tool's own tests."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


@overload
def tool(function: Callable[P, R], /) -> PythonTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    group: str | None = None,
    side_effect: bool = False,
    idempotent: bool = False,
    repeatable: bool = False,
    timeout: float | None = None,
) -> Callable[[Callable[P, R]], PythonTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    group: str | None = None,
    side_effect: bool = False,
    idempotent: bool = False,
    repeatable: bool = False,
    timeout: float | None = None,
) -> Any:
    """Make a tool of a typed function, sync or async; with or without parentheses.

    The model is told the docstring as description and, for an argument, what `Annotated[..., Field(description=...)]`
    says. A sync function is run in a thread and may block; an async one is run on the event loop and must not. A
    parameter annotated `ToolContext` is filled in by the engine. `name` is the function's own unless given; `timeout`
    is in seconds; the other options are explained at `Tool`.

    Raises TypeError for a function whose arguments cannot be described, ValueError as `Tool` does.
    """

    def decorate(function: Callable[..., Any]) -> PythonTool[..., Any]:
        origin = _origin(function)
        signature = _Signature.of(function, origin)
        tool_name = name if name is not None else function.__name__
        return PythonTool(
            name=tool_name,
            description=inspect.getdoc(function) or "",
            parameters=signature.arguments.schema(),
            bind=signature.arguments.bind,
            invoke=signature.caller(function),
            blocking=not inspect.iscoroutinefunction(function),
            group=group,
            side_effect=side_effect,
            idempotent=idempotent,
            repeatable=repeatable,
            timeout_s=timeout,
            origin=origin,
            function=function,
        )

    return decorate if function is None else decorate(function)


def collect(module: ModuleType) -> list[Tool]:
    """The tools that stand at the top level of `module`, also those it imported, by name; each once."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, Tool)}
    return sorted(found.values(), key=lambda tool: tool.name)


def _origin(function: Callable[..., Any]) -> str:
    if not inspect.isfunction(function):
        raise TypeError(f"@tool goes on a function, got {type(function).__name__}")
    return f"{function.__module__}.{function.__qualname__}, {function.__code__.co_filename}:{_line(function)}"


def _line(function: Any) -> int:
    return int(function.__code__.co_firstlineno)


@dataclass(frozen=True, slots=True)
class _Signature:
    """What a function takes: arguments that the model fills, and the names of those that the engine fills."""

    arguments: ArgumentModel
    contexts: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable[..., Any], origin: str) -> _Signature:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{origin}: a tool gives one result, so it cannot be a generator")
        hints = _hints(function, origin)
        arguments: list[Parameter] = []
        contexts: list[str] = []
        for parameter in inspect.signature(function).parameters.values():
            _check_kind(parameter, hints, origin)
            if hints[parameter.name] is ToolContext:
                contexts.append(parameter.name)
            else:
                arguments.append(Parameter(parameter.name, hints[parameter.name], parameter.default))
        return cls(ArgumentModel(arguments, origin), tuple(contexts))

    def caller(self, function: Callable[..., Any]) -> Callable[[Mapping[str, Any], ToolContext], Any]:
        def call(bound: Mapping[str, Any], context: ToolContext) -> Any:
            return function(**bound, **dict.fromkeys(self.contexts, context))

        return call


def _hints(function: Callable[..., Any], origin: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{origin}: an annotation cannot be read ({error}); the types of a tool's arguments must be importable "
            "at the top level of its module"
        ) from error


def _check_kind(parameter: inspect.Parameter, hints: Mapping[str, Any], origin: str) -> None:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(
            f"{origin}: parameter {parameter} cannot be filled by name; use plain parameters, without *, ** or /"
        )
    if parameter.name not in hints:
        raise TypeError(f"{origin}: parameter {parameter.name} has no type; annotate it, so that calls can be checked")
