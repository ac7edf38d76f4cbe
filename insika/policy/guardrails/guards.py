"""The guards of all agents: made for each choice of rules when it is first needed, and kept.

What makes a guard is only its rules, so two agents with the same ones share it.
"""

from __future__ import annotations

from functools import lru_cache

from insika.agents.guardrails import Guardrails, OwnPattern
from insika.choices import Language, Strictness
from insika.policy.guardrails.detector import Detector
from insika.policy.guardrails.library import GuardLibrary
from insika.policy.guardrails.pattern import chosen
from insika.policy.guardrails.redaction.rules import OutputGuard
from insika.policy.guardrails.verdict import ALLOW, Block, GuardVerdict

KEPT = 32
"""Choices of rules whose guards are kept. Each may come to hold some megabytes of automata."""
_Chosen = tuple[Strictness, tuple[Language, ...] | None, tuple[str, ...], tuple[OwnPattern, ...]]


class Guards:
    def __init__(self, library: GuardLibrary) -> None:
        self._library = library
        self._detector = lru_cache(KEPT)(self._new_detector)

    def verdict(self, text: str, rules: Guardrails) -> GuardVerdict:
        """Whether a person's text may enter a conversation."""
        if not rules.input:
            return ALLOW
        return self._detector((rules.strictness, rules.languages, rules.remove, rules.add)).look(text)

    def safe_reply(self, block: Block, rules: Guardrails) -> str:
        """What the person reads instead of an answer."""
        return self._library.safe_reply(block, rules)

    def output(self, rules: Guardrails) -> OutputGuard:
        """What is taken out of answers; of a turn, so keep it while the turn runs."""
        return OutputGuard.of(rules, self._library.secrets)

    def _new_detector(self, by: _Chosen) -> Detector:
        strictness, languages, remove, add = by
        rules = Guardrails(strictness=strictness, languages=languages, remove=remove, add=add)
        return Detector(chosen(self._library.patterns, rules))
