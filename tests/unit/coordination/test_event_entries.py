"""What is written into the stream can be read again; what cannot be read is skipped and not quoted."""

from __future__ import annotations

import json

import pytest
from structlog.testing import capture_logs

from insika.coordination.redis.entries import Entry, read, written
from insika.events import Event
from tests.coordination_world import AT, event


def stored(each: Event) -> bytes:
    text = written(each)
    assert text is not None
    return text


def test_what_is_absent_takes_no_room():
    assert json.loads(stored(Event("content", AT, attempt=1))) == {
        "type": "content",
        "at": "2030-01-01T12:30:15.123456+00:00",
        "attempt": 1,
    }


def test_text_stays_readable_and_lone_surrogates_are_replaced():
    text = stored(event("Grüße ❤ \ud800 \0"))
    assert "Grüße ❤ \ufffd".encode() in text
    assert read(b"7-0", {b"before": b"5", b"event": text}).event is not None


def test_an_entry_knows_its_number_and_the_one_before():
    entry = read(b"1796004344874479-0", {b"before": b"1796004344874470", b"event": stored(event("x"))})
    assert (entry.seq, entry.before) == (1796004344874479, 1796004344874470)
    assert entry.event == event("x").numbered(1796004344874479)


@pytest.mark.parametrize(
    ("entry_id", "fields"),
    [
        (b"7-0", {}),
        (b"7-1", {b"before": b"5", b"event": stored(event("x"))}),
        (b"7-0", {b"before": b"", b"event": stored(event("x"))}),
        (b"7-0", {b"event": stored(event("x"))}),
        (b"7-0", {b"before": b"5", b"event": b"what-was-said"}),
        (b"7-0", {b"before": b"5", b"event": b"\xff"}),
        (b"7-0", {b"before": b"5", b"event": b'"what-was-said"'}),
        (b"7-0", {b"before": b"5", b"event": b'{"type":"content"}'}),
        (b"7-0", {b"before": b"5", b"event": b'{"type":"content","at":"2030-01-01T00:00:00"}'}),
        (b"7-0", {b"before": b"5", b"event": b'{"type":1,"at":"2030-01-01T00:00:00Z","data":"what-was-said"}'}),
    ],
)
def test_what_cannot_be_read_is_skipped_with_a_line_that_does_not_quote_it(entry_id, fields):
    with capture_logs() as log:
        assert read(entry_id, fields) == Entry(7, None, None)
    [line] = log
    assert (line["event"], line["entry"]) == ("event_unreadable", entry_id.decode())
    assert "what-was-said" not in str(line)


@pytest.mark.parametrize(
    ("before", "seen", "gap"),
    [
        (5, 5, False),
        (5, 6, False),
        (5, 4, True),
        (5, 0, True),
        (0, 0, False),
        (0, 3, True),
        (0, 9, False),
        (None, 3, False),
    ],
)
def test_a_gap_shows_by_the_number_before(before, seen, gap):
    assert Entry(10, before, None).follows_gap(seen) is gap
