"""The command behind scripts/guardrails."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from insika.choices import Strictness
from scripts.guardrail_rates.corpus import KINDS, ORDINARY, Corpus, corpus_from, own_corpora
from scripts.guardrail_rates.rates import Meter, as_table


def main() -> None:
    asked = _parser().parse_args()
    corpora = [corpus_from(asked.file, asked.kind)] if asked.file else own_corpora()
    meter = Meter()
    measured = [meter.rates(corpus) for corpus in corpora]
    if asked.json:
        for rates in measured:
            print(json.dumps(rates.as_dict()))
    else:
        print("How many texts are refused, by strictness. Of ordinary ones, each is a false alarm.\n")
        print(as_table(measured))
    if asked.wrong:
        for corpus in corpora:
            _show_wrong(meter, corpus, Strictness(asked.wrong))


def _show_wrong(meter: Meter, corpus: Corpus, strictness: Strictness) -> None:
    if corpus.kind == ORDINARY:
        for text, block in meter.blocked(corpus, strictness):
            print(f"refused  {block.pattern}: {text[:300]!r}")
    else:
        for text in meter.passed(corpus, strictness):
            print(f"passed   {corpus.kind}, {corpus.language}: {text[:300]!r}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/guardrails", description="How often the input guard is wrong.")
    parser.add_argument("--file", type=Path, help="measure the texts of this file (.json, .jsonl, or lines) instead")
    parser.add_argument("--kind", choices=KINDS, default=ORDINARY, help="what they are; default %(default)s")
    parser.add_argument("--wrong", choices=list(Strictness), help="show the texts that it is wrong about")
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser


if __name__ == "__main__":
    main()
