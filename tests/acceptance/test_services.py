"""Private services as a developer and the tests use them: by `scripts/services`, and from Python.

The commands run in a copy of what they need of the clone, with a temporary folder of their own, so that nobody's
services are disturbed. These tests start what they need by themselves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pika
import psycopg
import pytest
import redis

from scripts.private_services import PrivateServices, ServerError
from scripts.private_services.processes import Process, marked

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120
QUEUE = "kept"
SERVERS = ("rabbitmq", "postgres", "redis")


class Clone:
    """A copy of `scripts/services` and what it needs, in a folder that the servers' accounts may enter."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="insika-clone-"))
        self.home.chmod(0o711)
        self.temporary = self.home / "tmp"
        self.temporary.mkdir()
        scripts = self.home / "scripts"
        scripts.mkdir()
        for script in ("services", "lib.sh"):
            shutil.copy2(ROOT / "scripts" / script, scripts / script)
        shutil.copytree(ROOT / "scripts" / "private_services", scripts / "private_services")

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.home / "scripts" / "services", *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **options,
        )

    def run(self, *arguments: str, status: int = 0, **options: Any) -> str:
        running = self.start(*arguments, **options)
        printed, _ = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == status, printed
        return printed

    def environment(self) -> dict[str, str]:
        return dict(re.findall(r"^export (\w+)=(\S+)$", self.run("env"), re.MULTILINE))

    def data(self) -> list[Path]:
        """The folders of all services that were started here and not stopped."""
        return list(self.temporary.glob("insika-services-*"))


@pytest.fixture
def clone() -> Iterator[Clone]:
    made = Clone()
    yield made
    made.run("down")
    shutil.rmtree(made.home)


@pytest.fixture(scope="module")
def services() -> Iterator[PrivateServices]:
    settings = {"rabbitmq_settings": {"consumer_timeout": "5000"}, "postgres_settings": {"max_connections": "77"}}
    with PrivateServices.start(**settings) as started:
        yield started


def until(holds) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def publish(url: str, text: str, kind: str) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": kind})
        channel.basic_publish("", QUEUE, text.encode(), pika.BasicProperties(delivery_mode=2), mandatory=True)


def published(url: str) -> str | None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        _, _, body = connection.channel().basic_get(QUEUE, auto_ack=False)
        return body and body.decode()


