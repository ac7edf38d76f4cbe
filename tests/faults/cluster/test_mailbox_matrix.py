"""The matrix of `mailbox_matrix`, every cell of it at once, in three workers: one that is killed with a third of the
cells at their moments, one that keeps a third to their ends, and one that takes a third from it when it leaves."""

from __future__ import annotations

from collections import defaultdict

from insika.storage.rows import ApprovalDecision
from tests.faults.cluster.holding import TAKING_UP
from tests.faults.cluster.mailbox_matrix import (
    DEBOUNCED,
    HELD_AT,
    MATRIX,
    MODES,
    TOLD,
    UNOWNED,
    cases,
    gate_of,
)
from tests.faults.cluster.member import until
from tests.faults.cluster.operators import operator

LEASE_S = 4
DRAIN_S = 1
DEBOUNCE_MS = 50
GONE = 2
"""Workers that did not come to the end of what they had begun."""
HOLDING = {"holds": True}
PAUSED = ("paused", "paused_before")
ASKED_FOR = "charge"
STATES = {"completed": "", "cancelled": "!", "failed": "-"}


class Play:
    """Brings cases to their moments, and on from there. `jobs`: what was said so far. `counted`: how often an operator
    decided, held or let go on."""

    def __init__(self, cluster, operator):
        self._cluster = cluster
        self._control = operator.control
        self._gates = cluster.gates
        self.jobs = []
        self.counted = 0

    async def comes_to_its_moment(self, cases):
        await self._say(cases, "A")
        await self._held([case for case in cases if case.moment in HELD_AT and case.moment != "model"])
        await self._seen("runs", [case for case in cases if case.moment in ("tool", "paused")], self._running)
        paused = [case for case in cases if case.moment in PAUSED]
        for case in paused:
            assert await self._control.pause(case.name)
        self.counted += len(paused)
        self._open(paused)
        await self._seen("is asked", [case for case in cases if case.moment == "model"], self._asking)
        await self._seen("let go", [case for case in cases if case.moment in UNOWNED], self._let_go)

    async def goes_on(self, cases):
        """Whoever has them, or finds them."""
        await self._resume(cases)
        for approval in self._undecided(cases):
            await self._control.decide(approval, ApprovalDecision.APPROVED, by="ana")
            self.counted += 1
        self._open(cases)

    async def say_more(self, cases):
        await self._say(cases, "BC")

    async def say_more_and_hold(self, cases):
        """Until every one of them has an owner, that is held before it does anything about it."""
        for moment in UNOWNED:
            self._gates.open(TAKING_UP.format(moment))
        await self.say_more(cases)
        await self._resume(cases)
        await self._held([case for case in cases if case.moment in UNOWNED], "load")
        await self._held([case for case in cases if case.moment == "model" and case.cut])
        for moment in UNOWNED:
            self._gates.close(TAKING_UP.format(moment))

    async def come_to_rest(self, cases):
        names = [case.name for case in cases]
        busy = (
            "SELECT name, waiting, turn_id, lease_id, due_at FROM sessions WHERE name = ANY(%s) "
            "AND (waiting > 0 OR turn_id IS NOT NULL OR lease_id IS NOT NULL)"
        )

        def look():
            return self._cluster.tables.of(busy, names)

        await until(lambda: not look(), "cases to come to rest", look)

    async def _say(self, cases, letters):
        """Each person for themselves, and in order."""
        jobs = [case.says(letter) for letter in letters for case in cases]
        self.jobs += jobs
        await self._cluster.publish(*jobs)
        counted = "SELECT count(*) FROM mailbox WHERE verdict <> 'control'"
        await until(lambda: self._cluster.tables.value(counted) == len(self.jobs), "all to be accepted")

    async def _resume(self, cases):
        for case in cases:
            if case.moment in PAUSED:
                assert await self._control.resume(case.name)
                self.counted += 1

    async def _held(self, cases, operation=""):
        def held(case):
            return self._cluster.diary("held", session=case.name, operation=operation or HELD_AT[case.moment])

        await self._seen("held", cases, held)

    async def _seen(self, what, cases, look):
        await until(
            lambda: all(look(case) for case in cases), what, lambda: [case.name for case in cases if not look(case)]
        )

    def _open(self, cases):
        for case in cases:
            self._gates.open(gate_of(case.moment, case.fate))

    def _running(self, case):
        turns = {turn["id"] for turn in self._cluster.turns(case.name)}
        return any(run["turn_id"] in turns for run in self._cluster.diary(tool="letter"))

    def _asking(self, case):
        open_calls = (
            "SELECT 1 FROM model_calls AS m JOIN turns AS t ON t.id = m.turn_id JOIN sessions AS s ON s.id = "
            "t.session_id WHERE s.name = %s AND m.step = 2 AND m.state = 'open'"
        )
        return self._cluster.tables.of(open_calls, case.name)

    def _let_go(self, case):
        session = self._cluster.session(case.name)
        states = [turn["state"] for turn in self._cluster.turns(case.name)]
        state = {"suspended": "waiting", "paused": "running", "paused_before": "queued"}[case.moment]
        return session["lease_id"] is None and states == [state]

    def _undecided(self, cases):
        statement = (
            "SELECT a.id FROM approvals AS a JOIN sessions AS s ON s.id = a.session_id WHERE s.name = ANY(%s) "
            "AND a.decision IS NULL"
        )
        names = [case.name for case in cases if case.approved]
        return [row["id"] for row in self._cluster.tables.of(statement, names)] if names else []


