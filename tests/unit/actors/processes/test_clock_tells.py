"""What the clock does with deliveries whose sender died."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from actors.processes.clock import _DueDeliveries
from tests.outbox_doubles import RecordedEvents, open_outbox


@pytest.fixture
def outbox(tmp_path: Any) -> Any:
    with open_outbox(tmp_path / "insika.db") as opened:
        yield opened


async def test_operators_are_told_of_them_and_the_outbox_is_woken(outbox: Any) -> None:
    events, rung = RecordedEvents(), []
    ground: Any = SimpleNamespace(
        stores=SimpleNamespace(outbox=outbox.store),
        configuration=SimpleNamespace(alert_webhook=lambda agent: "https://ops.example/insika"),
        parts=SimpleNamespace(clock=outbox.clock),
        coordination=SimpleNamespace(events=events),
        hints=SimpleNamespace(delivery=lambda: rung.append(True)),
    )
    outbox.add("d1", timeout_s=15.0)
    await outbox.store.claim(20.0)
    assert await _DueDeliveries(ground).expire() == 0
    outbox.clock.advance(60)
    assert await _DueDeliveries(ground).expire() == 1
    assert [(kind, data["outcome"]) for kind, data in events.told()] == [("delivery_failed", "uncertain")]
    alert = await outbox.store.claim(20.0)
    assert (alert.kind, alert.payload["type"], alert.url) == ("alert", "delivery_failed", "https://ops.example/insika")
    assert rung == [True]
