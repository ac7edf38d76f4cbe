"""The examples do what they say, each as a program of its own: jobs that are accepted, and receivers that take what
is signed, once, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from insika.storage.rows import Accepted, Verdict
from insika.testing import Say, Script
from outbox.signing import body_of, signature_headers
from tests.actor_world import place_for
from tests.amqp_wire import declare, drain
from tests.command_line import wait_for
from tests.outbox_doubles import OTHER_SECRET, SECRET

__all__ = ["place_for"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LINES = 30
INSTALL_S = 240
RUN_S = 60
TURNS = "insika.turns"
ECHO = Script([lambda scene: Say(f"re {scene.text}")])
ANSWER = {"type": "answer", "session": "ana", "recipient": "ana", "content": "grüße 😀", "final": True}
CHANGED = {**ANSWER, "content": "something else"}


def node() -> str:
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        pytest.fail("node and npm are not on the PATH, and the examples need them: run scripts/test", pytrace=False)
    return found


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A copy of an example's folder with what its package-lock.json names."""
    ready: dict[str, Path] = {}

    def install(name: str) -> Path:
        if name not in ready:
            node()
            folder = tmp_path_factory.mktemp("examples") / name
            shutil.copytree(EXAMPLES / name, folder)
            command = ["npm", "ci", "--no-audit", "--no-fund", "--no-update-notifier"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S, check=False)
            assert done.returncode == 0, done.stderr
            ready[name] = folder
        return ready[name]

    return install


