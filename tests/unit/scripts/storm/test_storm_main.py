"""What `scripts/chaos` leaves behind and answers once the storm itself is over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.storm import main as chaos
from scripts.storm.folder import Folder
from scripts.storm.options import Options
from scripts.storm.verdict import Ruling, Verdict

GOOD = Verdict([Ruling("order", "Order holds.", ())], {"messages": 3})
BAD = Verdict([Ruling("order", "Order holds.", ("s1: 2 before 1",))], {"messages": 3})


class StormThat:
    """Stands in for the hour of real processes: it leaves its folder as a real one does, and this verdict."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.folder = Path()

    async def __call__(self, options: Options, folder: Folder, tell: Callable[[str], None]) -> Verdict:
        self.folder = folder.path
        folder.published.write_text("")
        return self.verdict


def run(monkeypatch: pytest.MonkeyPatch, verdict: Verdict, *arguments: str) -> tuple[int, Path]:
    storm = StormThat(verdict)
    monkeypatch.setattr(chaos, "storm", storm)
    monkeypatch.setattr("sys.argv", ["chaos", "--minutes", "1", "--seed", "5", *arguments])
    return chaos.main(), storm.folder


def test_a_good_storm_leaves_nothing_and_ends_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, folder = run(monkeypatch, GOOD)
    assert (code, folder.exists()) == (0, False)
    assert "every rule holds" in capsys.readouterr().out


@pytest.mark.parametrize(("verdict", "code"), [(GOOD, 0), (BAD, 1)])
def test_json_is_the_verdict_and_nothing_else_and_the_folder_keeps_the_same(
    verdict: Verdict, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered, folder = run(monkeypatch, verdict, "--json", "--keep")
    assert answered == code
    assert json.loads(capsys.readouterr().out) == verdict.as_dict()
    assert json.loads((folder / "verdict.json").read_text()) == verdict.as_dict()


def test_a_broken_rule_keeps_everything_and_says_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, folder = run(monkeypatch, BAD)
    printed = capsys.readouterr().out
    assert (code, folder.exists()) == (1, True)
    assert str(folder) in printed
    assert "NOT every rule holds" in printed
