"""Finds e-mail addresses and telephone numbers. An answer to a customer may well hold the shop's own, so these count
only where somebody asked for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import phonenumbers

from insika.choices import Language
from insika.policy.guardrails.redaction.finding import Hit, Hold

_LOCAL = r"[A-Za-z0-9._%+\-]"
_ADDRESS = re.compile(
    rf"(?<!{_LOCAL}){_LOCAL}{{1,64}}@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{{0,62}})\.){{1,8}}[A-Za-z]{{2,24}}(?![A-Za-z0-9])"
)
_MAY_BE_ADDRESS = re.compile(rf"(?<!{_LOCAL}){_LOCAL}{{1,64}}(?:@[A-Za-z0-9.\-]{{0,538}})?\Z")
_ADDRESS_AT_MOST = 64 + 1 + 8 * 64 + 25


class EmailFinder:
    begins = _LOCAL

    def first(self, text: str, at: int, ended: bool) -> Hit | Hold | None:
        held = None if ended else _MAY_BE_ADDRESS.search(text, max(at, len(text) - _ADDRESS_AT_MOST))
        address = _ADDRESS.search(text, at) if "@" in text[at:] else None
        if address is not None and (held is None or address.start() < held.start()):
            return Hit(address.start(), address.end(), "email")
        return None if held is None else Hold(held.start())


REGIONS: dict[Language, Sequence[str]] = {
    Language.EN: ("US", "GB"),
    Language.PT: ("BR", "PT"),
    Language.ES: ("ES", "MX", "AR"),
    Language.DE: ("DE", "AT", "CH"),
    Language.FR: ("FR", "BE"),
}
"""Where a number without a country's code may belong."""
_BETWEEN = r"(?:[ \u00a0\u202f./\u2010-\u2013-]|\)[ /-]?| ?\()"
_PHONE_BEGINS = re.compile(r"(?<![\w+])(?:\+|\()?\d")
_PHONE = re.compile(rf"(?:\+|\()?\d(?:{_BETWEEN}?\d){{0,19}}")
_PHONE_MAY_BEGIN = re.compile(r"(?<![\w+])[+(]\Z")
_AMERICAN = re.compile(r"\d{3}[-. ]\d{3}[-. ]\d{4}")
_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}")
_AFTER = 4
_NATIONAL_DIGITS = range(7, 13)


class PhoneFinder:
    begins = rf"{_PHONE_BEGINS.pattern}|{_PHONE_MAY_BEGIN.pattern}"

    def __init__(self, languages: Iterable[Language]) -> None:
        self._regions = [region for language in languages for region in REGIONS[language]]

    def first(self, text: str, at: int, ended: bool) -> Hit | Hold | None:
        begun = None if ended else _PHONE_MAY_BEGIN.search(text, max(at, len(text) - 1))
        for begins in _PHONE_BEGINS.finditer(text, at):
            start = begins.start()
            run = _PHONE.match(text, start)
            if run is None:
                continue
            if not ended and len(text) - run.end() < _AFTER:
                return Hold(start)
            alone = run.end() == len(text) or not text[run.end()].isalnum()
            if alone and self._is_number(run[0]):
                return Hit(start, run.end(), "phone")
        return None if begun is None else Hold(begun.start())

    def _is_number(self, written: str) -> bool:
        """Only a whole run of digits is one: a part of a longer number must not pass for it and hide the rest."""
        if written.startswith("+"):
            return _is_valid(written, None)
        if written.startswith("00"):
            return _is_valid(f"+{written[2:]}", None)
        if sum(sign.isdecimal() for sign in written) not in _NATIONAL_DIGITS or _DATE.fullmatch(written):
            return False
        if written[0] in "(0":
            return any(_is_valid(written, region) for region in self._regions)
        return "US" in self._regions and _AMERICAN.fullmatch(written) is not None and _is_valid(written, "US")


def _is_valid(written: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(written, region))
    except phonenumbers.NumberParseException:
        return False
