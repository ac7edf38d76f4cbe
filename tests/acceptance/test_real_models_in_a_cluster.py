"""Hosted models in a cluster: workers ask, with the keys of their environment, and nobody else needs any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import SIGTERM, Folder, Running, folder, wait_for
from tests.vendor_processes import BOOKSHOP, vendor_process

ANSWER = "Order 1234 (Field Notes) is on its way."
CLAUDE = "id: claude\nmodel: anthropic/claude-sonnet-4-5\n"
GATEWAY = "id: gateway\nmodel: gateway/large\n"
READY = '"event": "ready"'


@pytest.fixture
def cluster(tmp_path: Path, fresh_postgres_url: str, clean_amqp_url: str, redis_url: str) -> Iterator[Folder]:
    services = {
        "INSIKA_DATABASE_URL": fresh_postgres_url,
        "INSIKA_AMQP_URL": clean_amqp_url,
        "INSIKA_REDIS_URL": redis_url,
        "INSIKA_LOG_LEVEL": "info",
    }
    with folder(tmp_path, **services) as made:
        made.must("migrate")
        yield made


def started(cluster: Folder, process: str) -> Running:
    running = cluster.start(process)
    running.until(READY)
    return running


def published(cluster: Folder, agent: str) -> None:
    cluster.must("send", "--amqp", "--session", agent, "--agent", agent, "--id", agent, "where is order 1234?")


def ended(cluster: Folder, session: str) -> str:
    """Its turn's state, once it has one that is final."""

    def state() -> str | None:
        shown = cluster.insika("sessions", "show", session, "--json")
        states = [turn["state"] for turn in shown.json["turns"]] if shown.code == 0 else []
        return states[0] if states and states[0] in ("completed", "failed") else None

    return str(wait_for(state, f"the end of {session}'s turn"))


def test_a_worker_asks_both_vendors_and_needs_no_restart_for_another(cluster: Folder) -> None:
    with (
        vendor_process("anthropic") as anthropic,
        vendor_process("openai", BOOKSHOP, "--dialect", "deepseek") as gateway,
    ):
        cluster.must("agents", "apply", str(cluster.write("claude.yaml", CLAUDE)))
        started(cluster, "ingress")
        keys = {
            "ANTHROPIC_API_KEY": anthropic.key,
            "ANTHROPIC_BASE_URL": anthropic.base_url,
            "GATEWAY_KEY": gateway.key,
        }
        cluster.environment.update(keys)
        worker = started(cluster, "worker")
        published(cluster, "claude")
        assert ended(cluster, "claude") == "completed"

        provider = f"{{name: gateway, kind: openai, base_url: '{gateway.base_url}', key_variable: GATEWAY_KEY"
        settings = cluster.write("settings.yaml", f"providers: [{provider}, dialect: deepseek}}]\n")
        cluster.must("settings", "apply", str(settings))
        cluster.must("agents", "apply", str(cluster.write("gateway.yaml", GATEWAY)))
        published(cluster, "gateway")
        assert ended(cluster, "gateway") == "completed"
        for vendor in (anthropic, gateway):
            assert [(asked["status"], asked["rules"]) for asked in vendor.requests()] == [(200, [])] * 2
        assert worker.signal(SIGTERM) == 0
        assert not any(key in worker.printed for key in keys.values() if not key.startswith("http"))
    for session in ("claude", "gateway"):
        assert cluster.must("sessions", "show", session, "--json").json["messages"][-1]["content"] == ANSWER


def test_a_worker_without_the_key_says_so_at_its_start_and_fails_the_turn_with_it(cluster: Folder) -> None:
    cluster.must("agents", "apply", str(cluster.write("claude.yaml", CLAUDE)))
    ingress, worker = started(cluster, "ingress"), started(cluster, "worker")
    assert "ANTHROPIC_API_KEY is not set" in worker.printed
    assert "ANTHROPIC_API_KEY" not in ingress.printed
    published(cluster, "claude")
    assert ended(cluster, "claude") == "failed"
    (turn,) = cluster.must("sessions", "show", "claude", "--json").json["turns"]
    assert turn["error"]["type"] == "provider_fatal"
    assert "agent 'claude' cannot be run here" in turn["error"]["message"]
    assert "ANTHROPIC_API_KEY is not set" in turn["error"]["message"]