@pytest.fixture(params=["publish_pika.py", "publish.mjs"])
def publish(request: pytest.FixtureRequest, installed: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs one of the publishing examples."""
    script = EXAMPLES / "publish" / request.param
    command = [sys.executable, str(script)]
    if script.suffix == ".mjs":
        command = [node(), str(installed("publish") / script.name)]

    def run(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            env={**os.environ, "INSIKA_AMQP_URL": url},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )

    return run


async def test_a_published_job_is_as_the_contract_says_and_is_accepted(publish, clean_amqp_url, place_for):
    declare(clean_amqp_url, TURNS, x_queue_type="quorum")
    process = await place_for(ECHO).process()
    ran = publish(clean_amqp_url, "s", "agent", "grüße 😀", "m1")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "published m1\n", "")

    ((properties, body),) = drain(clean_amqp_url, TURNS)
    assert json.loads(body) == {"id": "m1", "session": "s", "agent": "agent", "text": "grüße 😀"}
    assert (properties.message_id, properties.delivery_mode, properties.content_type) == ("m1", 2, "application/json")
    accepted = await process.ingress.take(body, message_id=properties.message_id, source="amqp")
    again = await process.ingress.take(body, message_id=properties.message_id, source="amqp")
    await process.idle()
    assert isinstance(accepted, Accepted)
    assert isinstance(again, Accepted)
    assert [accepted.verdict, again.verdict] == [Verdict.ACCEPTED, Verdict.DUPLICATE]
    assert await process.answers() == ["re grüße 😀"]


def test_an_id_is_made_up_where_there_is_none(publish, clean_amqp_url):
    declare(clean_amqp_url, TURNS)
    told = [publish(clean_amqp_url, "s", "agent", "hello").stdout for _ in range(2)]
    found = drain(clean_amqp_url, TURNS)
    assert told == [f"published {properties.message_id}\n" for properties, _ in found]
    assert [json.loads(body)["id"] for _, body in found] == [properties.message_id for properties, _ in found]
    assert len(set(told)) == 2


def test_a_queue_that_is_not_there_is_an_error(publish, clean_amqp_url):
    ran = publish(clean_amqp_url, "s", "agent", "hello")
    assert ran.returncode == 1
    assert "published" not in ran.stdout


@dataclass
class Receiving:
    url: str
    log: Path

    def post(self, body: bytes, headers: Mapping[str, str]) -> int:
        request = urllib.request.Request(self.url, body, dict(headers), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=RUN_S) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    @property
    def lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines()


@pytest.fixture(params=["receive_aiohttp.py", "receive.mjs"])
def receiving(request: pytest.FixtureRequest, installed: Any, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Starts one of the receiving examples; again, where it was before, when asked again."""
    script = EXAMPLES / "receive" / request.param
    command = [sys.executable, str(script)]
    if script.suffix == ".mjs":
        command = [node(), str(installed("receive") / script.name)]
    log, port, started = tmp_path / "printed.txt", free_port(), []

    def start() -> Receiving:
        for process in started:
            process.kill()
            process.wait()
        with log.open("ab") as printed:
            process = subprocess.Popen(
                [*command, str(port)],
                cwd=tmp_path,
                env={**os.environ, "CHANNEL_SECRET": SECRET, "PYTHONUTF8": "1"},
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        wait_for(lambda: answers(port), lambda: f"a receiver at {port}; it printed:\n{log.read_text()}")
        return Receiving(f"http://127.0.0.1:{port}/answers", log)

    yield start
    for process in started:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def signed(*secrets: str, delivery_id: str = "d1", age_s: float = 0, **more: str) -> dict[str, str]:
    at = datetime.now(UTC) - timedelta(seconds=age_s)
    headers = signature_headers(secrets or (SECRET,), delivery_id=delivery_id, at=at, body=body_of(ANSWER))
    return {**headers, "content-type": "application/json", "insika-attempt": "1", **more}


def test_a_signed_delivery_is_taken_and_a_repeat_is_taken_once(receiving):
    receiver = receiving()
    again = signed(age_s=-1, **{"insika-attempt": "2", "insika-possible-duplicate": "true"})
    statuses = [receiver.post(body_of(ANSWER), headers) for headers in (signed(), again, signed(delivery_id="d2"))]
    assert statuses == [204, 204, 204]
    assert receiver.lines == ["answer for ana: grüße 😀"] * 2


def test_a_repeat_is_known_after_a_restart(receiving):
    receiving().post(body_of(ANSWER), signed())
    receiver = receiving()
    assert [receiver.post(body_of(ANSWER), signed()), receiver.post(body_of(ANSWER), signed(delivery_id="d2"))] == [
        204,
        204,
    ]
    assert receiver.lines == ["answer for ana: grüße 😀"] * 2


def test_a_signature_by_the_old_secret_and_the_new_one_is_taken(receiving):
    assert receiving().post(body_of(ANSWER), signed(OTHER_SECRET, SECRET)) == 204


NOT_OURS: Mapping[str, Callable[[], tuple[Mapping[str, str], Mapping[str, Any]]]] = {
    "forged": lambda: (signed(OTHER_SECRET), ANSWER),
    "old": lambda: (signed(age_s=301), ANSWER),
    "from the future": lambda: (signed(age_s=-400), ANSWER),
    "changed": lambda: (signed(), CHANGED),
    "under another id": lambda: ({**signed(), "webhook-id": "d2"}, ANSWER),
    "with half a signature": lambda: ({**signed(), "webhook-signature": "v1,rubbish"}, ANSWER),
    "with rubbish for a signature": lambda: ({**signed(), "webhook-signature": "rubbish"}, ANSWER),
    "without a time": lambda: ({**signed(), "webhook-timestamp": "soon"}, ANSWER),
    "unsigned": lambda: ({}, ANSWER),
}


@pytest.mark.parametrize("what", NOT_OURS)
def test_what_is_not_signed_now_by_us_is_refused_and_the_next_is_taken(receiving, what):
    receiver = receiving()
    headers, body = NOT_OURS[what]()
    assert receiver.post(body_of(body), headers) == 401
    assert receiver.lines == []
    assert receiver.post(body_of(ANSWER), signed()) == 204


def test_a_request_that_breaks_off_harms_nobody(receiving):
    receiver = receiving()
    port = int(re.search(r":(\d+)/", receiver.url)[1])
    with socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\nhalf")
    assert receiver.post(body_of(ANSWER), signed()) == 204


def test_each_example_is_read_at_a_glance():
    scripts = [*EXAMPLES.glob("*/*.py"), *EXAMPLES.glob("*/*.mjs")]
    assert sorted(it.name for it in scripts) == ["publish.mjs", "publish_pika.py", "receive.mjs", "receive_aiohttp.py"]
    assert {it.name for it in scripts if len(it.read_text(encoding="utf-8").splitlines()) > LINES} == set()


@pytest.mark.parametrize("folder", ["publish", "receive"])
def test_what_node_installs_is_pinned_and_names_no_host(folder):
    lock = json.loads((EXAMPLES / folder / "package-lock.json").read_text())
    asked = json.loads((EXAMPLES / folder / "package.json").read_text())["dependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in asked.values())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert {f"node_modules/{name}" for name in asked} <= set(packages)
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert all("resolved" not in package for package in packages.values())
    assert "://" not in json.dumps(lock)
