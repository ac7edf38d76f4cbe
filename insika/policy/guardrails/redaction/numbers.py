"""Finds numbers that are known by their digits: of cards, and of people.

A number counts only when its check digits are right and it stands alone. Where one in a hundred ordinary numbers would
pass for it, its name must stand before it as well, unless `bare` numbers are to count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stdnum import luhn
from stdnum.br import cnpj, cpf
from stdnum.de import idnr
from stdnum.es import dni
from stdnum.fr import nir
from stdnum.us import ssn

from insika.policy.guardrails.redaction.finding import CONTEXT, Hit, Hold

SEPARATORS = r" \u00a0\u2007\u2009\u202f./\u2010\u2011\u2012\u2013-"
_S = f"[{SEPARATORS}]"
_BEGINS = re.compile(r"(?<![^\W_])\d")
_MAY_BE_ONE = re.compile(rf"\d{{2}}|[12]{_S}\d{{2}}{_S}")
"""No shape begins otherwise."""
_RUN = re.compile(rf"\d(?:{_S}{{0,2}}\d){{0,40}}")
_AFTER = 3
"""Characters after a run of digits that must be known before anything is said of it."""
_FRACTION = re.compile(r"(?<![\w.])\d{1,3}\.\Z")


@dataclass(frozen=True, slots=True)
class NumberKind:
    """`shapes` are tried in order; `name` (None: not needed) must stand shortly before the number."""

    kind: str
    shapes: Sequence[re.Pattern[str]]
    valid: Callable[[str], bool]
    name: re.Pattern[str] | None = None


def _shape(pattern: str) -> re.Pattern[str]:
    """`S` is a separator, `D` the same one again; nothing that belongs to a word may follow."""
    return re.compile(pattern.replace("S", f"({_S})", 1).replace("D", r"\1") + r"(?![^\W_])")


def _named(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b[^\d\n]{{0,16}}\Z", re.IGNORECASE)


_ISSUERS = re.compile(
    r"4\d{15}(?:\d{3})?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|6(?:011|4[4-9]\d|5\d\d)\d{12}|62\d{14,17}"
    r"|(?:50|5[6-8]|6[37])\d{14}|(?:606282|3841\d\d)\d{10}"
)
"""Which lengths go with which beginnings (ISO/IEC 7812; Visa, Mastercard, American Express, Diners Club, JCB, Discover,
UnionPay, Maestro and Elo, Hipercard). Without it one in ten order and tracking numbers would pass for a card."""


def _is_card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and len(set(digits)) > 1 and luhn.is_valid(digits)


_CARD = NumberKind(
    "card",
    [
        _shape(r"\d{4}S\d{4}D\d{4}D\d{4}D\d{3}"),
        _shape(r"\d{4}S\d{4}D\d{4}D\d{4}"),
        _shape(r"\d{4}S\d{6}D\d{5}"),
        _shape(r"\d{4}S\d{6}D\d{4}"),
        _shape(r"\d{14,19}"),
    ],
    _is_card,
)
_CPF_SHAPES = [_shape(r"\d{3}S?\d{3}D?\d{3}[-/ ]?\d{2}"), _shape(r"\d{11}")]
_SSN = r"ssn|social security(?: number| no\.?)?"
_PEOPLE = (
    NumberKind("national_id", [_shape(r"\d{3}\.\d{3}\.\d{3}-\d{2}")], cpf.is_valid),
    NumberKind("national_id", _CPF_SHAPES, cpf.is_valid, _named("cpf")),
    NumberKind("national_id", [_shape(r"\d{3}-\d{2}-\d{4}")], ssn.is_valid),
    NumberKind("national_id", [_shape(r"\d{3}S\d{2}D\d{4}"), _shape(r"\d{9}")], ssn.is_valid, _named(_SSN)),
    NumberKind(
        "national_id",
        [_shape(r"[12]S\d{2}D\d{2}D\d{2}D\d{3}D\d{3}D\d{2}"), _shape(r"[12]\d{12} ?\d{2}")],
        nir.is_valid,
    ),
    NumberKind(
        "national_id",
        [_shape(r"\d{2}S\d{3}D\d{3}D\d{3}"), _shape(r"\d{11}")],
        idnr.is_valid,
        _named(r"steuer-?id(?:entifikationsnummer)?|identifikationsnummer|idnr\.?|steuernummer|tax id"),
    ),
    NumberKind(
        "national_id",
        [_shape(r"\d{8}[- ]?[A-Za-z]"), _shape(r"\d{2}\.\d{3}\.\d{3}[- ]?[A-Za-z]")],
        dni.is_valid,
        _named(r"d\.?n\.?i|n\.?i\.?f|documento(?: de identidad)?"),
    ),
)
_BARE_PEOPLE = (
    NumberKind("national_id", [_shape(r"\d{11}")], cpf.is_valid),
    NumberKind("national_id", [_shape(r"\d{8}[- ]?[A-Z]")], dni.is_valid),
)
_COMPANIES = (NumberKind("company_id", [_shape(r"\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}"), _shape(r"\d{14}")], cnpj.is_valid),)

CARDS: Sequence[NumberKind] = (_CARD,)
PEOPLE: Sequence[NumberKind] = _PEOPLE
"""Brazil's CPF, the USA's SSN, France's NIR, Germany's IdNr and Spain's DNI."""
BARE_NUMBERS: Sequence[NumberKind] = (*_BARE_PEOPLE, *_COMPANIES)
"""What also counts when more false alarms are borne; and numbers of companies, which shops must show."""


class NumberFinder:
    begins = _BEGINS.pattern

    def __init__(self, kinds: Sequence[NumberKind]) -> None:
        self._kinds = kinds

    def first(self, text: str, at: int, ended: bool) -> Hit | Hold | None:
        for begins in _BEGINS.finditer(text, at):
            start = begins.start()
            run = _RUN.match(text, start)
            if run is None:
                continue
            if not ended and len(text) - run.end() < _AFTER:
                return Hold(start)
            if hit := self._at(text, start, run.end() + _AFTER):
                return hit
        return None

    def _at(self, text: str, start: int, end: int) -> Hit | None:
        if _MAY_BE_ONE.match(text, start) is None:
            return None
        before = text[max(0, start - CONTEXT) : start]
        if before.endswith(".") and _FRACTION.search(before):
            return None
        for number in self._kinds:
            if number.name is not None and not number.name.search(before):
                continue
            for shape in number.shapes:
                found = shape.match(text, start, end)
                if found is not None and number.valid(_plain(found[0])):
                    return Hit(start, found.end(), number.kind)
        return None


def _plain(written: str) -> str:
    """Without what stands between the digits, and the digits of any script as ASCII."""
    return "".join(
        str(unicodedata.decimal(sign)) if sign.isdecimal() else sign.upper() for sign in written if sign.isalnum()
    )
