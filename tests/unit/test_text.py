from __future__ import annotations

import pytest

from insika.text import clean_text, counted, is_clean, loses_nothing, truncate

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
WAVE_DARK = "\U0001f44b\U0001f3ff"
FLAGS = "\U0001f1e7\U0001f1f7\U0001f1f5\U0001f1f9"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a\0b\0", "a\ufffdb\ufffd"),
        ("\ud800", "\ufffd"),
        ("x\udc00y", "x\ufffdy"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        ("\ufeffé\U0001f600\ufffe", "\ufeffé\U0001f600\ufffe"),
    ],
)
def test_only_what_cannot_be_stored_is_replaced(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned
    assert is_clean(text) == (text == cleaned)
    assert loses_nothing(text) == ("\ufffd" not in cleaned)


@pytest.mark.parametrize(
    ("text", "max_bytes", "kept"),
    [
        ("hello", 5, "hello"),
        ("hello", 4, "hell"),
        ("hello", 0, ""),
        ("é", 1, ""),
        ("aé", 2, "a"),
        ("aé", 3, "aé"),
        ("a\U0001f600b", 4, "a"),
        ("a\U0001f600b", 5, "a\U0001f600"),
        ("\ud83d\ude00", 4, "\U0001f600"),
        ("\0\0", 5, "\ufffd"),
        ("ae\u0301", 2, "a"),
        ("a" + FAMILY, 12, "a"),
        ("a" + WAVE_DARK, 5, "a"),
        (FLAGS, 8, FLAGS[:2]),
        (FLAGS, 12, FLAGS[:2]),
        ("a\r\nb", 2, "a"),
    ],
)
def test_a_cut_falls_between_characters(text: str, max_bytes: int, kept: str) -> None:
    assert truncate(text, max_bytes) == kept


def test_a_text_of_nothing_but_marks_is_cut_and_not_emptied() -> None:
    assert truncate("a" + "\u0301" * 100, 101) == "a" + "\u0301" * 50


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="got -1"):
        truncate("x", -1)


@pytest.mark.parametrize(
    ("count", "told"), [(1, "1 call"), (0, "0 calls"), (2, "2 calls"), (1.0, "1 call"), (0.5, "0.5 calls")]
)
def test_a_count_agrees_with_its_word(count: float, told: str) -> None:
    assert counted(count, "call") == told
