"""Text that can be stored and cut: every string from outside passes here before it is written or shortened.

PostgreSQL refuses NUL in text, and no UTF-8 encoder takes half of a surrogate pair. Nothing here reads or logs text.
"""

from __future__ import annotations

import itertools
import unicodedata

REPLACEMENT = "\ufffd"
"""What stands where something could not be kept (the Unicode Standard's replacement character)."""

_ZERO_WIDTH_JOINER = "\u200d"
_LONGEST_CLUSTER = 32
"""Code points to step back at most, so that a text of nothing but combining marks is still cut, not emptied."""


def counted(count: float, what: str) -> str:
    """`1 message`, `2 messages`, `0.5 seconds`."""
    number = str(count) if isinstance(count, int) else f"{count:g}"
    return f"{number} {what}" if count == 1 else f"{number} {what}s"


def clean_text(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD, one for each; a pair of surrogates becomes the
    character it stands for. Everything else is kept as it is. Cleaning twice changes nothing more."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii() or _encodes(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_clean(text: str) -> bool:
    """Whether `clean_text` would leave `text` alone."""
    return "\0" not in text and (text.isascii() or _encodes(text))


def loses_nothing(text: str) -> bool:
    """Whether `clean_text` would replace nothing; joining a pair of surrogates keeps what was meant."""
    if is_clean(text):
        return True
    try:
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def truncate(text: str, max_bytes: int) -> str:
    """The longest beginning of the cleaned `text` that fits into `max_bytes` of UTF-8 and ends between characters.

    A code point is never cut, and neither is what a reader sees as one character: a letter with its accents, a joined
    emoji, a flag. A cluster of more than 32 code points is cut between code points. Raises ValueError for a negative
    `max_bytes`.
    """
    if max_bytes < 0:
        raise ValueError(f"max_bytes must be 0 or more, got {max_bytes}")
    text = clean_text(text)
    encoded = text[: max_bytes + 1].encode()
    if len(encoded) <= max_bytes:
        return text
    fits = len(encoded[:max_bytes].decode("utf-8", "ignore"))
    return text[: _border(text, fits)]


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _border(text: str, fits: int) -> int:
    """The last place up to `fits` where no cluster is cut; `fits` itself where there is none near enough."""
    for end in range(fits, max(fits - _LONGEST_CLUSTER, 0), -1):
        if not _joins(text, end):
            return end
    return fits if fits > _LONGEST_CLUSTER else 0


def _joins(text: str, at: int) -> bool:
    """Whether the code points on both sides of `at` belong to one visible character.

    The rules of Unicode annex 29 that matter in chat: marks, joiners, skin tones, flags, CR LF."""
    before, after = text[at - 1], text[at]
    if _ZERO_WIDTH_JOINER in (before, after):
        return True
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if (before, after) == ("\r", "\n"):
        return True
    if _is_flag_letter(before) and _is_flag_letter(after):
        flag_letters = sum(1 for _ in itertools.takewhile(_is_flag_letter, reversed(text[max(at - 256, 0) : at])))
        return flag_letters % 2 == 1
    return False


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
