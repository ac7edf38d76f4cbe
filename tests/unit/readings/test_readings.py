"""How a guard reads a text."""

from __future__ import annotations

import base64

import pytest

from insika.readings.folding import folded, folded_pattern, words
from insika.readings.reading import readings


def told(text: str) -> list[str]:
    return [reading.words.decode().strip() for reading in readings(text)]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Straße, GRÖSSE", "strasse, grosse"),
        ("ação não", "acao nao"),
        ("l'été", "l'ete"),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("раураl", "paypal"),
        ("i\u0307stanbul", "istanbul"),
        ("a\u200bb\u00adc\ufeffd\u2060e", "abcde"),
        ("👨‍👩‍👧", "👨👩👧"),
        ("🅰🄱ⓒ", "abc"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_folding(text: str, plain: str) -> None:
    assert folded(text) == plain


def test_folded_text_has_nothing_left_to_fold() -> None:
    for letter in map(chr, range(0x2FFF)):
        assert folded(folded(letter)) == folded(letter)


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("don't  stop, (now)!!!", " don t stop now ! "),
        ("ab_cd-ef/gh", " ab cd ef gh "),
        ("wait... what?!", " wait . what ! "),
        ("i g n o r e  this", " ignore this "),
        ("i.g.n.o.r.e", " ignore "),
        ("plan a b", " plan a b "),
        ("", "  "),
    ],
)
def test_words(text: str, apart: str) -> None:
    assert words(text) == apart


def test_a_plain_text_has_one_reading() -> None:
    for text in ("Where is my parcel?", "Order 10234, please!", "It costs $10", "5 % & more", "A-1, B-2"):
        assert len(told(text)) == 1, text


def test_digits_that_stand_for_letters_are_read_as_both() -> None:
    assert told("1gn0r3 th1s a11") == ["1gn0r3 th1s a11", "ignore this all"]
    assert "fuck" in told("f@ck f!ck")[-1] or told("sh!t")[-1] == "shit"


def test_entities_and_base64_are_read_as_what_they_say() -> None:
    assert told("&#104;ello there;")[1] == "hello there ;"
    hidden = base64.b64encode(b"good morning, dear world").decode()
    assert told(f"x {hidden}")[-1] == "good morning dear world"
    assert told("x " + base64.b64encode(bytes(range(128, 160))).decode())[-1] != ""


def test_base64_of_what_nobody_can_read_is_no_reading() -> None:
    assert len(told("x " + base64.b64encode(bytes(range(24))).decode().replace("A", "B"))) <= 2


def test_however_much_is_hidden_the_readings_are_few() -> None:
    hidden = base64.b64encode(b"good morning, dear world").decode()
    assert len(told(f"{hidden} " * 500)) <= 18


def test_lone_surrogates_break_nothing() -> None:
    assert told("a\ud800b")


def test_a_pattern_is_folded_as_texts_are_but_keeps_its_case() -> None:
    assert folded_pattern(r"\bAÇÃO\S+ straße") == r"\bACAO\S+ strasse"
    assert folded_pattern(r"\Bplain\b") == r"\Bplain\b"
