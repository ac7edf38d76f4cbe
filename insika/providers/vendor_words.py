"""What a vendor says of a failure, as far as it may stand in an error: errors are logged and shown to operators.

A vendor's text is what tells an operator what is wrong, and it may quote what it was sent: the value it could not take,
the prompt that was too long, the key it did not know. So it is shown only where it repeats nothing of the request,
short and on one line, and what looks like a key never. Pure. Whatever is in doubt is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from insika.messages import Message
from insika.ports import ModelRequest
from insika.text import clean_text

LONGEST = 300
"""Characters of a vendor's text."""

_WORD = re.compile(r"\w+")
_KEY = re.compile(r"\b(?:(?:sk|pk|rk|ak)-|bearer\s+)\S+", re.IGNORECASE)
_IN_A_ROW = 3
"""Words that make a quotation; fewer are found in any two texts."""
_TELLING = 6
"""Characters of a word with a digit in it that is a quotation by itself: the number of a card, an order, a phone."""


def shown(text: str, request: ModelRequest, key: str) -> str:
    """`text` as it may be shown; "" where it repeats anything that `request` says. `key`: what was sent, or ""."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in clean_text(text)).split())
    if key:
        line = line.replace(key, "***")
    line = _KEY.sub("***", line)
    cut = line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
    return "" if _repeats(cut, list(_texts(request))) else cut


def _texts(request: ModelRequest) -> Iterator[str]:
    yield request.instructions
    yield request.note
    for message in request.messages:
        yield message.content
        yield from _arguments(message)


def _arguments(message: Message) -> Iterator[str]:
    for call in message.tool_calls:
        yield call.malformed or json.dumps(call.arguments, ensure_ascii=False, default=str)


def _repeats(line: str, texts: Iterable[str]) -> bool:
    words = _words(line)
    line = f" {' '.join(words)} "
    spoken = [_words(text) for text in texts]
    all_spoken = f" {' | '.join(' '.join(words) for words in spoken)} "
    rows = (words[at : at + _IN_A_ROW] for at in range(len(words) - _IN_A_ROW + 1))
    if any(f" {' '.join(row)} " in all_spoken for row in rows):
        return True
    if any(word in all_spoken for word in words if _is_telling(word)):
        return True
    short = (" ".join(words) for words in spoken if 0 < len(words) < _IN_A_ROW)
    return any(f" {text} " in line for text in short)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _is_telling(word: str) -> bool:
    """It would be recognised. Scripts without spaces make one word of a sentence; vendors' own words are English."""
    return not word.isascii() or (len(word) >= _TELLING and any(sign.isdigit() for sign in word))
