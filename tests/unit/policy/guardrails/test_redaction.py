"""What is taken out of answers, and what stays."""

from __future__ import annotations

import re

import pytest

from insika.agents.guardrails import Guardrails, OwnRedaction
from insika.choices import Language, Strictness
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.policy.guardrails.redaction.kinds import COUNTS_FROM, REPLACEMENTS
from insika.policy.guardrails.redaction.secret_format import SecretFormat

LIBRARY = read_library()
GUARDS = Guards(LIBRARY)
KEY = "-----BEGIN {0}PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7v\nabc+/=\n-----END {0}PRIVATE KEY-----"


def said(text: str, **rules: object) -> str:
    return GUARDS.output(Guardrails(**rules)).redacted(text).text  # type: ignore[arg-type]


def found(text: str, **rules: object) -> dict[str, int]:
    return dict(GUARDS.output(Guardrails(**rules)).redacted(text).found)  # type: ignore[arg-type]


CARDS = [
    "4111111111111111",
    "4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "4111\u00a01111\u00a01111\u00a01111",
    "4111.1111.1111.1111",
    "5555 5555 5555 4444",
    "2223 0031 2200 3222",
    "3782 822463 10005",
    "378282246310005",
    "3056 930902 5904",
    "6011111111111117",
    "3530111333300000",
    "6200000000000005",
    "4000056655665556007",
    "４１１１ １１１１ １１１１ １１１１",
]


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize(
    "around", ["{}", "Your card {} is on file.", "card:{}.", "({})", "{}, {}", "12 {} 12/26", "x_{}", "№{}"]
)
def test_a_card_s_number_goes_and_what_stands_around_it_stays(card: str, around: str) -> None:
    for strictness in Strictness:
        assert said(around.replace("{}", card), strictness=strictness) == around.replace("{}", "[card number removed]")


@pytest.mark.parametrize(
    "text",
    [
        "order 4111111111111112",
        "order 41111111111111111",
        "A4111111111111111",
        "4111111111111111A",
        "0000 0000 0000 0000",
        "the number 3.4111111111111111",
        "4111 1111 1111 111",
        "4111-1111 1111-1111",
        "4111 1111\n1111 1111",
        "ISBN 978-3-16-148410-0",
        "EAN 4006381333931",
        "tracking 9400 1000 0000 0000 0000 00",
        "IMEI 49-015420-323751-8",
        "1234567890123456",
        "24.90 EUR, 1.299,00 EUR, 10:30, 2026-11-30, 30.11.2026, 1/2/2026",
        "call 030 901820 or write to support@shop.example",
        "parcel JD014600006281230704, UPS 1Z999AA10123456784",
        "size 36 37 38 39 40 41 42 43",
        "CNPJ 11.222.333/0001-81",
        "order 52998224725",
        "order 12345678Z",
        "part 219-09-999",
        "v1.2.3.4-12",
    ],
)
def test_what_only_looks_like_a_number_of_somebody_stays_at_medium(text: str) -> None:
    assert said(text) == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DE89 3704 0044 0532 0130 00", "iban"),
        ("DE89370400440532013000", "iban"),
        ("GB82WEST12345698765432", "iban"),
        ("BR15 0000 0000 0000 1093 2840 814P 2", "iban"),
        ("MT84MALT011000012345MTLCAST001S", "iban"),
        ("529.982.247-25", "national_id"),
        ("123-45-6789", "national_id"),
        ("1 85 05 78 006 084 91", "national_id"),
        ("185057800608491", "national_id"),
    ],
)
def test_numbers_of_accounts_and_people_go_from_medium_on(text: str, kind: str) -> None:
    around = f"It is {text}, yes."
    assert said(around, strictness=Strictness.LOW) == around
    for strictness in (Strictness.MEDIUM, Strictness.HIGH):
        assert said(around, strictness=strictness) == f"It is {REPLACEMENTS[kind]}, yes."


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("CPF: 52998224725", "CPF: [ID number removed]"),
        ("cpf do cliente 529982247-25.", "cpf do cliente [ID number removed]."),
        ("SSN 123456789", "SSN [ID number removed]"),
        ("his social security number is 123 45 6789", "his social security number is [ID number removed]"),
        ("Steuer-ID 36 574 261 809", "Steuer-ID [ID number removed]"),
        ("DNI 54362315K", "DNI [ID number removed]"),
        ("DNI: 54362315-k!", "DNI: [ID number removed]!"),
    ],
)
def test_a_bare_number_goes_when_its_name_stands_before_it(text: str, left: str) -> None:
    assert said(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "DE89 3704 0044 0532 0130 01",
        "XX89370400440532013000",
        "de89370400440532013000",
        "ADE89370400440532013000",
        "DE8937040044053201300012",
    ],
)
def test_what_is_no_account_number_stays(text: str) -> None:
    assert said(text) == text


