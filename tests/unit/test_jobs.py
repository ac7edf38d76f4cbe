from __future__ import annotations

import json
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from insika.choices import Origin, QueueMode
from insika.errors import InvalidJob
from insika.jobs import MAX_BODY_BYTES, MAX_TEXT_BYTES, TurnJob, digest, parse_job, session_named, turn_key

SMALLEST: dict[str, Any] = {"session": "s-1", "agent": "support", "text": "hello"}
WHOLE: dict[str, Any] = {
    **SMALLEST,
    "id": "m-1",
    "tenant": "shop",
    "customer": "c-9",
    "channel": "whatsapp",
    "recipient": "+5511",
    "vars": {"name": "Ana", "depth": [1, {"a": None}]},
    "queue_mode": "steer",
    "origin": "scheduled",
    "sent_at": "2030-01-31T12:00:00.25-03:00",
}


def refused(raw: Any) -> InvalidJob:
    with pytest.raises(InvalidJob) as caught:
        parse_job(raw)
    assert caught.value.type == "invalid_job"
    # Nothing of the parsers' own errors, which quote what they read, may be printed with a traceback.
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value


def test_the_smallest_job_gets_the_defaults_of_the_contract() -> None:
    job = parse_job(json.dumps(SMALLEST).encode())
    assert job == TurnJob(session="s-1", agent="support", text="hello", recipient="s-1")
    assert (job.id, job.tenant, job.customer, job.channel) == (None, "", None, None)
    assert (job.vars, job.queue_mode, job.origin, job.sent_at) == ({}, None, Origin.CUSTOMER, None)


def test_every_field_is_read() -> None:
    assert parse_job(json.dumps(WHOLE).encode()) == TurnJob(
        session="s-1",
        agent="support",
        text="hello",
        recipient="+5511",
        id="m-1",
        tenant="shop",
        customer="c-9",
        channel="whatsapp",
        vars={"name": "Ana", "depth": [1, {"a": None}]},
        queue_mode=QueueMode.STEER,
        origin=Origin.SCHEDULED,
        sent_at=datetime(2030, 1, 31, 15, 0, 0, 250_000, tzinfo=UTC),
    )


def test_bytes_text_and_object_are_the_same_job() -> None:
    text = json.dumps(WHOLE)
    job = parse_job(text)
    assert job == parse_job(text.encode()) == parse_job(WHOLE) == parse_job(MappingProxyType(WHOLE))
    assert parse_job(b"\xef\xbb\xbf" + text.encode()) == job


def test_a_job_is_a_copy_of_the_object_it_was_read_from() -> None:
    job = parse_job(WHOLE)
    assert job.vars is not WHOLE["vars"]
    assert job.vars["depth"] is not WHOLE["vars"]["depth"]


@pytest.mark.parametrize("name", ["session", "agent", "text"])
def test_a_required_field_is_named(name: str) -> None:
    error = refused({key: value for key, value in SMALLEST.items() if key != name})
    assert error.field == name
    assert error.message.startswith(f"{name}: expected ")
    assert error.message.endswith("got nothing")


@pytest.mark.parametrize("name", sorted(WHOLE))
@pytest.mark.parametrize("value", [None, 5, True, 1.5, [], ["x"]])
def test_a_wrong_type_names_the_field_and_what_came(name: str, value: Any) -> None:
    error = refused({**WHOLE, name: value})
    assert error.field == name
    assert "expected" in error.message
    assert "got " in error.message


@pytest.mark.parametrize("name", sorted(set(WHOLE) - {"vars"}))
def test_an_object_or_an_empty_string_is_no_text(name: str) -> None:
    assert refused({**WHOLE, name: {}}).field == name
    assert refused({**WHOLE, name: ""}).field == name


@pytest.mark.parametrize(
    ("name", "longest"),
    [
        ("session", 256),
        ("agent", 256),
        ("id", 128),
        ("tenant", 256),
        ("customer", 256),
        ("channel", 256),
        ("recipient", 1024),
    ],
)
def test_names_are_bounded_in_characters(name: str, longest: int) -> None:
    assert getattr(parse_job({**WHOLE, name: "é" * longest}), name) == "é" * longest
    error = refused({**WHOLE, name: "é" * (longest + 1)})
    assert error.field == name
    assert f"got a string of {longest + 1} characters" in error.message


