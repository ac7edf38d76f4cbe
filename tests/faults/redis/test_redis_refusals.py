"""A Redis that answers, but not with what was asked for: that counts as away, costs nobody anything, and passes."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from insika.coordination.port import EventsUnavailable
from insika.coordination.redis.connection import connect
from insika.coordination.redis.stored import StoredEvents
from tests.coordination_world import PATIENCE_S, Watched, publish, read_one, read_until, texts

SECRET = "correct-horse"
SAID = "what-somebody-said"


async def read_only(server):
    await server.do("REPLICAOF", "127.0.0.1", "1")


async def writable(server):
    await server.do("REPLICAOF", "NO", "ONE")


async def full(server):
    await server.do("CONFIG", "SET", "maxmemory", "1")


async def roomy(server):
    await server.do("CONFIG", "SET", "maxmemory", "0")


async def closed_to_strangers(server):
    await server.do("CONFIG", "SET", "requirepass", SECRET)
    await server.do("CLIENT", "KILL", "TYPE", "normal", user=f":{SECRET}@")
    await server.do("CLIENT", "KILL", "TYPE", "pubsub", user=f":{SECRET}@")


async def open_to_all(server):
    await server.do("CONFIG", "SET", "requirepass", "", user=f":{SECRET}@")


async def something_else_in_its_place(server):
    await server.do("SET", "insika:events", "something else")


async def place_made_free(server):
    await server.do("DEL", "insika:events")


async def without_scripts(server):
    await server.do("ACL", "SETUSER", "default", "-@scripting")


async def with_scripts(server):
    await server.do("ACL", "SETUSER", "default", "+@all")


REFUSALS = {
    "READONLY": (read_only, writable, "ReadOnlyError"),
    "OOM": (full, roomy, "OutOfMemoryError"),
    "NOAUTH": (closed_to_strangers, open_to_all, "Redis refuses"),
    "WRONGTYPE": (something_else_in_its_place, place_made_free, "WRONGTYPE"),
    "NOPERM": (without_scripts, with_scripts, "NoPermissionError"),
}


@pytest.mark.parametrize("kind", REFUSALS)
async def test_what_is_refused_waits_until_it_is_taken(server, process, kind):
    refuse, relent, word = REFUSALS[kind]
    others = process()
    await refuse(server)
    ours = process()
    health = Watched(ours.health)
    with capture_logs() as log, ours.health.listen(health), others.events.subscribe(after=0) as events:
        publish(ours, [f"{SAID}-{number}" for number in range(20)])
        await health.becomes(degraded=True)
        assert word in ours.health.reason
        assert ours.health.since is not None
        publish(ours, ["later"])
        await relent(server)
        assert len(await read_until(events, "later")) == 21
        await health.becomes(degraded=False)
    assert health.told == [True, False]
    written = " ".join(str(line) for line in log)
    assert SAID not in written
    assert SECRET not in written


async def test_a_wrong_password_is_told_without_the_password(server, process):
    ours = process(server.url.replace("//", f"//somebody:{SECRET}@"))
    health = Watched(ours.health)
    with capture_logs() as log, ours.health.listen(health):
        await health.becomes(degraded=True)
    assert "AuthenticationError" in ours.health.reason
    assert SECRET not in f"{log} {ours.health.reason}"


async def test_reading_says_when_it_cannot_be_done(server, process):
    ours = process()
    await server.kill()
    with pytest.raises(EventsUnavailable, match="cannot be reached"):
        await ours.events.since(0)
    await server.start()
    server.pause()
    with pytest.raises(EventsUnavailable, match="does not answer"):
        await ours.events.since(0)
    server.resume()


QUESTIONS = {
    "last": lambda stored: stored.last(),
    "append": lambda stored: stored.append(1, [b"{}"]),
    "page": lambda stored: stored.page(0),
    "wait": lambda stored: stored.wait(0),
}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_no_question_waits_for_an_answer_for_ever(server, question):
    client = connect(server.url)
    await client.ping()
    server.pause()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(TimeoutError):
            await QUESTIONS[question](StoredEvents(client, "insika:events", 100))
    server.resume()
    await client.aclose()


async def silence(reader, writer):
    await reader.read()


async def at_once_gone(reader, writer):
    return


async def another_protocol(reader, writer):
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def rubbish(reader, writer):
    await reader.read(1)
    writer.write(bytes(range(256)) * 8 + b"\r\n")


async def the_wrong_answers(reader, writer):
    while await reader.read(65_536):
        writer.write(b"*2\r\n$3\r\nfoo\r\n:-1\r\n+OK\r\n" * 3)


async def half_an_answer(reader, writer):
    await reader.read(1)
    writer.write(b"+OK\r\n+OK\r\n*1000\r\n$5\r\nab")
    await reader.read()


@pytest.mark.parametrize(
    "behave", [silence, at_once_gone, another_protocol, rubbish, the_wrong_answers, half_an_answer]
)
async def test_what_is_no_redis_counts_as_away(process, behave):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behave(reader, writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    stranger = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = stranger.sockets[0].getsockname()[1]
    ours = process(f"redis://127.0.0.1:{port}/0")
    health = Watched(ours.health)
    with ours.health.listen(health), ours.events.subscribe():
        publish(ours, range(1_000))
        ours.signals.publish(1)
        await health.becomes(degraded=True)
        with pytest.raises(EventsUnavailable):
            await ours.events.since(0)
        await asyncio.wait_for(ours.aclose(), 10)
    assert health.told == [True]
    stranger.close()


async def test_what_others_put_there_is_skipped(server, process):
    ours, others = process(), process()
    good = '{"type":"content","at":"2030-01-01T00:00:00Z","data":{"text":"by hand"},"new_in_2031":true}'
    bad: list[tuple[str, ...]] = [
        ("nonsense", "1"),
        ("event", good),
        ("before", "x", "event", good),
        ("before", "0", "event", "{" + SAID),
        ("before", "0", "event", '{"type":"content","at":"yesterday"}'),
        ("before", "0", "event", '{"type":["' + SAID + '"],"at":"2030-01-01T00:00:00Z"}'),
        ("before", "0", "event", "[" * 100_000),
        ("before", "0", "event", b"\xff\xfe".decode("latin-1")),
    ]
    with capture_logs() as log, others.events.subscribe(after=0) as events:
        publish(ours, ["first"])
        seen = await read_until(events, "first")
        for number, fields in enumerate(bad, 1):
            await server.do("XADD", "insika:events", f"{seen[-1].seq + number}-0", *fields)
        await server.do("XADD", "insika:events", "*", "before", "0", "event", good)  # on the last number, as number-1
        last = seen[-1].seq + len(bad)
        await server.do("XADD", "insika:events", f"{last + 1}-0", "before", str(last), "event", good)
        publish(ours, ["last"])
        assert texts(await read_until(events, "last")) == ["by hand", "last"]
        assert texts(await ours.events.since(seen[-1].seq)) == ["by hand", "last"]
    unreadable = [line for line in log if line["event"] == "event_unreadable"]
    assert {line["entry"] for line in unreadable} >= {f"{seen[-1].seq + number}-0" for number in range(1, len(bad) + 1)}
    assert SAID not in str(log)


async def test_a_number_out_of_all_order_is_told_of_and_leaves_with_the_stream(server, process):
    ours = process()
    health = Watched(ours.health)
    await server.do("XADD", "insika:events", f"{2**60}-0", "event", "?")
    with ours.health.listen(health), ours.events.subscribe() as events:
        publish(ours, ["waits"])
        await health.becomes(degraded=True)
        assert "EXHAUSTED" in ours.health.reason
        await server.do("DEL", "insika:events")
        reading = asyncio.create_task(read_one(events))
        while not reading.done():
            publish(ours, ["later"])
            await asyncio.wait({reading}, timeout=0.1)
        assert (await reading).type == "events_missed"
        assert (await read_one(events)).seq < 2**53


async def test_rubbish_on_the_channel_is_skipped(server, process):
    ours = process()
    heard: list[int] = []
    got = asyncio.Event()

    def listen(session_id: int) -> None:
        heard.append(session_id)
        got.set()

    rubbish = ["", "{", "null", "[]", '["x","1"]', '["x",true]', '["x",1.5]', "[" * 100_000, '["x"]', "7"]
    with capture_logs() as log, ours.signals.listen(listen):
        async with asyncio.timeout(PATIENCE_S):
            while not await server.do("PUBLISH", "insika:0:signals", '["x",41]'):
                pass
            for message in rubbish:
                await server.do("PUBLISH", "insika:0:signals", message)
            await server.do("PUBLISH", "insika:0:signals", '["x",42]')
            while 42 not in heard:
                got.clear()
                await got.wait()
    assert heard == [41, 42]
    assert [line["event"] for line in log] == ["signal_unreadable"] * (len(rubbish) - 1)
    assert not ours.health.degraded
