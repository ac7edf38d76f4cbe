"""Where hosted models are reached, as settings data: what is spoken there, and which variable holds the key.

A key never stands here: only its variable's name does, and whatever stands in its place that may be a key is refused
without being shown. Values only: nothing is connected, and no variable is read.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints

from insika.agents.names import ProviderName
from insika.documents import Path
from insika.parsing import Document, Problem
from insika.urls import api_url

OFFLINE = "offline"
"""The provider that is always there, and whose models are scripts."""


class Kind(enum.StrEnum):
    """Which API is spoken there: Anthropic's Messages, or OpenAI's chat completions, which most others speak too."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"


class Dialect(enum.StrEnum):
    """How the chat completions of an endpoint differ from OpenAI's own. `compatible`: the narrowest common ground, for
    servers that nobody has told us about (vLLM, Ollama and the like)."""

    OPENAI = "openai"
    DEEPSEEK = "deepseek"
    OPENROUTER = "openrouter"
    COMPATIBLE = "compatible"


VENDOR_URLS: Mapping[Kind, str] = {
    Kind.ANTHROPIC: "https://api.anthropic.com",
    Kind.OPENAI: "https://api.openai.com/v1",
}
"""Where a kind is reached that says no `base_url`: its vendor's own."""

_DIALECTS: Mapping[str, Dialect] = {
    "api.openai.com": Dialect.OPENAI,
    "api.deepseek.com": Dialect.DEEPSEEK,
    "openrouter.ai": Dialect.OPENROUTER,
}
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
_OWN_VARIABLES = "INSIKA_"
_KEY_SLIPS = frozenset({"key", "api_key", "apikey", "token", "secret", "auth_token"})
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    Kind.ANTHROPIC: ("/v1", "/v1/messages"),
    Kind.OPENAI: ("/chat/completions",),
}
"""What people copy along with a base URL, and the SDKs put behind it by themselves."""


def _is_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            "must be the name of an environment variable, in capitals, like OPENAI_API_KEY; what stands here is not "
            "shown, for it may be a key, and a key never stands in settings"
        )
    if name.startswith(_OWN_VARIABLES):
        raise ValueError("must not be one of Insika's own variables: their values are sent to no model")
    return name


def dialect_of(base_url: str) -> Dialect:
    """What is spoken at the host of this URL or above it; `compatible` where nobody knows. "": OpenAI's own."""
    host = urlsplit(base_url).hostname if base_url else "api.openai.com"
    known = (dialect for name, dialect in _DIALECTS.items() if host == name or (host or "").endswith(f".{name}"))
    return next(known, Dialect.COMPATIBLE)


class HostedModels(Document):
    """The models of one endpoint; `name` stands before the slash of their references.

    `base_url` None: the vendor's own. `key_variable` None: no key is sent, for servers that want none. `dialect` None:
    known by the host.
    """

    name: ProviderName
    kind: Kind
    base_url: Annotated[str, StringConstraints(max_length=2048), AfterValidator(api_url)] | None = None
    key_variable: Annotated[str, AfterValidator(_is_variable)] | None = None
    dialect: Dialect | None = None

    @property
    def address(self) -> str:
        return self.base_url or VENDOR_URLS[self.kind]

    @property
    def host(self) -> str:
        """With its port, where one is written."""
        return urlsplit(self.address).netloc

    @property
    def speaks(self) -> Dialect | None:
        """None: its kind has no dialects."""
        if self.kind is not Kind.OPENAI:
            return None
        return self.dialect or dialect_of(self.address)


def address_of(kind: Kind, url: str) -> str:
    """`url`, if an API of this kind can be reached there. Raises ValueError, without what may be secret in it."""
    if why := _ends_too_late(kind, api_url(url)):
        raise ValueError(why)
    return url


def endpoint_problems(document: Mapping[str, object]) -> Iterator[Problem]:
    """What is wrong with the `providers` of a settings document and no single field of them can know."""
    given = document.get("providers")
    first: dict[str, int] = {}
    for at, fields in enumerate(given if isinstance(given, list) else []):
        if not isinstance(fields, Mapping):
            continue
        path: Path = ("providers", at)
        name = fields.get("name")
        if name == OFFLINE:
            yield (*path, "name"), f"{OFFLINE} is built in, and its models are scripts; choose another name"
        elif isinstance(name, str) and name in first:
            yield (*path, "name"), f"is the name of providers.{first[name]} already"
        elif isinstance(name, str):
            first[name] = at
        yield from _problems_of_one(path, fields)


def _problems_of_one(path: Path, fields: Mapping[str, object]) -> Iterator[Problem]:
    kind, base_url = fields.get("kind"), fields.get("base_url")
    if base_url is None and fields.get("key_variable") is None and kind in list(Kind):
        yield (*path, "key_variable"), "is required where there is no base_url: the vendor's own API wants a key"
    if kind == Kind.ANTHROPIC and fields.get("dialect") is not None:
        yield (*path, "dialect"), "is for kind openai only; remove it"
    if isinstance(kind, str) and isinstance(base_url, str) and (why := _ends_too_late(kind, base_url)):
        yield (*path, "base_url"), why
    for key in fields:
        if key.lower() in _KEY_SLIPS:
            do = "put it into an environment variable, and name that one in key_variable"
            yield (*path, key), f"unknown key; a key never stands in settings: {do}"


def _ends_too_late(kind: str, url: str) -> str:
    """Why nothing more can be put behind `url`; "" when it can."""
    try:
        path = urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""  # it is no URL, which is said elsewhere
    found = (ending for ending in _ENDINGS.get(kind, ()) if path.endswith(ending))
    return next((f"must end before {ending}, which is put behind it" for ending in found), "")
