from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from insika.text import clean_text, is_clean, loses_nothing, truncate

PARTS = st.sampled_from(
    [
        "a",
        "é",
        "\0",
        "\ud83d",
        "\ude00",
        "\U0001f600",
        "\u0301",
        "\u200d",
        "\U0001f1e7",
        "\U0001f3ff",
        "\r",
        "\n",
        "\ufeff",
    ]
)
ANY_TEXT = st.lists(PARTS | st.characters(codec=None), max_size=60).map("".join)
SIZES = st.integers(min_value=0, max_value=120)


def reference(text: str) -> str:
    """One code unit at a time, as the Unicode Standard words it."""
    kept: list[str] = []
    at = 0
    while at < len(text):
        one, two = text[at], text[at + 1 : at + 2]
        if "\ud800" <= one <= "\udbff" and two and "\udc00" <= two <= "\udfff":
            kept.append(chr(0x10000 + ((ord(one) - 0xD800) << 10) + (ord(two) - 0xDC00)))
            at += 2
            continue
        kept.append("\ufffd" if one == "\0" or "\ud800" <= one <= "\udfff" else one)
        at += 1
    return "".join(kept)


@given(ANY_TEXT)
def test_cleaning_replaces_exactly_nul_and_lone_surrogates(text: str) -> None:
    cleaned = clean_text(text)
    assert cleaned == reference(text)
    assert is_clean(cleaned)
    assert clean_text(cleaned) == cleaned
    assert is_clean(text) == (cleaned == text)
    assert loses_nothing(text) == (cleaned.count("\ufffd") == text.count("\ufffd"))


@given(ANY_TEXT, SIZES)
def test_a_truncated_text_fits_and_is_a_beginning(text: str, max_bytes: int) -> None:
    cut = truncate(text, max_bytes)
    assert len(cut.encode()) <= max_bytes
    assert clean_text(text).startswith(cut)
    if len(clean_text(text).encode()) <= max_bytes:
        assert cut == clean_text(text)


@given(ANY_TEXT, SIZES)
def test_truncating_keeps_all_but_one_cluster(text: str, max_bytes: int) -> None:
    """What is given up is at most the cluster that did not fit: 32 code points of up to 4 bytes, and one cut point."""
    cleaned = clean_text(text)
    cut = truncate(text, max_bytes)
    if cut != cleaned:
        assert len(cut.encode()) > max_bytes - 4 * 33


@given(st.text(alphabet=st.characters(categories=["L", "N", "Zs"]), max_size=80), SIZES)
def test_text_without_clusters_is_filled_to_the_last_code_point(text: str, max_bytes: int) -> None:
    cut = truncate(text, max_bytes)
    if cut != text:
        assert len(cut.encode()) + len(text[len(cut)].encode()) > max_bytes


@given(ANY_TEXT, SIZES, SIZES)
def test_truncating_twice_is_truncating_to_the_smaller_size(text: str, one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert len(truncate(truncate(text, large), small).encode()) <= small
    assert truncate(truncate(text, small), large) == truncate(text, small)
