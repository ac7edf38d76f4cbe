"""The texts that the guard is measured with: one a line, in files named for what they are and their language."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "corpora" / "guardrails"
ORDINARY, INJECTION, ABUSE = "ordinary", "injection", "abuse"
KINDS = (ORDINARY, INJECTION, ABUSE)


@dataclass(frozen=True, slots=True)
class Corpus:
    kind: str
    language: str
    texts: tuple[str, ...]


def own_corpora() -> list[Corpus]:
    """Those in the clone, ordinary messages first. A line that begins with `# ` is a comment; `\\n` is a line break."""
    paths = sorted(FOLDER.glob("*.txt"), key=lambda path: (KINDS.index(path.name.split(".")[0]), path.name))
    return [Corpus(*path.name.split(".")[:2], _lines(path)) for path in paths]


def corpus_from(path: Path, kind: str) -> Corpus:
    """Texts from elsewhere: a `.json` list of strings or of objects with `text` or `prompt`, `.jsonl` of the same, or
    plain lines."""
    raw = path.read_text("utf-8")
    if path.suffix == ".json":
        found = json.loads(raw)
    elif path.suffix == ".jsonl":
        found = [json.loads(line) for line in raw.splitlines() if line.strip()]
    else:
        return Corpus(kind, path.name, _lines(path))
    return Corpus(kind, path.name, tuple(_text(each) for each in found))


def _lines(path: Path) -> tuple[str, ...]:
    lines = path.read_text("utf-8").splitlines()
    return tuple(line.replace("\\n", "\n") for line in lines if line.strip() and not line.startswith("# "))


def _text(entry: object) -> str:
    if isinstance(entry, dict):
        return str(entry.get("text") or entry.get("prompt") or "")
    return str(entry)
