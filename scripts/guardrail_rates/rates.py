"""Counts what the guard refuses of a corpus, at each strictness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from insika.agents.guardrails import Guardrails
from insika.choices import Strictness
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.policy.guardrails.verdict import Block
from scripts.guardrail_rates.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Rates:
    """How many of `of` texts are refused. Of an ordinary corpus every one is a false alarm."""

    kind: str
    language: str
    of: int
    refused: Mapping[Strictness, int]

    def as_dict(self) -> dict[str, object]:
        refused = {str(strictness): count for strictness, count in self.refused.items()}
        return {"kind": self.kind, "language": self.language, "of": self.of, "refused": refused}


class Meter:
    def __init__(self) -> None:
        self._guards = Guards(read_library())

    def rates(self, corpus: Corpus) -> Rates:
        refused = {strictness: sum(1 for _ in self.blocked(corpus, strictness)) for strictness in Strictness}
        return Rates(corpus.kind, corpus.language, len(corpus.texts), refused)

    def blocked(self, corpus: Corpus, strictness: Strictness) -> Iterable[tuple[str, Block]]:
        """The texts that are refused, and why."""
        for text in corpus.texts:
            if isinstance(verdict := self._verdict(text, strictness), Block):
                yield text, verdict

    def passed(self, corpus: Corpus, strictness: Strictness) -> Iterable[str]:
        return (text for text in corpus.texts if not isinstance(self._verdict(text, strictness), Block))

    def _verdict(self, text: str, strictness: Strictness) -> object:
        return self._guards.verdict(text, Guardrails(strictness=strictness))


def as_table(measured: Iterable[Rates]) -> str:
    """Markdown, as the documentation holds it."""
    rows = ["| texts | | low | medium | high |", "|---|---|---|---|---|"]
    for rates in measured:
        shares = " | ".join(f"{count} ({count / rates.of:.1%})" for count in rates.refused.values())
        rows.append(f"| {rates.kind}, {rates.language} | {rates.of} | {shares} |")
    return "\n".join(rows)
