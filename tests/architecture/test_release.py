"""What is said about a release agrees with what is released."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    """The normalised name of `Some_Package[extra]>=1` or `some-package==1.2` (PEP 503)."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement.strip())[0]).lower()


def test_the_changelog_begins_with_this_version():
    entries = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert entries[0] == PROJECT["project"]["version"]


def test_whatever_is_asked_for_has_its_version_pinned():
    asked = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["dev"]]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[^\s;]+", pin) for pin in pins)
    assert {name_of(requirement) for requirement in asked} - {name_of(pin) for pin in pins} == set()


def test_exactly_three_packages_are_shipped():
    shipped = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {pattern.partition(".")[0] for pattern in shipped} == {"insika", "outbox", "actors"}
    assert all((ROOT / house / "py.typed").is_file() for house in ("insika", "outbox", "actors"))


def test_every_file_of_a_house_is_shipped():
    """A statement that stays out of the wheel is missed only on the machine of whoever installed it."""
    data = PROJECT["tool"]["setuptools"]["package-data"]
    for house in ("insika", "outbox", "actors"):
        shipped = {path for pattern in data.get(house, []) for path in (ROOT / house).glob(pattern)}
        files = {path for path in (ROOT / house).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
        left_out = [path for path in files - shipped if path.suffix != ".py" and path.name not in data["*"]]
        assert left_out == []
