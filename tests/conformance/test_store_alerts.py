"""Alerts: raised once by their key, whoever sees their cause first, and written with it or not at all."""

from __future__ import annotations

import json
from typing import Any

from insika.storage.operations import NewAlert
from insika.storage.rows import Begun
from tests.store_world import World, alert


async def sent(world: World) -> list[dict[str, Any]]:
    return [dict(row) for row in await world.peek("SELECT * FROM outbox WHERE kind <> 'answer' ORDER BY unique_key")]


async def raised(world: World) -> list[str]:
    return [row["key"] for row in await world.peek("SELECT key FROM alerts ORDER BY key")]


async def test_an_alert_is_raised_once(world: World) -> None:
    assert await world.store.raise_alerts([alert("a"), alert("b")]) == {"a", "b"}
    assert await world.store.raise_alerts([alert("b"), alert("c")]) == {"c"}
    assert await world.store.raise_alerts([alert("a")]) == frozenset()
    assert await world.store.raise_alerts([]) == frozenset()
    assert [row["unique_key"] for row in await sent(world)] == ["a", "b", "c"]


async def test_an_alert_is_raised_once_also_within_one_asking(world: World) -> None:
    assert await world.store.raise_alerts([alert("a"), alert("a", recipient="other")]) == {"a"}
    assert len(await sent(world)) == 1


async def test_an_alert_s_row_says_all_that_its_sending_needs_and_waits_for_nobody(world: World) -> None:
    payload = {"type": "budget_warning", "data": {"spent": 9}, "meta": {"é": "ü"}}
    given = alert("k", payload=payload, recipient="ops", max_attempts=5, timeout_s=2.5, order_wait_s=0.0, lane="lane")
    await world.store.raise_alerts([given, alert("other", lane="lane")])
    row, other = await sent(world)
    stored = row["payload"]
    assert (json.loads(stored) if isinstance(stored, str) else stored) == payload
    told = ("kind", "channel", "recipient", "url", "guarantee", "max_attempts", "timeout_s", "order_wait_s", "state")
    assert [row[name] for name in told] == [
        *("budget_warning", "alerts", "ops", "https://ops.example/hook", "at_most_once", 5, 2.5, 0.0, "pending"),
    ]
    assert (row["session_id"], row["turn_id"], row["lane"], row["lane_pos"]) == (None, None, row["id"], 1)
    assert row["lane"] != other["lane"]
    assert row["id"].startswith("msg_")


async def test_an_alert_that_nobody_is_sent_is_known_all_the_same(world: World) -> None:
    assert await world.store.raise_alerts([NewAlert("silent"), alert("loud")]) == {"silent", "loud"}
    assert await world.store.raise_alerts([alert("silent")]) == frozenset(), (
        "a webhook that comes later hears of the next"
    )
    assert [row["unique_key"] for row in await sent(world)] == ["loud"]
    assert await raised(world) == ["loud", "silent"]


async def test_an_alert_goes_with_the_start_that_causes_it(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await world.store.raise_alerts([alert("old")])
    begun = await world.store.start(owner.fence, owner.seen, owner.opening(alerts=(alert("old"), alert("new"))))
    assert begun == Begun(1, frozenset({"new"}))
    assert [(row["unique_key"], row["turn_id"]) for row in await sent(world)] == [("new", said.turn_id), ("old", None)]


async def test_an_alert_goes_with_a_turn_that_is_given_up_or_finishes_at_once(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    failed = await world.store.fail_queued(owner.fence, owner.seen, owner.giving_up(alerts=(alert("a"), alert("b"))))
    assert failed == Begun(1, frozenset({"a", "b"}))
    await world.say("two")
    await owner.look()
    finishing = owner.finishing(alerts=(alert("b"), NewAlert("c")))
    finished = await world.store.finish_at_once(owner.fence, owner.seen, finishing)
    assert finished == Begun(3, frozenset({"c"}))
    assert [row["unique_key"] for row in await sent(world)] == ["a", "b"]


async def test_no_alert_is_raised_by_what_does_not_happen(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    nowhere = (alert("k"),)
    before = await world.everything()
    opening = owner.opening(positions=(9,), alerts=nowhere)
    assert await world.store.start(owner.fence, owner.seen, opening) is None
    assert (
        await world.store.fail_queued(owner.fence, owner.seen, owner.giving_up(positions=(9,), alerts=nowhere)) is None
    )
    await world.store.set_paused("s", True)
    assert await world.store.start(owner.fence, owner.seen, owner.opening(alerts=nowhere)) is None
    await world.store.set_paused("s", False)
    after = await world.everything()
    assert (after["alerts"], after["outbox"]) == (before["alerts"], before["outbox"]) == ([], [])


async def test_keys_may_be_anything(world: World) -> None:
    keys = ["", " ", "a/b", "😀", "100 %", "' OR 1", "x" * 500]
    assert await world.store.raise_alerts([alert(key) for key in keys]) == frozenset(keys)