def test_text_is_bounded_in_bytes() -> None:
    assert len(parse_job({**SMALLEST, "text": "é" * (MAX_TEXT_BYTES // 2)}).text) == MAX_TEXT_BYTES // 2
    error = refused({**SMALLEST, "text": "é" * (MAX_TEXT_BYTES // 2) + "a"})
    assert error.field == "text"
    assert f"got a string of {MAX_TEXT_BYTES + 1} bytes" in error.message
    assert parse_job({**SMALLEST, "text": " "}).text == " "


def test_a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_not() -> None:
    room = MAX_BODY_BYTES - len(json.dumps({**SMALLEST, "vars": {"x": ""}}, ensure_ascii=False).encode())
    body = json.dumps({**SMALLEST, "vars": {"x": "y" * room}})
    assert len(parse_job(body.encode()).vars["x"]) == room
    for raw in (body.encode() + b" ", body + " ", {**SMALLEST, "vars": {"x": "y" * (room + 8)}}):
        error = refused(raw)
        assert error.field == "body"
        assert str(MAX_BODY_BYTES) in error.message


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "expected JSON"),
        (b"{", "expected JSON"),
        (b"not json", "expected JSON"),
        (b'{"session": NaN}', "NaN"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"vars":' * 20_000, "nested too deeply"),
        (b"\xff\xfe", "expected UTF-8, got byte 0"),
        (b'{"session": "\xc3"}', "expected UTF-8, got byte 13"),
        (b"[]", "got a list"),
        (b"null", "got null"),
        (b'"x"', "got a string"),
        (b"5", "got a number"),
    ],
)
def test_what_is_no_object_at_all_names_the_body(raw: bytes, why: str) -> None:
    error = refused(raw)
    assert error.field == "body"
    assert why in error.message


def test_values_that_json_does_not_have_are_named_by_path() -> None:
    assert refused(json.dumps({**SMALLEST, "vars": {"x": 1}}).replace("1}", "1e999}")).field == "vars.x"
    assert refused({**SMALLEST, "vars": {"a": [0, float("nan")]}}).field == "vars.a.1"
    assert refused({**SMALLEST, "vars": {"a": {1: 2}}}).field == "vars.a.1"
    assert refused({**SMALLEST, "vars": {"a": object()}}).field == "vars.a"


def test_depth_within_vars_is_bounded() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = {"d": deep}
    assert refused({**SMALLEST, "vars": deep}).field.startswith("vars.d")  # type: ignore[union-attr]
    assert refused(json.dumps({**SMALLEST, "vars": deep})).field.startswith("vars.d")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ('{"session": "a", "session": "b", "agent": "x", "text": "t"}', "session"),
        ('{"session": "a", "agent": "x", "text": "t", "vars": {"k": {"q": 1, "q": 2}}}', "vars.k.q"),
    ],
)
def test_a_key_given_twice_is_refused(raw: str, field: str) -> None:
    error = refused(raw)
    assert error.field == field
    assert "more than once" in error.message


def test_an_unknown_field_is_named_with_the_one_that_may_be_meant() -> None:
    error = refused({**SMALLEST, "tennant": "x"})
    assert error.field == "tennant"
    assert error.message == "tennant: a turn job has no such field; did you mean tenant?"


@pytest.mark.parametrize("name", ["queue_mode", "origin"])
def test_an_unknown_word_is_refused_with_those_that_are_known(name: str) -> None:
    error = refused({**SMALLEST, name: "whatever"})
    assert error.field == name
    assert "expected one of " in error.message


def test_all_mistakes_are_told_and_the_first_is_the_field() -> None:
    error = refused({"session": "", "agent": 5, "text": None, "queue_mode": "x", "origin": "y", "id": "", "extra": 1})
    assert error.field == "session"
    for part in ("agent: ", "text: ", "and 2 more"):
        assert part in error.message


def test_what_the_person_wrote_is_in_no_error() -> None:
    secret = "my card is 4111"
    for raw in (
        {**SMALLEST, "text": [secret]},
        {**SMALLEST, "text": secret * 10_000},
        {**SMALLEST, "queue_mode": secret},
        {**SMALLEST, "sent_at": secret},
        {**SMALLEST, "vars": secret},
        {**SMALLEST, "vars": {"thinking": secret}},
        {**SMALLEST, "session": secret * 100},
        json.dumps({**SMALLEST, "text": secret})[:-1],
        f'{{"text": "{secret}\n"}}',
    ):
        assert "4111" not in str(refused(raw))


def test_text_and_vars_are_cleaned_and_the_job_runs() -> None:
    job = parse_job(
        rb'{"session": "s", "agent": "a", "text": "h\u0000i\ud83d", "vars": {"k": ["\udc00", "\ud83d\ude00"]}}'
    )
    assert job.text == "h\ufffdi\ufffd"
    assert job.vars == {"k": ["\ufffd", "\U0001f600"]}
    assert parse_job({**SMALLEST, "text": "\0"}).text == "\ufffd"


def test_a_pair_of_surrogates_is_the_character_it_stands_for() -> None:
    job = parse_job({**WHOLE, "session": "\ud83d\ude00", "text": "\ud83d\ude00"})
    assert (job.session, job.text) == ("\U0001f600", "\U0001f600")


def test_what_is_replaced_counts_as_one_byte_so_that_the_job_runs_now_and_again() -> None:
    longest = parse_job({**SMALLEST, "text": "\0" * MAX_TEXT_BYTES}).text
    assert longest == "\ufffd" * MAX_TEXT_BYTES
    assert parse_job({**SMALLEST, "text": longest}).text == longest
    error = refused({**SMALLEST, "text": "\0" * (MAX_TEXT_BYTES + 1)})
    assert f"got a string of {MAX_TEXT_BYTES + 1} bytes" in error.message


@pytest.mark.parametrize("name", ["session", "agent", "id", "tenant", "customer", "channel", "recipient"])
@pytest.mark.parametrize("bad", ["a\0", "\ud800"])
def test_a_name_that_would_become_another_name_is_refused(name: str, bad: str) -> None:
    error = refused({**WHOLE, name: bad})
    assert error.field == name
    assert "NUL or a lone surrogate" in error.message


def test_a_key_that_would_become_another_key_is_refused() -> None:
    error = refused({**SMALLEST, "vars": {"a": {"k\0": 1}}})
    assert error.field == "vars.a.k\ufffd"
    error.field.encode()


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        ("2030-01-31T12:00:00Z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31t12:00:00z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31 12:00:00+02:00", datetime(2030, 1, 31, 10, tzinfo=UTC)),
        ("2030-01-31T12:00:00.123456789-00:00", datetime(2030, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC)),
    ],
)
def test_sent_at_is_read_as_rfc_3339_has_it(given: str, moment: datetime) -> None:
    assert parse_job({**SMALLEST, "sent_at": given}).sent_at == moment


@pytest.mark.parametrize(
    "given",
    [
        "2030-01-31T12:00:00",
        "2030-01-31",
        "2030-02-31T12:00:00Z",
        "2030-01-31T24:00:01Z",
        "2030-01-31T12:00:61Z",
        "2030-01-31T12:00Z",
        "20300131T120000Z",
        "2030-W05-4T12:00:00Z",
        "2030-01-31T12:00:00+0200",
        "2030-01-31T12:00:00+25:00",
        "2030-01-31T12:00:00Z\n",
        "٢030-01-31T12:00:00Z",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:60Z",
        "1893456000",
    ],
)
def test_sent_at_is_refused_where_rfc_3339_has_no_such_time(given: str) -> None:
    assert refused({**SMALLEST, "sent_at": given}).field == "sent_at"


@pytest.mark.parametrize(
    ("vars", "field"),
    [
        ({"queue_mode": "sometimes"}, "vars.queue_mode"),
        ({"thinking": 3}, "vars.thinking"),
        ({"__llm__": {"thinking": "loud"}}, "vars.__llm__.thinking"),
        ({"__llm__": "low"}, "vars.__llm__"),
    ],
)
def test_vars_that_mean_something_are_checked(vars: dict[str, Any], field: str) -> None:
    assert refused({**SMALLEST, "vars": vars}).field == field


def test_the_digest_is_that_of_the_text_alone() -> None:
    job = parse_job(SMALLEST)
    assert digest(job) == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert digest(parse_job({**WHOLE, "text": "hello"})) == digest(job)
    assert digest(parse_job({**SMALLEST, "text": "hello "})) != digest(job)


def test_the_turn_key_tells_apart_all_that_must_not_share_a_turn() -> None:
    keys = {
        turn_key("a", "b", "c"),
        turn_key("x", "b", "c"),
        turn_key("a", "x", "c"),
        turn_key("a", None, "c"),
        turn_key("a", "None", "c"),
        turn_key("a", "b", "x"),
        turn_key("ab", "", "c"),
        turn_key("a", "b", "c", Origin.ENGINE),
        turn_key("a", "b", "c", Origin.SCHEDULED),
    }
    assert len(keys) == 9
    assert turn_key("a", "b", "c") == turn_key("a", "b", "c", Origin.CUSTOMER)


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (b'{"session": "s"}', ("", "s")),
        (b'\xef\xbb\xbf{"session": "s", "tenant": "t"}', ("t", "s")),
        (b'{"session": "s", "tenant": null}', ("", "s")),
        (b'{"session": 1}', None),
        (b'{"session": "s", "tenant": 1}', None),
        (b'["session"]', None),
        (b"\xff", None),
        (b"[" * 100_000, None),
        (b"", None),
    ],
)
def test_the_session_of_a_job_is_known_without_reading_it(raw: bytes, named: tuple[str, str] | None) -> None:
    assert session_named(raw) == named
