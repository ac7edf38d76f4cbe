"""The standard streams as commands may rely on them: there, and able to take any text.

A stream that was closed before the process began is given a descriptor that fails like a closed one. Otherwise the
next file that is opened would take its number, and be read from or printed to.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO, cast

STDIN, STDOUT, STDERR = 0, 1, 2


def prepare_streams() -> None:
    """To be called once, before anything is read, printed or opened."""
    if sys.stdin is None:
        sys.stdin = _in_place_of(STDIN, os.O_WRONLY, "r")
    if sys.stdout is None:
        sys.stdout = _in_place_of(STDOUT, os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _in_place_of(STDERR, os.O_WRONLY, "w")  # nobody would hear of it
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character is no reason to fail


def cannot_print() -> OSError | None:
    """Why standard output takes nothing more; None when it does. What it has not taken is given up."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _give_up(STDOUT)
        return error
    return None


def tell(sentence: str) -> None:
    """On standard error, if it takes it."""
    try:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    except OSError:
        _give_up(STDERR)


def _in_place_of(descriptor: int, flags: int, mode: str) -> TextIO:
    """The null device there, opened with `flags`; the stream over it is never closed, as the real ones are not."""
    null = os.open(os.devnull, flags)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)
    return cast("TextIO", open(descriptor, mode, encoding="utf-8", errors="replace", closefd=False))


def _give_up(descriptor: int) -> None:
    """Let the interpreter's last flush at its end succeed."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
    with contextlib.suppress(OSError):
        (sys.stdout if descriptor == STDOUT else sys.stderr).flush()
