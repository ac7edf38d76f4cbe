"""Batch, budget, repetition and steering together, turn after turn, with a crash and a resume anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from insika.errors import ToolRepetition
from insika.messages import Halt, Message, Role, ToolCall, assistant, tool_result, user
from insika.turn import sentences
from insika.turn.repetition import RepetitionGuard
from insika.turn.steer_injector import SteerInjector, SteerPolicy
from insika.turn.step_limit import StepLimit
from insika.turn.turn_budget import TurnBudget
from tests.turn_doubles import Transcript, WaitingMessages, read_strictly


class Muted:
    """A chat and an emit that discard."""

    def add_message(self, role: str, content: str) -> None:
        return None

    def emit(self, type: str, data: Mapping[str, Any], /) -> None:
        return None


class Line:
    """Passes on to whichever chat, emit and mailbox are at its far end just now."""

    def __init__(self) -> None:
        self.end: Transcript | Muted = Muted()
        self.mailbox = WaitingMessages()

    def add_message(self, role: str, content: str) -> None:
        self.end.add_message(role, content)

    def emit(self, type: str, data: Mapping[str, Any], /) -> None:
        self.end.emit(type, data)

    def take(self, limit: int):
        return self.mailbox.take(limit)


class Rules:
    """The three rules, called in the order that a boundary asks for."""

    def __init__(self, limit: int | None, repeat: int, policy: SteerPolicy, already: int) -> None:
        self.line = Line()
        self.budget = TurnBudget(self.line, limit, self.line.emit)
        self.guard = RepetitionGuard(self.line, repeat, self.line.emit)
        self.steer = SteerInjector(self.line, self.line, policy, self.line.emit, already)

    def call(self, call: ToolCall) -> bool:
        try:
            self.budget.tool_call()
            self.guard.tool_call(call.name, call.arguments)
        except (StepLimit.Exceeded, ToolRepetition):
            return False
        return True

    def show(self, what: Message | Halt | str) -> None:
        for each in (self.budget, self.guard, self.steer):
            if isinstance(what, Message):
                each.message_ended(what)
            else:
                each.tool_result(what)


class Conversation(RuleBasedStateMachine):
    @initialize(
        limit=st.none() | st.integers(1, 30),
        repeat=st.integers(0, 4),
        most=st.integers(0, 6),
        template=st.sampled_from([None, "<%{message}>"]),
    )
    def begin(self, limit, repeat, most, template):
        self.settings = (limit, repeat, SteerPolicy(most, template))
        self.policy = self.settings[2]
        self.transcript = Transcript()
        self.mailbox = WaitingMessages()
        self.arrived: list[str] = []
        self.heard: list[str] = []  # what people said, as far as it is in the conversation
        self.start_turn(["hello"])

    def start_turn(self, texts: list[str]) -> None:
        self.transcript.messages += [user(text) for text in texts]
        self.log: list[Message | Halt | str | ToolCall] = []
        self.open: list[str] = []  # calls without a result, in announced order
        self.stopped = self.halted = False
        self.wire(Rules(*self.settings, already=0))

    def wire(self, rules: Rules) -> None:
        self.rules = rules
        rules.line.end = self.transcript
        rules.line.mailbox = self.mailbox

    def see(self, what: Message | Halt | str) -> None:
        self.log.append(what)
        if isinstance(what, Message):
            self.transcript.messages.append(what)
        self.rules.show(what)

    @rule(count=st.integers(1, 3))
    def messages_arrive(self, count):
        texts = [f"m{len(self.arrived) + index} %{{message}}" for index in range(count)]
        self.arrived += texts
        self.mailbox.texts += texts

    @precondition(lambda self: not self.open and not self.stopped and not self.halted)
    @rule(tools=st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=7))
    def model_announces(self, tools):
        calls = [ToolCall(f"{len(self.log)}.{index}", tool) for index, tool in enumerate(tools)]
        self.see(assistant("", *calls))
        for call in calls:
            self.log.append(call)
            self.stopped |= not self.rules.call(call)
        self.open = [call.id for call in calls]

    @precondition(lambda self: self.open)
    @rule(halts=st.sampled_from([False] * 9 + [True]))  # a halt ends the turn, so it must be rare for turns to be long
    def tool_answers(self, halts):
        call_id = self.open.pop(0)
        boundary = not self.open
        said_before = len(self.transcript.said)
        steered_before = self.rules.steer.injected
        waiting = list(self.mailbox.texts)
        self.halted |= halts
        self.see(Halt() if halts else "found")
        self.see(tool_result(call_id, "found"))
        said = self.transcript.said[said_before:]
        joined = self.rules.steer.injected - steered_before
        if not boundary or self.halted:
            assert said == []
        room = max(0, self.policy.steer_max_messages - steered_before)
        assert joined == (min(len(waiting), room) if boundary and not self.halted else 0)
        notices, steered = said[: len(said) - joined], said[len(said) - joined :]
        assert steered == [self.policy.frame(text) for text in waiting[:joined]]
        assert all(text.startswith(sentences.MARK) for text in notices)
        assert len(notices) <= 2
        self.heard += waiting[:joined]

    @precondition(lambda self: not self.open)
    @rule()
    def turn_ends(self):
        self.see(assistant("the answer"))
        left, self.mailbox.texts = self.mailbox.texts, []
        self.heard += left
        self.start_turn(left or ["and another thing"])

    @rule()
    def process_dies_and_another_resumes(self):
        rules = Rules(*self.settings, already=self.rules.steer.injected)
        for what in self.log:
            if isinstance(what, ToolCall):
                rules.call(what)
            else:
                rules.show(what)
        assert rules.budget.calls == self.rules.budget.calls
        assert rules.budget.exhausted == self.rules.budget.exhausted
        assert rules.steer.injected == self.rules.steer.injected
        self.wire(rules)

    @invariant()
    def the_conversation_is_valid(self):
        read_strictly(self.transcript.messages)

    @invariant()
    def nothing_is_lost_or_doubled_or_out_of_order(self):
        assert self.heard + self.mailbox.texts == self.arrived

    @invariant()
    def no_turn_absorbs_more_than_it_may(self):
        assert self.rules.steer.injected <= self.policy.steer_max_messages

    @invariant()
    def the_engine_speaks_only_as_a_user_at_the_tail(self):
        assert all(message.role is Role.USER for message in self.transcript.messages if "[insika]" in message.content)


TestConversation = Conversation.TestCase
TestConversation.settings = settings(stateful_step_count=40, max_examples=150)
