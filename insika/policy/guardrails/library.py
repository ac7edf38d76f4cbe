"""What comes with Insika: patterns, the replies to those who meet one, and the formats of secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from insika.agents.guardrails import DEFAULT, Guardrails
from insika.choices import Language
from insika.policy.guardrails.pattern import Pattern
from insika.policy.guardrails.redaction.kinds import COUNTS_FROM
from insika.policy.guardrails.redaction.secret_format import SecretFormat
from insika.policy.guardrails.verdict import Block


@dataclass(frozen=True, slots=True)
class GuardLibrary:
    """`replies` by language and category; every language has one for each category and a default."""

    patterns: tuple[Pattern, ...]
    replies: Mapping[str, Mapping[str, str]]
    secrets: tuple[SecretFormat, ...]

    @property
    def removable(self) -> Sequence[str]:
        """What a profile may name in `remove`: ids of patterns, and kinds of what is taken out of answers."""
        return [*(pattern.id for pattern in self.patterns), *COUNTS_FROM]

    def safe_reply(self, block: Block, rules: Guardrails) -> str:
        """What the person reads instead of an answer: the profile's reply for the category, else its default, else
        ours, in the language of what was found. Where that is none, in the profile's first language, else English."""
        given = rules.responses.get(block.category) or rules.responses.get(DEFAULT)
        if given:
            return given
        first = rules.languages[0] if rules.languages else Language.EN
        ours = self.replies.get(block.language) or self.replies[str(first)]
        return ours.get(block.category, ours[DEFAULT])
