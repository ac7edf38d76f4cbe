"""Fault 43: NUL, lone surrogates and emoji that were cut in two, from people, tools and models, through the whole
pipeline, its store and its receiver, and past deaths on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.embedded import Parts
from actors.ingress import Kept
from actors.receiver import Receiver
from insika.crash_points import CrashPoint
from insika.messages import Role
from insika.providers.catalog import ModelCatalog
from insika.testing import Call, Calls, Say, Script
from insika.text import is_clean
from insika.tools.invoke import MAX_OUTPUT_BYTES
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry
from insika.tools.tool import ToolError
from insika.turn import sentences
from tests.faults.lives import OUTLIVES_EVERYTHING_S, Death, clock_of_now, live
from tests.faults.shop import SECRET, configured, job
from tests.faults.verdict import Evidence, rows, settled, texts_of
from tests.loop_doubles import StrictModel

HIGH, LOW = "\ud83d", "\ude00"
BROKEN = f"nul \0, half {HIGH}, other half {LOW}, wrong way {LOW}{HIGH}, whole {HIGH}{LOW}."
MENDED = "nul \ufffd, half \ufffd, other half \ufffd, wrong way \ufffd\ufffd, whole \U0001f600."
WOMAN_AT_WORK = "\U0001f469\U0001f3fd\u200d\U0001f4bb"
TABLES = ("sessions", "job_ids", "mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox")

SCRIPT = Script(
    [
        Calls([Call("echo", {"text": BROKEN, "deep": {"key": [BROKEN, {"x": BROKEN}]}})], text=BROKEN),
        Calls(
            [
                Call("lengthy"),
                Call("fail"),
                Call(f"no such {BROKEN}"),
                Call("echo", malformed=BROKEN),
                Call("echo", {"text": "", "deep": {BROKEN: 1}}),
            ]
        ),
        Say(f"answer: {BROKEN}"),
    ]
)


def odd_shop(folder, clock, gates, crash):
    ran = folder / "echoed.jsonl"

    @tool(side_effect=True)
    def echo(text: str, deep: dict[str, Any]) -> str:
        with ran.open("a", encoding="utf-8") as file:
            file.write(json.dumps([text, deep]) + "\n")
        return f"echo {text} {BROKEN}"

    @tool
    async def lengthy() -> str:
        return "x" + WOMAN_AT_WORK * MAX_OUTPUT_BYTES

    @tool
    async def fail() -> str:
        raise ToolError(f"failed: {BROKEN}")

    return Parts(ModelCatalog({"offline": StrictModel(SCRIPT)}), ToolRegistry([echo, lengthy, fail]), clock, crash)


def as_sent(job):
    """As producers in many languages write it: with escapes, of which JSON allows also those that mean nothing."""
    return json.dumps(job, ensure_ascii=True).encode()


@pytest.fixture
async def shop(tmp_path):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield configured(tmp_path, receiver.url), received


@pytest.mark.parametrize("point", [None, CrashPoint.STEP_APPENDED, CrashPoint.CALL_RAN, CrashPoint.ANSWER_READY])
async def test_it_goes_through_and_comes_out_mended(tmp_path, shop, point):
    environment, received = shop
    jobs = [job("ana", "ana-1", BROKEN), job("ana", "ana-2", f"again {BROKEN}", queue_mode="followup")]
    clock = clock_of_now()

    async def send_both(insika, gates):
        for each in jobs:
            await insika.ingress.take(as_sent(each))
        await settled(insika.store.database.path)

    await live(tmp_path, environment, send_both, clock=clock, death=Death(point), shop=odd_shop)
    clock.advance(OUTLIVES_EVERYTHING_S)
    await live(tmp_path, environment, send_both, clock=clock, shop=odd_shop)
    evidence = Evidence.gathered(tmp_path, received)
    assert [row["state"] for row in evidence.turns] == ["completed"] * 2
    said = evidence.conversation(1)
    assert texts_of(said, Role.USER) == [MENDED, f"again {MENDED}"]
    assert [text for text in texts_of(said, Role.ASSISTANT) if text] == [MENDED, f"answer: {MENDED}"] * 2
    assert [each.payload["content"] for each in received] == [f"answer: {MENDED}"] * 2
    assert unclean(tmp_path) == []
    echoed = [json.loads(line) for line in (tmp_path / "echoed.jsonl").read_text().splitlines()]
    assert echoed == [[MENDED, {"key": [MENDED, {"x": MENDED}]}]] * 2
    results = texts_of(said, Role.TOOL)
    assert results[6] == f"echo {MENDED} {MENDED}"
    assert results[0] == (sentences.UNKNOWN_OUTCOME if point is CrashPoint.CALL_RAN else results[6])
    assert f"failed: {MENDED}" in results[2]
    # A key is a name: what is no name is not mended but sent back.
    assert results[5] == results[4] == sentences.invalid_arguments("echo", "what was written is not a JSON object")


async def test_an_output_that_is_too_long_is_cut_between_characters(tmp_path, shop):
    environment, received = shop

    async def send_one(insika, gates):
        await insika.ingress.take(as_sent(job("ana", "ana-1", BROKEN)))
        await settled(insika.store.database.path)

    await live(tmp_path, environment, send_one, clock=clock_of_now(), shop=odd_shop)
    result = texts_of(Evidence.gathered(tmp_path, received).conversation(1), Role.TOOL)[1]
    kept, _, note = result.partition("\n")
    assert len(result.encode()) <= MAX_OUTPUT_BYTES
    assert kept == "x" + WOMAN_AT_WORK * ((len(kept) - 1) // len(WOMAN_AT_WORK))
    assert str(len(("x" + WOMAN_AT_WORK * MAX_OUTPUT_BYTES).encode())) in note


@pytest.mark.parametrize("broken", ["a\0b", f"a{HIGH}b", f"a{LOW}b", "a\0"], ids=ascii)
@pytest.mark.parametrize("field", ["session", "id", "agent", "channel", "recipient", "tenant", "customer"])
async def test_a_name_is_not_mended_but_refused_by_its_field_and_the_line_behind_goes_on(tmp_path, shop, field, broken):
    environment, received = shop

    async def send_both(insika, gates):
        kept = await insika.ingress.take(as_sent({**job("ana", "ana-1", "hello"), field: broken}))
        assert isinstance(kept, Kept)
        assert kept.error.field == field
        await insika.ingress.take(as_sent(job("ana", "ana-2", "hello")))
        await settled(insika.store.database.path)

    await live(tmp_path, environment, send_both, clock=clock_of_now(), shop=odd_shop)
    assert [each.payload["outcome"] for each in received] == ["completed"]
    (rejected,) = rows(tmp_path / "insika.db", "SELECT raw, error FROM rejected_jobs")
    assert json.loads(rejected["raw"])[field] == broken
    assert is_clean(rejected["error"])


def unclean(folder):
    """What the store holds that another store, or a JSON text, could not."""
    return [
        (table, name)
        for table in TABLES
        for row in rows(folder / "insika.db", f"SELECT * FROM {table}")
        for name, value in row.items()
        if isinstance(value, str) and not (is_clean(value) and "\\u0000" not in value and "\\ud8" not in value)
    ]
