"""The tools of the sample bookshop. Their data is made up and always the same; they touch nothing but the journal.

`demo_tools` is a factory, so that whoever makes the tools can count their runs: a process keeps them in a file, a test
in a list.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from insika.tools.python_tools import tool
from insika.tools.tool import Tool, ToolContext

Journal = Callable[[str, Mapping[str, Any]], None]
"""Called once at the start of each run, with the tool's name and what it was called for: `call_id`, `turn_id`,
`idempotency_key` and the arguments."""

OrderId = Annotated[str, Field(pattern=r"^\d{3,8}$", description="The order's number, 3 to 8 digits")]
Title = Annotated[str, Field(min_length=1, max_length=200, description="The title of a book")]

TITLES = ("Bread and Salt", "Evening Birds", "Clocks of the North", "Harbour Songs", "Field Notes")
STATUSES = ("being packed", "on its way", "delivered")


def no_journal(name: str, run: Mapping[str, Any]) -> None:
    """Keep nothing."""
    return None


def demo_tools(journal: Journal = no_journal, *, pause_s: float = 0.0) -> list[Tool]:
    """`order_lookup`, `stock_check` and `refund`. Only `refund` changes something in the world. The two that block,
    as a query of a database would, run in threads; `stock_check` runs on the event loop. Each takes `pause_s` seconds.
    """

    def note(name: str, context: ToolContext, **arguments: str) -> None:
        key = context.idempotency_key
        journal(name, {"call_id": context.call_id, "turn_id": context.turn_id, "idempotency_key": key, **arguments})

    @tool(group="orders")
    def order_lookup(order_id: OrderId, context: ToolContext) -> dict[str, Any]:
        """Look up an order by its number: which book it is for and how far it has come."""
        note("order_lookup", context, order_id=order_id)
        time.sleep(pause_s)
        return _order(order_id)

    @tool(group="shelf")
    async def stock_check(title: Title, context: ToolContext) -> dict[str, Any]:
        """Count the copies of a title that are on the shelf."""
        note("stock_check", context, title=title)
        await asyncio.sleep(pause_s)
        return {"title": title, "copies": zlib.crc32(title.lower().encode()) % 4}

    @tool(group="orders", side_effect=True)
    def refund(order_id: OrderId, context: ToolContext) -> dict[str, Any]:
        """Pay back what an order cost. This moves money: do it once, and only for an order that exists."""
        note("refund", context, order_id=order_id)
        time.sleep(pause_s)
        return {"order_id": order_id, "refunded": True, "amount": _price(order_id)}

    return [order_lookup, stock_check, refund]


def _order(order_id: str) -> dict[str, Any]:
    if order_id.endswith("00"):
        return {"order_id": order_id, "found": False}
    number = int(order_id)
    return {
        "order_id": order_id,
        "found": True,
        "title": TITLES[number % len(TITLES)],
        "status": STATUSES[number % len(STATUSES)],
        "price": _price(order_id),
    }


def _price(order_id: str) -> str:
    return f"{10 + int(order_id) % 20}.90 EUR"
