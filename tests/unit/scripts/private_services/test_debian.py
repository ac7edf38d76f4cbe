"""While packages are installed nothing of them is started, and afterwards the machine is as it was."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.private_services import debian, packages
from scripts.private_services.debian import InstallError, Policy, install
from scripts.private_services.packages import NotInstalled, how_to_install, install_missing
from scripts.private_services.programs import MissingProgram

ROOT = Path(__file__).resolve().parents[4]
THEIRS = "#!/bin/sh\n# theirs\nexit 0\n"


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    """As the machine's would be, in a folder of the test."""
    return Policy(tmp_path / "policy-rc.d", tmp_path / "lock")


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Policy) -> Path:
    """An apt-get that writes down what it is asked for and what the policy says, and then does what is in `does`."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    says = f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\n{policy.file} x start; echo $? >> {tmp_path}/policy-said\n'
    write(bin_ / "apt-get", f". {tmp_path}/does\n", says)
    for other in ("update-rc.d", "systemctl"):
        write(bin_ / other, "", f'#!/bin/sh\necho "{other} $*" >> {tmp_path}/disabled\n')
    (tmp_path / "does").write_text("exit 0\n")
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    return tmp_path


def write(file: Path, text: str, before: str = "") -> Path:
    file.write_text(before + text)
    file.chmod(0o755)
    return file


def said(policy: Policy) -> int:
    return subprocess.run([policy.file, "redis-server", "start"], check=False).returncode


def test_starting_is_forbidden_inside_and_the_file_goes_again(policy):
    with policy.nothing_started():
        assert said(policy) == 101
    assert not policy.file.exists()


def test_a_policy_that_was_there_comes_back_as_it_was(policy):
    write(policy.file, THEIRS)
    with policy.nothing_started():
        assert said(policy) == 101
    assert policy.file.read_text() == THEIRS
    assert said(policy) == 0


def test_a_policy_that_forbids_already_is_not_touched(policy):
    write(policy.file, "#!/bin/sh\nexit 101\n")
    before = policy.file.stat().st_ino
    with policy.nothing_started():
        assert policy.file.stat().st_ino == before
    assert policy.file.stat().st_ino == before


def test_it_comes_back_when_the_installation_breaks_off(policy):
    write(policy.file, THEIRS)
    with pytest.raises(KeyboardInterrupt), policy.nothing_started():
        raise KeyboardInterrupt
    assert policy.file.read_text() == THEIRS


def test_what_a_killed_run_left_is_put_right_later(policy):
    write(policy.file, THEIRS)
    dies = (
        "import os, sys; from pathlib import Path; from scripts.private_services.debian import Policy\n"
        "with Policy(Path(sys.argv[1]), Path(sys.argv[2])).nothing_started(): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", dies, policy.file, policy.lock], cwd=ROOT, check=False)
    assert said(policy) == 101
    with policy.lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        policy.restore()
        assert said(policy) == 101, "another may just be installing"
    policy.restore()
    assert policy.file.read_text() == THEIRS
    policy.restore()
    assert policy.file.read_text() == THEIRS


def test_packages_are_installed_with_nothing_started_and_nothing_enabled(apt, policy):
    told: list[str] = []
    install(["rabbitmq-server", "redis-server"], told.append, policy)
    asked = (apt / "asked").read_text().splitlines()
    assert len(asked) == 1
    assert asked[0].endswith("install -y --no-install-recommends rabbitmq-server redis-server")
    assert (apt / "policy-said").read_text() == "101\n"
    assert (apt / "disabled").read_text().splitlines() == [
        "update-rc.d rabbitmq-server disable",
        "systemctl disable epmd.socket epmd.service",
        "update-rc.d redis-server disable",
    ]
    assert told[0].startswith("Installing rabbitmq-server, redis-server with apt-get")
    assert told[-1].startswith("Installed after ")


def test_the_lists_of_packages_are_fetched_when_it_fails_without(apt, policy):
    (apt / "does").write_text(f'case "$*" in *update*) touch {apt}/fetched;; *) test -e {apt}/fetched;; esac\n')
    install(["redis-server"], lambda _: None, policy)
    assert [line.split()[-1] for line in (apt / "asked").read_text().splitlines()] == [
        "redis-server",
        "update",
        "redis-server",
    ]


def test_a_failure_ends_with_what_apt_get_said(apt, policy):
    (apt / "does").write_text("echo E: there is no such thing >&2; exit 100\n")
    with pytest.raises(InstallError, match="could not install redis-server:\nE: there is no such thing"):
        install(["redis-server"], lambda _: None, policy)
    assert not policy.file.exists()


def test_who_may_not_install_is_told_how(monkeypatch):
    def missing() -> str:
        raise MissingProgram("redis-server")

    monkeypatch.setattr(packages, "_PROGRAMS", (("redis-server", missing), ("redis-server", missing)))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(debian, "install", lambda *_: pytest.fail("installed without being root"))
    with pytest.raises(NotInstalled) as refused:
        install_missing(lambda _: None)
    assert "Redis 7 or newer" in str(refused.value)
    assert "redis" in str(refused.value).splitlines()[-1]


@pytest.mark.parametrize(
    ("platform", "tools", "shown"),
    [
        ("linux", {"apt-get"}, "sudo apt-get install --no-install-recommends rabbitmq-server postgresql redis-server"),
        ("linux", {"dnf"}, "sudo dnf install rabbitmq-server postgresql-server redis"),
        ("darwin", set(), "brew install rabbitmq postgresql@17 redis"),
        ("linux", set(), "install what your system calls rabbitmq-server postgresql redis-server"),
    ],
)
def test_each_system_is_told_in_its_own_words(monkeypatch, platform, tools, shown):
    monkeypatch.setattr(packages.sys, "platform", platform)
    monkeypatch.setattr(packages.shutil, "which", lambda name: name if name in tools else None)
    assert shown in how_to_install(["rabbitmq-server", "postgresql", "redis-server"])
