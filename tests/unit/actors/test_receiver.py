from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from actors.receiver import Answer, Journal, Received, Receiver
from outbox.signing import body_of, signature_headers
from tests.outbox_doubles import OTHER_SECRET, SECRET

PAYLOAD = {"type": "answer", "content": "grüße 😀"}


def signed(*secrets, payload=PAYLOAD, delivery_id="d1", at=None, **extra):
    body = body_of(payload)
    headers = signature_headers(secrets or (SECRET,), delivery_id=delivery_id, at=at or datetime.now(UTC), body=body)
    return {"headers": {**headers, "insika-attempt": "1", **extra}, "data": body}


async def send(receiver, path="", **request):
    async with aiohttp.ClientSession() as session, session.post(receiver.url + path, **request) as response:
        return response.status, await response.json()


async def test_a_signed_delivery_is_written_down_before_it_is_answered(tmp_path):
    journal = tmp_path / "journal.jsonl"
    seen = []
    async with Receiver([SECRET], journal=Journal(journal), on_received=seen.append) as receiver:
        status, _ = await send(receiver, "any/path", **signed())
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert status == 200
    assert seen == [Received("d1", 1, False, PAYLOAD, 1, True)]
    assert lines == [seen[0].as_dict()]


async def test_the_same_id_again_is_counted(tmp_path):
    seen = []
    async with Receiver([SECRET], on_received=seen.append) as receiver:
        await send(receiver, **signed())
        await send(receiver, **signed(**{"insika-attempt": "2", "insika-possible-duplicate": "true"}))
        await send(receiver, **signed(delivery_id="d2"))
    assert [(r.id, r.count, r.attempt, r.possible_duplicate) for r in seen] == [
        ("d1", 1, 1, False),
        ("d1", 2, 2, True),
        ("d2", 1, 1, False),
    ]


async def test_either_of_several_secrets_will_do():
    async with Receiver([OTHER_SECRET, SECRET]) as receiver:
        assert (await send(receiver, **signed(SECRET)))[0] == 200


@pytest.mark.parametrize(
    "request_",
    [
        signed(OTHER_SECRET),
        signed(at=datetime.now(UTC) - timedelta(hours=1)),
        signed(at=datetime.now(UTC) + timedelta(hours=1)),
        {"data": body_of(PAYLOAD)},
        {**signed(), "data": b"{}"},
        {**signed(), "data": b"\xff"},
        signed(**{"webhook-signature": "rubbish"}),
    ],
    ids=["other secret", "too old", "too new", "unsigned", "other body", "no UTF-8", "rubbish"],
)
async def test_what_does_not_verify_is_refused_and_not_written_down(tmp_path, request_):
    journal, refused, seen = tmp_path / "journal.jsonl", [], []
    receiver = Receiver([SECRET], journal=Journal(journal), on_received=seen.append, on_refused=refused.append)
    async with receiver:
        status, answer = await send(receiver, **request_)
    assert status == 401
    assert answer["error"]["type"] == "unauthorized"
    assert (len(refused), seen, journal.read_text()) == (1, [], "")


async def test_deliveries_can_be_turned_away_for_a_while_and_are_not_counted_or_written_down_then(tmp_path):
    journal, seen, away = tmp_path / "journal.jsonl", [], []
    receiver = Receiver(
        [SECRET],
        journal=Journal(journal),
        answer=Answer(503, times=2, retry_after_s=7),
        on_received=seen.append,
        on_turned_away=away.append,
    )
    async with receiver, aiohttp.ClientSession() as session:
        answers = []
        for delivery_id in ("d1", "d1", "d2", "d1", "d1"):
            async with session.post(receiver.url, **signed(delivery_id=delivery_id)) as response:
                answers.append((response.status, response.headers.get("Retry-After")))
    assert answers == [(503, "7"), (503, "7"), (503, "7"), (200, None), (200, None)]
    assert [(it.id, it.count, it.answered) for it in away] == [("d1", 0, 503), ("d1", 0, 503), ("d2", 0, 503)]
    assert [(it.id, it.count, it.answered) for it in seen] == [("d1", 1, 200), ("d1", 2, 200)]
    assert [json.loads(line)["count"] for line in journal.read_text().splitlines()] == [1, 2]


@pytest.mark.parametrize(("status", "accepted"), [(204, 1), (299, 1), (302, 0), (410, 0), (500, 0)])
async def test_any_2xx_accepts_and_nothing_else_does(status, accepted):
    seen, away = [], []
    receiver = Receiver([SECRET], answer=Answer(status), on_received=seen.append, on_turned_away=away.append)
    async with (
        receiver,
        aiohttp.ClientSession() as session,
        session.post(receiver.url, **signed(), allow_redirects=False) as response,
    ):
        assert response.status == status
    assert (len(seen), len(away)) == (accepted, 1 - accepted)


async def test_what_does_not_verify_is_refused_whatever_the_answer_is_to_be():
    async with Receiver([SECRET], answer=Answer(503)) as receiver:
        assert (await send(receiver, **signed(OTHER_SECRET)))[0] == 401


async def test_without_a_secret_everything_is_taken_and_called_unverified():
    seen = []
    async with Receiver(on_received=seen.append) as receiver:
        status, _ = await send(receiver, data=b'{"a": 1}')
    assert status == 200
    assert (seen[0].id, seen[0].verified) == ("", False)


@pytest.mark.parametrize(
    "request_", [{"data": b"not json"}, {"data": b"{}", "headers": {"insika-attempt": "many"}}, {"data": b"\xff"}]
)
async def test_what_cannot_be_read_is_a_bad_request(request_):
    async with Receiver() as receiver:
        assert (await send(receiver, **request_))[0] == 400


async def test_many_at_once_are_each_written_whole(tmp_path):
    journal = tmp_path / "journal.jsonl"
    async with Receiver([SECRET], journal=Journal(journal)) as receiver:
        await asyncio.gather(*(send(receiver, **signed(delivery_id=f"d{n}")) for n in range(40)))
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sorted(line["id"] for line in lines) == sorted(f"d{n}" for n in range(40))


async def test_a_journal_goes_on_where_it_was(tmp_path):
    journal = tmp_path / "journal.jsonl"
    for delivery_id in ("d1", "d2"):
        async with Receiver([SECRET], journal=Journal(journal)) as receiver:
            await send(receiver, **signed(delivery_id=delivery_id))
    assert [json.loads(line)["id"] for line in journal.read_text().splitlines()] == ["d1", "d2"]


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_open():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError):
            async with Receiver(port=taken.getsockname()[1]):
                pass


async def test_other_methods_are_refused():
    async with Receiver() as receiver, aiohttp.ClientSession() as session, session.get(receiver.url) as response:
        assert response.status == 405
