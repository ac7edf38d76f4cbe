"""Log lines: one JSON object a line where nobody sits, and never the words of somebody."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
import structlog

from actors.logs import configure_logging
from insika.errors import LeaseLost

WORDS = "my card number is 4111"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def logged(stream: io.StringIO) -> list[Any]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_its_level_time_and_logger() -> None:
    stream = io.StringIO()
    early = structlog.get_logger("insika.outbox")
    configure_logging("info", stream)
    early.bind(delivery_id="d1").info("delivery_attempted", attempt=1)
    (line,) = logged(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "delivery_attempted",
        "level": "info",
        "logger": "insika.outbox",
        "delivery_id": "d1",
        "attempt": 1,
    }


def test_what_is_below_the_level_is_not_logged() -> None:
    stream = io.StringIO()
    configure_logging("warning", stream)
    structlog.get_logger("insika").info("nothing")
    logging.getLogger("aiohttp").info("nothing either")
    structlog.get_logger("insika").warning("something")
    assert [line["event"] for line in logged(stream)] == ["something"]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of debug, info, warning, error, got 'loud'"):
        configure_logging("loud", io.StringIO())


def test_an_error_is_told_by_its_type_and_place_and_not_by_its_words() -> None:
    stream = io.StringIO()
    configure_logging("info", stream)
    try:
        raise ValueError(WORDS) from KeyError(WORDS)
    except ValueError as error:
        structlog.get_logger("insika").error("actor died", exc_info=error)
        logging.getLogger("asyncio").exception("left alone\nfuture: <Task exception=%r>", error)
    assert WORDS not in stream.getvalue()
    ours, theirs = logged(stream)
    assert (ours["error"], ours["caused_by"]) == ("ValueError", "KeyError")
    assert ours["raised_at"][-1].endswith("test_an_error_is_told_by_its_type_and_place_and_not_by_its_words")
    assert (theirs["event"], theirs["error"]) == ("left alone", "ValueError")


def test_an_error_that_we_word_ourselves_is_told_in_its_words() -> None:
    stream = io.StringIO()
    configure_logging("info", stream)
    structlog.get_logger("insika").error("actor died", exc_info=LeaseLost("another worker has it"))
    assert logged(stream)[0]["error"] == "LeaseLost: another worker has it"


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_on_a_terminal_a_line_is_for_people(monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = Terminal()
    configure_logging("info", stream)
    structlog.get_logger("insika").warning("store_away", attempt=3)
    line = stream.getvalue()
    assert "store_away" in line
    assert not line.startswith("{")
    assert ("\x1b[" in line) is coloured


def test_pika_leaves_telling_of_lost_connections_to_those_who_own_them() -> None:
    stream = io.StringIO()
    configure_logging("debug", stream)
    logging.getLogger("pika.adapters.base_connection").error("TCP connection attempt failed")
    assert logged(stream) == []


def test_dramatiq_which_quotes_messages_says_nothing() -> None:
    stream = io.StringIO()
    configure_logging("debug", stream)
    logging.getLogger("dramatiq.worker.WorkerThread").error("Failed to process message %s", WORDS)
    assert logged(stream) == []
