"""Letters that look like Latin ones, and which.

Small and written out, because only letters matter that a reader takes for another: the whole table of Unicode
(https://www.unicode.org/Public/security/latest/confusables.txt, of which this is a selection) also turns m into rn and
1 into l. A text in another script becomes unreadable by it, which is fine: nobody but a pattern reads it.
"""

from __future__ import annotations

_LOOK_LIKE: dict[str, str] = {
    # Cyrillic, small and capital; capitals stand for the letter that the capital looks like
    "а": "a", "А": "a", "ӑ": "a", "В": "b", "Ь": "b", "ь": "b", "с": "c", "С": "c", "ԁ": "d", "ҁ": "c",
    "е": "e", "Е": "e", "ҽ": "e", "є": "e", "Є": "e", "һ": "h", "Н": "h", "Һ": "h", "і": "i", "І": "i", "ӏ": "l",
    "Ӏ": "i", "ј": "j", "Ј": "j", "к": "k", "К": "k", "қ": "k", "м": "m", "М": "m", "п": "n", "о": "o", "О": "o",
    "ө": "o", "р": "p", "Р": "p", "ԛ": "q", "г": "r", "ѕ": "s", "Ѕ": "s", "т": "t", "Т": "t", "ѵ": "v", "Ѵ": "v",
    "ԝ": "w", "ѡ": "w", "х": "x", "Х": "x", "у": "y", "У": "y", "ү": "y", "Ү": "y", "ғ": "f",
    # Greek
    "α": "a", "Α": "a", "Β": "b", "ε": "e", "Ε": "e", "Η": "h", "ι": "i", "Ι": "i", "ϳ": "j",
    "κ": "k", "Κ": "k", "Μ": "m", "η": "n", "Ν": "n", "ο": "o", "Ο": "o", "ρ": "p", "Ρ": "p", "τ": "t",
    "Τ": "t", "υ": "u", "ν": "v", "ω": "w", "χ": "x", "Χ": "x", "γ": "y", "Υ": "y", "Ζ": "z",
    # Armenian and Cherokee, as far as they are used for it
    "ա": "w", "հ": "h", "ո": "n", "օ": "o", "ս": "u", "ց": "g", "Ꭺ": "a", "Ꭼ": "e", "Ꭵ": "i", "Ꮪ": "s",
    # Latin that no decomposition leads back
    "ı": "i", "ɩ": "i", "ɪ": "i", "ɡ": "g", "ɢ": "g", "ɑ": "a", "ᴀ": "a", "ʙ": "b", "ᴄ": "c", "ᴅ": "d", "đ": "d",
    "ᴇ": "e", "ɛ": "e", "ə": "e", "ꜰ": "f", "ƒ": "f", "ʜ": "h", "ħ": "h", "ᴊ": "j", "ᴋ": "k", "ʟ": "l", "ł": "l",
    "ᴍ": "m", "ɴ": "n", "ŋ": "n", "ᴏ": "o", "ø": "o", "Ø": "o", "ɔ": "o", "ᴘ": "p", "ʀ": "r", "ꜱ": "s", "ᴛ": "t",
    "ŧ": "t", "ᴜ": "u", "ᴠ": "v", "ᴡ": "w", "ʏ": "y", "ᴢ": "z", "æ": "ae", "Æ": "ae", "œ": "oe", "Œ": "oe", "ß": "ss",
    "ẞ": "ss", "Đ": "d", "Ł": "l", "ð": "d", "þ": "p",
}  # fmt: skip

LOOKALIKES = str.maketrans(_LOOK_LIKE)


def _boxed(first: int) -> dict[int, str]:
    return {first + place: letter for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}


SYMBOLS = {**_boxed(0x1F130), **_boxed(0x1F150), **_boxed(0x1F170), **_boxed(0x1F1E6)}
"""Letters in squares and circles that have no decomposition, and flag letters."""
TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
"""Tag characters: nobody sees them, and models read them as the ASCII they stand for
(https://www.unicode.org/charts/PDF/UE0000.pdf)."""
