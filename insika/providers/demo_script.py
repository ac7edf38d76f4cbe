"""The script `demo`: a bookshop's agent that knows a handful of requests and the tools for them.

It understands order numbers, titles and refunds by simple patterns, follows a correction that joins its turn, and
brings a long research to an end when the engine says that its budget runs low. It is a script, and says so when asked
what it is.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from insika.providers.scene import Result, Scene
from insika.providers.script import Call, Calls, Say, Script, Step
from insika.turn.sentences import MARK

LOOKUP, STOCK, REFUND = "order_lookup", "stock_check", "refund"

RESEARCH_TITLES = tuple(
    f"{title}, volume {volume}"
    for volume in (1, 2, 3)
    for title in (
        "Atlas of Rivers",
        "Bread and Salt",
        "Clocks of the North",
        "Dictionary of Winds",
        "Evening Birds",
        "Field Notes",
        "Gardens by the Sea",
        "Harbour Songs",
    )
)
"""What a long research asks for, one title a step."""

CALLS_AFTER_A_NOTICE = 2
"""How many more titles a research asks for once the engine has spoken; a second notice ends it at once."""

GREETING = (
    "Hello! This is the bookshop's sample agent: a script, not a language model. "
    'Ask about an order ("where is order 1234?"), a title ("do you have Evening Birds?"), a refund ("refund order '
    '1234") or a long research ("research the catalogue").'
)


class Wish(enum.Enum):
    RESEARCH = "research"
    REFUND = "refund"
    STOCK = "stock"
    ORDER = "order"
    NOTHING = "nothing"


_PATTERNS: Mapping[Wish, str] = {  # the first that is found holds
    Wish.RESEARCH: r"\bresearch\b|^\s*long\b",
    Wish.REFUND: r"\brefund\b|\bmoney back\b",
    Wish.STOCK: r"\b(?:do you have|in stock|stock of|copies of|copy of)\b",
    Wish.ORDER: r"\borders?\b",
}
_ORDER_NUMBER = r"(?<![\w-])\d{3,8}(?!\w)"
_MOST_ORDERS = 8


@dataclass(frozen=True, slots=True)
class Request:
    """What a person wants, as far as patterns can tell. `orders` are the numbers named last."""

    wish: Wish
    orders: tuple[str, ...]
    title: str


def demo_step(scene: Scene) -> Step:
    """The whole script: a pure function of the turn at hand."""
    request = read_request(scene.said)
    if not scene.tools:
        return Say(_from_evidence(scene))
    if missing := sorted({call.name for call in _wanted(request, scene)} - scene.tools):
        return Say(f"I am sorry, that needs {', '.join(missing)}, which I may not use here.")
    open_calls = [call for call in _wanted(request, scene) if _result_of(scene, call) is None]
    if not open_calls:
        return Say(_answer(request, scene))
    if len(open_calls) == 1 or request.wish is Wish.RESEARCH:
        return open_calls[0]
    return Calls(open_calls, "Let me look all of these up.")


def demo_script() -> Script:
    return Script(afterwards=demo_step)


def read_request(said: Sequence[str]) -> Request:
    """A later text overrules an earlier one, but only in what it names: a number alone changes the number."""
    wish, orders, title = Wish.NOTHING, tuple[str, ...](), ""
    for text in said:
        wish = _wish(text) or wish
        orders = tuple(dict.fromkeys(re.findall(_ORDER_NUMBER, text)))[:_MOST_ORDERS] or orders
        title = _title(text) or title
    if wish is Wish.NOTHING and orders:
        wish = Wish.ORDER
    return Request(wish, orders, title)


def _wish(text: str) -> Wish | None:
    found = (wish for wish, pattern in _PATTERNS.items() if re.search(pattern, text, re.IGNORECASE))
    return next(found, None)


def _title(text: str) -> str:
    quoted = re.search(r'["“«](.+?)["”»]', text)
    if quoted:
        return quoted.group(1).strip()
    named = re.search(_PATTERNS[Wish.STOCK] + r"\s*:?\s*(.+)", text, re.IGNORECASE)
    return named.group(1).strip(" ?!.") if named else ""


def _wanted(request: Request, scene: Scene) -> list[Call]:
    """Every call that the request takes, as far as is known now, whether made already or not."""
    if request.wish is Wish.RESEARCH:
        return [_stock(title) for title in RESEARCH_TITLES[: _research_length(scene)]]
    if request.wish is Wish.STOCK and request.title:
        return [_stock(request.title)]
    if request.wish is Wish.ORDER:
        return [_lookup(order) for order in request.orders]
    if request.wish is Wish.REFUND and request.orders:
        order = request.orders[-1]
        seen = _result_of(scene, _lookup(order))
        known = seen is not None and not seen.is_error and _fields(seen).get("found") is not False
        return [_lookup(order), _refund(order)] if known else [_lookup(order)]
    return []


def _research_length(scene: Scene) -> int:
    """How many titles a research takes: all, until the engine says that calls run out."""
    if not scene.notices:
        return len(RESEARCH_TITLES)
    if len(scene.notices) > 1:
        return _titles_asked(scene, len(scene.results))
    return min(_titles_asked(scene, scene.notices[0].results) + CALLS_AFTER_A_NOTICE, len(RESEARCH_TITLES))


def _titles_asked(scene: Scene, results: int) -> int:
    return sum(1 for result in scene.results[:results] if result.call.name == STOCK)


def _lookup(order: str) -> Call:
    return Call(LOOKUP, {"order_id": order}, f"I am looking up order {order}.")


def _stock(title: str) -> Call:
    return Call(STOCK, {"title": title}, f"I am checking the shelf for {title}.")


def _refund(order: str) -> Call:
    return Call(REFUND, {"order_id": order}, f"I am refunding order {order}.")


def _result_of(scene: Scene, call: Call) -> Result | None:
    for result in scene.results:
        if result.call.name == call.name and result.call.arguments == call.arguments:
            return result
    return None


def _answer(request: Request, scene: Scene) -> str:
    results = [result for call in _wanted(request, scene) if (result := _result_of(scene, call)) is not None]
    # Money that moved is always told of, also when a correction has changed what was asked for.
    results += [result for result in scene.results if result.call.name == REFUND and result not in results]
    if request.wish is Wish.RESEARCH:
        return _research_report(results)
    if results:
        return " ".join(_told(result) for result in results)
    if request.wish in (Wish.ORDER, Wish.REFUND):
        return "Which order do you mean? Please send me its number."
    if request.wish is Wish.STOCK:
        return "Which title are you looking for?"
    return GREETING


def _research_report(results: Sequence[Result]) -> str:
    found = [str(fields["title"]) for result in results if (fields := _fields(result)).get("copies")]
    scope = "the whole list" if len(results) == len(RESEARCH_TITLES) else f"{len(results)} titles, as far as I could go"
    return f"I have been through {scope}. In stock: {'; '.join(found) or 'none of them'}."


def _from_evidence(scene: Scene) -> str:
    if not scene.results:
        return GREETING if not scene.notices else "I could not look anything up before I had to stop."
    return "This is what I found before I had to stop. " + " ".join(_told(result) for result in scene.results)


def _told(result: Result) -> str:
    fields = _fields(result)
    teller = _TELLERS.get(result.call.name)
    if result.is_error or teller is None or not fields:
        return f"{result.call.name} gave no clear answer: {result.content.removeprefix(MARK)}"
    return teller(fields)


def _tell_order(order: Mapping[str, Any]) -> str:
    if order.get("found") is False:
        return f"There is no order {order.get('order_id')}."
    return f"Order {order.get('order_id')} ({order.get('title')}) is {order.get('status')}."


def _tell_stock(stock: Mapping[str, Any]) -> str:
    copies = stock.get("copies")
    return f"We have {copies} of {stock.get('title')}." if copies else f"We have no copy of {stock.get('title')}."


def _tell_refund(refund: Mapping[str, Any]) -> str:
    return f"I have refunded {refund.get('amount')} for order {refund.get('order_id')}."


_TELLERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    LOOKUP: _tell_order,
    STOCK: _tell_stock,
    REFUND: _tell_refund,
}


def _fields(result: Result) -> Mapping[str, Any]:
    try:
        read = json.loads(result.content)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
