"""One HTTP tool, as it stands in the settings: a name and a schema for the model, a request with places to be filled,
and how to read the answer.

What can be told of one field alone is checked here; what depends on another, or on a placeholder, in
`insika.http_tools.checks`. Secrets are not here at all: only the names of the variables that hold them.
"""

from __future__ import annotations

import enum
import re
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    SerializationInfo,
    field_serializer,
    model_validator,
)

from insika.channels import REVEAL_SECRETS
from insika.http_tools.json_paths import is_path
from insika.http_tools.placeholders import parse
from insika.http_tools.urls import url_template
from insika.parsing import Document, shown
from insika.urls import redacted_url

MAX_BYTES = 256 * 1024
"""Of an answer's body, unless a tool says otherwise."""
MAX_BYTES_AT_MOST = 1024 * 1024
"""An answer is read on the loop that all sessions share."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Method(enum.StrEnum):
    GET = "GET"
    HEAD = "HEAD"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"

    @property
    def only_reads(self) -> bool:
        """It changes nothing and sends no body (RFC 9110, section 9.2.1)."""
        return self in (Method.GET, Method.HEAD)


def _is_name(value: str) -> str:
    # As `insika.tools.tool.NAME_PATTERN`: taken letter for letter, by vendors and by permissions.
    if not _NAME.fullmatch(value):
        raise ValueError(f"must have 1 to 64 letters, digits, _ and -, got {shown(value)}")
    return value


def _is_scalar(value: JsonValue) -> JsonValue:
    if value is None or isinstance(value, list | dict):
        raise ValueError("must be a text, a number, or true or false")
    return value


def _no_arguments() -> dict[str, JsonValue]:
    return {"type": "object"}


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


Name = Annotated[str, AfterValidator(_is_name)]
JsonPath = Annotated[str, AfterValidator(is_path)]
Status = Annotated[int, Field(ge=200, le=599)]


class Request(Document):
    """What is sent. `url`, `query`, `headers` and `body` may hold `%{arguments...}` and `%{context...}`; where what is
    to be filled in is absent, the parameter, header or field is left out. `timeout`: seconds for the whole call;
    absent, the profile's `tool_timeout`."""

    method: Method = Method.GET
    url: Annotated[str, AfterValidator(url_template)]
    query: dict[str, Annotated[JsonValue, AfterValidator(_is_scalar)]] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    body: JsonValue = None
    timeout: Annotated[float, Field(gt=0, le=600)] | None = None

    @field_serializer("url")
    def _write_url(self, url: str, info: SerializationInfo[Any]) -> str:
        return url if _reveals(info) else redacted_url(url)


class Response(Document):
    """How the answer is read. `extract`: the part of its JSON that is the result. `max_bytes` of the body are read; a
    longer one is an error."""

    extract: JsonPath | None = None
    max_bytes: Annotated[int, Field(ge=1, le=MAX_BYTES_AT_MOST)] = MAX_BYTES


class HaltWhen(Document):
    """Ends the turn with `say`, when all that is asked holds: the answer's `status` is one of these (absent: any 2xx),
    and `path` leads to a value in its JSON that `equals` this one, or `exists` (or, if false, does not). `say` may hold
    `%{result...}`; empty, the text of the message that announced the call is the answer."""

    status: Annotated[tuple[Status, ...], BeforeValidator(_listed)] = ()
    path: JsonPath | None = None
    equals: JsonValue = None
    exists: bool = True
    say: str = ""

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        given = self.model_fields_set
        if not given & {"status", "path"}:
            raise ValueError("must say when: by status, or by path with equals or exists")
        if "path" not in given and given & {"equals", "exists"}:
            raise ValueError("must say by path what equals or exists is about")
        if given >= {"equals", "exists"}:
            raise ValueError("must hold equals or exists, not both")
        return self

    @property
    def compares(self) -> bool:
        """There is a value to be equal to; it may be null."""
        return "equals" in self.model_fields_set


class HttpTool(Document):
    """`parameters`: the JSON Schema of its arguments. `side_effect`, `idempotent`, `repeatable` and `group` mean what
    they mean for a Python tool, except that a request which does more than read is taken to change the world.
    `secret_headers` are texts with `%{env.NAME}`."""

    name: Name
    description: Annotated[str, Field(min_length=1)]
    parameters: dict[str, JsonValue] = Field(default_factory=_no_arguments)
    request: Request
    response: Response = Response()
    halt_when: Annotated[tuple[HaltWhen, ...], BeforeValidator(_listed)] = ()
    side_effect: bool | None = None
    idempotent: bool = False
    repeatable: bool = False
    group: Annotated[str, Field(min_length=1)] | None = None
    secret_headers: dict[str, str] = Field(default_factory=dict)

    @property
    def changes_the_world(self) -> bool:
        return not self.request.method.only_reads if self.side_effect is None else self.side_effect

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that hold its secrets."""
        places = (place for text in self.secret_headers.values() for place in parse(text).places)
        return tuple(dict.fromkeys(place.path[0] for place in places))

    @field_serializer("side_effect")
    def _write_side_effect(self, side_effect: bool | None) -> bool:
        return self.changes_the_world


def _reveals(info: SerializationInfo[Any]) -> bool:
    return bool((info.context or {}).get(REVEAL_SECRETS))
