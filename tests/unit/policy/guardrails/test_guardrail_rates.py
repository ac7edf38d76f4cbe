"""The measured rates are those that the documentation states, or better."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from insika.choices import Language, Strictness
from scripts.guardrail_rates.corpus import ORDINARY, Corpus, corpus_from, own_corpora
from scripts.guardrail_rates.rates import Meter, Rates, as_table

PAGE = Path(__file__).resolve().parents[4] / "docs" / "guardrails.md"
ROW = re.compile(
    r"^\| (ordinary|injection|abuse), (\w\w) \| (\d+) \| (\d+) \([\d.]+%\) \| (\d+) \([\d.]+%\) \| (\d+) \(", re.M
)
CORPORA = own_corpora()
DOCUMENTED = {
    (kind, language): Rates(kind, language, int(of), dict(zip(Strictness, map(int, counts), strict=True)))
    for kind, language, of, *counts in ROW.findall(PAGE.read_text("utf-8"))
}


@pytest.fixture(scope="module")
def meter() -> Meter:
    return Meter()


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: f"{corpus.kind}-{corpus.language}")
def test_a_rate_is_no_worse_than_documented(corpus: Corpus, meter: Meter) -> None:
    said, measured = DOCUMENTED[corpus.kind, corpus.language], meter.rates(corpus)
    assert measured.of == said.of, "the page is about another corpus: run scripts/guardrails"
    for strictness in Strictness:
        if corpus.kind == ORDINARY:
            assert measured.refused[strictness] <= said.refused[strictness], list(meter.blocked(corpus, strictness))
        else:
            assert measured.refused[strictness] >= said.refused[strictness], list(meter.passed(corpus, strictness))


def test_at_medium_no_ordinary_message_is_refused_and_most_attempts_are() -> None:
    for rates in DOCUMENTED.values():
        if rates.kind == ORDINARY:
            assert rates.refused[Strictness.MEDIUM] == 0
        else:
            assert rates.refused[Strictness.MEDIUM] >= 0.85 * rates.of


def test_every_language_is_measured_with_hundreds_of_ordinary_messages_in_all() -> None:
    assert {(corpus.kind, corpus.language) for corpus in CORPORA} == set(DOCUMENTED)
    assert {language for _, language in DOCUMENTED} == set(Language)
    assert sum(len(corpus.texts) for corpus in CORPORA if corpus.kind == ORDINARY) >= 600
    assert all(len(set(corpus.texts)) == len(corpus.texts) for corpus in CORPORA)


def test_texts_from_elsewhere_are_read_in_the_usual_forms(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(["one", {"text": "two"}, {"prompt": "three"}]))
    (tmp_path / "b.jsonl").write_text('{"text": "one"}\n\n"two"\n')
    (tmp_path / "c.txt").write_text("# about\none\\ntwo\n\nthree\n")
    texts = [corpus_from(tmp_path / name, "injection").texts for name in ("a.json", "b.jsonl", "c.txt")]
    assert texts == [("one", "two", "three"), ("one", "two"), ("one\ntwo", "three")]


def test_the_table_is_the_one_of_the_page() -> None:
    table = as_table(DOCUMENTED.values()).splitlines()
    assert [line for line in table if line not in PAGE.read_text("utf-8").splitlines()] == []
