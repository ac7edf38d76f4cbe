"""What a chat is written on. On a terminal, the line that is being typed stays below whatever is printed meanwhile."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol

from rich.text import Text

from actors.cli.chat.lines import STDIN, ReadLine, lines_of
from actors.cli.output import console

PROMPT = "> "
_ERASE_LINE = "\r\x1b[K"


class Screen(Protocol):
    def show(self, text: Text) -> None: ...


class PlainScreen:
    """One thing below the other; for pipes, and for terminals that only one side of the chat is on."""

    def show(self, text: Text) -> None:
        console().print(text)
        sys.stdout.flush()


class TypingScreen:
    """A terminal with somebody typing on it. `ask` is called from the thread that waits for the person."""

    def __init__(self) -> None:
        self._asking = False

    def show(self, text: Text) -> None:
        if self._asking:
            sys.stdout.write(_ERASE_LINE)
        console().print(text)
        if self._asking:
            sys.stdout.write(PROMPT + _typed())
        sys.stdout.flush()

    def ask(self) -> str | None:
        self._asking = True
        try:
            return input(PROMPT)
        except (EOFError, OSError, ValueError):
            return None
        finally:
            self._asking = False

    def clear(self) -> None:
        """Take away the prompt of a line that nobody will finish."""
        if self._asking:
            sys.stdout.write(_ERASE_LINE)
            sys.stdout.flush()


def _typed() -> str:
    """What stands in the line that is being typed."""
    readline = sys.modules.get("readline")
    return readline.get_line_buffer() if readline is not None else ""


@contextlib.contextmanager
def screen_and_lines() -> Iterator[tuple[Screen, ReadLine]]:
    """What this process chats on. A terminal is given back as it was found, also while a line is being typed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield PlainScreen(), lines_of()
        return
    import termios  # noqa: PLC0415 - only where there is a terminal

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - it gives `input` its editing and history by being imported
    found = termios.tcgetattr(STDIN)
    screen = TypingScreen()
    try:
        yield screen, screen.ask
    finally:
        termios.tcsetattr(STDIN, termios.TCSADRAIN, found)
        screen.clear()