@pytest.mark.parametrize("format", LIBRARY.secrets, ids=lambda format: format.prefixes[0])
def test_a_secret_goes_whole_at_every_strictness(format: SecretFormat) -> None:
    for example in format.examples:
        assert any(example.startswith(prefix) for prefix in format.prefixes)
        for strictness in Strictness:
            assert said(f'key="{example}", ok?', strictness=strictness) == f'key="{REPLACEMENTS[format.kind]}", ok?'
        for longer in (f"{example}Zz9", f"see {example}. Bye"):
            assert example[-6:] not in said(longer)
        assert said(f"Use {example}. Then") == f"Use {REPLACEMENTS[format.kind]}. Then"
    for text in format.passes:
        assert said(text) == text


def test_every_prefix_is_met_although_others_begin_alike() -> None:
    for format in LIBRARY.secrets:
        sample = (
            re.sub(r"[^A-Za-z0-9]", "", format.examples[0])[-1].lower() if format.alphabet.startswith("a-f") else "A"
        )
        filler = {"A-Z0-9": "A", "a-fA-F0-9": "a", "a-f0-9": "a"}.get(format.alphabet, sample)
        for prefix in format.prefixes:
            assert found(f"x {prefix}{filler * format.at_least} y") == {format.kind: 1}, prefix
            assert found(f"x {prefix}{filler * (format.at_least - 1)} y") == {}, prefix


@pytest.mark.parametrize("label", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_goes_with_all_that_is_in_it(label: str) -> None:
    assert said(f"Here:\n{KEY.format(label)}\nBye") == "Here:\n[private key removed]\nBye"
    assert said(f"{KEY.format(label)[:60]}") == "[private key removed]"


def test_a_private_key_without_an_end_takes_no_more_than_a_key_may_have() -> None:
    rest = said("-----BEGIN PRIVATE KEY-----" + "A" * 20_000 + " and more")
    assert rest.startswith("[private key removed]A")
    assert len(rest) < 4_000
    assert rest.endswith("A and more")


def test_public_keys_and_rulers_stay() -> None:
    for text in (
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "a\n----------\nb",
        "-----BEGIN",
        "--- BEGIN PRIVATE KEY ---",
    ):
        assert said(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgres://shop:hunter2@db.example/x", "postgres://[credentials removed]@db.example/x"),
        ("see https://ann:pass:word@example.com.", "see https://[credentials removed]@example.com."),
        ("http://localhost:9292/a@b", "http://localhost:9292/a@b"),
        ("https://example.com/?a=b:c@d", "https://example.com/?a=b:c@d"),
        ("https://user@example.com:80", "https://user@example.com:80"),
        ("time 10:30@home", "time 10:30@home"),
    ],
)
def test_name_and_password_in_an_address(text: str, left: str) -> None:
    assert said(text) == left


CONTACTS = "Write to support@shop.example or call +49 30 901820, (11) 98765-4321, 020 7946 0958 or 212-555-0123."


