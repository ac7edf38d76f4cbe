"""The cluster under fire, as its operator would strike it: real processes, real services, and a verdict that holds.

Two thousand numbered jobs over two hundred sessions, with steering, follow-ups, collecting and interrupts, with tools
that count, a receiver that refuses, resets and answers too late; and meanwhile processes are killed, paused beyond
their lease and told to end, and all three services are struck. `scripts/storm` says what is judged and by what.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

CHAOS = Path(__file__).resolve().parents[2] / "scripts" / "chaos"
JOBS, SESSIONS = 2_000, 200
AT_LEAST = {
    "turns completed": JOBS // 2,
    "jobs steered": 20,
    "jobs merged": 20,
    "jobs interrupting": 10,
    "turns that changed their owner": 10,
    "worker: SIGKILL": 2,
    "worker: SIGSTOP and SIGCONT": 1,
    "deliveries delivered": JOBS // 4,
    "deliveries uncertain": 5,
}
"""What must have happened for the verdict to mean anything."""


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_every_rule_holds_over_all_processes_whatever_strikes_them() -> None:
    command = [CHAOS, "--minutes", "1.2", "--seed", "20", "--jobs", str(JOBS), "--sessions", str(SESSIONS), "--json"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.stdout, run.stderr[-5_000:]
    verdict = json.loads(run.stdout)
    broken = {rule["rule"]: rule["broken"] for rule in verdict["rules"] if rule["broken"]}
    assert broken == {}, run.stderr[-5_000:]
    assert run.returncode == 0
    counts = verdict["counts"]
    assert (counts["jobs"], counts["sessions"]) == (JOBS, SESSIONS)
    assert {name: counts.get(name, 0) for name in AT_LEAST if counts.get(name, 0) < AT_LEAST[name]} == {}
    struck = {name.partition(":")[0] for name in counts if ": " in name}
    assert struck >= {"ingress", "worker", "outbox", "clock", "postgres", "rabbitmq", "redis"}


def test_what_it_can_be_told_is_explained() -> None:
    told = subprocess.run([CHAOS, "--help"], check=True, capture_output=True, text=True).stdout
    for option in ("--minutes", "--seed", "--sessions", "--jobs", "--workers", "--queue-type", "--keep", "--json"):
        assert option in told
    wrong = subprocess.run([CHAOS, "--minutes", "0"], check=False, capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "--minutes must be above 0" in wrong.stderr
