"""The jobs of a storm: numbered, of every sort, the same for the same seed, and good where they are to be good."""

from __future__ import annotations

import json

import pytest

from insika.errors import InvalidJob
from insika.jobs import parse_job
from scripts.storm.books import Book, entries
from scripts.storm.jobs import Agent, Door, Job, Rubbish, make_lines
from scripts.storm.options import Options
from scripts.storm.receiver import LEAVES_OPEN, REFUSED, TAKEN, Manner, manner_of
from scripts.storm.texts import TOOLS, Wish, pause_s

OPTIONS = Options(seconds=90.0, seed=11, jobs=2_005, sessions=200)
LINES = make_lines(OPTIONS)
JOBS = [job for line in LINES for job in line.jobs]
RUBBISH = [bad for line in LINES for bad in line.rubbish]


def test_the_seed_decides():
    assert make_lines(OPTIONS) == LINES
    assert make_lines(Options(seconds=90.0, seed=12, jobs=2_005, sessions=200)) != LINES


def test_there_are_as_many_as_were_asked_for_and_each_session_has_its_share():
    assert len(JOBS) == 2_005
    assert {len(line.jobs) for line in LINES} == {10, 11}
    assert len({(line.tenant, line.session) for line in LINES}) == 200
    assert len({line.session for line in LINES}) < 200, "tenants' sessions have names that the platform's have, too"


def test_ids_and_texts_are_unique_and_numbers_ascend():
    assert len({job.id for job in JOBS}) == len({job.text for job in JOBS}) == len(JOBS)
    for line in LINES:
        assert [job.number for job in line.jobs] == list(range(1, len(line.jobs) + 1))


def test_every_sort_comes():
    assert {job.agent for job in JOBS} == set(Agent)
    assert {job.door for job in JOBS} == set(Door)
    assert {job.channel for job in JOBS} == {"web", "sure", None}
    assert {job.queue_mode for job in JOBS} == {None, "followup", "steer"}
    assert {tool for job in JOBS for batch in Wish.read(job.text).batches for tool in batch} == set(TOOLS)
    assert len({bad.why for bad in RUBBISH}) == 6
    repeated = sum(len([p for p in line.publishes if isinstance(p.what, Job)]) - len(line.jobs) for line in LINES)
    assert repeated > 40


def test_nothing_comes_after_the_storm_or_before_what_it_repeats():
    for line in LINES:
        times = [publish.at_s for publish in line.publishes]
        assert max(times) < OPTIONS.seconds + 5


@pytest.mark.parametrize("door", [Door.PRODUCER, Door.TOPIC, Door.BARE])
def test_good_jobs_are_read_as_they_were_meant(door):
    job = next(job for job in JOBS if job.door is door and job.tenant and job.channel)
    read = parse_job(job.body())
    assert read.id == (None if door is Door.BARE else job.id)
    assert (read.tenant, read.session, read.agent, read.text) == (job.tenant, job.session, job.agent, job.text)


def test_an_envelope_has_the_job_for_its_one_argument():
    job = next(job for job in JOBS if job.door is Door.ENVELOPE)
    envelope = json.loads(job.body())
    assert envelope["actor_name"] == "accept_turn"
    assert parse_job(envelope["args"][0]).id == job.id


def test_rubbish_has_the_flaw_that_it_is_said_to_have():
    for bad in {bad.why: bad for bad in RUBBISH}.values():
        if "agent" in bad.why or "another text" in bad.why:
            assert isinstance(bad, Rubbish)  # only a store can tell
            assert parse_job(bad.body).text
            continue
        with pytest.raises(InvalidJob) as raised:
            parse_job(bad.body)
        assert raised.value.field == bad.field


def test_a_wish_is_read_as_it_was_written():
    wish = Wish("acme:s003#4", (("look", "charge"), ("reserve",)))
    assert Wish.read(str(wish)) == wish
    assert str(wish) == "acme:s003#4: look charge | reserve"
    assert wish.order(1, 0) == "acme:s003#4.1.0"
    assert Wish.read(str(Wish("s000#1", ()))) == Wish("s000#1", ())


def test_tools_take_their_time_by_the_order():
    pauses = [pause_s(f"s000#{number}.0.0") for number in range(500)]
    assert pause_s("s000#1.0.0") == pauses[1]
    assert min(pauses) >= 0.01
    assert max(pauses) < 0.9
    assert sum(pause > 0.2 for pause in pauses) > 20


def test_the_receiver_does_everything_at_times_and_gives_in_at_last():
    manners = {manner_of(1, f"msg_{number}", 1) for number in range(3_000)}
    assert manners == set(Manner)
    assert {manner_of(1, f"msg_{number}", 3) for number in range(3_000)} == {Manner.TAKES}
    assert TAKEN & REFUSED == REFUSED & LEAVES_OPEN == set()
    assert set(Manner) == TAKEN | REFUSED | LEAVES_OPEN


def test_a_book_is_read_in_the_order_in_which_it_was_written(tmp_path):
    path = tmp_path / "book.jsonl"
    assert entries(path) == []
    first, second = Book(path), Book(path)
    first("start", tool="charge")
    second("end", tool="charge")
    assert [(entry["kind"], entry["tool"]) for entry in entries(path)] == [("start", "charge"), ("end", "charge")]
    assert entries(path)[0]["at"] <= entries(path)[1]["at"]
