"""The benchmark explains itself without measuring anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("argument", "code", "told"), [("--help", 0, "usage: scripts/bench"), ("-h", 0, "usage:"), ("--fast", 2, "")]
)
def test_what_it_takes_is_told_at_once(argument: str, code: int, told: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'scripts'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "benchmarks.main", argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    assert (done.returncode, done.stdout[: len(told)]) == (code, told)
    assert "measuring" not in done.stderr
