"""What RabbitMQ itself takes off the queue of jobs is kept where people look, with the reason, and never run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from actors.broker.topology import DEAD
from tests.broker_world import Door, Vhost, job, until_beside_the_loop


async def test_an_expired_job_is_kept_with_the_reason(vhost: Vhost, door: Callable[..., Awaitable[Door]]) -> None:
    vhost.publish([job("too late")], expiration="1", message_id="m-1")
    await until_beside_the_loop(lambda: vhost.waiting(DEAD) == 1)
    made = await door(vhost)
    async with made.open():

        async def kept() -> bool:
            return bool(await made.kept())

        await made.until(kept)
    (row,) = await made.kept()
    assert (row.raw, row.source) == (job("too late"), "dead-letter")
    assert (
        row.error["message"] == "body: RabbitMQ took it off insika.turns: its time to live ran out before it was read"
    )
    assert row.error["message_id"] == "m-1"
    assert await made.accepted() == []
    assert vhost.waiting(DEAD) == 0


async def test_one_that_someone_refused_is_kept_too(vhost: Vhost, door: Callable[..., Awaitable[Door]]) -> None:
    vhost.publish([b"rubbish"])
    vhost.refuse_one()
    made = await door(vhost)
    async with made.open():

        async def kept() -> bool:
            return bool(await made.kept())

        await made.until(kept)
    (row,) = await made.kept()
    assert (row.raw, row.source) == (b"rubbish", "dead-letter")
    assert row.error["message"].endswith("a consumer refused it")
