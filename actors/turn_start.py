"""What the store is asked for when a turn begins, and what is told of it: made from the messages that open the turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from actors.admission import Applicant, Warnings
from actors.stage import Staged
from actors.turn_events import ScopedEvents
from insika.events import EventType
from insika.messages import user
from insika.reliability.chain import ModelSource
from insika.storage.operations import FinishAtOnce, ModelCallKey, NewAlert, NewDelivery, StartTurn
from insika.storage.rows import Loaded, LogEntry, Mail, TurnRow, Verdict
from insika.turn.log import Answer
from insika.turn.queue_policy import Begin

CLASSIFY = "classify"
"""The purpose of a request to a classifier."""


def applicant_of(loaded: Loaded, begin: Begin) -> Applicant:
    first, session = begin.mail[0], loaded.session
    return Applicant(
        session.tenant,
        session.name,
        begin.turn_id,
        loaded.now,
        tuple(row.text for row in begin.mail),
        first.channel,
        first.recipient,
        first.customer,
        first.origin,
    )


def applicant_again(loaded: Loaded, turn: TurnRow) -> Applicant:
    """The same of a turn that is taken up again. Who the customer is stood in its message alone."""
    session = loaded.session
    opening = [entry for entry in loaded.log if entry.turn_id == turn.id and entry.step == 0]
    return Applicant(
        session.tenant,
        session.name,
        turn.id,
        loaded.now,
        tuple(entry.message.content for entry in opening),
        turn.channel,
        turn.recipient,
        None,
        turn.origin,
    )


def opening_mail_again(loaded: Loaded, turn: TurnRow) -> tuple[Mail, ...]:
    """The messages that opened a turn that is taken up again, for a guard to look at: their places, and what they say.
    How they arrived stood in their rows alone."""
    return tuple(
        Mail(
            entry.position,
            "",
            "",
            None,
            entry.message.content,
            turn.created_at,
            Verdict.ACCEPTED,
            turn.id,
            None,
            0,
            0,
            turn.agent,
            turn.channel,
            turn.recipient,
            turn.origin,
        )
        for entry in loaded.log
        if entry.turn_id == turn.id and entry.step == 0 and entry.position is not None
    )


def first_call(staged: Staged, classified: int = 0) -> ModelCallKey:
    """The first request of the agent that has the turn: its classifier's, where it has routes and nobody has asked for
    one. `classified`: how many requests to classifiers the turn has made before."""
    routes = staged.profile.routes
    if routes is not None and len(staged.routes) <= staged.depth:
        return ModelCallKey(1, classified + 1, CLASSIFY, routes.model or staged.identity.model)
    return ModelCallKey(1, 1, "answer", staged.identity.model)


def start_of(begin: Begin, staged: Staged, load_from: int | None, alerts: Sequence[NewAlert] = ()) -> StartTurn:
    """Who answers, where to, and who may join: from the message that opens the turn. `alerts` are raised with it."""
    first = begin.mail[0]
    return StartTurn(
        begin.turn_id,
        tuple(row.position for row in begin.mail),
        first.agent,
        first.channel,
        first.recipient,
        first.origin,
        staged.revision,
        staged.limits,
        first_call(staged),
        first.key if staged.identity.limits.steer_max_messages > 0 else None,
        begin.merging,
        load_from=load_from,
        alerts=tuple(alerts),
    )


def finish_of(begin: Begin, staged: Staged, answer: Answer, deliveries: Sequence[NewDelivery]) -> FinishAtOnce:
    """A turn that begins and ends at once with an answer that no model gave."""
    first = begin.mail[0]
    return FinishAtOnce(
        begin.turn_id,
        tuple(row.position for row in begin.mail),
        first.agent,
        first.channel,
        first.recipient,
        first.origin,
        staged.revision,
        staged.limits,
        answer.content,
        answer.outcome,
        tuple(deliveries),
        begin.merging,
    )


def opening_of(begin: Begin, last_seq: int, epoch: int) -> tuple[LogEntry, ...]:
    """The turn's first messages, as the start has just written them; `last_seq` is the last one's."""
    first_seq = last_seq - len(begin.mail) + 1
    return tuple(
        LogEntry(first_seq + place, begin.turn_id, epoch, 0, user(row.text), row.position)
        for place, row in enumerate(begin.mail)
    )


def tell_start(emit: ScopedEvents, begin: Begin, staged: Staged) -> None:
    if begin.steers_released:
        emit(EventType.TURN_STEER_RELEASED, {"released_as": begin.turn_id, "count": len(begin.mail)})
    elif len(begin.mail) > 1:
        emit(EventType.TURN_COALESCED, {"merged": len(begin.mail) - 1, "arrivals": len(begin.mail)})
    emit(EventType.TURN_STARTED, {"revision": staged.revision})


def tell_warnings(emit: ScopedEvents, warnings: Warnings, raised: Collection[str]) -> None:
    """Of those that nobody had raised before: their keys are in `raised`."""
    for key, data in warnings.events.items():
        if key in raised:
            emit(EventType.BUDGET_WARNING, data)


def completed(answer: Answer) -> Mapping[str, Any]:
    """What is told of an answer; `attempt` is the one at its step's request that gave it."""
    told: dict[str, Any] = {"outcome": answer.outcome, "synthesized": answer.synthesized, "step": answer.step}
    told |= on_route(answer.route)
    if answer.model_call is not None:
        told["attempt"] = answer.model_call.key.attempt
    if answer.cut_off:
        told["cut_off"] = True
    if answer.model:
        source = ModelSource.FALLBACK if answer.fallback else ModelSource.PRIMARY
        told |= {"model": answer.model, "model_source": str(source)}
    return {**told, "steps": answer.step, "usage": asdict(answer.usage)}


def on_route(route: str | None) -> Mapping[str, Any]:
    """What a turn's last event says of its route."""
    return {} if route is None else {"route": route}


def tell_completed(emit: ScopedEvents, answer: Answer) -> None:
    """Of a turn that took no time of its own."""
    emit(EventType.TURN_COMPLETED, {**completed(answer), "timing": dict(answer.timing)})
