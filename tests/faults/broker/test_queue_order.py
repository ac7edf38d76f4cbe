"""The order of a queue, whatever becomes of those who read it. Several stand by; one at a time reads."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator

from actors.broker.consuming import TURNS_PREFETCH
from tests.broker_world import Door, Journal, Readers, Vhost, job, numbered, texts, until

ROUNDS = 3
SHARE = 400
MESSAGES = SHARE * (ROUNDS + 1)


def in_the_midst_of_it(vhost: Vhost, readers: Readers, journal: Journal) -> Iterator[int]:
    """Three times: the pid of the reader whose turn it is. It is in the middle of a message, and has others at hand."""
    vhost.publish(numbered(MESSAGES))
    readers.start(ROUNDS + 1)
    for handled in range(SHARE, MESSAGES, SHARE):
        journal.permit(SHARE)
        until(lambda handled=handled: len(journal.read()) == handled, f"message {handled}")  # type: ignore[misc]
        yield journal.read()[-1].pid
    journal.permit(MESSAGES)
    until(lambda: len(set(journal.bodies)) == MESSAGES, "the last message")


def test_it_is_kept_when_the_reader_is_killed(vhost: Vhost, readers: Readers, journal: Journal) -> None:
    for pid in in_the_midst_of_it(vhost, readers, journal):
        readers.tell(pid, signal.SIGKILL)

    assert journal.first_times() == texts(numbered(MESSAGES))
    assert journal.repeats <= ROUNDS * TURNS_PREFETCH  # what was handled and not settled when it died
    assert len({handled.pid for handled in journal.read()}) == ROUNDS + 1


def test_it_is_kept_and_nothing_comes_twice_when_readers_are_told_to_stop(
    vhost: Vhost, readers: Readers, journal: Journal
) -> None:
    """As at each deployment. A consumer that is cancelled first lets the next one begin behind what it still holds."""
    for pid in in_the_midst_of_it(vhost, readers, journal):
        readers.tell(pid, signal.SIGTERM)

    assert journal.bodies == texts(numbered(MESSAGES))
    assert len({handled.pid for handled in journal.read()}) == ROUNDS + 1
    assert readers.exit_codes() == [0] * ROUNDS


async def test_twenty_jobs_of_one_session_with_two_processes_reading(
    vhost: Vhost, door: Callable[..., Awaitable[Door]]
) -> None:
    """As many as both fetch ahead."""
    doors = [await door(vhost), await door(vhost)]
    async with doors[0].open(), doors[1].open():
        vhost.publish([job(f"{number:02}", id=f"j{number}") for number in range(20)])

        async def all_accepted() -> bool:
            return len(await doors[0].accepted()) == 20

        await doors[0].until(all_accepted)
    assert await doors[0].accepted() == [f"{number:02}" for number in range(20)]
