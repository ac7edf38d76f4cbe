"""The readings of one text: as it stands, and what hides in it behind a simple disguise.

Bounded: a text gives at most a handful of readings, together not much longer than itself.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from insika.readings.folding import folded, words

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_MOST_ENCODED = 16
_LONGEST_ENCODED = 8_192
_PRINTABLE_AT_LEAST = 0.9
_DIGITS_IN_WORDS = re.compile(r"[a-z][013457@$]+[a-z]|(?<![\w.,])[1345@$][a-z]{2}|[a-z][!|][a-z]")
_WORDS_WITH_DIGITS = re.compile(r"[\w@$!|]+")
_FOR_LETTERS = str.maketrans("013457@$!|", "oieastasii")


@dataclass(frozen=True, slots=True)
class Reading:
    """`text` is folded, its spaces squeezed within lines; `words` has nothing but words. Both as UTF-8."""

    text: bytes
    words: bytes


_SPACES = re.compile(r"[^\S\n]+")


def readings(text: str) -> Iterator[Reading]:
    """The text as it stands comes first. Then, as far as there is anything of the kind: its HTML entities resolved,
    its digits and signs read as the letters that they stand for (`1gn0re`), and what its Base64 says."""
    plain = folded(text)
    yield _reading(plain)
    if "&" in plain and ";" in plain and (resolved := html.unescape(text)) != text:
        yield _reading(folded(resolved))
    if _may_have_digits_in_words(plain) and _DIGITS_IN_WORDS.search(plain):
        yield _reading(_WORDS_WITH_DIGITS.sub(_as_letters, plain))
    for hidden in _decoded(text):
        yield _reading(folded(hidden))


def _reading(plain: str) -> Reading:
    squeezed = plain if plain.isprintable() and "  " not in plain else _SPACES.sub(" ", plain)
    return Reading(squeezed.encode("utf-8", "replace"), words(plain).encode("utf-8", "replace"))


def _may_have_digits_in_words(plain: str) -> bool:
    if "@" in plain or "$" in plain or "!" in plain.rstrip("!") or "|" in plain:
        return True
    return any(not (word.isalpha() or word.isdigit()) for word in _WORDS_WITH_DIGITS.findall(plain))


def _as_letters(word: re.Match[str]) -> str:
    written = word[0]
    if not any(sign.isalpha() for sign in written) or written.isalpha():
        return written
    inner = written.rstrip("!|")
    return inner.replace("11", "ll").translate(_FOR_LETTERS) + written[len(inner) :]


def _decoded(text: str) -> Iterator[str]:
    """What the first few words say that are Base64 of readable text (RFC 4648, either alphabet)."""
    for count, found in enumerate(_ENCODED.finditer(text)):
        if count >= _MOST_ENCODED:
            return
        encoded = found[0].rstrip("=").translate({ord("-"): "+", ord("_"): "/"})[:_LONGEST_ENCODED]
        encoded = encoded[: len(encoded) - (len(encoded) % 4 == 1)]
        try:
            said = base64.b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        if sum(sign.isprintable() or sign.isspace() for sign in said) >= _PRINTABLE_AT_LEAST * len(said):
            yield said
