"""What an operator does by the command line, from an empty folder: configure, send, receive, resend, requeue, retry."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import SECRET, SIGTERM, Folder, Running, folder, wait_for

AGENT = """
id: shop
model: offline/demo
tools_allow: [order_lookup, stock_check]
"""


def settings(port: int, **values: Any) -> str:
    channel = {"id": "hook", "url": f"http://127.0.0.1:{port}/", "secret": SECRET, **values}
    return json.dumps({"channels": [channel]})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Folder]:
    with folder(tmp_path, INSIKA_EGRESS_ALLOW_HTTP="1", INSIKA_EGRESS_ALLOW_PRIVATE="1", INSIKA_LEASE_S="1.5") as made:
        made.must("migrate")
        made.must("agents", "apply", str(made.write("shop.yaml", AGENT)))
        yield made


def worker(shop: Folder) -> Running:
    running = shop.start("dev", stdin=subprocess.DEVNULL)
    running.until("Working on")
    return running


def receiver(shop: Folder, port: int) -> Running:
    running = shop.start("receive", "--port", str(port), "--secret", SECRET, "--journal", "received.jsonl")
    running.until(f"Listening on http://127.0.0.1:{port}/ .verifying")
    return running


def received(shop: Folder) -> list[Any]:
    journal = shop.path / "received.jsonl"
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def outbox(shop: Folder) -> list[Any]:
    listed: list[Any] = shop.must("outbox", "list", "--json").json
    return listed


def test_a_sent_message_is_answered_and_its_delivery_arrives_once(shop: Folder) -> None:
    port = free_port()
    shop.must("settings", "apply", str(shop.write("settings.json", settings(port))))
    (channel,) = shop.must("channels", "list", "--json").json
    assert (channel["id"], SECRET in json.dumps(channel)) == ("hook", False)
    receiving = receiver(shop, port)
    sent = shop.must("send", "--session", "ana", "--agent", "shop", "--channel", "hook", "--id", "m1", "order 1234?")
    assert sent.out.startswith("accepted  turn ")
    running = worker(shop)
    (arrived,) = wait_for(lambda: received(shop), "the delivery")
    assert (arrived["attempt"], arrived["verified"], arrived["payload"]["recipient"]) == (1, True, "ana")
    assert arrived["payload"]["content"] == "Order 1234 (Field Notes) is on its way."
    wait_for(lambda: [row["state"] for row in outbox(shop)] == ["delivered"], "a settled row")
    (row,) = outbox(shop)
    assert (row["id"], row["attempts"], row["payload"]["turn_id"]) == (
        arrived["id"],
        1,
        arrived["payload"]["turn_id"],
    )
    assert shop.must("send", "--session", "ana", "--agent", "shop", "--id", "m1", "order 1234?").out.startswith(
        f"duplicate  turn {row['payload']['turn_id']}  id m1\nThe message was handed in before; that turn is completed."
    )
    assert running.signal(SIGTERM) == 0
    assert receiving.signal(SIGTERM) == 0
    assert f"{row['id']}  answer for ana: Order 1234" in receiving.printed
    assert len(received(shop)) == 1


def test_a_delivery_that_failed_is_sent_again_by_hand_and_recover_takes_it_out(shop: Folder) -> None:
    port = free_port()
    shop.must("settings", "apply", str(shop.write("settings.json", settings(port, max_attempts=1))))
    running = worker(shop)
    shop.must("send", "--session", "ana", "--agent", "shop", "--channel", "hook", "order 1234?")
    wait_for(lambda: [row["state"] for row in outbox(shop)] == ["failed"], "a failed delivery")
    assert running.signal(SIGTERM) == 0
    (row,) = outbox(shop)
    refused = shop.insika("outbox", "resend", row["id"])
    assert refused.code == 1
    assert "less than 5 minutes ago" in refused.err
    shop.must("outbox", "resend", row["id"], "--force")
    receiver(shop, port)

    def recovered_one() -> bool:
        return bool(shop.must("recover", "--json").json["sent"] == 1)

    wait_for(recovered_one, "the resent delivery to be due")
    (arrived,) = received(shop)
    assert (arrived["id"], arrived["attempt"], arrived["possible_duplicate"]) == (row["id"], 2, True)
    assert shop.must("recover", "--json").json == {"sent": 0, "uncertain": 0, "pending": 0, "sending": 0, "woken": 0}
    told = shop.must("outbox", "list")
    assert "1 delivered" in told.out


def test_a_job_for_an_agent_that_comes_later_is_kept_and_requeued(shop: Folder) -> None:
    sent = shop.insika("send", "--session", "ana", "--agent", "later", "--id", "m1", "order 1234?")
    assert sent.code == 1
    assert sent.err.startswith("Error: the message was rejected: agent: there is no agent 'later'")
    (kept,) = shop.must("rejected", "list", "--json").json
    assert (kept["error"]["type"], kept["error"]["field"], kept["requeued_at"]) == ("unknown_agent", "agent", None)
    assert json.loads(kept["raw"])["text"] == "order 1234?"
    assert "agent 'later'" in shop.must("rejected", "show", str(kept["number"])).out
    shop.must("agents", "apply", str(shop.write("later.yaml", AGENT.replace("id: shop", "id: later"))))
    requeued = shop.must("rejected", "requeue", str(kept["number"]), "--json").json
    assert (requeued["verdict"], requeued["requeued_job"]) == ("accepted", kept["number"])
    again = shop.must("rejected", "requeue", str(kept["number"]), "--json").json
    assert (again["verdict"], again["turn_id"]) == ("duplicate", requeued["turn_id"])
    assert shop.must("rejected", "list", "--json").json[0]["requeued_at"].endswith("Z")


def test_a_failed_turn_is_run_once_more_however_often_one_asks(shop: Folder) -> None:
    (shop.path / "agents").mkdir()
    shop.write("agents/broken.yaml", "id: broken\nmodel: offline/nothing\n")
    shop.environment["INSIKA_AGENTS_DIR"] = "agents"
    running = worker(shop)
    failed = shop.must("send", "--session", "ana", "--agent", "broken", "order 1234?", "--json").json["turn_id"]
    wait_for(lambda: shop.must("turns", "show", failed, "--json").json["state"] == "failed", "a failed turn")
    assert running.signal(SIGTERM) == 0
    assert "there is no script 'nothing'; there are: demo" in running.printed
    assert "there is no script 'nothing'" in shop.must("sessions", "show", "ana").out
    first = shop.must("sessions", "retry", "ana", "--json").json
    second = shop.must("sessions", "retry", "ana", "--json").json
    assert (first["verdict"], first["retried_turn"]) == ("accepted", failed)
    assert (second["verdict"], second["turn_id"]) == ("duplicate", first["turn_id"])
    shop.must("agents", "apply", str(shop.write("broken.yaml", AGENT.replace("id: shop", "id: broken"))))
    worker(shop)
    wait_for(lambda: shop.must("turns", "show", first["turn_id"], "--json").json["state"] == "completed", "the retry")
    messages = shop.must("sessions", "show", "ana", "--json").json["messages"]
    assert [m["content"] for m in messages if m["by"] == "person"] == ["order 1234?"] * 2


def test_a_held_session_waits_and_a_waiting_turn_can_be_cancelled(shop: Folder) -> None:
    first, second = [
        shop.must("send", "--session", "ana", "--agent", "shop", text, "--json").json["turn_id"]
        for text in ("where is order 1234?", "where is order 1235?")
    ]
    shop.must("sessions", "pause", "ana")
    shop.must("turns", "cancel", second, "--no-wait")
    assert "was asked to end before" in shop.must("turns", "cancel", second, "--no-wait").out
    worker(shop)
    assert shop.must("sessions", "list", "--json").json[0]["paused"] is True
    assert shop.must("turns", "cancel", second).out == f"turn {second} was cancelled\n"
    shop.must("sessions", "resume", "ana")

    def states() -> list[str]:
        return [turn["state"] for turn in shop.must("sessions", "show", "ana", "--json").json["turns"]]

    wait_for(lambda: states() == ["completed", "cancelled"], lambda: f"the ends of both turns: {states()}")
    late = shop.insika("turns", "cancel", first)
    assert (late.code, "has ended already (completed)" in late.err) == (1, True)


def test_every_mistake_of_a_profile_is_named_by_its_path(shop: Folder) -> None:
    good = shop.write("good.yaml", AGENT)
    bad = shop.write("bad.yaml", "id: '!'\nmodel: gpt\nlimits: {max_tool_calls: 0, queue_mode: nope}\ntool_allow: []\n")
    done = shop.insika("agents", "validate", str(good), str(bad))
    assert done.code == 1
    assert done.out == f"{good}: valid, agent shop\n"
    for path in ("id", "model", "limits.max_tool_calls", "limits.queue_mode", "tool_allow"):
        assert f"\n  {path}: " in done.err
    checked = shop.insika("agents", "validate", str(good), str(bad), "--json")
    assert checked.code == 1
    assert [one["valid"] for one in checked.json] == [True, False]
    before = shop.must("agents", "list", "--json").json
    applied = shop.insika("agents", "apply", str(good.rename(shop.path / "other.yaml")), str(bad))
    assert (applied.code, applied.out) == (1, "")
    assert applied.err.endswith("Nothing was applied.\n")
    assert shop.must("agents", "list", "--json").json == before
