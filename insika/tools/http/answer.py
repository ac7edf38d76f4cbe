"""Reads what a service answered: into the result that the model gets, into the words that end the turn, or into an
error that the model can act on. Nothing is sent or kept here, and no secret passes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from insika.documents import parse_json
from insika.http_tools.description import HaltWhen, Response
from insika.http_tools.json_paths import NotFound, Path, compile_path, same
from insika.http_tools.placeholders import MISSING, Place, Template, as_text, parse, value_at
from insika.messages import Halt
from insika.text import truncate
from insika.tools.http.sending import Incoming
from insika.tools.tool import ToolError
from insika.turn import sentences

EXCERPT_BYTES = 1024
"""Of the body of an answer that is no success, the model is shown so many."""
_JSON = re.compile(r"application/json|[a-z0-9.+-]+/[a-z0-9.-]+\+json|text/json")
_TEXT = re.compile(r"text/[a-z0-9.+-]+|application/xml|application/yaml|")
_CHARSETS = ("utf-8", "ascii", "iso8859-1", "cp1252", "iso8859-15", "utf-16", "utf-16-le", "utf-16-be")
"""What a service may say its text is written in; with any other it is read as UTF-8. Some that Python knows take a
time that grows with the square of the text."""

Hide = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Halt:
    when: HaltWhen
    path: Path | None
    say: Template


class AnswerReader:
    def __init__(self, response: Response, halts: Sequence[HaltWhen]) -> None:
        self._extract = compile_path(response.extract) if response.extract is not None else None
        self._halts = [
            _Halt(when, compile_path(when.path) if when.path is not None else None, parse(when.say)) for when in halts
        ]
        self._wants_json = self._extract is not None or any(halt.path is not None for halt in self._halts)
        self._max_bytes = response.max_bytes

    def read(self, answer: Incoming, hide: Hide) -> str | Halt:
        """Raises ToolError. `hide` takes the secrets out of a text."""
        document = self._document(answer)
        for halt in self._halts:
            if _holds(halt, answer, document):
                return Halt(hide(self._said(halt.say, answer, document)))
        if not answer.succeeded:
            raise ToolError(_refusal(answer, hide))
        if not answer.body and self._extract is None:
            return sentences.answered_without_a_body(answer.status)
        return hide(as_text(self._result(answer, document)))

    def _document(self, answer: Incoming) -> Any:
        """The JSON of the answer; MISSING where it is none."""
        looks_like_it = _JSON.fullmatch(answer.content_type) or (
            self._wants_json and _TEXT.fullmatch(answer.content_type)
        )
        if answer.cut or not answer.body or not looks_like_it:
            return MISSING
        try:
            return parse_json(_decoded(answer))
        except ValueError:
            return MISSING

    def _result(self, answer: Incoming, document: Any) -> Any:
        said = f"it was answered with {answer.status}"
        if answer.cut:
            raise ToolError(f"{said} and with more than the {self._max_bytes} bytes that may be read")
        if self._extract is not None:
            return self._extracted(said, self._extract, document)
        if document is not MISSING:
            return document
        if _JSON.fullmatch(answer.content_type):
            raise ToolError(f"{said}, but what came with it is not the JSON that it says it is")
        if not _TEXT.fullmatch(answer.content_type):
            raise ToolError(f"{said} and with something that is neither JSON nor text")
        return _decoded(answer)

    def _extracted(self, said: str, path: Path, document: Any) -> Any:
        if document is MISSING:
            raise ToolError(f"{said}, but without any JSON in which {path.text} could be looked for")
        try:
            found = path.find(document)
        except NotFound as error:
            raise ToolError(f"{said}, but {error}") from None
        if not path.single:
            return found
        if not found:
            raise ToolError(f"{said}, but there is nothing at {path.text} in it")
        return found[0]

    def _said(self, say: Template, answer: Incoming, document: Any) -> str:
        try:
            result = self._result(answer, document)
        except ToolError:
            result = None  # the turn ends all the same, with what can be said

        def value_of(place: Place) -> str:
            value = value_at(result, place.path)
            return "" if value is MISSING or value is None else as_text(value)

        return say.filled(value_of)


def _holds(halt: _Halt, answer: Incoming, document: Any) -> bool:
    if answer.status not in halt.when.status if halt.when.status else not answer.succeeded:
        return False
    if halt.path is None:
        return True
    try:
        found = halt.path.find(document) if document is not MISSING else []
    except NotFound as error:
        raise ToolError(f"it was answered with {answer.status}, but {error}") from None
    if halt.when.compares:
        return any(same(value, halt.when.equals) for value in found)
    return bool(found) is halt.when.exists


def _refusal(answer: Incoming, hide: Hide) -> str:
    if 300 <= answer.status < 400:
        return f"it was answered with {answer.status}, a redirect, and redirects are not followed"
    shown = _JSON.fullmatch(answer.content_type) or _TEXT.fullmatch(answer.content_type)
    if not answer.body or answer.cut or not shown:
        return f"it was answered with {answer.status}"
    # What is hidden is hidden before it is cut: half of a secret would not be known for one.
    return f"it was answered with {answer.status}: {truncate(hide(_decoded(answer)), EXCERPT_BYTES)}"


def _decoded(answer: Incoming) -> str:
    try:
        charset = codecs.lookup(answer.charset or "utf-8").name
    except (LookupError, ValueError):
        charset = "utf-8"
    return answer.body.decode(charset if charset in _CHARSETS else "utf-8", "replace").removeprefix("\ufeff")
