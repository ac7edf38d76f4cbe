"""The lease protocol under two owners that may sleep at any point, producers, cancels, and a clock that jumps.

An owner acts on what it remembers, however old that is. A small model says who holds the lease and what is urgent; the
rows are asked, after every step, for the rules that must hold at every instant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from insika.clock import NEVER
from insika.storage.operations import CallResult, FailQueued, SettleMail
from insika.storage.port import StoreRefused
from insika.storage.rows import CallStart, CallState, Committed, Ended, TurnState, Verdict
from tests.store_world import ESTIMATE, LEASE_S, Owner, World, answer_call, assert_resumable, done, job

REFUSED = (None, False, CallStart(held=False, moved=False), CallStart(held=True, moved=False))
MAILBOX_MAX = 6
T = TypeVar("T")
WHO = st.sampled_from("AB")


class LeaseMachine(RuleBasedStateMachine):
    """Subclasses say over which store, by `open_world`. It is opened and closed in the loop of this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.world = self.run(self.closing.enter_async_context(self.open_world()))
        self.store, self.clock = self.world.store, self.world.clock
        self.owners: dict[str, Owner | None] = {"A": None, "B": None}
        self.lease: str | None = None
        self.urgent = 0
        self.accepted: dict[int, str] = {}
        self.ended: dict[int, Ended] = {}
        self.jobs: list[Any] = []
        self.session_id = 0

    def teardown(self) -> None:
        try:
            if self.session_id:
                self.run(self.let_everything_end())
        finally:
            self.run(self.closing.aclose())
            self.runner.close()

    def open_world(self) -> AbstractAsyncContextManager[World]:
        raise AssertionError("a subclass says which")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def dump(self) -> Any:
        """Every row there is, to be compared."""
        return self.run(self.world.everything())

    # --- producers and time

    @initialize()
    def first_contact(self) -> None:
        self.say("followup", "k", 0)

    @rule(
        mode=st.sampled_from(["followup", "steer", "steer", "collect", "collect", "interrupt"]),
        key=st.sampled_from("kkj"),
        debounce_ms=st.sampled_from([0, 0, 400]),
    )
    def say(self, mode: str, key: str, debounce_ms: int) -> None:
        text = f"message {len(self.jobs)}"
        asked = job(text, mode=mode, key=key, debounce_ms=debounce_ms, mailbox_max=MAILBOX_MAX)
        self.jobs.append(asked)
        said = self.run(self.store.accept(asked))
        self.session_id = said.session_id
        full = len(self.accepted) - len(self.ended) >= MAILBOX_MAX
        assert (said.verdict is Verdict.REJECTED) == full
        if not full:
            assert said.position is not None
            self.accepted[said.position] = text
            if said.verdict is Verdict.INTERRUPTING:
                self.urgent = said.position

    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from(self.jobs))
        before = self.dump()
        said = self.run(self.store.accept(asked.tried_anew("another turn")))
        if asked.text in self.accepted.values():
            assert said.verdict is Verdict.DUPLICATE
            assert self.dump() == before
        elif said.verdict is not Verdict.REJECTED:  # it was turned away when the mailbox was full; now there is room
            assert said.position is not None
            self.accepted[said.position] = asked.text
            if said.verdict is Verdict.INTERRUPTING:
                self.urgent = said.position
            self.jobs.remove(asked)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        turns = self.run(self.store.turns(self.session_id))
        turn = data.draw(st.sampled_from(turns))
        control = self.run(self.store.cancel(turn.id, request_id=f"cancel {len(self.accepted)} {turn.id}"))
        if control is not None and control.verdict is Verdict.CONTROL:
            assert control.position is not None
            self.urgent = control.position

    @rule(seconds=st.sampled_from([0.5, 5.0, LEASE_S + 1, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-300.0, 300.0]))
    def the_clock_jumps(self, seconds: float) -> None:
        self.clock.jump(seconds)

    # --- owners

    @rule(who=WHO, suspects=st.booleans())
    def claim(self, who: str, suspects: bool) -> None:
        claim = self.run(self.store.claim(self.session_id, LEASE_S, take_suspects=suspects))
        if claim is None:
            return
        assert suspects or claim.deaths < 2
        self.lease = claim.lease_id
        self.owners[who] = self.run(Owner(self.world, claim).look())

    @precondition(lambda self: self.owners["A"] or self.owners["B"])
    @rule(who=WHO)
    def look(self, who: str) -> None:
        owner = self.owners[who]
        if owner is None:
            return
        loaded = self.run(self.store.load(owner.fence))
        assert (loaded is not None) == (self.lease == owner.fence.lease_id)
        if loaded is None:
            self.owners[who] = None
        else:
            self.run(owner.look())

    @precondition(lambda self: self.owners["A"] or self.owners["B"])
    @rule(who=WHO, choice=st.integers(0, 11), remembers=st.booleans())
    def act(self, who: str, choice: int, remembers: bool) -> None:
        owner = self.owners[who]
        if owner is None:
            return
        before = self.dump()
        holds = self.lease == owner.fence.lease_id
        try:
            answer, starts = self.run(self.step(owner, choice))
        except (ValueError, StoreRefused):  # it remembers a step that is long past
            answer, starts = None, False
        if answer in REFUSED:
            assert self.dump() == before
            return
        assert holds, "an owner without the lease wrote"
        assert not starts or owner.seen.urgent >= self.urgent, "something started behind an interrupt's back"
        if answer is RELEASED or answer == Committed(released=True):
            self.lease = None
        elif not remembers:
            self.run(owner.look())

    async def step(self, owner: Owner, choice: int) -> tuple[Any, bool]:
        """One thing that an owner with these memories may do, and whether it is one that urgent mail forbids."""
        if choice == 0:
            drained = await self.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)
            return drained and RELEASED, False
        if owner.loaded.session.turn_id is None:
            return await self.between_turns(owner, choice)
        step = max(call.step for call in owner.loaded.model_calls)
        if owner.loaded.session.open_calls:
            return await self.within_a_batch(owner, choice, step)
        if choice <= 5:
            return await owner.append(*(f"{step}.{n}" for n in range(1 + choice % 3)), step=step), False
        if choice <= 7:
            attempt = 1 + max(call.attempt for call in owner.loaded.model_calls if call.step == step)
            call = answer_call(step, attempt)
            return await self.store.retry_model(owner.fence, owner.seen, owner.turn_id, call, estimate=ESTIMATE), True
        if choice <= 9:
            return await owner.commit(step, release_due=NEVER if choice == 9 else None), True
        return await owner.fail(step=step, control=self.controls(owner)), False

    async def between_turns(self, owner: Owner, choice: int) -> tuple[Any, bool]:
        controls = self.controls(owner)
        mail = [row for row in owner.loaded.mail if row.verdict is not Verdict.CONTROL]
        if not mail and controls:
            settle = SettleMail((), "withdrawn", None, TurnState.CANCELLED, control=controls)
            return await self.store.settle_mail(owner.fence, owner.seen, settle), False
        if not mail or choice == 1:
            released = await owner.release(self.clock.now() if mail else NEVER)
            return released and RELEASED, False
        first = mail[0]
        opening = owner.opening()
        if first.verdict is Verdict.STEERED:  # it was too late for the turn it was meant for
            opening = owner.opening(turn_id=f"turn of {first.position}", positions=(first.position,), merging=False)
        if choice == 2:
            turn_id = None if first.verdict is Verdict.STEERED else opening.turn_id
            settle = SettleMail(
                opening.positions, "withdrawn", turn_id, TurnState.CANCELLED, merging=opening.merging, control=()
            )
            return await self.store.settle_mail(owner.fence, owner.seen, settle), False
        if choice == 3:
            error = {"type": "worker_lost", "message": "its workers died"}
            address = (opening.agent, opening.channel, opening.recipient, opening.origin)
            lost = FailQueued(opening.turn_id, opening.positions, *address, error, opening.merging)
            return await self.store.fail_queued(owner.fence, owner.seen, lost), True
        return await self.store.start(owner.fence, owner.seen, opening), True

    async def within_a_batch(self, owner: Owner, choice: int, step: int) -> tuple[Any, bool]:
        calls = [call for call in owner.loaded.calls if call.step == step]
        one = calls[choice % len(calls)]
        results = tuple(self.result(call.index, call.call_id, call.state) for call in calls)
        if choice <= 3:
            return await owner.start_call(one.index, step), True
        if choice <= 6:
            return await owner.finish_call(done(one.index, one.call_id), step), False
        if choice <= 9:
            steers = [
                row for row in owner.loaded.mail if row.verdict is Verdict.STEERED and row.turn_id == owner.turn_id
            ]
            absorbed = owner.absorbing(*(row.position for row in steers))
            unseen = choice == 9
            return await owner.cross(*results, step=step, absorbed=absorbed, nothing_unseen=unseen), True
        return await owner.fail(*results, step=step, control=self.controls(owner)), False

    @staticmethod
    def controls(owner: Owner) -> tuple[int, ...]:
        return tuple(row.position for row in owner.loaded.mail if row.verdict is Verdict.CONTROL)

    @staticmethod
    def result(index: int, call_id: str, state: CallState) -> CallResult:
        return done(index, call_id, state=CallState.UNKNOWN if state is CallState.STARTED else CallState.NOT_RUN)

    # --- what must hold at every instant

    @invariant()
    def the_rules_hold(self) -> None:
        if not self.session_id:
            return
        session = self.run(self.world.session())
        mail = [row for row in self.run(self.store.mail(self.session_id)) if row.verdict is not Verdict.CONTROL]
        turns = self.run(self.store.turns(self.session_id))
        log = self.run(self.store.messages(self.session_id))

        assert {row.position: row.text for row in mail} == self.accepted, "a message was lost"
        ended = {row.position: row.ended for row in mail if row.ended is not None}
        assert all(ended[position] is how for position, how in self.ended.items()), "a message ended twice"
        self.ended = ended
        assert session.waiting == len(mail) - len(ended)

        said = {entry.position: entry for entry in log if entry.position is not None}
        assert len(said) == sum(entry.position is not None for entry in log), "a message was consumed twice"
        consumed = {row.position: row.consumed_by for row in mail if row.ended is Ended.TURN}
        assert {position: entry.turn_id for position, entry in said.items()} == consumed
        assert all(entry.message.content == self.accepted[position] for position, entry in said.items())
        opened = [entry.position or 0 for entry in log if entry.step == 0]
        assert opened == sorted(opened), "turns began out of the order of arrival"

        running = [turn.id for turn in turns if turn.state is TurnState.RUNNING]
        assert running == ([session.turn_id] if session.turn_id else [])
        assert session.log_seq == len(log)
        assert_resumable(log, self.run(self.store.calls(log[-1].turn_id)) if log else ())
        assert session.urgent_seq == self.urgent
        assert session.lease_id == self.lease
        if session.lease_id is None and (session.waiting or session.turn_id):
            assert session.due_at != NEVER, "something is left to do and nobody will come"

    async def let_everything_end(self) -> None:
        """Whatever has happened, one owner that is left alone brings the session to rest."""
        self.clock.advance(10_000)
        claim = await self.store.claim(self.session_id, LEASE_S)
        if claim is not None:
            await self.bring_to_rest(Owner(self.world, claim))
        session = await self.world.session()
        assert (session.waiting, session.turn_id, session.lease_id, session.due_at) == (0, None, None, NEVER)
        assert all(row.ended is not None for row in await self.store.mail(self.session_id))

    async def bring_to_rest(self, owner: Owner) -> None:
        while True:
            await owner.look()
            session = owner.loaded.session
            if session.turn_id is not None:
                step = max(call.step for call in owner.loaded.model_calls)
                calls = [call for call in owner.loaded.calls if call.step == step]
                results = tuple(self.result(call.index, call.call_id, call.state) for call in calls)
                open_results = results if session.open_calls else ()
                assert await owner.fail(*open_results, step=step, control=self.controls(owner))
            elif owner.loaded.mail:
                answer, _ = await self.between_turns(owner, 4)
                assert answer not in REFUSED
            else:
                assert await owner.release()
                return


RELEASED = object()
