from __future__ import annotations

from datetime import UTC, datetime

from insika.events import Event, EventSink
from insika.messages import user
from insika.ports import Chat, Emit, Finished, Mailbox, ModelProvider, ModelRequest, ToolSpec
from insika.testing import (
    ListMailbox,
    RecordingChat,
    RecordingEmit,
    RecordingEvents,
    Say,
    Scene,
    Script,
    ScriptedModel,
)


async def test_a_scripted_model_answers_to_any_name_and_keeps_its_requests() -> None:
    model = ScriptedModel(Script([Say("hello")]))
    provider: ModelProvider = model
    request = ModelRequest("whatever", "", (user("hi"),))
    *_, last = [event async for event in provider.stream(request)]
    assert isinstance(last, Finished)
    assert last.message.content == "hello"
    assert model.requests == [request]


async def test_a_scripted_model_is_told_of_all_that_is_asked() -> None:
    seen: list[Scene] = []

    def look(scene: Scene) -> Say:
        seen.append(scene)
        return Say("done")

    model = ScriptedModel(Script(afterwards=look))
    lookup = ToolSpec("order_lookup", "", {"type": "object"})
    for may_call in (True, False):
        request = ModelRequest("whatever", "", (user("hi"),), (lookup,), may_call=may_call)
        assert [event async for event in model.stream(request)]
    assert [scene.tools for scene in seen] == [{"order_lookup"}, frozenset()]


def test_a_chat_keeps_what_is_appended() -> None:
    chat = RecordingChat()
    port: Chat = chat
    port.add_message("user", "one")
    assert chat.messages == [user("one")]
    assert chat.texts == ["one"]


def test_events_are_kept_in_order() -> None:
    events = RecordingEvents()
    sink: EventSink = events
    at = datetime(2030, 1, 1, tzinfo=UTC)
    for type in ("a", "b", "a"):
        sink.publish(Event(type, at))
    assert events.types == ["a", "b", "a"]
    assert len(events.of("a")) == 2


def test_what_a_rule_emits_is_kept() -> None:
    emit = RecordingEmit()
    port: Emit = emit
    port("turn_steered", {"count": 1})
    assert emit.events == [("turn_steered", {"count": 1})]


def test_a_mailbox_gives_each_text_once_and_in_order() -> None:
    mailbox = ListMailbox(["a", "b", "c"])
    port: Mailbox = mailbox
    assert port.take(0) == []
    assert port.take(2) == ["a", "b"]
    mailbox.put("d")
    assert port.take(5) == ["c", "d"]
    assert port.take(5) == []
