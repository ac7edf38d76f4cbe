"""Reads the patterns and replies that come with Insika, from the files beside the guardrails.

They are part of the program: a mistake in one is a defect, and is raised when it is read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from insika.agents.guardrails import ABUSE, DEFAULT, INJECTION, MODERATED
from insika.choices import Language, Strictness
from insika.parsing import Document, parse_document
from insika.policy.guardrails.library import GuardLibrary
from insika.policy.guardrails.pattern import ANY_LANGUAGE, Pattern, View
from insika.policy.guardrails.redaction.secret_format import SecretFormat

_FOLDER = resources.files("insika.policy.guardrails") / "patterns"


class _PatternEntry(Document):
    id: str
    category: Literal["injection", "abuse"]
    counts_from: Annotated[Strictness, Field(alias="from")]
    view: Literal["words", "text"] = "words"
    regex: str
    unless: str = ""
    unless_near: str = ""
    matches: Annotated[tuple[str, ...], Field(min_length=1)]
    passes: Annotated[tuple[str, ...], Field(min_length=1)]


class _LanguageFile(Document):
    language: str
    replies: dict[Literal["default", "injection", "abuse", "moderated"], str] = Field(default_factory=dict)
    fragments: dict[str, str] = Field(default_factory=dict)
    pattern: tuple[_PatternEntry, ...]


class _SecretEntry(Document):
    kind: str
    prefixes: Annotated[tuple[str, ...], Field(min_length=1)]
    alphabet: str
    at_least: Annotated[int, Field(ge=4, le=90)]
    inner: str = ""
    examples: Annotated[tuple[str, ...], Field(min_length=1)]
    passes: tuple[str, ...] = ()


class _SecretFile(Document):
    secret: tuple[_SecretEntry, ...]


@cache
def read_library() -> GuardLibrary:
    """All that comes with Insika. Read once for a process: it is part of the program."""
    files = [_language_file(language) for language in (ANY_LANGUAGE, *Language)]
    return GuardLibrary(
        tuple(pattern for file in files for pattern in _patterns(file)),
        {file.language: {str(key): reply for key, reply in file.replies.items()} for file in files if file.replies},
        tuple(_secrets()),
    )


def _language_file(language: str) -> _LanguageFile:
    file = parse_document(_LanguageFile, _toml(f"{language}.toml"), f"{language}.toml", more_problems=lambda _: ())
    if file.language != language:
        raise ValueError(f"{language}.toml says that its language is {file.language}")
    if language != ANY_LANGUAGE and set(file.replies) != {DEFAULT, INJECTION, ABUSE, MODERATED}:
        raise ValueError(f"{language}.toml lacks a reply")
    return file


def _patterns(file: _LanguageFile) -> Iterator[Pattern]:
    fragments: dict[str, str] = {}
    for name, fragment in file.fragments.items():
        fragments[name] = _filled(fragment, fragments)
    for entry in file.pattern:
        yield Pattern(
            entry.id,
            entry.category,
            file.language,
            entry.counts_from,
            View(entry.view),
            _filled(entry.regex, fragments),
            _filled(entry.unless, fragments),
            _filled(entry.unless_near, fragments),
            entry.matches,
            entry.passes,
        )


def _filled(regex: str, fragments: Mapping[str, str]) -> str:
    for name, fragment in fragments.items():
        regex = regex.replace(f"{{{name}}}", fragment)
    return regex


def _secrets() -> Iterator[SecretFormat]:
    file = parse_document(_SecretFile, _toml("secrets.toml"), "secrets.toml", more_problems=lambda _: ())
    for entry in file.secret:
        yield SecretFormat(
            entry.kind, entry.prefixes, entry.alphabet, entry.at_least, entry.inner, entry.examples, entry.passes
        )


def _toml(name: str) -> object:
    return tomllib.loads((_FOLDER / name).read_text("utf-8"))
