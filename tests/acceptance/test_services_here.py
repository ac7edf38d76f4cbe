"""Each pytest process has its own place on the services, finds it empty, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pika
import psycopg
import pytest
import redis

from scripts.private_services import records

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pika, psycopg, pytest, redis

@pytest.mark.parametrize("time", range(2))
def test_places(postgres_url, clean_amqp_url, redis_url, fresh_postgres_url, time):
    print("place", postgres_url, clean_amqp_url, redis_url)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"CREATE TABLE shared_{time} ()")
    with psycopg.connect(fresh_postgres_url) as connection:
        connection.execute("CREATE TABLE own ()")
    with pika.BlockingConnection(pika.URLParameters(clean_amqp_url)) as connection:
        channel = connection.channel()
        declared = channel.queue_declare("queue", durable=True, arguments={"x-max-length": time + 1})
        assert declared.method.message_count == 0
        channel.basic_publish("", "queue", b"left here")
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == time
        client.set(time, time)
"""


def run(folder: Path, *arguments: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    file = folder / "test_places.py"
    file.write_text(TESTS)
    variables = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.services_here", "-p", "no:cacheprovider", *arguments, file],
        cwd=ROOT,
        env=variables,
        check=False,
        capture_output=True,
        text=True,
    )


def test_processes_never_meet_and_leave_nothing(tmp_path, postgres_url, amqp_url, redis_url):
    ran = run(tmp_path, "--tx", "2*popen", "--dist", "each", "-rP")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    places = set(re.findall(r"^place (\S+) (\S+) (\S+)$", ran.stdout, re.MULTILINE))
    assert len(places) == 2
    for kind in zip(*places, (postgres_url, amqp_url, redis_url), strict=True):
        assert len(set(kind)) == 3
    for database, vhost, number in places:
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(database)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika.BlockingConnection(pika.URLParameters(vhost))
        assert redis.Redis.from_url(number).dbsize() == 0


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("INSIKA_TEST_POSTGRES_URL", None, "INSIKA_TEST_POSTGRES_URL is not set"),
        ("INSIKA_TEST_AMQP_URL", None, "INSIKA_TEST_AMQP_URL is not set"),
        ("INSIKA_TEST_REDIS_URL", None, "INSIKA_TEST_REDIS_URL is not set"),
        ("INSIKA_TEST_AMQP_URL", "amqp://127.0.0.1:1/", "was not started by scripts/services"),
    ],
)
def test_a_test_without_services_fails_and_says_what_to_run(tmp_path, variable, value, told):
    ran = run(tmp_path, **{variable: value})
    assert ran.returncode == 1
    assert told in ran.stdout
    assert 'run scripts/test, or eval "$(scripts/services env)"' in ran.stdout
    assert "Traceback" not in ran.stdout


def test_the_services_of_this_run_are_on_record(amqp_url):
    assert urlsplit(amqp_url).port in [record["rabbitmq"]["port"] for _, record in records() if "rabbitmq" in record]
