"""What a turn delivers: its answer, whole or in pieces, as rows for the outbox. Pure.

Only the answer leaves. What a model says on its way to it is narration; a turn that failed or was cancelled says
nothing at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from insika.storage.operations import NewDelivery
from insika.text import clean_text

DELIVERING_OUTCOMES = frozenset({"completed", "halted", "limited", "stuck", "refused"})


class AnswerChannel(Protocol):
    """What the settings say of the channel; durations in seconds."""

    @property
    def id(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def guarantee(self) -> str: ...
    @property
    def split(self) -> str: ...
    @property
    def max_attempts(self) -> int: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def order_wait_s(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Answered:
    """The turn that answers. `session` is the name people know, `session_id` the store's row; `tenant` "" is the
    platform; `recipient` None means that the session's name is the address."""

    session_id: int
    session: str
    turn_id: str
    agent: str
    tenant: str = ""
    recipient: str | None = None
    route: str | None = None


def answer_deliveries(
    channel: AnswerChannel | None, turn: Answered, content: str, outcome: str
) -> tuple[NewDelivery, ...]:
    """The rows by which an answer leaves, in the order in which they must arrive. None of them where there is no
    channel, nothing to say, or an outcome that says nothing."""
    if channel is None or outcome not in DELIVERING_OUTCOMES:
        return ()
    content = clean_text(content)
    pieces = [content] if channel.split == "whole" else list(paragraphs(content))
    if not content.strip():
        return ()
    recipient = turn.recipient if turn.recipient is not None else turn.session
    return tuple(
        NewDelivery(
            channel=channel.id,
            lane=f"{turn.session_id}/{channel.id}",
            recipient=recipient,
            payload=_payload(turn, recipient, outcome, piece, index, final=index == len(pieces) - 1),
            url=channel.url,
            guarantee=str(channel.guarantee),
            max_attempts=channel.max_attempts,
            timeout_s=channel.timeout_s,
            order_wait_s=channel.order_wait_s,
            unique_key=f"answer/{turn.turn_id}/{index}",
        )
        for index, piece in enumerate(pieces)
    )


def paragraphs(content: str) -> Iterator[str]:
    """The parts of a text between its blank lines, without the blank lines. A fenced block of code stays whole."""
    lines: list[str] = []
    fence = ""
    for line in content.split("\n"):
        if not line.strip() and not fence:
            yield from _joined(lines)
            lines = []
            continue
        lines.append(line)
        fence = _fence_after(fence, line)
    yield from _joined(lines)


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after a line. It is closed by the same mark, as long or longer, and nothing else."""
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    if not fence:
        return mark.group(1)
    return "" if mark.group(1).startswith(fence) and line.strip() == mark.group(1) else fence


def _joined(lines: list[str]) -> Iterator[str]:
    if any(line.strip() for line in lines):
        yield "\n".join(lines).strip("\r\n")


def _payload(turn: Answered, recipient: str, outcome: str, content: str, index: int, *, final: bool) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "type": "answer",
        "session": turn.session,
        "recipient": recipient,
        "turn_id": turn.turn_id,
        "content": content,
        "index": index,
        "final": final,
        "agent": turn.agent,
        "outcome": outcome,
    }
    if turn.route is not None:
        payload["route"] = turn.route
    if turn.tenant:
        payload["tenant"] = turn.tenant
    return payload


_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
