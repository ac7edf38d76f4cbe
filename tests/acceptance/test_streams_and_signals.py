"""Commands whose standard streams are closed or full, and a demo that is stopped: a sentence, and nothing left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import PATIENCE_S, SIGINT, SIGTERM, Folder, folder, wait_for


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Folder]:
    (tmp_path / "temporary").mkdir()
    with folder(tmp_path, TMPDIR=str(tmp_path / "temporary")) as made:
        made.must("migrate")
        yield made


def in_shell(shop: Folder, line: str) -> subprocess.CompletedProcess[str]:
    """`line` as a shell runs it; `insika` in it is the command."""
    command = line.replace("insika", f"{sys.executable} -m actors.cli.main")
    return subprocess.run(
        ["bash", "-c", command],
        cwd=shop.path,
        env=shop.seen(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    "command",
    ["insika sessions list", "insika sessions list --json", "insika --help", "echo hi | insika dev", "insika demo"],
)
@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_output_that_cannot_be_written_is_a_sentence(shop: Folder, command: str, where: str) -> None:
    done = in_shell(shop, f"{command} {where}")
    assert done.returncode == 1, done
    assert done.stderr.startswith("Error: cannot write to standard output: ")
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_text_that_cannot_be_read_is_a_sentence_and_no_job(shop: Folder) -> None:
    done = in_shell(shop, "insika send --session a --agent demo - <&-")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: cannot read standard input: Bad file descriptor\n"
    assert shop.must("rejected", "list", "--json").json == []


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_an_error_that_nobody_can_hear_is_still_an_exit_code(shop: Folder, where: str) -> None:
    done = in_shell(shop, f"insika sessions show nobody {where}")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert in_shell(shop, f"insika sessions list {where}").returncode == 0


@pytest.mark.parametrize("where", ["</dev/null", "<&-"])
def test_an_agent_that_does_not_exist_is_an_error_for_who_only_works(shop: Folder, where: str) -> None:
    done = in_shell(shop, f"insika dev --agent nobody {where}")
    assert (done.returncode, done.stderr) == (1, "Error: there is no agent 'nobody'; there are: demo\n")


def test_a_demo_whose_reader_leaves_ends_quietly(shop: Folder) -> None:
    done = in_shell(shop, "insika demo --json | head -1")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert left_of_the_demo(shop) == []


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_demo_that_is_stopped_takes_everything_away(shop: Folder, number: int) -> None:
    demo = shop.start("demo")
    demo.until("order_lookup")
    (place,) = left_of_the_demo(shop)
    assert processes_over(place)
    assert demo.signal(number) == 1
    assert demo.printed.endswith("Error: the demo was stopped before its end\n")
    assert left_of_the_demo(shop) == []
    wait_for(lambda: not processes_over(place), "the end of the demo's process")


def left_of_the_demo(shop: Folder) -> list[Path]:
    return list((shop.path / "temporary").iterdir())


def processes_over(place: Path) -> list[str]:
    listed = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(place) in line]
