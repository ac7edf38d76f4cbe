"""Rooms stay small, say what they are for, and hold nothing of the machine they were written on."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOUSES = ("insika", "outbox", "actors")
FILE_LINES = 400
FUNCTION_LINES = 70

# Written in pieces, so that this file does not find itself.
FORBIDDEN = {
    "a path of one machine": re.compile("/" + r"(?:work|root|farm)/"),
    "the host of a package index": re.compile("|".join(["pypi" + r"\.org", "python" + "hosted", "npmjs" + r"\.org"])),
    "work left over": re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "NotImpl" + "ementedError"]) + r")\b"),
}


def tracked() -> list[str]:
    """What git keeps: the paths of all files, from the root of the clone."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone, so nothing is tracked")
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(path for path in listing.split("\0") if path and (ROOT / path).is_file())


def python_files(*folders: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {path: ast.parse((ROOT / path).read_text(encoding="utf-8")) for path in python_files(*HOUSES)}


def test_the_houses_are_there(trees):
    assert len(trees) > 60


def test_a_file_can_be_read_in_one_sitting():
    lengths = {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in python_files(*HOUSES)}
    assert {path: lines for path, lines in lengths.items() if lines > FILE_LINES} == {}


def test_a_function_fits_the_eye(trees):
    long = {
        f"{path}:{node.lineno} {node.name}": lines
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


def test_every_file_says_what_it_is_for(trees):
    assert [path for path, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_only_a_store_speaks_sql():
    """A statement written elsewhere is a second door to the store."""
    statement = re.compile(r"\b(?:INSERT INTO|DELETE FROM|UPDATE \w+ SET|SELECT .* FROM)\b")
    outside = [path for path in python_files(*HOUSES) if not path.startswith(("insika/storage/", "outbox/"))]
    assert [path for path in outside if statement.search((ROOT / path).read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_tracked_holds(what):
    found = [
        f"{path}:{number}"
        for path in tracked()
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert found == []


def test_only_the_clock_knows_the_time():
    """Everything else is told it, so that a test can tell it too."""
    asks = re.compile(r"\b(?:datetime\.(?:now|utcnow|today)|date\.today|time\.(?:time|monotonic|sleep|time_ns))\(")
    allowed = {
        "insika/clock.py",
        "insika/storage/sqlite/connection.py",  # waits for another process's lock on the file, not for a due time
    }
    found = {
        path for path in python_files("insika", "outbox") if asks.search((ROOT / path).read_text(encoding="utf-8"))
    }
    assert found == allowed