def test_the_shop_s_contacts_stay_until_somebody_asks_for_more() -> None:
    assert said(CONTACTS) == CONTACTS
    strict = said(CONTACTS, strictness=Strictness.HIGH)
    phone = REPLACEMENTS["phone"]
    assert strict == f"Write to {REPLACEMENTS['email']} or call {phone}, {phone}, {phone} or {phone}."
    assert said("CNPJ 11.222.333/0001-81", strictness=Strictness.HIGH) == "CNPJ [company number removed]"
    assert said("order 52998224725", strictness=Strictness.HIGH) == "order [ID number removed]"


def test_numbers_without_a_country_are_those_of_the_agent_s_languages() -> None:
    only_german = {"strictness": Strictness.HIGH, "languages": (Language.DE,)}
    assert said("call 030 901820", **only_german) == "call [phone number removed]"
    assert said("call 212-555-0123", **only_german) == "call 212-555-0123"


@pytest.mark.parametrize(
    "text",
    [
        "30.11.2026",
        "01.02.2026 at 10:30",
        "order 12345678",
        "24.90 EUR",
        "10-12 days",
        "a@b",
        "@shop",
        "name@",
        "2 + 2 = 4",
        "(2026)",
        "(030) 901820abc",
    ],
)
def test_even_then_ordinary_words_and_numbers_stay(text: str) -> None:
    assert said(text, strictness=Strictness.HIGH) == text


def test_a_kind_may_be_removed_and_a_value_kept() -> None:
    text = "IBAN DE89 3704 0044 0532 0130 00, card 4111 1111 1111 1111"
    assert found(text, remove=("iban",)) == {"card": 1}
    assert found(text, remove=("iban", "card")) == {}
    assert (
        said(text, keep=("DE89370400440532013000",)) == "IBAN DE89 3704 0044 0532 0130 00, card [card number removed]"
    )
    assert found("GB82WEST12345698765432", keep=("DE89370400440532013000",)) == {"iban": 1}
    strict = {"strictness": Strictness.HIGH, "keep": ("Support@Shop.Example", "+49 (30) 901820")}
    assert (
        said("support@shop.example, +49 30 901820, eve@shop.example", **strict)
        == "support@shop.example, +49 30 901820, [e-mail address removed]"
    )


def test_patterns_of_the_profile_s_own() -> None:
    own = (
        OwnRedaction(kind="order", pattern=r"\bORD-[0-9]{4,}\b", at_most=12, replacement="[order]"),
        OwnRedaction(kind="name", pattern="José|Müller"),
    )
    assert (
        said("ORD-1234 of José, XORD-1234, ORD-123456789012", redact=own)
        == "[order] of [removed], XORD-1234, ORD-123456789012"
    )
    assert found("ORD-1234 José José", redact=own) == {"order": 1, "name": 2}


def test_what_is_off_takes_nothing_out() -> None:
    assert found(f"4111111111111111 {KEY}", output=False, redact=(OwnRedaction(kind="a", pattern="4"),)) == {}
    assert said("4111111111111111", input=False) == "[card number removed]"


def test_counts_tell_kinds_and_nothing_of_what_was_found() -> None:
    redacted = GUARDS.output(Guardrails()).redacted(
        "4111111111111111 5555555555554444 sk-ant-api03-R2D2c3PO0bi1kEnObIaNaKiN"
    )
    assert redacted.found == {"card": 2, "access_key": 1}
    assert "4111" not in repr(redacted)


def test_every_kind_has_a_replacement_and_a_strictness() -> None:
    assert set(COUNTS_FROM) == set(REPLACEMENTS)
    assert {format.kind for format in LIBRARY.secrets} <= set(COUNTS_FROM)
    for replacement in REPLACEMENTS.values():
        assert said(replacement, strictness=Strictness.HIGH) == replacement
