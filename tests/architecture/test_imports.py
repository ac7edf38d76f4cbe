"""Who may import whom (`.importlinter`), and that importing does nothing but define names."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Runs in an interpreter of its own. Reading is what importing is; writing, connecting and starting are not.
IMPORTS = """
import importlib, json, pkgutil, sys, threading

acts = ("socket.connect", "socket.bind", "sqlite3.", "subprocess.", "os.fork", "os.posix_spawn")
done = []

def watch(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if writes or event.startswith(acts):
        done.append(f"{event} {args[0]!r}")
    if event == "_thread.start_new_thread":
        done.append("started a thread")

sys.dont_write_bytecode = True
sys.addaudithook(watch)
houses = [importlib.import_module(name) for name in ("insika", "outbox", "actors")]
plain = sorted({name.partition(".")[0] for name in sys.modules})
for house in houses if sys.argv[1] == "everything" else []:
    for module in pkgutil.walk_packages(house.__path__, house.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(json.dumps({"done": done, "threads": threading.active_count(), "modules": plain}))
"""


def imported(what: str) -> dict[str, object]:
    command = [sys.executable, "-c", IMPORTS, what]
    run = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    result: dict[str, object] = json.loads(run.stdout)
    return result


@pytest.mark.parametrize("what", ["the houses", "everything"])
def test_importing_opens_and_starts_nothing(what):
    result = imported(what)
    assert result["done"] == []
    assert result["threads"] == 1


def test_the_houses_alone_bring_in_no_broker_and_no_database():
    heavy = {"aiohttp", "dramatiq", "pika", "psycopg", "pydantic", "redis", "sqlite3"}
    assert heavy & set(imported("the houses")["modules"]) == set()


def test_the_contracts_hold():
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()"]
    run = subprocess.run(
        [*command, "--no-logo", "--no-cache"], cwd=ROOT, check=False, capture_output=True, text=True, timeout=100
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_new_file_must_be_given_a_floor():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    walled = {
        container
        for section in contracts.values()
        if section.get("type") == "layers" and section.getboolean("exhaustive", fallback=False)
        for container in section["containers"].split()
    }
    assert {"insika", "insika.turn", "insika.storage", "outbox", "actors"} <= walled
