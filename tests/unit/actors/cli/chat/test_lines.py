"""Where a chat's lines come from, and that nothing waits for them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from actors.cli.chat.lines import is_input, lines_of, next_line


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            pass


async def test_lines_come_one_by_one_without_their_ends_until_the_pipe_ends(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.write(writing, "größer\r\n\nlast without an end".encode())
    os.close(writing)
    read = lines_of(reading)
    assert [await next_line(read) for _ in range(4)] == ["größer", "", "last without an end", None]


async def test_what_is_no_utf_8_is_replaced(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.write(writing, b"a\xffb\n")
    assert await next_line(lines_of(reading)) == "a\ufffdb"


async def test_a_line_that_does_not_come_can_be_given_up(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    waiting = asyncio.create_task(next_line(lines_of(reading)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.write(writing, b"too late\n")  # lets the thread go


async def test_an_end_that_is_torn_off_is_the_end(pipe: tuple[int, int]) -> None:
    reading, _ = pipe
    read = lines_of(reading)
    os.close(reading)
    assert await next_line(read) is None


def test_a_pipe_and_a_file_are_input_and_the_null_device_is_not(pipe: tuple[int, int]) -> None:
    reading, _ = pipe
    assert is_input(reading)
    with open(__file__, "rb") as file, open(os.devnull, "rb") as null:
        assert is_input(file.fileno())
        assert not is_input(null.fileno())
        closed = os.dup(null.fileno())
    os.close(closed)
    assert not is_input(closed)
