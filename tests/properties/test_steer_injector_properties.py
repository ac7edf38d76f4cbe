from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from insika.messages import Halt
from insika.turn.steer_injector import SteerInjector, SteerPolicy
from tests.turn_doubles import Transcript, WaitingMessages, batch, read_strictly


@dataclass(frozen=True)
class Batch:
    """`arrivals[i]` messages come just before its i-th message is added, `late` after the last."""

    arrivals: tuple[int, ...]
    halts: bool
    late: int

    @property
    def size(self) -> int:
        return len(self.arrivals) - 1


ARRIVALS = st.lists(st.integers(0, 3), min_size=2, max_size=9).map(tuple)
BATCHES = st.lists(st.builds(Batch, ARRIVALS, st.booleans(), st.integers(0, 3)), max_size=8)
POLICIES = st.builds(SteerPolicy, st.integers(0, 12), st.sampled_from([None, "%{message}", "said: %{message} (100%)"]))


class Turn:
    """Plays batches into an injector, while numbered messages arrive."""

    def __init__(self, policy: SteerPolicy, already: int = 0) -> None:
        self.policy = policy
        self.transcript = Transcript()
        self.mailbox = WaitingMessages()
        self.arrived: list[str] = []
        self.resume(already)

    def resume(self, already: int) -> None:
        self.steer = SteerInjector(self.transcript, self.mailbox, self.policy, self.transcript.emit, already)

    def arrive(self, count: int) -> None:
        texts = [f"{len(self.arrived) + index} %{{message}} %s" for index in range(count)]
        self.arrived += texts
        self.mailbox.texts += texts

    def play(self, each: Batch) -> None:
        for index, message in enumerate(batch(each.size)):
            self.arrive(each.arrivals[index])
            if index == 1 and each.halts:
                self.steer.tool_result(Halt())
            self.transcript.messages.append(message)
            self.steer.message_ended(message)
        self.arrive(each.late)


@given(POLICIES, BATCHES)
def test_whatever_arrives_when_is_absorbed_in_order_or_still_waits(policy, batches):
    turn = Turn(policy)
    for each in batches:
        turn.play(each)
    joined = turn.steer.injected
    read_strictly(turn.transcript.messages)
    assert joined <= policy.steer_max_messages
    assert turn.transcript.said == [policy.frame(text) for text in turn.arrived[:joined]]
    assert turn.mailbox.texts == turn.arrived[joined:]


@given(POLICIES, BATCHES)
def test_each_boundary_absorbs_all_that_waits_and_has_room_unless_it_halted(policy, batches):
    turn = Turn(policy)
    joined = 0
    for each in batches:
        waiting = len(turn.mailbox.texts) + sum(each.arrivals)
        absorbed = 0 if each.halts else min(waiting, policy.steer_max_messages - joined)
        joined += absorbed
        turn.transcript.events = []
        turn.play(each)
        assert turn.steer.injected == joined
        expected = [("turn_steered", {"count": absorbed, "total": joined})] if absorbed else []
        assert turn.transcript.events == expected


@given(POLICIES, BATCHES, st.data())
def test_a_resume_between_batches_changes_nothing(policy, batches, data):
    straight, resumed = Turn(policy), Turn(policy)
    cut = data.draw(st.integers(0, len(batches)))
    for index, each in enumerate(batches):
        if index == cut:
            resumed.resume(already=resumed.steer.injected)
        straight.play(each)
        resumed.play(each)
    assert resumed.transcript.messages == straight.transcript.messages
    assert resumed.transcript.events == straight.transcript.events
    assert resumed.mailbox.texts == straight.mailbox.texts


@given(
    st.sampled_from(["%{message}", "said: %{message}", "100%% %{message} {x} %s"]),
    st.text(st.sampled_from("%{mesag}s\\1a"), max_size=20),
)
def test_a_frame_holds_what_the_person_wrote_and_nothing_else_changes(template, text):
    before, after = template.split("%{message}")
    assert SteerPolicy(steer_join=template).frame(text) == before + text + after