def outcomes(evidence):
    """By session: what became of it, in the words of the matrix."""
    names = {row["id"]: row["name"] for row in evidence.sessions}
    found = {name: {"letters": {}, "turns": [], "calls": [], "answers": []} for name in names.values()}
    for row in sorted(evidence.mailbox, key=lambda row: row["position"]):
        found[names[row["session_id"]]]["letters"][row["job_id"]] = row
    spoken = defaultdict(list)
    for row in sorted(evidence.messages, key=lambda row: row["seq"]):
        if row["position"] is not None:
            spoken[row["turn_id"]].append(row)
    for turn in sorted(evidence.turns, key=lambda turn: turn["started_seq"]):
        of_session = found[names[turn["session_id"]]]
        of_session["turns"].append(_turn(turn, spoken[turn["id"]], of_session["letters"].values()))
        of_session["calls"] += [
            call["state"]
            for call in sorted(evidence.tool_calls, key=lambda call: (call["step"], call["idx"]))
            if call["turn_id"] == turn["id"]
        ]
    for received in evidence.received:
        found[received.payload["session"]]["answers"].append(received.payload["content"])
    return found


def _turn(turn, spoken, mail):
    letter = {row["position"]: row["job_id"] for row in mail}
    opened = "".join(letter[row["position"]] for row in spoken if row["step"] == 0)
    joined = "".join(letter[row["position"]] for row in spoken if row["step"] > 0)
    released = any(row["consumed_by"] == turn["id"] != row["turn_id"] for row in mail)
    return ("~" if released else "") + opened + ("+" + joined if joined else "") + STATES[turn["state"]]


def differences(case, outcome, told):
    """What is not as the matrix says."""
    letters = outcome["letters"]
    stands = {
        "verdicts": "".join(letters[letter]["verdict"][0] for letter in "BC"),
        "order": list(letters),
        "turns": " ".join(outcome["turns"]),
        "calls": " ".join(outcome["calls"]),
        "answers": outcome["answers"],
        "events": told & TOLD,
    }
    expected = {
        "verdicts": case.verdicts,
        "order": ["A", "B", "C"],
        "turns": case.turns,
        "calls": case.calls,
        "answers": case.answers,
        "events": case.events,
    }
    return [
        f"{case.name}: {what} {stands[what]}, not {wanted}"
        for what, wanted in expected.items()
        if stands[what] != wanted
    ]


async def events_of_sessions(cluster):
    """By session: which types."""
    told = defaultdict(set)
    for event in await cluster.events():
        told[event.session].add(event.type)
    return told


async def test_every_mode_at_every_moment_in_every_workers_hands(cluster):
    agents = {mode: {"queue_mode": mode, "debounce_ms": DEBOUNCE_MS if mode in DEBOUNCED else 0} for mode in MODES}
    cluster.configure(agents, asks={mode: [ASKED_FOR] for mode in MODES})
    cluster.variables |= {"INSIKA_LEASE_S": str(LEASE_S), "INSIKA_DRAIN_S": str(DRAIN_S)}
    killed, same, other = (cases(fate) for fate in ("killed", "same", "other"))
    doomed = cluster.start("worker", "doomed", composed=HOLDING)
    await cluster.run("ingress", "outbox")
    await doomed.ready()
    async with operator(cluster.services) as somebody:
        play = Play(cluster, somebody)
        await play.comes_to_its_moment(killed)
        await play.say_more_and_hold(killed)
        await doomed.dies()
        leaver = cluster.start("worker", "leaver", composed=HOLDING)
        await play.goes_on(killed)
        await leaver.ready()
        await play.comes_to_its_moment([*same, *other])
        await play.say_more([*same, *(case for case in other if case.moment != "suspended")])
        await play.goes_on(same)
        await play.come_to_rest([*killed, *same])
        heir = cluster.start("worker", "heir", composed=HOLDING)
        assert await leaver.stops() == 0
        await play.say_more([case for case in other if case.moment == "suspended"])
        await play.goes_on(other)
        await play.come_to_rest(other)
    await cluster.settles(len(play.jobs))
    found, told = outcomes(cluster.evidence()), await events_of_sessions(cluster)
    wrong = [line for case in (*killed, *same, *other) for line in differences(case, found[case.name], told[case.name])]
    assert not wrong, "\n".join([MATRIX, *wrong])
    assert [completed_by(worker) for worker in (doomed, leaver, heir)] == [set(), names(*killed, *same), names(*other)]
    cluster.judge(play.jobs, gone=GONE, failures=["A"], counted=play.counted)


def names(*cases):
    return {case.name for case in cases}


def completed_by(worker):
    """The sessions of which it completed turns."""
    return {line["session"] for line in worker.logged("turn_completed")}
