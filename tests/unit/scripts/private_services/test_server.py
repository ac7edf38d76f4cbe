"""What holds for each server, shown with one that is only a listening Python."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from scripts.private_services import server as server_module
from scripts.private_services.accounts import Account
from scripts.private_services.ports import LOOPBACK
from scripts.private_services.server import PrivateServer, ServerError

LISTENER = """
import os, pathlib, socket, sys, time
print("starting", flush=True)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=5)
pathlib.Path("starts").open("a").write("once more\\n")
while True:
    listener.accept()[0].sendall(str(os.getpid()).encode())
"""


class Listener(PrivateServer):
    name = "listener"

    def __init__(self, folder: Path, program: str = LISTENER) -> None:
        self.recorded: list[dict[str, Any]] = []
        super().__init__(folder, Account(), lambda: self.recorded.append(self.describe()))
        self.program = program

    @property
    def url(self) -> str:
        return f"tcp://{LOOPBACK}:{self.port}"

    def _prepare(self) -> None:
        (self.folder / "starts").touch()

    def _run(self) -> None:
        self._spawn([sys.executable, "-c", self.program, str(self.port)], os.environ)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=0.5) as connection:
                return int(connection.recv(100)) == self._processes[0].pid
        except OSError:
            return False


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    server = Listener(tmp_path / "listener")
    yield server
    server.kill()


def starts(server: PrivateServer) -> int:
    return len((server.folder / "starts").read_text().splitlines())


def test_it_has_answered_when_start_returns_and_starts_only_once(listener):
    listener.start()
    assert listener.running
    pid = listener.describe()["processes"][0]["pid"]
    listener.start()
    assert listener.describe()["processes"][0]["pid"] == pid
    assert starts(listener) == 1


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_it_comes_back_on_the_same_port_with_the_same_data(listener, end):
    listener.start()
    port = listener.port
    getattr(listener, end)()
    assert not listener.running
    listener.start()
    assert listener.port == port
    assert starts(listener) == 2


def test_restart_is_another_process(listener):
    listener.start()
    before = listener.describe()["processes"]
    listener.restart()
    assert listener.describe()["processes"] != before


def test_a_paused_one_runs_and_can_be_stopped(listener):
    listener.start()
    listener.pause()
    assert listener.running
    listener.stop()
    assert not listener.running


@pytest.mark.parametrize("program", [LISTENER, f"import sys; sys.stderr = None\n{LISTENER}"], ids=["told", "untold"])
def test_a_port_that_is_taken_is_chosen_anew(listener, monkeypatch, program):
    listener.program = program
    with socket.create_server((LOOPBACK, 0)) as taken:
        choices = iter([taken.getsockname()[1], taken.getsockname()[1]])
        chosen = server_module.free_ports
        monkeypatch.setattr(server_module, "free_ports", lambda count: [next(choices, 0) or chosen(1)[0]])
        listener.start()
        assert listener.port != taken.getsockname()[1]


def test_a_port_that_clients_know_is_waited_for(listener, monkeypatch):
    listener.start()
    listener.stop()
    waits: list[float] = []
    with socket.create_server((LOOPBACK, listener.port)) as taken:

        def wait(seconds: float) -> None:
            if seconds == server_module._TRY_AGAIN_S:
                waits.append(seconds)
                taken.close()
            os.sched_yield()

        monkeypatch.setattr(server_module.time, "sleep", wait)
        listener.start()
    assert waits


def test_one_that_ends_at_once_is_an_error_with_the_end_of_its_log(tmp_path):
    broken = Listener(tmp_path / "listener", "print('first'); raise SystemExit('the disk is full')")
    with pytest.raises(ServerError, match=r"(?s)listener ended before it answered.*first\nthe disk is full"):
        broken.start()


def test_one_that_does_not_answer_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "_ANSWERS_WITHIN_S", 0.0)
    deaf = Listener(tmp_path / "listener", "input() if False else __import__('time').sleep(300)")
    with pytest.raises(ServerError, match="listener did not answer within 0 s"):
        deaf.start()
    deaf.kill()


def test_one_that_ignores_the_request_to_stop_is_killed(listener, monkeypatch):
    monkeypatch.setattr(server_module, "_STOPS_WITHIN_S", 0.2)
    monkeypatch.setattr(Listener, "stop_signal", signal.SIGCONT)
    listener.start()
    listener.stop()
    assert not listener.running


def test_another_process_can_take_it_over_from_what_was_written_down(listener, tmp_path):
    listener.start()
    heir = Listener(tmp_path / "listener")
    heir.remember(listener.recorded[-1])
    assert heir.running
    assert heir.url == listener.url
    heir.kill()
    assert not listener.running
    heir.start()
    assert heir.url == listener.url
    heir.kill()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system does not show environments")
def test_one_that_nobody_wrote_down_is_ended_all_the_same(listener, tmp_path):
    """Its starter was killed before it could, or its parent died without it."""
    listener.start()
    Listener(tmp_path / "listener").discard()
    assert not listener.running


def test_it_is_written_down_before_anything_waits_for_it(listener):
    listener.launch()
    assert [len(recorded["processes"]) for recorded in listener.recorded] == [0, 1]
    listener.wait()
    assert not listener.recorded[0]["has_answered"]
    assert listener.recorded[-1]["has_answered"]


def test_the_record_is_of_plain_values(listener):
    listener.start()

    def plain(value: object) -> bool:
        if isinstance(value, dict):
            return all(isinstance(key, str) and plain(part) for key, part in value.items())
        if isinstance(value, Sequence) and not isinstance(value, str):
            return all(map(plain, value))
        return isinstance(value, str | int | bool)

    assert plain(listener.recorded[-1])
