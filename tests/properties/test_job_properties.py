from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from insika.errors import InvalidJob
from insika.jobs import TurnJob, parse_job
from insika.text import clean_text, is_clean

ANY_CHARACTER = st.characters(codec=None)
ANY_TEXT = st.text(ANY_CHARACTER, max_size=20)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
FIELDS = [
    "session",
    "agent",
    "text",
    "id",
    "tenant",
    "customer",
    "channel",
    "recipient",
    "vars",
    "queue_mode",
    "origin",
]
VALID_JOBS = st.fixed_dictionaries(
    {"session": NAMES, "agent": NAMES, "text": st.text(ANY_CHARACTER, min_size=1, max_size=30)},
    optional={
        "id": NAMES,
        "tenant": NAMES,
        "customer": NAMES,
        "channel": NAMES,
        "recipient": NAMES,
        "vars": st.dictionaries(
            NAMES.filter(lambda name: name not in ("thinking", "queue_mode")), JSON_VALUES, max_size=3
        ),
        "queue_mode": st.sampled_from(["followup", "collect", "steer", "interrupt"]),
        "origin": st.sampled_from(["customer", "engine", "scheduled"]),
        "sent_at": st.datetimes().map(lambda at: at.isoformat() + "Z"),
    },
)


def outcome(raw: Any) -> TurnJob | InvalidJob:
    try:
        return parse_job(raw)
    except InvalidJob as error:
        return error


@given(st.binary(max_size=200) | st.text(ANY_CHARACTER, max_size=200))
def test_anything_at_all_is_a_job_or_an_error_that_can_be_stored(raw: bytes | str) -> None:
    found = outcome(raw)
    assert isinstance(found, InvalidJob)
    assert found.field is not None
    assert is_clean(found.message)
    assert is_clean(found.field)


@given(st.dictionaries(st.sampled_from(FIELDS) | ANY_TEXT, JSON_VALUES, max_size=8))
def test_any_object_is_a_job_or_an_error_that_names_a_field(document: dict[str, Any]) -> None:
    found = outcome(document)
    assert json.dumps(document) is not None
    same = outcome(json.dumps(document).encode())
    if isinstance(found, InvalidJob):
        assert found.field
        assert is_clean(found.message)
        assert len(found.message) < 2_000
        assert isinstance(same, InvalidJob)
        assert (same.field, same.message) == (found.field, found.message)
    else:
        assert same == found


@given(VALID_JOBS)
def test_a_valid_job_is_read_as_it_was_written(document: dict[str, Any]) -> None:
    job = parse_job(json.dumps(document))
    assert job == parse_job(document)
    assert job.text == clean_text(document["text"])
    assert job.recipient == document.get("recipient", document["session"])
    for name in ("session", "agent", "id", "tenant", "customer", "channel", "queue_mode", "origin"):
        if name in document:
            assert getattr(job, name) == document[name]
    assert is_clean(json.dumps(job.vars, ensure_ascii=False))


@given(
    VALID_JOBS, st.sampled_from(FIELDS), st.none() | st.integers() | st.booleans() | st.lists(st.integers(), max_size=2)
)
def test_one_wrong_type_names_its_field(document: dict[str, Any], name: str, value: Any) -> None:
    found = outcome({**document, name: value})
    assert isinstance(found, InvalidJob)
    assert found.field == name
