"""`insika.Producer` and `insika.AsyncProducer` over a real broker."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import insika
from insika import AsyncProducer, Producer
from insika.errors import InvalidConfiguration, InvalidJob
from insika.producer.errors import Closed, NotRouted, TooManyWaiting, Unreachable
from insika.producer.producer import Sent
from tests.amqp_wire import declare, drain, wire

ROOT = Path(__file__).resolve().parents[3]
TURNS = "insika.turns"


@pytest.fixture
def url(clean_amqp_url: str) -> str:
    declare(clean_amqp_url, TURNS, x_queue_type="quorum")
    return clean_amqp_url


def read(url: str) -> list[dict]:
    found = drain(url, TURNS)
    jobs = [json.loads(body) for _, body in found]
    assert [properties.message_id for properties, _ in found] == [job["id"] for job in jobs]
    assert {(properties.delivery_mode, properties.content_type) for properties, _ in found} <= {(2, "application/json")}
    return jobs


def test_a_message_is_on_the_queue_when_send_returns(url):
    with Producer(url) as producer:
        sent = producer.send(session="ana", agent="shop", text="hello", channel="web", id="m1")
        assert sent == Sent("m1")
        made_up = producer.send(session="ana", agent="shop", text="hello")
        assert read(url) == [
            {"id": "m1", "session": "ana", "agent": "shop", "text": "hello", "channel": "web"},
            {"id": made_up.id, "session": "ana", "agent": "shop", "text": "hello"},
        ]


def test_one_producer_serves_many_threads_and_needs_no_with(url):
    producer = Producer(url)
    with ThreadPoolExecutor(8) as threads:
        sent = list(threads.map(lambda n: producer.send(session="s", agent="a", text=f"t{n}"), range(100)))
    producer.close()
    assert {job["id"] for job in read(url)} == {it.id for it in sent}


def test_many_are_submitted_at_once_and_keep_their_order(url):
    with Producer(url) as producer:
        futures = [producer.submit(session="s", agent="a", text=f"t{n}", id=str(n)) for n in range(300)]
    assert [future.result(timeout=0).id for future in futures] == [str(n) for n in range(300)]
    assert [job["text"] for job in read(url)] == [f"t{n}" for n in range(300)]


async def test_asynchronous_sends_go_out_in_their_order_and_may_be_more_than_can_wait(url, monkeypatch):
    monkeypatch.setattr("insika.producer.producer.BACKLOG_MAX", 10)
    async with AsyncProducer(url) as producer:
        sent = await asyncio.gather(*(producer.send(session="s", agent="a", text=f"t{n}") for n in range(300)))
    jobs = read(url)
    assert [job["text"] for job in jobs] == [f"t{n}" for n in range(300)]
    assert [job["id"] for job in jobs] == [it.id for it in sent]


@pytest.mark.parametrize("wrong", [{"text": ""}, {"chanel": "web"}, {"queue_mode": "later"}])
async def test_a_job_that_nobody_would_read_is_refused_before_it_goes_out(url, wrong):
    job = {"session": "s", "agent": "a", "text": "t", **wrong}
    with Producer(url) as producer:
        for hand_in in (producer.send, producer.submit):
            with pytest.raises(InvalidJob) as caught:
                hand_in(**job)
            assert caught.value.field == next(iter(wrong))
    async with AsyncProducer(url) as asynchronous:
        with pytest.raises(InvalidJob):
            await asynchronous.send(**job)
    assert read(url) == []


async def test_a_queue_that_is_not_there_is_told(clean_amqp_url):
    with Producer(clean_amqp_url) as producer:
        with pytest.raises(NotRouted, match=r"has no queue 'insika\.turns'"):
            producer.send(session="s", agent="a", text="t")
        assert isinstance(producer.submit(session="s", agent="a", text="t").exception(timeout=20), NotRouted)
    async with AsyncProducer(clean_amqp_url) as asynchronous:
        with pytest.raises(NotRouted):
            await asynchronous.send(session="s", agent="a", text="t")


def test_an_error_has_the_id_to_send_again_with():
    with Producer("amqp://guest:guest@127.0.0.1:1/", timeout_s=0.2) as producer:
        with pytest.raises(Unreachable) as caught:
            producer.send(session="s", agent="a", text="t", id="m1")
        with pytest.raises(Unreachable) as made_up:
            producer.send(session="s", agent="a", text="t")
    assert (caught.value.message_id, caught.value.may_have_arrived) == ("m1", False)
    assert made_up.value.message_id


def test_a_closed_producer_says_so(url):
    producer = Producer(url)
    producer.close()
    with pytest.raises(Closed):
        producer.send(session="s", agent="a", text="t")


async def test_the_time_that_a_message_waits_for_room_counts(url, monkeypatch):
    monkeypatch.setattr("insika.producer.producer.BACKLOG_MAX", 1)
    async with wire(url) as line:
        line.open = False
        async with AsyncProducer(line.url, timeout_s=0.3) as producer:
            results = await asyncio.gather(
                *(producer.send(session="s", agent="a", text="t") for _ in range(3)), return_exceptions=True
            )
            assert [type(it) for it in results] == [Unreachable, TooManyWaiting, TooManyWaiting]
            assert all(it.message_id for it in results)


async def test_a_cut_line_is_not_seen_by_those_who_send(url):
    async with wire(url) as line, AsyncProducer(line.url) as producer:
        sends = [asyncio.create_task(producer.send(session="s", agent="a", text=f"t{n}")) for n in range(200)]
        await asyncio.wait(sends, return_when=asyncio.FIRST_COMPLETED)
        line.cut()
        await asyncio.gather(*sends)
    texts = [job["text"] for job in read(url)]
    assert list(dict.fromkeys(texts)) == [f"t{n}" for n in range(200)]


async def test_a_cancelled_send_leaves_the_producer_in_order(url):
    async with wire(url) as line, AsyncProducer(line.url) as producer:
        line.open = False
        send = asyncio.create_task(producer.send(session="s", agent="a", text="withdrawn"))
        await asyncio.sleep(0)
        send.cancel()
        await asyncio.wait([send])
        line.open = True
        await producer.send(session="s", agent="a", text="next")
    assert [job["text"] for job in read(url)] == ["next"]


@pytest.mark.parametrize("kind", [Producer, AsyncProducer])
def test_a_url_that_is_none_is_refused_at_once(kind):
    with pytest.raises(InvalidConfiguration, match="amqp://user:password@host"):
        kind("localhost")


def test_the_package_offers_them_and_nothing_it_does_not_have():
    assert [getattr(insika, name).__name__ for name in insika.__all__] == insika.__all__
    with pytest.raises(AttributeError, match="has no attribute 'Consumer'"):
        _ = insika.Consumer


def test_importing_the_package_does_not_bring_the_broker_in():
    program = "import sys, insika; print('pika' in sys.modules); insika.Producer; print('pika' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]
