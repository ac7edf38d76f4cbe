"""What happens in the demo, in order. Each scene sends real jobs and waits for what the pipeline does with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.demo.narrator import Narrator
from actors.demo.worker import Event, Worker

CHANNEL = "shop-web"
AGENT = "demo"
SETTINGS = "settings.yaml"
AGENT_FILE = "demo.yaml"

PROFILE: Mapping[str, Any] = {
    "id": AGENT,
    "model": "offline/demo",
    "instructions": "You help the customers of a bookshop.",
    "limits": {"max_tool_calls": 14, "queue_mode": "steer"},
}


def job(session: str, text: str, id: str) -> dict[str, Any]:
    return {"session": session, "agent": AGENT, "text": text, "id": id, "channel": CHANNEL}


async def correct_yourself(worker: Worker, narrator: Narrator) -> None:
    narrator.scene("A customer corrects herself while the agent works")
    narrator.person("ana", "Where is order 2001?")
    first = await worker.send(job("ana", "Where is order 2001?", "ana-1"))
    await _until_tool(worker, first, "order_lookup")
    narrator.person("ana", "Sorry, I meant order 2002.")
    await worker.send(job("ana", "Sorry, I meant order 2002.", "ana-2"))
    await _until_delivered(worker, first)


async def send_the_same_again(worker: Worker, narrator: Narrator) -> None:
    narrator.scene("Her app loses its connection and sends the same message again, and then one that cannot be read")
    await worker.send(job("ana", "Where is order 2001?", "ana-1"))
    await worker.send({**job("ana", "Hello?", "ana-3"), "prioritty": "high"})


async def ask_for_too_much(worker: Worker, narrator: Narrator) -> None:
    narrator.scene("A request that would take 24 tool calls, with a budget of 14: the model is told in time")
    narrator.person("ben", "Please research the catalogue.")
    turn = await worker.send(job("ben", "Please research the catalogue.", "ben-1"))
    await _until_delivered(worker, turn)


async def die_in_the_middle(worker: Worker, narrator: Narrator) -> None:
    narrator.scene("The process is killed in the middle of a turn, right after it has moved money")
    narrator.person("cem", "Please refund order 2003.")
    turn = await worker.send(job("cem", "Please refund order 2003.", "cem-1"))
    refunded = await _until_tool(worker, turn, "refund")
    await worker.until(
        lambda event: (
            event["event"] == "content" and event["turn_id"] == turn["turn_id"] and event["step"] > refunded["step"]
        )
    )
    narrator.killing(worker.pid)
    await worker.kill()


async def finish_elsewhere(worker: Worker, narrator: Narrator) -> None:
    narrator.scene("Another process finds the turn once the lease has run out, and finishes it from its log")
    resumed = await worker.until(lambda event: event["event"] == "turn_resumed")
    await _until_delivered(worker, resumed)


async def _until_tool(worker: Worker, turn: Event, tool: str) -> Event:
    return await worker.until(
        lambda event: event["event"] == "tool_called" and event["tool"] == tool and event["turn_id"] == turn["turn_id"]
    )


async def _until_delivered(worker: Worker, turn: Event) -> None:
    await worker.until(lambda event: event["event"] == "delivery_delivered" and event["turn_id"] == turn["turn_id"])
