"""However an answer is cut into pieces, what comes out is what comes out of the whole: nothing leaks at a border."""

from __future__ import annotations

import itertools
import re

from hypothesis import example, given
from hypothesis import strategies as st
from stdnum import luhn

from insika.agents.guardrails import Guardrails, OwnRedaction
from insika.choices import Strictness
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.policy.guardrails.redaction.finding import CONTEXT, Hit, Hold
from insika.policy.guardrails.redaction.redactor import StreamRedactor
from insika.policy.guardrails.redaction.secrets import LONGEST_KEY

LIBRARY = read_library()
GUARDS = Guards(LIBRARY)
OWN = (
    OwnRedaction(kind="order", pattern=r"\bORD-[0-9]{2,}\b", at_most=9, replacement="[order]"),
    OwnRedaction(kind="name", pattern=r"(?i)josé( maría)?", at_most=10, replacement=""),
)
RULES = [
    *(Guardrails(strictness=strictness) for strictness in Strictness),
    Guardrails(strictness=Strictness.HIGH, redact=OWN, keep=("DE89370400440532013000", "support@shop.example")),
]
OUTPUTS = [GUARDS.output(rules) for rules in RULES]
HELD_AT_MOST = 64 + 1 + 8 * 64 + 25 + 8
"""The longest e-mail address; nothing else is held for so long."""

WHOLE = [
    "4111 1111 1111 1111", "378282246310005", "3056-930902-5904", "4000056655665556007",
    "DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432",
    "529.982.247-25", "CPF 52998224725", "123-45-6789", "1 85 05 78 006 084 91", "11.222.333/0001-81",
    "AKIAIOSFODNN7EXAMPLE", "sk-ant-api03-R2D2c3PO0bi1kEnObIaNaKiN", "sk-1234567890abcdef1234567890abcdef",
    "sk-or-v1-0123456789abcdef0123456789abcdef", "glpat-aB3dE6gH9jK2mN5pQ8sT",
    "xoxb-1234567890-0987654321-AbCdEfGhIj.Kl", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\nabc\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "postgres://shop:hunter2@db.example/x", "support@shop.example", "a.b+c@sub.example.co.uk",
    "+49 30 901820", "(11) 98765-4321", "212-555-0123", "ORD-12345", "José María",
]  # fmt: skip
NOISE = [
    " ", "\n", ".", ", ", "-", "--", "(", "@", "://", "/", ":", "_", "é", "12", "1 ", "4", "sk-", "eyJ", "A", "GB",
    "-----BEGIN ", "-----END ", "word", "Your order 10234", "🙂",
]  # fmt: skip
PIECES = st.sampled_from(WHOLE).flatmap(
    lambda whole: st.one_of(
        st.just(whole),
        st.integers(0, len(whole)).map(lambda at: whole[:at]),
        st.integers(0, len(whole)).map(lambda at: whole[at:]),
    )
)
TEXTS = st.lists(st.one_of(PIECES, st.sampled_from(NOISE), st.text(max_size=3)), max_size=12).map("".join)


def pieces(text: str, cuts: list[int]) -> list[str]:
    borders = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(borders)]


def held(stream: StreamRedactor) -> int:
    return len(stream._text) - stream._at


@given(TEXTS, st.lists(st.integers(0, 10_000), max_size=30), st.sampled_from(OUTPUTS))
@example("sk-or-v1-0123456789abcdef0123456789abcdef", [4, 6, 7, 8], OUTPUTS[1])
@example("a@b.com.org", [7, 8], OUTPUTS[2])
def test_any_pieces_come_out_as_the_whole(text: str, cuts: list[int], output: object) -> None:
    whole = output.redacted(text)  # type: ignore[attr-defined]
    stream = output.stream()  # type: ignore[attr-defined]
    said = [stream.feed(piece) for piece in pieces(text, cuts)]
    assert "".join(said) + stream.finish() == whole.text
    assert stream.found == whole.found


