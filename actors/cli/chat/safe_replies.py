"""What a chat hears of the replies to refused messages. They never enter the conversation, so the store has none of
them; events, which are hints, are all that tells them here."""

from __future__ import annotations

from collections.abc import Iterable

from insika.events import Event, EventType


class SafeReplies:
    """Of one session, by turn."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._heard: dict[str, str] = {}

    def read(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.session != self._session or event.tenant is not None or event.turn_id is None:
                continue
            if event.type == EventType.CONTENT and event.step == 0:  # a model's words are of a step
                self._heard[event.turn_id] = str(event.data.get("text", ""))

    def heard(self, turn_id: str) -> bool:
        return turn_id in self._heard

    def take(self, turn_id: str) -> str:
        """ "" where none was heard."""
        return self._heard.pop(turn_id, "")
