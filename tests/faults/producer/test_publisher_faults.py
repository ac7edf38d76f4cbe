"""A real broker, and everything that can come between it and a publisher."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pika
import pytest
from pika import spec

from insika.producer.connection import AmqpPublisher
from insika.producer.errors import Closed, NotRouted, Refused, TooLarge, TooManyWaiting, Unreachable
from tests.amqp_wire import channel, declare, drain, wire

QUEUE = "jobs"


@pytest.fixture
def url(clean_amqp_url: str) -> str:
    declare(clean_amqp_url, QUEUE, x_queue_type="quorum")
    return clean_amqp_url


@pytest.fixture
def publishers() -> Iterator[list[AmqpPublisher]]:
    made: list[AmqpPublisher] = []
    yield made
    for publisher in made:
        publisher.close(0)


def open_publisher(publishers: list[AmqpPublisher], url: str, **options) -> AmqpPublisher:
    publishers.append(AmqpPublisher(url, **options))
    return publishers[-1]


def publish(publisher: AmqpPublisher, name: str, *, queue=QUEUE, exchange="", body=b"", **options) -> Future[None]:
    properties = pika.BasicProperties(message_id=name, delivery_mode=2)
    return publisher.publish(
        exchange, queue, body or name.encode(), properties, **{"mandatory": True, "repeatable": True, **options}
    )


async def done(*futures: Future[None]) -> list[BaseException | None]:
    return await asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=True)


async def look(url: str, queue: str = QUEUE) -> list[str]:
    """The ids on the queue, in order, each once: what comes a second time is known by its id."""
    found = await asyncio.to_thread(drain, url, queue)
    return list(dict.fromkeys(properties.message_id for properties, _ in found))


async def until(condition, what: str) -> None:
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"never came: {what}")


async def test_many_threads_publish_and_each_message_is_there_once_and_in_the_order_of_its_thread(url, publishers):
    publisher = open_publisher(publishers, url)
    futures: list[Future[None]] = []

    def work(thread: int) -> None:
        futures.extend([publish(publisher, f"{thread}-{n}") for n in range(200)])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert await done(*futures) == [None] * 1000
    found = [properties.message_id for properties, _ in await asyncio.to_thread(drain, url, QUEUE)]
    assert len(found) == 1000
    for thread in range(5):
        assert [it for it in found if it.startswith(f"{thread}-")] == [f"{thread}-{n}" for n in range(200)]


async def test_a_cut_connection_loses_nothing_and_keeps_the_order(url, publishers):
    async with wire(url) as line:
        publisher = open_publisher(publishers, line.url)
        futures = []
        for n in range(600):
            futures.append(publish(publisher, f"m{n}"))
            if n % 100 == 50:
                await until(futures[0].done, "the first confirmation")
                line.cut()
        assert await done(*futures) == [None] * 600
        assert line.connections > 1
    assert await look(url) == [f"m{n}" for n in range(600)]


async def test_what_the_broker_took_but_could_not_confirm_is_published_again_under_its_id(url, publishers):
    async with wire(url) as line:
        publisher = open_publisher(publishers, line.url)
        await done(publish(publisher, "first"))
        line.hold_answers()
        job, hint = publish(publisher, "job"), publish(publisher, "hint", repeatable=False)
        await until(lambda: count(url) == 3, "both at the broker")
        line.cut()
        line.let_go()
        job_error, hint_error = await done(job, hint)
    assert job_error is None
    assert isinstance(hint_error, Unreachable)
    assert hint_error.may_have_arrived
    found = [properties.message_id for properties, _ in await asyncio.to_thread(drain, url, QUEUE)]
    assert found == ["first", "job", "hint", "job"]


def count(url: str, queue: str = QUEUE) -> int:
    with channel(url) as looking:
        return looking.queue_declare(queue, passive=True).method.message_count


async def test_a_broker_that_comes_up_late_gets_what_waited(url, publishers):
    async with wire(url) as line:
        line.open = False
        publisher = open_publisher(publishers, line.url)
        waiting = publish(publisher, "early")
        await until(lambda: line.connections > 2, "several tries")
        line.open = True
        assert await done(waiting) == [None]


async def test_a_broker_that_is_away_is_named_when_the_time_is_up(url, publishers):
    async with wire(url) as line:
        line.open = False
        publisher = open_publisher(publishers, line.url, timeout_s=0.3)
        (error,) = await done(publish(publisher, "m"))
    assert isinstance(error, Unreachable)
    assert f"RabbitMQ at {publisher.where} could not be reached within 0.3 s: " in error.message
    assert (error.message_id, error.may_have_arrived) == ("m", False)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"password": "wrong"}, "ACCESS_REFUSED - Login was refused"),
        ({"vhost": "no-such-vhost"}, "NOT_ALLOWED - vhost no-such-vhost not found"),
    ],
)
async def test_a_broker_that_does_not_let_us_in_is_told_at_once(url, publishers, change, told):
    base, _, vhost = url.rpartition("/")
    wrong = base.replace(":guest@", f":{change.get('password', 'guest')}@") + "/" + change.get("vhost", vhost)
    publisher = open_publisher(publishers, wrong, timeout_s=60)
    (error,) = await done(publish(publisher, "m"))
    assert isinstance(error, Unreachable)
    assert "does not let us in: " + told in error.message
    assert "wrong" not in error.message


async def test_a_dead_peer_is_noticed_by_the_heartbeat(url, publishers):
    async with wire(url) as line:
        publisher = open_publisher(publishers, f"{line.url}?heartbeat=1")
        await done(publish(publisher, "first"))
        line.hold_answers()
        line.hold_questions()
        stuck = publish(publisher, "second")
        await until(lambda: line.connections > 1, "another connection")
        line.let_go()
        assert await done(stuck) == [None]


async def test_while_the_broker_is_blocked_messages_wait_and_the_error_says_why(url, publishers):
    async with wire(url) as line:
        publisher = open_publisher(publishers, line.url)
        await done(publish(publisher, "first"))
        line.block("low on memory")
        error, hasty = None, 0
        while error is None:  # until the notice has arrived
            (error,) = await done(publish(publisher, f"hasty-{(hasty := hasty + 1)}", timeout_s=0.3))
        assert isinstance(error, Unreachable)
        assert "takes no messages at the moment (low on memory)" in error.message
        assert not error.may_have_arrived
        patient = publish(publisher, "patient")
        line.unblock()
        assert await done(patient) == [None]
        assert line.connections == 1
    assert await look(url) == ["first", *(f"hasty-{n}" for n in range(1, hasty)), "patient"]


async def test_a_message_that_no_queue_takes_is_told_and_its_neighbours_go_on(url, publishers):
    publisher = open_publisher(publishers, url)
    results = await done(
        *(publish(publisher, f"m{n}", queue="nowhere" if n % 7 == 3 else QUEUE) for n in range(50)),
        publish(publisher, "unasked", queue="nowhere", mandatory=False),
    )
    assert [isinstance(it, NotRouted) for it in results] == [n % 7 == 3 for n in range(50)] + [False]
    assert await look(url) == [f"m{n}" for n in range(50) if n % 7 != 3]


async def test_a_queue_that_refuses_is_told(url, publishers):
    declare(url, "full", x_max_length=1, x_overflow="reject-publish")
    publisher = open_publisher(publishers, url)
    results = await done(*(publish(publisher, f"m{n}", queue="full") for n in range(3)))
    assert [type(it) for it in results] == [type(None), Refused, Refused]


async def test_a_message_over_which_the_channel_is_closed_takes_no_neighbour_along(url, publishers):
    publisher = open_publisher(publishers, url)
    futures = [
        publish(publisher, f"m{n}", **({"exchange": "no-such-exchange"} if n in (40, 41, 120) else {}))
        for n in range(200)
    ]
    results = await done(*futures)
    refused = {n for n, it in enumerate(results) if isinstance(it, Refused)}
    assert refused == {40, 41, 120}
    assert "NOT_FOUND - no exchange 'no-such-exchange'" in results[40].message
    assert [it for n, it in enumerate(results) if n not in refused] == [None] * 197
    assert await look(url) == [f"m{n}" for n in range(200) if n not in refused]


async def test_a_message_too_large_for_the_publisher_never_reaches_the_broker(url, publishers):
    publisher = open_publisher(publishers, url, body_max=1000)
    results = await done(
        publish(publisher, "a"), publish(publisher, "b", body=b"x" * 1001), publish(publisher, "c", body=b"x" * 1000)
    )
    assert [type(it) for it in results] == [type(None), TooLarge, type(None)]
    assert await look(url) == ["a", "c"]


async def test_a_message_too_large_for_the_broker_takes_no_neighbour_along(url, publishers):
    async with wire(url) as line:
        publisher = open_publisher(publishers, line.url)
        await done(publish(publisher, "first"))
        line.hold_questions()
        large = publish(publisher, "large")
        await until(large.running, "the message on its way")
        line.say(1, spec.Channel.Close(406, "PRECONDITION_FAILED - message size 9 is larger than max size 8", 60, 40))
        (error,) = await done(large)
        line.let_go()
        assert isinstance(error, TooLarge)
        assert await done(publish(publisher, "next")) == [None]


async def test_properties_that_amqp_has_no_place_for_harm_nobody(url, publishers):
    publisher = open_publisher(publishers, url)
    long = pika.BasicProperties(message_id="x" * 256)
    odd = pika.BasicProperties(message_id="odd", headers={"a": object()})
    first, second, third = await done(
        publisher.publish("", QUEUE, b"", long), publisher.publish("", QUEUE, b"", odd), publish(publisher, "fine")
    )
    assert (isinstance(first, Refused), isinstance(second, Refused), third) == (True, True, None)
    assert await look(url) == ["fine"]


async def test_more_than_may_wait_is_told_and_there_is_room_again_afterwards(url, publishers):
    async with wire(url) as line:
        line.open = False
        publisher = open_publisher(publishers, line.url, backlog_max=2)
        waiting = [publish(publisher, "a"), publish(publisher, "b")]
        (error,) = await done(publish(publisher, "c"))
        assert isinstance(error, TooManyWaiting)
        assert error.message == f"2 messages wait for RabbitMQ at {publisher.where} already"
        assert waiting[0].cancel()
        waiting[0] = publish(publisher, "d")
        line.open = True
        assert await done(*waiting) == [None, None]
    assert await look(url) == ["b", "d"]


async def test_closing_waits_for_what_is_on_its_way(url, publishers):
    publisher = open_publisher(publishers, url)
    futures = [publish(publisher, f"m{n}") for n in range(500)]
    await asyncio.to_thread(publisher.close)
    assert [it.exception(timeout=0) for it in futures] == [None] * 500
    (late,) = await done(publish(publisher, "late"))
    assert isinstance(late, Closed)
    publisher.close()


async def test_closing_does_not_wait_for_ever(url, publishers):
    async with wire(url) as line:
        publisher = open_publisher(publishers, line.url)
        await done(publish(publisher, "first"))
        line.hold_answers()
        sent = publish(publisher, "sent")
        await until(sent.running, "the message on its way")
        await asyncio.to_thread(publisher.close, 0.1)
        error = sent.exception(timeout=0)
    assert isinstance(error, Closed)
    assert error.may_have_arrived


async def test_closing_while_the_broker_is_away_ends_at_once_what_waits(url, publishers):
    async with wire(url) as line:
        line.open = False
        publisher = open_publisher(publishers, line.url)
        waiting = publish(publisher, "m")
        await asyncio.to_thread(publisher.close, 0)
        error = waiting.exception(timeout=0)
    assert isinstance(error, Closed)
    assert not error.may_have_arrived


@pytest.mark.parametrize("comes_to_itself", [True, False])
async def test_closing_while_the_connection_is_made_is_quiet(url, publishers, caplog, comes_to_itself):
    async with wire(url) as line:
        line.hold_answers()
        publisher = open_publisher(publishers, line.url)
        publisher.start()
        await until(lambda: line.connections == 1, "the connection")
        closing = asyncio.create_task(asyncio.to_thread(publisher.close))
        if comes_to_itself:
            line.let_go()
        await closing
    assert [it for it in caplog.records if it.name.startswith(("asyncio", "insika"))] == []


async def test_a_publisher_may_be_closed_from_the_callback_of_its_last_message(url, publishers):
    publisher = open_publisher(publishers, url)
    closed = threading.Event()
    future = publish(publisher, "m")
    future.add_done_callback(lambda _: (publisher.close(), closed.set()))
    assert await done(future) == [None]
    assert await asyncio.to_thread(closed.wait, 10)


def test_a_publisher_that_was_never_used_closes():
    AmqpPublisher("amqp://guest:guest@127.0.0.1:1/").close()


FORKS = """
import json, os, sys
from insika.producer.connection import AmqpPublisher
publisher = AmqpPublisher(sys.argv[1])
publisher.publish("", "jobs", b"1").result()
read, write = os.pipe()
if os.fork() == 0:
    error = publisher.publish("", "jobs", b"2").exception(timeout=20)
    os.write(write, json.dumps([error.type, error.message]).encode())
    os._exit(0)
os.wait()
print(os.read(read, 10_000).decode())
"""


def test_a_forked_process_is_told_instead_of_waiting_for_a_thread_that_is_not_there(url):
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", FORKS, url]
    run = subprocess.run(command, cwd=root, env={**os.environ}, capture_output=True, text=True, timeout=60, check=True)
    type_, message = json.loads(run.stdout)
    assert type_ == "publisher_closed"
    assert "make its publishers after that" in message


ENDS = """
import sys
from insika.producer.connection import AmqpPublisher
publisher = AmqpPublisher(sys.argv[1])
publisher.publish("", "jobs", b"1").result()
print("done")
"""


def test_a_publisher_that_nobody_closed_keeps_no_process_from_ending(url):
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", ENDS, url]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True)
    assert (run.stdout, run.stderr) == ("done\n", "")
