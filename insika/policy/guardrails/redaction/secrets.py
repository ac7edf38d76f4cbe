"""Finds secrets that are known by how they begin, and private keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from insika.policy.guardrails.redaction.finding import Hit, Hold
from insika.policy.guardrails.redaction.secret_format import SecretFormat

_ALONE = r"(?<![A-Za-z0-9])"
_END = r"\Z"


@dataclass(frozen=True, slots=True)
class AlphabetRest:
    """Whatever further signs of an alphabet follow; `waits` are signs that go along only between others."""

    goes: re.Pattern[str]
    waits: re.Pattern[str]

    @classmethod
    def of(cls, format: SecretFormat) -> AlphabetRest:
        sign, inner = f"[{format.alphabet}]", f"[{format.inner}]" if format.inner else "(?!)"
        return cls(re.compile(rf"(?:{sign}|{inner}(?={sign}))*"), re.compile(rf"{inner}\Z"))

    def skip(self, text: str, at: int, skipped: int, ended: bool) -> tuple[int, bool]:
        gone = self.goes.match(text, at)
        end = at if gone is None else gone.end()
        waits = end == len(text) or self.waits.match(text, end) is not None
        return end, ended or not waits


@dataclass(frozen=True, slots=True)
class _Ready:
    format: SecretFormat
    body: re.Pattern[str]
    rest: AlphabetRest


class SecretFinder:
    def __init__(self, formats: Iterable[SecretFormat]) -> None:
        self._formats: Sequence[_Ready] = [
            _Ready(one, re.compile(rf"[{one.alphabet}]{{0,{one.at_least}}}"), AlphabetRest.of(one)) for one in formats
        ]
        prefixes = [prefix for one in self._formats for prefix in one.format.prefixes]
        self._begins = re.compile(_ALONE + _any_of(prefixes))
        self._begins_or_may = re.compile(_ALONE + _any_of(prefixes, cut=True))
        self.begins = rf"(?!\Z){self._begins_or_may.pattern}"

    def first(self, text: str, at: int, ended: bool) -> Hit | Hold | None:
        for begins in (self._begins if ended else self._begins_or_may).finditer(text, at):
            if not ended and begins.end() == len(text):
                return Hold(begins.start())
            if (found := self._at(text, begins.start(), ended)) is not None:
                return found
        return None

    def _at(self, text: str, start: int, ended: bool) -> Hit | Hold | None:
        for ready in self._formats:
            for prefix in ready.format.prefixes:
                if not text.startswith(prefix, start):
                    if not ended and len(text) - start < len(prefix) and prefix.startswith(text[start:]):
                        return Hold(start)
                    continue
                body = ready.body.match(text, start + len(prefix))
                end = start if body is None else body.end()
                if end - start - len(prefix) == ready.format.at_least:
                    return Hit(start, end, ready.format.kind, ready.rest)
                if end == len(text) and not ended:
                    return Hold(start)
        return None


def _any_of(words: Sequence[str], *, cut: bool = False) -> str:
    """A pattern for the beginning of any of `words`, tried letter by letter rather than word by word; with `cut` also
    for as much of one as the text still has."""
    followers: dict[str, list[str]] = {}
    for word in words:
        if word:
            followers.setdefault(word[0], []).append(word[1:])
    if len(followers) == 0 or "" in words:
        return ""
    branches = [re.escape(letter) + _any_of(rest, cut=cut) for letter, rest in sorted(followers.items())]
    return f"(?:{'|'.join([*branches, *([_END] if cut else [])])})"


LONGEST_KEY = 16_384
"""Characters after the head of a private key that go with it at most, should its end never come."""
_HEAD = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_MAY_BE_HEAD = re.compile(r"-{1,5}\Z|-----(?:B|BE|BEG|BEGI|BEGIN)\Z|-----BEGIN [A-Z0-9 ]{0,60}-{0,4}\Z")
_FOOT = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_FOOT_AT_MOST = 80


class KeyRest:
    """Everything up to the end of a private key."""

    def skip(self, text: str, at: int, skipped: int, ended: bool) -> tuple[int, bool]:
        limit = at + LONGEST_KEY - skipped
        foot = _FOOT.search(text, at, min(limit, len(text)))
        if foot is not None:
            return foot.end(), True
        if limit <= len(text):
            return limit, True
        return (len(text), True) if ended else (max(at, len(text) - _FOOT_AT_MOST), False)


class KeyFinder:
    """PEM and OpenPGP private keys (RFC 7468, RFC 9580)."""

    begins = "-"

    def first(self, text: str, at: int, ended: bool) -> Hit | Hold | None:
        if "-" not in text:
            return None
        head = _HEAD.search(text, at)
        held = None if ended else _MAY_BE_HEAD.search(text, max(at, len(text) - _FOOT_AT_MOST))
        if head is not None and (held is None or head.start() < held.start()):
            return Hit(head.start(), head.end(), "private_key", KeyRest())
        return None if held is None else Hold(held.start())


_LOGIN = re.compile(r"(?<=://)[^\s/@:?#]{1,64}:[^\s/@]{1,128}(?=@)")
_MAY_BE_LOGIN = re.compile(r"(?<=://)[^\s/@:?#]{0,64}(?::[^\s/@]{0,128})?\Z")


class LoginFinder:
    """Name and password in an address (RFC 3986, section 3.2.1)."""

    begins = r"(?<=://)(?!\Z)"

    def first(self, text: str, at: int, ended: bool) -> Hit | Hold | None:
        if "://" not in text:
            return None
        login = _LOGIN.search(text, at)
        held = None if ended else _MAY_BE_LOGIN.search(text, at)
        if login is not None and (held is None or login.start() < held.start()):
            return Hit(login.start(), login.end(), "credentials")
        return None if held is None else Hold(held.start())
