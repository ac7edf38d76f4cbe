"""What holds for all commands: help that helps, exit codes, and errors as one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from actors.cli.arguments import Command
from actors.cli.main import COMMANDS, cli

BROKEN = os.fsdecode(b"\xff\xfe")


def every_command() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    context = click.Context(cli)

    def gather(name: str, command: click.Command) -> None:
        found[name] = command
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                known = command.get_command(context, inner)
                assert known is not None
                gather(f"{name} {inner}", known)

    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        gather(name, command)
    return found


def test_the_help_text_tells_every_command_in_one_line(command_line: Any) -> None:
    shown = command_line.run("--help")
    assert shown.exit_code == 0
    for name, (_, line) in COMMANDS.items():
        assert f"  {name}" in shown.output
        assert line in shown.output


def test_the_help_text_imports_none_of_what_commands_need() -> None:
    script = (
        "import sys\nfrom actors.cli.main import cli\n"
        "try:\n    cli(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'aiohttp', 'pydantic', 'rich', 'sqlite3', 'structlog', 'yaml'} & set(sys.modules)))"
    )
    repository = str(Path(__file__).resolve().parents[4])
    environment = {**os.environ, "PYTHONPATH": repository}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", every_command())
def test_every_command_says_what_it_does_and_gives_an_example(name: str) -> None:
    command = every_command()[name]
    assert command.help is not None
    assert command.help.strip().splitlines()[0].endswith((".", ":")) or "\n\n" in command.help
    assert "Example:" in command.help


@pytest.mark.parametrize("name", [name for name in every_command() if name.endswith((" list", " show"))])
def test_everything_that_is_listed_or_shown_can_be_had_as_json(name: str) -> None:
    options = {option for parameter in every_command()[name].params for option in parameter.opts}
    assert "--json" in options


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["send", "--session", "s", "hello"],
        ["receive", "--port", "x"],
        ["rejected", "show", "0"],
        ["dev", "--session", ""],
        ["dev", "--session", "s" * 257],
    ],
)
def test_bad_usage_is_told_apart_by_its_exit_code(command_line: Any, arguments: list[str]) -> None:
    assert command_line.run(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["approvals", "approve", BROKEN], "ID"),
        (["approvals", "show", BROKEN, "--json"], "ID"),
        (["turns", "show", BROKEN], "ID"),
        (["turns", "cancel", BROKEN], "ID"),
        (["turns", "list", "--session", BROKEN], "--session"),
        (["sessions", "show", BROKEN], "SESSION"),
        (["sessions", "withdraw", "s", BROKEN], "MESSAGE_ID"),
        (["sessions", "retry", "s", "--turn", BROKEN], "--turn"),
        (["sessions", "pause", "s", "--tenant", BROKEN], "--tenant"),
        (["send", "--session", "s", "--agent", "a", "--id", BROKEN, "hello"], "--id"),
        (["dev", "--session", BROKEN], "--session"),
        (["outbox", "resend", BROKEN], "ID"),
        (["agents", "show", BROKEN], "ID"),
    ],
)
def test_a_name_that_no_store_can_hold_is_used_wrongly(migrated: Any, arguments: list[str], named: str) -> None:
    result = migrated.run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    told = result.stderr.splitlines()[-1]
    assert told.startswith("Error: Invalid value for ")
    assert (named in told, told.endswith(": must not hold NUL or a lone surrogate")) == (True, True)


@pytest.mark.parametrize("name", [name for name, made in every_command().items() if not isinstance(made, click.Group)])
def test_every_command_looks_at_its_names(name: str) -> None:
    assert isinstance(every_command()[name], Command)


@pytest.mark.parametrize("arguments", [["sessions", "list"], ["outbox", "list"], ["recover"], ["agents", "list"]])
def test_a_database_that_is_not_there_names_what_helps(command_line: Any, arguments: list[str]) -> None:
    result = command_line.run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: there is no database insika.db here; set INSIKA_DATABASE_URL or run: insika migrate\n"
    )
    assert not command_line.database.exists()


def test_a_database_that_is_not_migrated_names_the_command_that_helps(command_line: Any) -> None:
    command_line.database.touch()
    result = command_line.run("sessions", "list")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: the database insika.db is not up to date (pending: 0001_initial")
    assert result.stderr.endswith("Run: insika migrate\n")


def test_a_database_that_cannot_be_used_says_what_to_look_at(command_line: Any, monkeypatch: Any) -> None:
    command_line.write("other.db", "this is no database, but it is long enough to be read as a page of one " * 20)
    monkeypatch.setenv("INSIKA_DATABASE_URL", "sqlite:///other.db")
    result = command_line.run("sessions", "list")
    assert result.exit_code == 1
    assert "other.db" in result.stderr
    assert "Check INSIKA_DATABASE_URL" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_wrong_environment_is_told_by_variable(command_line: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("INSIKA_DATABASE_URL", "mysql://user:hush@host/db")
    monkeypatch.setenv("INSIKA_SLOTS", "none")
    result = command_line.run("sessions", "list")
    assert result.exit_code == 1
    assert "INSIKA_DATABASE_URL: " in result.stderr
    assert "INSIKA_SLOTS: " in result.stderr
    assert "hush" not in result.stderr


def test_a_variable_that_nobody_reads_is_warned_of_once(migrated: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("INSIKA_AGENT_DIR", "agents")
    monkeypatch.setenv("INSIKA_LOG_LEVEL", "error")
    monkeypatch.setenv("INSIKA_TEST_REDIS_URL", "redis://127.0.0.1:6379/0")
    migrated.write("shop.yaml", "id: shop\nmodel: offline/demo\n")
    for arguments in (["sessions", "list"], ["agents", "apply", "shop.yaml"], ["migrate"], ["recover"]):
        result = migrated.run(*arguments)
        assert result.exit_code == 0
        assert result.stderr == (
            "Warning: INSIKA_AGENT_DIR is not a variable that Insika reads; did you mean INSIKA_AGENTS_DIR?\n"
        )


@pytest.mark.parametrize(
    ("arguments", "type_"),
    [
        (["agents", "show", "nobody"], "not_found"),
        (["sessions", "show", "nobody"], "not_found"),
        (["sessions", "pause", "nobody"], "not_found"),
        (["sessions", "retry", "nobody"], "not_found"),
        (["turns", "show", "none"], "not_found"),
        (["turns", "cancel", "none"], "not_found"),
        (["outbox", "show", "none"], "not_found"),
        (["outbox", "resend", "none"], "not_found"),
        (["rejected", "show", "7"], "not_found"),
        (["rejected", "requeue", "7"], "not_found"),
    ],
)
def test_a_program_reads_why_a_command_was_refused(migrated: Any, arguments: list[str], type_: str) -> None:
    result = migrated.run(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    error = json.loads(result.stdout)["error"]
    assert (list(error), error["type"]) == (["type", "message"], type_)


def test_a_program_reads_what_the_engine_says_too(command_line: Any, monkeypatch: Any) -> None:
    error = command_line.json("sessions", "list", code=1)["error"]
    assert (error["type"], "run: insika migrate" in error["message"]) == ("not_migrated", True)
    monkeypatch.setenv("INSIKA_SLOTS", "none")
    error = command_line.json("outbox", "list", code=1)["error"]
    assert (error["type"], error["field"]) == ("invalid_configuration", "INSIKA_SLOTS")


def test_the_log_level_comes_from_the_command_line_or_the_environment(migrated: Any, monkeypatch: Any) -> None:
    assert migrated.run("--log-level", "loud", "sessions", "list").exit_code == 2
    monkeypatch.setenv("INSIKA_LOG_LEVEL", "loud")
    assert migrated.run("sessions", "list").exit_code == 2
    monkeypatch.setenv("INSIKA_LOG_LEVEL", "INFO")
    assert migrated.run("sessions", "list").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "guess"),
    [
        (["sesions"], "There is no command 'sesions'; did you mean sessions?"),
        (["sessions", "shw", "ana"], "There is no command 'shw'; did you mean show?"),
        (["xyz"], "There is no command 'xyz'."),
    ],
)
def test_a_mistyped_command_is_guessed(command_line: Any, arguments: list[str], guess: str) -> None:
    result = command_line.run(*arguments)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: {guess}")


def test_the_version_is_told(command_line: Any) -> None:
    shown = command_line.run("--version")
    assert shown.output.startswith("insika, version ")
