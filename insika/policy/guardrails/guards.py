"""The guards of all agents: made for each choice of rules when it is first needed, and kept.

What makes a guard is only its rules, so two agents with the same ones share it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache

from insika.agents.guardrails import Guardrails
from insika.policy.guardrails.detector import Detector
from insika.policy.guardrails.library import GuardLibrary
from insika.policy.guardrails.pattern import chosen
from insika.policy.guardrails.redaction.rules import OutputGuard
from insika.policy.guardrails.verdict import ALLOW, Block, GuardVerdict

KEPT = 32
"""Choices of rules whose guards are kept. Each may come to hold some megabytes of automata."""


class Guards:
    def __init__(self, library: GuardLibrary) -> None:
        self._library = library
        self._detector = lru_cache(KEPT)(self._new_detector)
        self._output = lru_cache(KEPT)(self._new_output)

    def verdict(self, text: str, rules: Guardrails) -> GuardVerdict:
        """Whether a person's text may enter a conversation."""
        if not rules.input:
            return ALLOW
        return self._detector(_Choice(rules, (rules.strictness, rules.languages, rules.remove, rules.add))).look(text)

    def safe_reply(self, block: Block, rules: Guardrails) -> str:
        """What the person reads instead of an answer."""
        return self._library.safe_reply(block, rules)

    def output(self, rules: Guardrails) -> OutputGuard:
        """What is taken out of answers."""
        by = (rules.output, rules.strictness, rules.languages, rules.remove, rules.redact, rules.keep)
        return self._output(_Choice(rules, by))

    def _new_detector(self, choice: _Choice) -> Detector:
        return Detector(chosen(self._library.patterns, choice.rules))

    def _new_output(self, choice: _Choice) -> OutputGuard:
        return OutputGuard.of(choice.rules, self._library.secrets)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Rules, as far as they matter: two that agree in `by` have the same guard."""

    rules: Guardrails = field(compare=False)
    by: Hashable = None
