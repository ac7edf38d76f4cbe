"""What an answer's bad end is told by: raised in the write that ends it, once, and by no alert's own bad end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from insika.storage.operations import NewAlert
from outbox.message import DeliveryRow, DeliveryState
from outbox.states import Decision, Delivered, Failed, RetryIn, Uncertain
from tests.outbox_world import OutboxWorld
from tests.store_world import alert

GRACE_S = 20.0
UNTIL_EXPIRED_S = 15 + GRACE_S + 1


async def told(outbox: OutboxWorld) -> list[str]:
    """The keys of the alerts that were raised, each with a row to be sent."""
    rows = await outbox.run(
        "SELECT a.key FROM alerts AS a JOIN outbox AS o ON o.unique_key = a.key AND o.kind <> 'answer' ORDER BY a.key"
    )
    assert len(rows) == len(await outbox.run("SELECT key FROM alerts"))
    return [key for (key,) in rows]


async def ended(outbox: OutboxWorld, decision: Decision, *alerts: NewAlert, **changes: object) -> bool:
    await outbox.add("a", **changes)
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    return await outbox.store.settle(claimed.id, claimed.claim, decision, alerts=alerts)


@pytest.mark.parametrize("decision", [Failed("404"), Uncertain("504")])
async def test_an_answer_that_was_not_delivered_raises_its_alert(outbox: OutboxWorld, decision: Decision) -> None:
    assert await ended(outbox, decision, alert("k", kind="delivery_failed"), turn_id="t")
    assert await told(outbox) == ["k"]
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    assert (claimed.kind, claimed.url, claimed.overtook) == ("delivery_failed", "https://ops.example/hook", False)
    ((turn_id,),) = await outbox.run("SELECT turn_id FROM outbox WHERE kind = 'delivery_failed'")
    assert turn_id == "t"


@pytest.mark.parametrize("decision", [Delivered(200), RetryIn(5.0, "503")])
async def test_what_has_not_ended_badly_raises_none(outbox: OutboxWorld, decision: Decision) -> None:
    assert await ended(outbox, decision, alert("k"))
    assert await told(outbox) == []


async def test_an_alert_that_was_not_delivered_raises_none(outbox: OutboxWorld) -> None:
    assert await ended(outbox, Failed("404"), alert("k"), kind="budget_warning")
    assert await told(outbox) == []


async def test_an_end_that_is_not_written_raises_none(outbox: OutboxWorld) -> None:
    await outbox.add("a")
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    assert await outbox.store.settle("a", "another claim", Failed("404"), alerts=(alert("k"),)) is False
    assert await told(outbox) == []


async def test_an_end_that_is_told_twice_raises_it_once(outbox: OutboxWorld) -> None:
    """As when the first answer was lost."""
    await outbox.add("a")
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    for _ in range(2):
        assert await outbox.store.settle("a", claimed.claim, Failed("404"), alerts=(alert("k"),))
    assert await told(outbox) == ["k"]


async def test_a_late_delivered_raises_none(outbox: OutboxWorld) -> None:
    await outbox.add("a")
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    assert await outbox.store.settle("a", claimed.claim, Uncertain("reset"), alerts=(alert("first"),))
    assert await outbox.store.settle("a", claimed.claim, Delivered(200), alerts=(alert("second"),))
    assert await told(outbox) == ["first"]


# --- claims that ran out


class Asked:
    """Raises one alert about each delivery, and remembers what it was asked."""

    def __init__(self) -> None:
        self.about: list[tuple[str, DeliveryState, Decision]] = []

    def __call__(self, delivery: DeliveryRow, decision: Decision, /) -> Sequence[NewAlert]:
        self.about.append((delivery.id, delivery.state, decision))
        return (alert(f"about {delivery.id}"),)


async def test_a_claim_that_ran_out_raises_the_alert_of_its_delivery(outbox: OutboxWorld) -> None:
    await outbox.add("a")
    await outbox.add("b", session="s2", guarantee="at_least_once")
    await outbox.add("c", session="s3", kind="budget_warning")
    for _ in range(3):
        assert await outbox.store.claim(GRACE_S) is not None
    outbox.clock.advance(UNTIL_EXPIRED_S)
    asked = Asked()
    swept = {row.id: row.state for row in await outbox.store.sweep_expired(asked)}
    assert swept == {"a": DeliveryState.UNCERTAIN, "b": DeliveryState.PENDING, "c": DeliveryState.UNCERTAIN}
    assert await told(outbox) == ["about a"]
    assert {(name, state) for name, state, _ in asked.about} == {(name, DeliveryState.DELIVERING) for name in "abc"}
    assert {name: type(decision) for name, _, decision in asked.about} == {"a": Uncertain, "b": RetryIn, "c": Uncertain}
    assert await outbox.store.sweep_expired(asked) == ()
    assert await told(outbox) == ["about a"]


async def test_a_sweep_that_nobody_listens_to_raises_nothing(outbox: OutboxWorld) -> None:
    await outbox.add("a")
    await outbox.store.claim(GRACE_S)
    outbox.clock.advance(UNTIL_EXPIRED_S)
    assert [row.id for row in await outbox.store.sweep_expired()] == ["a"]
    assert await told(outbox) == []


async def test_an_alert_is_sent_again_by_hand_as_any_other(outbox: OutboxWorld) -> None:
    await ended(outbox, Failed("404"), alert("k"))
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    assert claimed.kind == "budget_warning"
    assert await outbox.store.settle(claimed.id, claimed.claim, Failed("500"), alerts=(alert("again"),))
    assert await told(outbox) == ["k"]
    await outbox.store.resend(claimed.id, force=True)
    outbox.clock.advance(2)
    again = await outbox.store.claim(GRACE_S)
    assert again is not None
    assert (again.id, again.possible_duplicate) == (claimed.id, True)