@given(TEXTS, st.integers(0, 10_000), st.booleans(), st.sampled_from(OUTPUTS))
def test_where_nothing_begins_no_finder_finds_or_holds(text: str, cut: int, ended: bool, output: object) -> None:
    at = cut % (len(text) + 1)
    for finder in output._finders:  # type: ignore[attr-defined]
        met = finder.first(text, at, ended)
        if met is not None and met.start < len(text):
            begins = re.compile(finder.begins).search(text, at)
            assert begins is not None
            assert begins.start() <= met.start


@given(TEXTS, st.sampled_from(OUTPUTS))
def test_one_character_at_a_time_comes_out_as_the_whole_and_little_is_held(text: str, output: object) -> None:
    stream = output.stream()  # type: ignore[attr-defined]
    said = ""
    for sign in text:
        said += stream.feed(sign)
        assert held(stream) <= HELD_AT_MOST
        assert len(stream._text) <= HELD_AT_MOST + CONTEXT
    assert said + stream.finish() == output.redacted(text).text  # type: ignore[attr-defined]


@given(TEXTS, st.sampled_from(range(len(RULES))))
def test_a_finder_never_takes_back_what_it_has_said(text: str, which: int) -> None:
    for finder in OUTPUTS[which]._finders:
        last = finder.first(text, 0, True)
        assert not isinstance(last, Hold)
        for end in range(len(text)):
            early = finder.first(text[:end], 0, False)
            if isinstance(early, Hit):
                assert isinstance(last, Hit)
                assert (early.start, early.end, early.kind) == (last.start, last.end, last.kind)
            elif isinstance(early, Hold):
                assert last is None or last.start >= early.start
            else:
                assert last is None or last.start >= end


@st.composite
def cards(draw: st.DrawFn) -> str:
    body = draw(st.sampled_from(["4", "51", "55", "2221", "6011"]))
    body += "".join(draw(st.lists(st.sampled_from("0123456789"), min_size=15 - len(body), max_size=15 - len(body))))
    number = body + luhn.calc_check_digit(body)
    between = draw(st.sampled_from(["", " ", "-", "."]))
    return between.join(number[at : at + 4] for at in range(0, 16, 4))


@given(cards(), st.text(max_size=8), st.text(max_size=8), st.lists(st.integers(0, 60), max_size=8))
def test_no_card_s_number_leaks_at_any_border(card: str, before: str, after: str, cuts: list[int]) -> None:
    before, after = (f"{before} " if before else ""), (f", {after}" if after else "")
    stream = OUTPUTS[1].stream()
    said = "".join(stream.feed(piece) for piece in pieces(f"{before}{card}{after}", cuts)) + stream.finish()
    digits = "".join(sign for sign in card if sign.isdigit())
    assert digits not in "".join(sign for sign in said if sign.isdigit())
    assert stream.found.get("card") == 1


@given(st.integers(0, LONGEST_KEY + 300), st.integers(1, 5_000))
def test_a_key_of_any_length_is_dropped_as_it_comes(length: int, piece: int) -> None:
    text = f"-----BEGIN PRIVATE KEY-----{'A' * length}-----END PRIVATE KEY----- done"
    stream = OUTPUTS[0].stream()
    said = ""
    for first in range(0, len(text), piece):
        said += stream.feed(text[first : first + piece])
        assert held(stream) <= HELD_AT_MOST
    assert said + stream.finish() == OUTPUTS[0].redacted(text).text
    assert (said + stream.finish()).count("A") <= max(0, length + 25 - LONGEST_KEY)


@given(st.text(st.characters(categories=["L", "Zs", "P"], exclude_characters="-:@+()"), max_size=200))
def test_words_pass_at_once_but_for_their_last_few_letters(text: str) -> None:
    stream = OUTPUTS[1].stream()
    said = stream.feed(text)
    assert len(text) - len(said) <= 20
    assert said + stream.finish() == text
