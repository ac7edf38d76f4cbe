"""Signatures of thinking: only what this fake issued, for this model and unchanged, is taken back.

A seal holds the model, a digest of the thinking and, for models that bind it, a digest of all that stood before it. It
is keyed by the fake's name alone, so that a fake that was restarted knows what it issued.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import hmac
import json
from typing import Any


class Verdict(enum.Enum):
    TRUE = "true"
    FORGED = "forged"
    FOREIGN = "another model's"
    CHANGED = "the thinking was changed"
    MOVED = "what stands before it was changed"


class Seals:
    def __init__(self, name: str) -> None:
        self._key = hashlib.sha256(f"the seal of {name}".encode()).digest()

    def seal(self, model: str, thinking: str, prefix: str) -> str:
        body = json.dumps({"m": model, "t": _digest(thinking), "p": prefix}).encode()
        return base64.b64encode(self._mac(body) + body).decode()

    def check(self, signature: str, model: str, thinking: str, prefix: str | None) -> Verdict:
        """`prefix` None: this model does not bind."""
        read = self._read(signature)
        if read is None:
            return Verdict.FORGED
        if read["m"] != model:
            return Verdict.FOREIGN
        if read["t"] != _digest(thinking):
            return Verdict.CHANGED
        return Verdict.MOVED if prefix is not None and read["p"] != prefix else Verdict.TRUE

    def _read(self, signature: str) -> dict[str, Any] | None:
        try:
            raw = base64.b64decode(signature, validate=True)
        except ValueError:
            return None
        mac, body = raw[:32], raw[32:]
        return json.loads(body) if hmac.compare_digest(mac, self._mac(body)) else None

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
