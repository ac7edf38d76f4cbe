"""Two messages in a row, under each queue mode: `python3 -m actors.demo.modes followup collect steer interrupt`.

Everything is real but the model, which is a script. The shop's lookup takes as long as the customer takes to write
again, so that what is told is the same each time. Nothing is left behind.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from actors.embedded import Embedded, Parts
from actors.environment import Environment
from actors.logs import configure_logging
from actors.samples.demo_agent import offline_models
from insika.agents.profile import load_profile
from insika.choices import QueueMode
from insika.events import Event, EventType
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry
from insika.tools.tool import Tool

SHOP, ANA = "shop", "ana"
FIRST, SECOND = "Where is order 2001?", "Sorry, I meant order 2002."
TITLES = {"2001": "Evening Birds", "2002": "Clocks of the North"}
DEBOUNCE_MS = 500
"""For `collect`: long enough for two messages in a row, on a busy machine, too."""
ENDS = frozenset({EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_CANCELLED})
MEANINGS = {
    "accepted": "it gets a turn of its own",
    "merged": "it joins the turn that has not begun",
    "steered": "it joins the running turn at its next boundary",
    "interrupting": "it takes the place of the running turn",
}
STAGES: Mapping[str, str] = {
    EventType.TURN_COALESCED: "a moment of quiet; both open one turn",
    EventType.TOOL_CALLED: "order_lookup {order} runs",
    EventType.TOOL_RETURNED: "order_lookup {order} is done",
    EventType.TURN_STEERED: "the message joins the turn here",
    EventType.TURN_INTERRUPTED: "the turn ends here, and says nothing",
}


class Customer:
    """Writes twice: the second time while the lookup for the first message runs, or, where messages are collected,
    at once."""

    def __init__(self, mode: QueueMode) -> None:
        self.insika: Embedded | None = None
        self._mode = mode
        self._left = [FIRST, SECOND]

    async def begin(self) -> None:
        await self.write()
        if self._mode is QueueMode.COLLECT:
            await self.write()

    async def write(self) -> None:
        """The next message, if there is one."""
        if self._left and self.insika is not None:
            text = self._left.pop(0)
            job = {"session": ANA, "agent": SHOP, "text": text, "id": text}
            await self.insika.ingress.take(json.dumps(job).encode())


class Teller:
    """Tells what happens as lines, in the order in which it happened."""

    def __init__(self, insika: Embedded) -> None:
        self._store = insika.store

    async def tell(self, event: Event) -> None:
        if event.type == EventType.TURN_ACCEPTED:
            verdict = event.data["verdict"]
            _say(f"ana:  {await self._text(event.data['position'])}")
            _say(f"      {verdict}: {MEANINGS[verdict]}")
        elif event.type == EventType.TURN_COMPLETED:
            _say(f"shop: {await self._answer(event)}")
        elif event.type in STAGES:
            order = await self._order(event) if "call_id" in event.data else ""
            _say(f"      {STAGES[event.type].format(order=order)}")

    async def quiet(self) -> bool:
        session = await self._store.session(ANA)
        return session is not None and session.turn_id is None and session.waiting == 0

    async def _session_id(self) -> int:
        session = await self._store.session(ANA)
        return session.id if session is not None else 0

    async def _text(self, position: int) -> str:
        return next(row.text for row in await self._store.mail(await self._session_id()) if row.position == position)

    async def _order(self, event: Event) -> str:
        calls = await self._store.calls(event.turn_id or "")
        return next(str(call.arguments["order_id"]) for call in calls if call.call_id == event.data["call_id"])

    async def _answer(self, event: Event) -> str:
        said = [each for each in await self._store.messages(await self._session_id()) if each.turn_id == event.turn_id]
        return said[-1].message.content


def _say(line: str) -> None:
    sys.stdout.write(f"  {line}\n")
    sys.stdout.flush()


def order_lookup_of(meanwhile: Callable[[], Awaitable[None]]) -> Tool:
    @tool
    async def order_lookup(order_id: str) -> dict[str, Any]:
        """Look up an order by its number. Something happens meanwhile."""
        await meanwhile()
        return {"order_id": order_id, "title": TITLES[order_id], "status": "on its way"}

    return order_lookup


@asynccontextmanager
async def shop(mode: QueueMode, folder: Path, customer: Customer) -> AsyncIterator[Embedded]:
    """A whole Insika in this process, with one agent. No variable of this machine changes anything."""
    environment = Environment.model_construct(database_url=SecretStr(f"sqlite:///{folder / f'{mode}.db'}"))
    parts = Parts(offline_models(), ToolRegistry([order_lookup_of(customer.write)]))
    limits = {"queue_mode": str(mode), **({"debounce_ms": DEBOUNCE_MS} if mode is QueueMode.COLLECT else {})}
    profile = load_profile({"id": SHOP, "model": "offline/demo", "limits": limits}, "the modes")
    insika = await Embedded.open(environment, parts)
    await insika.configuration.apply_profiles([profile], from_file=False)
    await insika.configuration.refresh()
    async with insika:
        yield insika


async def converse(mode: QueueMode, folder: Path) -> None:
    customer = Customer(mode)
    async with shop(mode, folder, customer) as insika:
        customer.insika, teller = insika, Teller(insika)
        with insika.events.subscribe() as events:
            await customer.begin()
            async for event in events:
                await teller.tell(event)
                if event.type in ENDS and await teller.quiet():
                    return


async def main(modes: Sequence[QueueMode]) -> None:
    with tempfile.TemporaryDirectory(prefix="insika-modes-") as folder:
        for mode in modes:
            sys.stdout.write(f"{mode}\n")
            await converse(mode, Path(folder))


if __name__ == "__main__":
    configure_logging("error")
    asyncio.run(main([QueueMode(name) for name in sys.argv[1:]] or list(QueueMode)))
