"""Puts the demo on: a folder, a receiver, the first process, its death, the second, and the count at the end."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from actors.demo import story
from actors.demo.narrator import Event, Narrator
from actors.demo.process import JOURNAL
from actors.demo.worker import Worker
from actors.receiver import Received, Receiver

LEASE_S = 2.0


class Show:
    def __init__(self, narrator: Narrator) -> None:
        self._narrator = narrator
        self._arrivals: Counter[str] = Counter()
        self._recipients: dict[str, str] = {}
        self._resumed: set[str] = set()

    async def run(self) -> bool:
        """True when every tool ran once and every delivery arrived once. Raises WorkerFailed."""
        with tempfile.TemporaryDirectory(prefix="insika-demo-") as folder:
            return await self._run_in(Path(folder))

    async def _run_in(self, folder: Path) -> bool:
        secret = "whsec_" + base64.b64encode(os.urandom(24)).decode()
        async with Receiver([secret], on_received=self._received) as receiver:
            environment = _configure(folder, receiver.url, secret)
            self._narrator.opening(str(folder), receiver.url)
            async with Worker(folder, environment, self._event) as first:
                await story.correct_yourself(first, self._narrator)
                await story.send_the_same_again(first, self._narrator)
                await story.ask_for_too_much(first, self._narrator)
                await story.die_in_the_middle(first, self._narrator)
            async with Worker(folder, environment, self._event) as second:
                await story.finish_elsewhere(second, self._narrator)
        totals = self._totals(folder)
        self._narrator.finished(totals)
        return bool(totals["duplicates"] == 0 and all(count == 1 for count in totals["tool_runs"].values()))

    def _received(self, received: Received) -> None:
        self._arrivals[received.id] += 1
        self._recipients[received.id] = received.payload["recipient"]
        with contextlib.suppress(OSError):  # the next event meets it too, where it can end the show
            self._narrator.received(received)

    def _event(self, event: Event) -> None:
        if event["event"] == "turn_resumed":
            self._resumed.add(event["turn_id"])
        self._narrator.event(event)

    def _totals(self, folder: Path) -> dict[str, Any]:
        runs = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]
        return {
            "deliveries": len(self._arrivals),
            "duplicates": sum(self._arrivals.values()) - len(self._arrivals),
            "arrivals": {f"answer {id} to {self._recipients[id]}": count for id, count in self._arrivals.items()},
            "tool_runs": dict(Counter(_call(run) for run in runs)),
            "recovered_turns": len(self._resumed),
        }


def _call(run: dict[str, Any]) -> str:
    about = {key: value for key, value in run.items() if key not in ("tool", "call_id", "turn_id", "idempotency_key")}
    return f"{run['tool']}({', '.join(f'{key}={value}' for key, value in about.items())})"


def _configure(folder: Path, url: str, secret: str) -> dict[str, str]:
    agents = folder / "agents"
    agents.mkdir()
    (agents / story.AGENT_FILE).write_text(yaml.safe_dump(dict(story.PROFILE)))
    settings = folder / story.SETTINGS
    settings.write_text(yaml.safe_dump({"channels": [{"id": story.CHANNEL, "url": url, "secret": secret}]}))
    return {
        "INSIKA_DATABASE_URL": f"sqlite:///{folder / 'insika.db'}",
        "INSIKA_SETTINGS": str(settings),
        "INSIKA_AGENTS_DIR": str(agents),
        "INSIKA_EGRESS_ALLOW_HTTP": "true",
        "INSIKA_EGRESS_ALLOW_PRIVATE": "true",
        "INSIKA_LEASE_S": str(LEASE_S),
    }
