"""One request as a vendor saw it, kept for a test to look at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from insika.messages import NO_USAGE, Usage
from tests.vendors.refusals import Refusal
from tests.vendors.troubles import Trouble

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "cookie"})


@dataclass
class Seen:
    """`number` counts from 0 in order of arrival. `headers` are in lower case and without keys. `pieces`: the prompt in
    the order in which vendors cache it. `usage`: what the whole answer costs, as the house counts it; zero when none
    was begun. `events`: how many were sent whole. `finished`: the answer went out to its end. `gone`: the client left
    before that."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Mapping[str, Any] = field(default_factory=dict)
    pieces: Sequence[bytes] = ()
    refusals: tuple[Refusal, ...] = ()
    trouble: Trouble | None = None
    status: int | None = None
    usage: Usage = NO_USAGE
    events: int = 0
    finished: bool = False
    gone: bool = False

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def streamed(self) -> bool:
        return self.body.get("stream") is True

    @property
    def rules(self) -> frozenset[str]:
        """The rules that this request breaks."""
        return frozenset(refusal.rule for refusal in self.refusals)

    def prefix_hash(self, pieces: int | None = None) -> str:
        """Of the first `pieces` pieces of the prompt; of all without a number."""
        digest = hashlib.sha256()
        for piece in self.pieces[:pieces]:
            digest.update(len(piece).to_bytes(8, "big") + piece)
        return digest.hexdigest()

    def shares_with(self, other: Seen) -> int:
        """How many pieces the two prompts have in common, from the front."""
        common = 0
        for mine, theirs in zip(self.pieces, other.pieces, strict=False):
            if mine != theirs:
                break
            common += 1
        return common

    def starts(self, later: Seen) -> bool:
        """This whole prompt stands at the head of the later one."""
        return self.shares_with(later) == len(self.pieces)

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "path": self.path,
            "headers": dict(self.headers),
            "body": dict(self.body),
            "rules": sorted(self.rules),
            "messages": [refusal.message for refusal in self.refusals],
            "trouble": None if self.trouble is None else type(self.trouble).__name__,
            "status": self.status,
            "usage": [self.usage.input, self.usage.output, self.usage.cache_read, self.usage.cache_write],
            "prefix": [self.prefix_hash(count) for count in range(1, len(self.pieces) + 1)],
            "finished": self.finished,
            "gone": self.gone,
        }
