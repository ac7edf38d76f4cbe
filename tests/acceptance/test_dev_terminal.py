"""`insika dev` on a terminal: typing while the agent works, and a terminal that is given back as it was."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import PATIENCE_S, SIGTERM, Folder, folder, wait_for


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, shop: Folder, *arguments: str) -> None:
        self.master, self._slave = os.openpty()
        self.before = termios.tcgetattr(self._slave)
        self._screen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "actors.cli.main", *arguments],
            cwd=shop.path,
            env={**shop.seen(), "TERM": "xterm"},
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
        )

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    @property
    def shown(self) -> str:
        while select.select([self.master], [], [], 0)[0]:
            self._screen += os.read(self.master, 65_536)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", self._screen.decode(errors="replace"))

    def until(self, pattern: str) -> None:
        wait_for(lambda: re.search(pattern, self.shown), lambda: f"{pattern!r} in:\n{self.shown}")

    def wait(self) -> int:
        wait_for(lambda: self.shown is None or self.process.poll() is not None, "the end of the process")
        return self.process.wait(PATIENCE_S)

    def as_it_was(self) -> bool:
        return termios.tcgetattr(self._slave) == self.before

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        for descriptor in (self.master, self._slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with folder(tmp_path) as shop:
        made = Terminal(shop, "dev")
        try:
            yield made
        finally:
            made.end()


def test_a_person_corrects_themselves_while_the_agent_works(terminal: Terminal) -> None:
    terminal.until("not a language model")
    terminal.until("session dev, new")
    terminal.type("research the catalogue\n")
    terminal.until("· stock_check")
    terminal.type("where is order ")
    terminal.until(r"· stock_check\n> where is order ")
    terminal.type("1234?\n")
    terminal.until("steered: it joins the running turn")
    terminal.until("your message joined the turn")
    terminal.until("demo: ")
    terminal.type("/quit\n")
    assert terminal.wait() == 0
    assert terminal.as_it_was()


def test_control_d_leaves(terminal: Terminal) -> None:
    terminal.until("session dev, new")
    terminal.until("> ")
    terminal.type("\x04")
    assert terminal.wait() == 0


def test_a_signal_while_somebody_types_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.until("session dev, new")
    terminal.type("half a li")
    terminal.until("> half a li")
    assert not terminal.as_it_was()
    terminal.process.send_signal(SIGTERM)
    assert terminal.wait() == 0
    assert terminal.as_it_was()
    assert "Traceback" not in terminal.shown


def test_a_person_at_the_terminal_decides_about_a_call(tmp_path: Path) -> None:
    with folder(tmp_path) as shop:
        shop.must("migrate")
        careful = "id: shop\nmodel: offline/demo\napprovals_required: [refund]\n"
        shop.must("agents", "apply", str(shop.write("shop.yaml", careful)))
        made = Terminal(shop, "dev")
        try:
            made.until("session dev, new")
            made.type("refund order 1234\n")
            made.until(r'May refund \{"order_id": "1234"\} run\? Write y or n')
            made.type("y\n")
            made.until("approved: refund")
            made.until("I have refunded")
            made.type("/quit\n")
            assert made.wait() == 0
        finally:
            made.end()
