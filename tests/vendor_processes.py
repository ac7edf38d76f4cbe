"""Fake vendors in processes of their own, for tests that run real processes: `tests.vendors`, and what one asks it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.vendors.troubles import Trouble, to_json

ROOT = Path(__file__).resolve().parents[1]
BOOKSHOP = "insika.providers.demo_script:demo_script"
"""What the sample agent's script says, by a vendor's voice."""
PATIENCE_S = 60.0


@dataclass(frozen=True)
class VendorProcess:
    """`base_url` and `key` are for whoever asks it for a model."""

    base_url: str
    key: str
    control: str

    def requests(self) -> list[dict[str, Any]]:
        """What it was asked so far."""
        with urllib.request.urlopen(f"{self.control}/requests", timeout=PATIENCE_S) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def make(self, *troubles: Trouble) -> None:
        """One for each of the next requests."""
        self._post("troubles", [to_json(trouble) for trouble in troubles])

    def open_gate(self) -> None:
        self._post("gate", {})

    def _post(self, what: str, data: Any) -> None:
        body = json.dumps(data).encode()
        request = urllib.request.Request(
            f"{self.control}/{what}", body, {"content-type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S):
            pass


@contextlib.contextmanager
def vendor_process(kind: str, script: str = BOOKSHOP, *options: str) -> Iterator[VendorProcess]:
    """`kind`: anthropic or openai. `script`: module:attribute. `options`: those of `python -m tests.vendors`."""
    command = [sys.executable, "-m", "tests.vendors", kind, "--script", script, *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield VendorProcess(**json.loads(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()
