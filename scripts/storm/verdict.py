"""The verdict: every rule with what breaks it, and the counts that say how much was asked of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from scripts.storm import checks
from scripts.storm.checks.deliveries import cause
from scripts.storm.checks.effects import late_starts
from scripts.storm.checks.jobs import HANDED_OUT_OFTEN, jobs_left_aside
from scripts.storm.evidence import Evidence

SHOWN = 5
"""Broken instances of one rule that people are shown; all of them stand in the JSON."""

Check = Callable[[Evidence], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Ruling:
    """One rule, in words, and every instance in which it was broken."""

    name: str
    rule: str
    broken: Sequence[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    rulings: Sequence[Ruling]
    counts: Mapping[str, int | float]

    @property
    def good(self) -> bool:
        return not any(ruling.broken for ruling in self.rulings)

    def as_dict(self) -> dict[str, Any]:
        rules = [{"name": it.name, "rule": it.rule, "broken": list(it.broken)} for it in self.rulings]
        return {"good": self.good, "rules": rules, "counts": dict(self.counts)}


def judge(evidence: Evidence) -> Verdict:
    return Verdict([rule(check, evidence) for check in checks.ALL], count(evidence))


def rule(check: Check, evidence: Evidence) -> Ruling:
    return Ruling(check.__name__, (check.__doc__ or "").strip(), tuple(check(evidence)))


def count(evidence: Evidence) -> dict[str, int | float]:
    """How much happened: a verdict over little says little."""
    starts = evidence.taken_down("journal", "start")
    uncertain = [row for row in evidence.outbox if row["state"] == "uncertain"]
    deeds = evidence.taken_down("deeds", "fault")
    return {
        "jobs": len(evidence.jobs),
        "jobs published again under their id": sum(len(line.publishes) for line in evidence.lines)
        - len(evidence.jobs)
        - len(evidence.rubbish),
        "publishes that had to be repeated": len(evidence.taken_down("published", "not published")),
        "what was no job": len(evidence.rubbish),
        "jobs kept because they had been handed out often": sum(
            HANDED_OUT_OFTEN in row["error"]["message"] for row in evidence.rejected_jobs
        ),
        "jobs left aside because their reader was killed": len(jobs_left_aside(evidence)),
        "sessions": len(evidence.sessions),
        **_counted("jobs", evidence.mailbox, "verdict"),
        **_counted("turns", evidence.turns, "state"),
        "turns that changed their owner": sum(row["attempt"] > 1 for row in evidence.turns),
        "claims of sessions": sum(row["epoch"] for row in evidence.sessions),
        "tool runs": len(starts),
        "side effects among them": sum(row["side_effect"] for row in evidence.tool_calls),
        "idempotent calls run again": len(starts) - len({(entry["turn_id"], entry["call_id"]) for entry in starts}),
        **_counted("calls", evidence.tool_calls, "state"),
        "starts that a pause held up": late_starts(evidence),
        "POSTs": len(evidence.taken_down("received", "post")),
        **_counted("deliveries", evidence.outbox, "state"),
        **{
            f"uncertain because {why}": times for why, times in Counter(cause(evidence, it) for it in uncertain).items()
        },
        **{f"{target}: {fault}": times for (target, fault), times in _faults(deeds).items()},
        "processes started": len(evidence.taken_down("deeds", "started")),
        "seconds from the last fault to rest": round(evidence.at_rest_s or -1.0, 1),
    }


def show(verdict: Verdict, console: Console) -> None:
    """For people: the counts, then every rule."""
    counts = Table("counted", "", box=None, show_header=False)
    for name, number in verdict.counts.items():
        counts.add_row(str(number), name)
    rules = Table("", "rule", box=None, show_header=False)
    for ruling in verdict.rulings:
        rules.add_row("[green]holds[/]" if not ruling.broken else "[bold red]BROKEN[/]", ruling.rule)
        for line in ruling.broken[:SHOWN]:
            rules.add_row("", f"  {line}", style="red")
        if len(ruling.broken) > SHOWN:
            rules.add_row("", f"  and {len(ruling.broken) - SHOWN} more", style="red")
    console.print(counts)
    console.print()
    console.print(rules)


def _counted(what: str, rows: Sequence[Mapping[str, Any]], column: str) -> Mapping[str, int]:
    return {f"{what} {value}": times for value, times in sorted(Counter(row[column] for row in rows).items())}


def _faults(deeds: Sequence[Mapping[str, Any]]) -> Mapping[tuple[str, str], int]:
    return Counter(sorted((deed["target"].partition("-")[0], deed["fault"]) for deed in deeds))
