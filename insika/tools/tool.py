"""What a tool is to the engine: a value with a name, a schema, its promises, and a port to run it.

Where a tool comes from (a Python function, later an HTTP description) is no business of this file. Nothing is run
here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from insika.ports import ToolSpec

NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What both vendors take as a tool's name, so that no adapter ever has to change one: a changed name could meet the
permission of another tool. (platform.openai.com, API reference "chat/create", `tools.function.name`;
platform.claude.com, "Define tools", `name`, which is the wider of the two.)"""


class ToolError(Exception):
    """Raised by a tool to tell the model what went wrong, in the tool's own words and without a type's name.

    The message is read by the model and may reach the person: keep secrets out of it.
    """


class OutcomeUnknown(Exception):
    """Raised by a tool that cannot tell whether what it began took effect, as when a connection is lost before an
    answer came. A call with a side effect is unknown then, and not run again; otherwise it has failed.

    The message is read as a `ToolError`'s is.
    """


class InvalidArguments(Exception):
    """The arguments do not fit the tool. `problems` holds (path, what was expected); no argument's value is in it."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {why}" if path else why for path, why in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may ask about the call it serves. A tool function gets it by a parameter annotated `ToolContext`;
    the model neither sees nor fills that parameter.

    `tenant` is "" for the platform itself. `turn_id` is unique for ever, `call_id` within its turn.
    """

    tenant: str
    session: str
    agent: str
    turn_id: str
    call_id: str

    @property
    def idempotency_key(self) -> str:
        """64 hexadecimal digits, the same each time this call is run (also after a crash) and those of no other call
        in any session: give it to a service that can tell a repeat by a key."""
        parts = json.dumps([self.tenant, self.session, self.turn_id, self.call_id])
        return hashlib.sha256(parts.encode()).hexdigest()


class Bind(Protocol):
    def __call__(self, arguments: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Check what the model wrote and give it in the form that `invoke` takes. Raises InvalidArguments."""
        ...


class Invoke(Protocol):
    def __call__(self, bound: Mapping[str, Any], context: ToolContext, /) -> Any:
        """Run once. Gives an awaitable, or, for a `blocking` tool, the result itself: that call may take long and is
        made in a thread. The result is text, a `Halt`, None, or anything that JSON can hold."""
        ...


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tool:
    """One tool. Two tools are equal only if they are the same object.

    `parameters` is the JSON Schema of an object. `side_effect`: running it changes something in the world, so it is
    started at most once for one call. `idempotent`: it may nevertheless be run again with the same
    `ToolContext.idempotency_key`. `repeatable`: the same call again has a meaning, the repetition guard leaves it
    alone. `timeout_s`: its own time limit in seconds; None is the profile's `tool_timeout`. `definition`: a digest of
    the data it is made of, "" for code. `origin` says where it was defined, for people. Raises ValueError for a name
    that vendors refuse or a limit that is not positive.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    bind: Bind
    invoke: Invoke
    blocking: bool = False
    group: str | None = None
    side_effect: bool = False
    idempotent: bool = False
    repeatable: bool = False
    timeout_s: float | None = None
    definition: str = ""
    origin: str = "an unnamed place"

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise ValueError(
                f"tool name {self.name!r} ({self.origin}) is not allowed: use 1 to 64 letters, digits, _ and -"
            )
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(
                f"timeout of tool {self.name} ({self.origin}) must be above 0 seconds, got {self.timeout_s}"
            )

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model is told of it."""
        return ToolSpec(self.name, self.description, self.parameters)