def write(text: str, postgres: str, amqp: str, redis_url: str, *, kind: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE kept (text text)")
        connection.execute("INSERT INTO kept VALUES (%s)", [text])
    publish(amqp, text, kind)
    with redis.Redis.from_url(redis_url) as client:
        client.set("kept", text)


def read(postgres: str, amqp: str, redis_url: str) -> list[str | None]:
    with psycopg.connect(postgres) as connection, redis.Redis.from_url(redis_url, decode_responses=True) as client:
        kept = connection.execute("SELECT text FROM kept").fetchall()
        return [*(text for (text,) in kept), published(amqp), client.get("kept")]


def urls(environment: Mapping[str, str]) -> tuple[str, str, str]:
    return tuple(environment[f"INSIKA_{name}_URL"] for name in ("DATABASE", "AMQP", "REDIS"))


def recorded(folder: Path) -> dict[str, list[Process]]:
    """By the name of the server."""
    record = json.loads((folder / "services.json").read_text())
    return {name: [Process(**process) for process in record[name]["processes"]] for name in SERVERS}


def test_up_env_down_and_what_died_in_between_comes_back_with_its_data(clone):
    printed = clone.run("up")
    assert re.search(r"rabbitmq +answers on port \d+ after \d+\.\d s", printed)
    environment = clone.environment()
    assert set(environment) == {
        *("INSIKA_DATABASE_URL", "INSIKA_AMQP_URL", "INSIKA_REDIS_URL"),
        *("INSIKA_TEST_POSTGRES_URL", "INSIKA_TEST_AMQP_URL", "INSIKA_TEST_REDIS_URL"),
    }
    write("before", *urls(environment), kind="classic")
    assert "up already" in clone.run("up")

    [data] = clone.data()
    processes = recorded(data)
    for process in [*processes["rabbitmq"], *processes["postgres"]]:
        process.signal(signal.SIGKILL)
    until(lambda: not any(process.alive for process in [*processes["rabbitmq"], *processes["postgres"]]))
    assert "not up" in clone.run("env", status=1)
    assert "Not all of them run any more" in clone.run("up")
    assert clone.environment() == environment
    assert read(*urls(environment)) == ["before", "before", "before"]
    assert recorded(data)["redis"] == processes["redis"]

    printed = clone.run("run", "sh", "-c", "echo on $INSIKA_REDIS_URL; exit 3", status=3)
    assert f"on {environment['INSIKA_REDIS_URL']}" in printed
    assert "up already" in printed
    assert clone.environment() == environment, "they stay up"

    processes = recorded(data)
    assert "Stopped" in clone.run("down")
    assert not any(process.alive for name in processes for process in processes[name])
    assert clone.data() == []
    assert "were not up" in clone.run("down")


def test_run_brings_them_up_for_as_long_as_the_command_runs(clone):
    printed = clone.run("run", "sh", "-c", "echo data in $INSIKA_DATABASE_URL; exit 4", status=4)
    [port] = re.findall(r"data in postgresql://postgres@127.0.0.1:(\d+)/insika", printed)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


def hears_all_signals() -> None:
    """What ignores a signal when it starts does so for good, as everything does under nohup."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(("sent", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_an_interrupted_start_leaves_nothing(clone, sent, status):
    running = clone.start("run", "sleep", "300", preexec_fn=hears_all_signals)
    until(lambda: list(clone.temporary.glob("*/redis/log")))
    [folder] = clone.data()
    os.killpg(running.pid, signal.Signals[sent])
    printed, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == status, printed
    assert clone.data() == []
    assert [process for name in SERVERS for process in marked(str(folder / name))] == []


def test_what_a_killed_start_left_is_ended_by_the_next_command(clone):
    running = clone.start("up")
    until(lambda: any(recorded(folder)["redis"] for folder in clone.data() if (folder / "services.json").exists()))
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    [folder] = clone.data()
    processes = recorded(folder)
    assert all(process.alive for process in [*processes["rabbitmq"], *processes["redis"]])
    assert "a process that is gone has left behind" in clone.run("down")
    assert clone.data() == []
    assert not any(process.alive for name in processes for process in processes[name])
    assert [process for name in SERVERS for process in marked(str(folder / name))] == []


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["--help"], 0, "down           stop them and remove their data"),
        ([], 2, "usage: scripts/services"),
        (["start"], 2, "invalid choice"),
        (["up", "now"], 2, "take nothing more"),
        (["run"], 2, "run needs a command"),
        (["env"], 1, "scripts/services: they are not up; say scripts/services up"),
    ],
)
def test_what_it_cannot_do_it_says(clone, arguments, status, told):
    assert told in clone.run(*arguments, status=status)


@pytest.mark.parametrize("name", ["rabbitmq", "postgres", "redis"])
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_server_comes_back_with_its_data_and_the_others_stay(services, name, how):
    server = getattr(services, name)
    everything = (services.postgres.url, services.rabbitmq.url, services.redis.url)
    processes = recorded(services.folder)
    with psycopg.connect(services.postgres.url) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
    services.rabbitmq.console.empty_vhost("again")
    everything = (everything[0], services.rabbitmq.url_of("again"), everything[2])
    write(how, *everything, kind="quorum")
    getattr(server, how)()
    assert not server.running
    server.start()
    assert read(*everything) == [how, how, how]
    now = recorded(services.folder)
    assert {other for other in now if now[other] != processes[other]} == {name}


def test_a_paused_server_keeps_its_connections_and_answers_nobody(services):
    with psycopg.connect(services.postgres.url, autocommit=True) as connection:
        connection.execute("SELECT 1")
        services.postgres.pause()
        with pytest.raises(TimeoutError):
            answer_within(0.3, services.postgres.port)
        assert services.postgres.running
        services.postgres.resume()
        assert connection.execute("SELECT 2").fetchone() == (2,)


def answer_within(seconds: float, port: int) -> None:
    """The system takes the connection for a paused server; only the server can answer an SSLRequest."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(b"\x00\x00\x00\x08\x04\xd2\x16\x2f")
        connection.recv(1)


def test_settings_reach_the_servers(services):
    with psycopg.connect(services.postgres.url) as connection:
        assert connection.execute("SHOW max_connections").fetchone() == ("77",)
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
    assert services.rabbitmq.console.evaluate("application:get_env(rabbit, consumer_timeout)") == "{ok, 5000}"
    assert int(redis.Redis.from_url(services.redis.url).config_get("databases")["databases"]) == 64


def test_rabbitmqctl_can_be_asked(services):
    services.rabbitmq.ctl("add_vhost", "by-hand")
    assert "by-hand" in services.rabbitmq.ctl("list_vhosts").split()
    with pytest.raises(ServerError, match="delete_vhost nowhere"):
        services.rabbitmq.ctl("delete_vhost", "nowhere")


def test_everything_listens_on_loopback_only(services):
    ports = {services.postgres.port, services.redis.port, services.rabbitmq.port}
    described = services.rabbitmq.describe()
    ports |= {described["epmd_port"], described["node_port"]}
    for port in ports:
        with socket.socket() as other:
            # Binding all other addresses would fail if somebody listened on all of them.
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.2", port))
            other.listen()


def test_some_of_them_can_be_started_without_the_others():
    with PrivateServices.start(which=["redis"]) as services:
        assert [server.name for server in services.servers] == ["redis"]
        assert services.running
        folder = services.folder
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_they_need_not_be_started_by_root(clone, monkeypatch):
    """With the system's own Python and nothing else, as on a machine where nobody may install anything."""
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    subprocess.run(["chown", "-R", "nobody", clone.home], check=True)
    printed = clone.run("run", "sh", "-c", "echo $INSIKA_AMQP_URL", user="nobody", extra_groups=[])
    assert "amqp://guest:guest@127.0.0.1:" in printed
    assert clone.data() == []


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "scripts").iterdir() if path.is_file()))
def test_a_script_can_be_read_by_bash(script):
    subprocess.run(["bash", "-n", ROOT / "scripts" / script], check=True)
