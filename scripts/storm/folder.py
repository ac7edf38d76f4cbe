"""Where a storm keeps what it needs and what it leaves: configuration, books, the processes' logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from scripts.storm.books import JOURNAL
from scripts.storm.jobs import Agent
from scripts.storm.options import Options

SECRET = "whsec_c3Rvcm0tc3Rvcm0tc3Rvcm0tc3Rvcm0t"
DELIVERY_TIMEOUT_S = 3.0
CLAIM_S = DELIVERY_TIMEOUT_S + 20.0
"""How long the outbox holds a delivery for whoever claimed it."""
ANSWERED_WITHIN_S = 2 * DELIVERY_TIMEOUT_S
"""After its claim a POST has its answer, or never gets one: a busy machine included."""
ORDER_WAIT_S = 60.0
ATTEMPTS_MAX = 10
"""More than refusals and faults can use up: no delivery may fail."""
CALLS_AT_ONCE = 3
"""Of one batch, for the agent with the most."""

ROOT = Path(__file__).resolve().parents[2]
_LIMITS: Mapping[Agent, Mapping[str, object]] = {
    Agent.FOLLOWS: {"queue_mode": "followup"},
    Agent.STEERED: {"queue_mode": "steer", "tool_concurrency": 2},
    Agent.COLLECTS: {
        "queue_mode": "collect",
        "debounce_ms": 400,
        "debounce_max_ms": 2_000,
        "tool_concurrency": CALLS_AT_ONCE,
    },
    Agent.INTERRUPTED: {"queue_mode": "interrupt"},
}
_CHANNELS = {"web": "at_most_once", "sure": "at_least_once"}


class Folder:
    """Lays out `path`, which exists and is empty; a second one over the same path is refused (FileExistsError)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal.jsonl"
        self.published = path / "published.jsonl"
        self.received = path / "received.jsonl"
        self.deeds = path / "deeds.jsonl"
        self.plan = path / "plan.json"
        self.verdict = path / "verdict.json"
        self.tables = path / "tables"
        self.logs = path / "logs"
        for new in (self.logs, self.tables, self._agents):
            new.mkdir()

    def configure(self, receiver_url: str) -> None:
        """Write agents and settings down."""
        for agent in Agent:
            limits = {**_LIMITS[agent], "mailbox_max": None, "tool_timeout": 30}
            profile = {"id": str(agent), "model": "offline/shop", "instructions": "You keep a shop.", "limits": limits}
            (self._agents / f"{agent}.yaml").write_text(yaml.safe_dump(profile))
        channels = [
            {
                "id": id,
                "url": receiver_url,
                "secret": SECRET,
                "guarantee": guarantee,
                "timeout_s": DELIVERY_TIMEOUT_S,
                "order_wait_s": ORDER_WAIT_S,
                "max_attempts": ATTEMPTS_MAX,
            }
            for id, guarantee in _CHANNELS.items()
        ]
        self._settings.write_text(yaml.safe_dump({"channels": channels}))

    def variables(self, options: Options, *, postgres: str, amqp: str, redis: str) -> Mapping[str, str]:
        """What the processes of the product are told."""
        return {
            "PYTHONPATH": str(ROOT),
            "INSIKA_DATABASE_URL": postgres,
            "INSIKA_AMQP_URL": amqp,
            "INSIKA_REDIS_URL": redis,
            "INSIKA_QUEUE_TYPE": options.queue_type,
            "INSIKA_TOOLS": "scripts.storm.shop",
            "INSIKA_AGENTS_DIR": str(self._agents),
            "INSIKA_SETTINGS": str(self._settings),
            "INSIKA_LEASE_S": str(options.lease_s),
            "INSIKA_DRAIN_S": str(options.drain_s),
            "INSIKA_SLOTS": str(options.slots),
            "INSIKA_EGRESS_ALLOW_HTTP": "true",
            "INSIKA_EGRESS_ALLOW_PRIVATE": "true",
            "INSIKA_LOG_LEVEL": "info",
            JOURNAL: str(self.journal),
        }

    @property
    def _agents(self) -> Path:
        return self.path / "agents"

    @property
    def _settings(self) -> Path:
        return self.path / "settings.yaml"
