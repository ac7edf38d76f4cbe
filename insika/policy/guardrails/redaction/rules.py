"""Who looks through an agent's answers, by its guardrails."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from insika.agents.guardrails import Guardrails
from insika.choices import Language, Strictness
from insika.policy.guardrails.redaction.accounts import AccountFinder
from insika.policy.guardrails.redaction.contacts import EmailFinder, PhoneFinder
from insika.policy.guardrails.redaction.finding import Finder
from insika.policy.guardrails.redaction.kinds import COUNTS_FROM, REPLACEMENTS
from insika.policy.guardrails.redaction.numbers import BARE_NUMBERS, CARDS, PEOPLE, NumberFinder, NumberKind
from insika.policy.guardrails.redaction.own import OwnFinder
from insika.policy.guardrails.redaction.redactor import Redacted, StreamRedactor
from insika.policy.guardrails.redaction.secret_format import SecretFormat
from insika.policy.guardrails.redaction.secrets import KeyFinder, LoginFinder, SecretFinder


class OutputGuard:
    """What leaves an agent's answers, for one choice of rules. Making one takes a few milliseconds: keep it."""

    def __init__(self, finders: Sequence[Finder], replacements: dict[str, str], keep: Iterable[str]) -> None:
        self._finders = finders
        self._begins = re.compile("|".join(f"(?:{finder.begins})" for finder in finders) or "(?!)")
        self._replacements = replacements
        self._keep = frozenset(_compact(value) for value in keep)

    @classmethod
    def of(cls, rules: Guardrails, secrets: Iterable[SecretFormat]) -> OutputGuard:
        if not rules.output:
            return cls((), {}, ())
        own = {redaction.kind: redaction.replacement for redaction in rules.redact}
        return cls(list(_finders(rules, secrets)), {**REPLACEMENTS, **own}, rules.keep)

    def stream(self) -> StreamRedactor:
        return StreamRedactor(self._finders, self._replacements, self._keeps, self._begins)

    def redacted(self, text: str) -> Redacted:
        stream = self.stream()
        said = stream.feed(text) + stream.finish()
        return Redacted(said, stream.found)

    def _keeps(self, said: str) -> bool:
        return _compact(said) in self._keep


def _finders(rules: Guardrails, secrets: Iterable[SecretFormat]) -> Iterable[Finder]:
    def counts(kind: str) -> bool:
        return COUNTS_FROM[kind].covered_by(rules.strictness) and kind not in rules.remove

    yield from (OwnFinder(redaction) for redaction in rules.redact)
    if formats := [secret for secret in secrets if counts(secret.kind)]:
        yield SecretFinder(formats)
    if counts("private_key"):
        yield KeyFinder()
    if counts("credentials"):
        yield LoginFinder()
    if counts("iban"):
        yield AccountFinder()
    if numbers := [number for number in _numbers(rules.strictness) if counts(number.kind)]:
        yield NumberFinder(numbers)
    if counts("email"):
        yield EmailFinder()
    if counts("phone"):
        yield PhoneFinder(rules.languages or Language)


def _numbers(strictness: Strictness) -> Sequence[NumberKind]:
    return [*CARDS, *PEOPLE, *(BARE_NUMBERS if strictness is Strictness.HIGH else ())]


def _compact(said: str) -> str:
    return "".join(sign for sign in said.casefold() if sign.isalnum())
