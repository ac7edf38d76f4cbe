"""Brings a text to one spelling: small letters without accents, look-alikes as the letters they pass for, nothing
invisible. What comes out is for patterns to read, never for people or models.
"""

from __future__ import annotations

import re
import unicodedata

from insika.readings.homoglyphs import LOOKALIKES, SYMBOLS, TAGS

_DRAWN = {**SYMBOLS, **TAGS}
_FIRST_DRAWN = chr(min(_DRAWN))
_UNSEEN = re.compile(
    "[\u00ad\u0300-\u036f\u0483-\u0489\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0"
    "\U0001d173-\U0001d17a\U000e0000-\U000e01ef]+"
)
"""Marks on letters, and what takes no room: joiners, direction marks, variation selectors, fillers."""
_WORD = re.compile(r"[^\W_]+|[.!?;:](?![.!?;:])")
_LETTERS = re.compile(r"(?: \w(?: \.)?(?= )){3}")
_SPELT_OUT = re.compile(r"(?<!\w)(?:\w[ .*_\-]){2,}\w(?!\w)")
_BETWEEN = re.compile(r"[ .*_\-]")


def folded(text: str) -> str:
    """`text` in small letters, without accents and disguises; spaces and punctuation are as they were.

    The compatibility forms of Unicode (annex 15) are resolved. Folding twice changes nothing more."""
    if not text.isascii():
        drawn = text.translate(_DRAWN) if max(text) >= _FIRST_DRAWN else text
        text = _UNSEEN.sub("", unicodedata.normalize("NFKD", drawn))
        if not text.isascii():
            return text.translate(LOOKALIKES).casefold().translate(LOOKALIKES)
    return text.casefold()


def words(text: str) -> str:
    """The words of a folded text, one space between them and one at both ends; `.`, `!`, `?`, `;` and `:` are words
    too, of several in a row the last; all other punctuation is none. Letters that are spelt out (`i g n o r e`) are one
    word."""
    apart = f" {' '.join(_WORD.findall(text))} "
    if _LETTERS.search(apart):
        joined = _SPELT_OUT.sub(lambda spelt: _BETWEEN.sub("", spelt[0]), text)
        apart = f" {' '.join(_WORD.findall(joined))} "
    return apart


def folded_pattern(pattern: str) -> str:
    """A pattern that finds in a folded text what `pattern` would have found in the text itself. Its case stays: in
    patterns it has a meaning (`\\S`), so search without regard to case."""
    if pattern.isascii():
        return pattern
    shown = _UNSEEN.sub("", unicodedata.normalize("NFKD", pattern)).translate(LOOKALIKES)
    return "".join(sign if sign.isascii() else sign.casefold().translate(LOOKALIKES) for sign in shown)
