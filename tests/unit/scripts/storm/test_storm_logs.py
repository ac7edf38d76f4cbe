"""What a storm takes for an error in a log, and what it does not: lines that a kill has cut."""

from __future__ import annotations

import json

from scripts.storm.logs import unforeseen

FINE = json.dumps({"event": "turn", "level": "info", "nested": {"a": {"b": 1}}})
READY = json.dumps({"process": "worker", "event": "ready", "level": "info"})
ERROR = json.dumps({"event": "broken", "level": "error"})


def found_in(tmp_path, text):
    (tmp_path / "worker-1.log").write_text(text)
    return [entry["line"] for entry in unforeseen(tmp_path)]


def test_what_is_in_order_is_no_error(tmp_path):
    assert found_in(tmp_path, f"{FINE}\n{READY}\n") == []


def test_an_error_and_a_traceback_are(tmp_path):
    assert found_in(tmp_path, f"{FINE}\n{ERROR}\nTraceback (most recent call last):\n") == [
        ERROR,
        "Traceback (most recent call last):",
    ]


def test_a_line_that_a_kill_has_cut_is_none_whatever_the_next_process_writes_behind_it(tmp_path):
    for cut in (1, 10, len(FINE) - 1):
        assert found_in(tmp_path, f"{FINE}\n{FINE[:cut]}{READY}\n{FINE}\n") == []
        assert found_in(tmp_path, f"{FINE}\n{FINE[:cut]}") == []


def test_what_stands_behind_a_cut_line_is_looked_at(tmp_path):
    line = f"{FINE[:12]}{ERROR}"
    assert found_in(tmp_path, f"{line}\n{FINE}\n") == [line]
    assert found_in(tmp_path, f"{FINE[:12]}Fatal Python error\n{FINE}\n") == [f"{FINE[:12]}Fatal Python error"]


def test_what_begins_like_no_line_of_ours_is_an_error_also_at_the_end(tmp_path):
    assert found_in(tmp_path, f"{FINE}\nSegmentation fault") == ["Segmentation fault"]
