"""What a vendor says of a failure, as far as it may stand in an error: errors are logged and shown to operators.

A vendor's text is what tells an operator what is wrong, and it may quote what it was sent: the value it could not take,
the prompt that was too long, the key it did not know. So no word is shown that stands anywhere in the request, but for
words of the trade; of a text that is mostly quotation nothing is shown, and what looks like a key never. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from insika.messages import Message
from insika.ports import ModelRequest
from insika.text import clean_text

LONGEST = 300
"""Characters of a vendor's text."""
LEFT_OUT = "…"

_WORD = re.compile(r"\w+")
_KEY = re.compile(r"\b(?:(?:sk|pk|rk|ak)-|bearer\s+)\S+", re.IGNORECASE)
_PART = re.compile(r"[^\W_]+")
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
_GAP = re.compile(rf"{LEFT_OUT}(?:\W*{LEFT_OUT})+")
_CODE_POINT = re.compile(r"\\u([0-9a-fA-F]{4})")
_ESCAPE = re.compile(r"\\[a-z\\\"'/]")

_A_PIECE = 3
"""Letters by which a piece of a word is told from any other."""
_IN_A_ROW = 4
"""Words that make a quotation, whatever words they are: nothing is shown of a text that holds as many."""
_OF_THE_TRADE = frozenset(
    _WORD.findall("""
    a access account after again allowed also an and any api are argument arguments array as assistant at authentication
    available balance be because been before but by call calls can cannot capacity chat check completion connection
    content context correct could credits currently data did does doesn enough error exceed exceeded exceeds exist
    expected failed field following for format found from function functions given got had has have header however id if
    in incorrect input instead insufficient internal invalid is issue it its json key kind least length less limit
    loaded long longer many max maximum may message messages missing model models more most must name no not null number
    object of on only or organization out output over overloaded parameter parameters parse per permission please prompt
    provide provided provider quota rate reached reduce request requested requests required response results retry role
    s schema see server should size specify stream string support supported supports system t temporarily than that the
    their them then there this time to token tokens too tool tools try type unable unavailable unknown unsupported until
    up upstream use used user using valid value values was were when which while will with within without wrong you your
    """)
)
"""They tell nothing of a person, and a failure cannot be told without them."""


class VendorWords:
    """What may be shown of the words of a vendor that was sent `request` and `key` ("": none)."""

    def __init__(self, request: ModelRequest, key: str) -> None:
        self._key = key
        self._spoken = "\n".join(_texts(request)).casefold()
        named = {word for name in (request.model, *(tool.name for tool in request.tools)) for word in _words(name)}
        self._harmless = named | _OF_THE_TRADE

    def shown(self, text: str) -> str:
        """`text` on one line, shortened, and without what was sent; "" where too little is left."""
        line = self._without_keys(_one_line(_unescaped(text)))
        words = _words(line)
        quoted = {word for word in words if word not in self._harmless and self._is_spoken(word)}
        if sum(word in quoted for word in words) * 2 > len(words) or self._holds_a_row(words):
            return ""
        line = _WORD.sub(lambda found: LEFT_OUT if found[0].casefold() in quoted else found[0], line)
        return _GAP.sub(LEFT_OUT, line)

    def word(self, text: str) -> str:
        """`text` where it is one name or id as vendors give them, and no part of it was sent; "" otherwise."""
        parts = _PART.findall(text.casefold())
        was_sent = any(part not in self._harmless and self._is_a_word(part) for part in parts)
        return text if _NAME.fullmatch(text) and not was_sent and self._without_keys(text) == text else ""

    def _without_keys(self, line: str) -> str:
        line = _KEY.sub(LEFT_OUT, line.replace(self._key, LEFT_OUT) if self._key else line)
        return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}{LEFT_OUT}"

    def _is_spoken(self, word: str) -> bool:
        """Also as a piece of a longer word, unless it is too short for one: vendors shorten what they quote."""
        return word in self._spoken if len(word) >= _A_PIECE else self._is_a_word(word)

    def _is_a_word(self, word: str) -> bool:
        return re.search(rf"\b{re.escape(word)}\b", self._spoken) is not None

    def _holds_a_row(self, words: list[str]) -> bool:
        spoken = f" {' '.join(_words(self._spoken))} "
        rows = (words[at : at + _IN_A_ROW] for at in range(len(words) - _IN_A_ROW + 1))
        return any(f" {' '.join(row)} " in spoken for row in rows)


def _texts(request: ModelRequest) -> Iterator[str]:
    yield request.instructions
    yield request.note
    for message in request.messages:
        yield message.content
        yield from _arguments(message)


def _arguments(message: Message) -> Iterator[str]:
    for call in message.tool_calls:
        yield call.malformed or json.dumps(call.arguments, ensure_ascii=False, default=str)


def _unescaped(text: str) -> str:
    """Without the escapes of a text within a text, which would make other words of what is quoted."""
    return _ESCAPE.sub(" ", _CODE_POINT.sub(lambda found: chr(int(found[1], 16)), text))


def _one_line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in clean_text(text)).split())


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
