"""Every page is a story that runs: files are written as shown, commands run as shown, and print what is shown.

In a `console` block a line that begins with "$ " is run, in one shell for the whole page; what follows is its output,
in which "…" stands for anything. A block whose first line is a comment with a file's name is written to that file; a
Python file that no command of its page runs is run by itself, and must say nothing. A page that begins with the comment
"runs with RabbitMQ" finds the queues that ingress declares on a RabbitMQ at INSIKA_AMQP_URL. A page has PostgreSQL,
RabbitMQ and Redis, all empty, from the comment "runs with the services" on, as after `scripts/services env`. From the
comment "runs with a key of each vendor" on it has keys, and the vendors' own variables lead to fakes of them, which say
what the sample script says.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis
import yaml

from actors.broker.topology import declare
from actors.environment import QueueType
from tests.amqp_wire import channel
from tests.vendor_processes import vendor_process

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
WITH_SERVICES = "<!-- runs with the services -->"
WITH_VENDORS = "<!-- runs with a key of each vendor -->"
WANTED = (WITH_SERVICES, WITH_VENDORS)
FENCE = re.compile(rf"^```(\w*)\n(.*?)^```$|^(?:{'|'.join(WANTED)})$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"^# ([\w./-]+\.(?:ya?ml|py|json))$")
WITH_RABBITMQ = "<!-- runs with RabbitMQ -->"
DONE = "<<insika-docs-done>>"


@dataclass
class Command:
    line: str
    expected: list[str] = field(default_factory=list)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each, in order; a comment that wants something stands for itself."""
    found = FENCE.finditer(page.read_text())
    return [(match[0], "") if match[0] in WANTED else (match[1], match[2]) for match in found]


def commands(block: str) -> list[Command]:
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif found:
            found[-1].expected.append(line)
    return found


def matches(expected: list[str], printed: str) -> bool:
    pattern = "\n".join(".*?".join(map(re.escape, line.split("…"))) for line in expected)
    return re.fullmatch(pattern, printed.strip("\n"), re.DOTALL) is not None


class Shell:
    """One bash for a page, in a folder of its own; what it starts is ended with it."""

    def __init__(self, folder: Path, given: Mapping[str, str]) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("INSIKA_")}
        environment.update(given)
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        environment["COLUMNS"] = "200"
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\necho; echo '{DONE}'\n")
        self._process.stdin.flush()
        printed: list[str] = []
        for output in self._process.stdout:
            if output.strip() == DONE:
                break
            printed.append(output)
        return "".join(printed)

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def services(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """Empty ones, by the variables that lead to them."""
    redis_url = request.getfixturevalue("redis_url")
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    return {
        "INSIKA_DATABASE_URL": request.getfixturevalue("fresh_postgres_url"),
        "INSIKA_AMQP_URL": request.getfixturevalue("clean_amqp_url"),
        "INSIKA_REDIS_URL": redis_url,
    }


@pytest.fixture
def wanted(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Mapping[str, str]]]:
    """Gives what a comment wants, as variables."""
    with contextlib.ExitStack() as started:

        def vendors() -> Mapping[str, str]:
            anthropic, openai = (started.enter_context(vendor_process(kind)) for kind in ("anthropic", "openai"))
            return {
                "ANTHROPIC_API_KEY": anthropic.key,
                "ANTHROPIC_BASE_URL": anthropic.base_url,
                "OPENAI_API_KEY": openai.key,
                "OPENAI_BASE_URL": openai.base_url,
            }

        yield lambda comment: vendors() if comment == WITH_VENDORS else services(request)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_does_what_it_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, wanted: Callable[[str], Mapping[str, str]]
) -> None:
    given = {}
    if page.read_text().startswith(WITH_RABBITMQ):
        given["INSIKA_AMQP_URL"] = request.getfixturevalue("clean_amqp_url")
        with channel(given["INSIKA_AMQP_URL"]) as making:
            declare(making, QueueType.QUORUM)
    shell = Shell(tmp_path, given)
    try:
        for language, block in blocks(page):
            if language in WANTED:
                for name, value in wanted(language).items():
                    shell.run(f"export {name}={shlex.quote(value)}")
                continue
            if named := FILE_NAME.match(block.splitlines()[0]):
                file = tmp_path / named[1]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block)
            if language == "yaml":
                yaml.safe_load(block)
            if language == "python":
                compile(block, str(page), "exec")
            for command in commands(block) if language == "console" else []:
                printed = shell.run(command.line)
                shown = "\n".join(command.expected)
                assert matches(command.expected, printed), f"$ {command.line}\nshown:\n{shown}\nprinted:\n{printed}"
        run = " ".join(command.line for _, block in blocks(page) for command in commands(block))
        for script in sorted(tmp_path.glob("*.py")):
            if script.stem not in run:
                assert shell.run(f"python3 {script.name}").strip() == "", f"{script.name} of {page.name} said something"
    finally:
        shell.close()


def test_every_page_is_linked_from_the_readme_and_every_link_leads_somewhere() -> None:
    readme = (ROOT / "README.md").read_text()
    for page in PAGES:
        assert page.name == "README.md" or f"(docs/{page.name})" in readme, f"{page.name} is not linked"
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_two_commands_of_the_readme_are_there() -> None:
    shown = re.findall(r"^(scripts/\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert shown == ["scripts/demo", "scripts/test", "scripts/services"]
    assert all(os.access(ROOT / script, os.X_OK) for script in shown)
    assert "scripts/test" in (ROOT / ".ci" / "run").read_text()
