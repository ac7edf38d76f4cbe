"""One more try of a failed turn: what its person said, as a new job.

The new job's id follows from the failed turn, so that however often somebody asks, the turn is run once more, not
several times. It never joins another turn: it is the failed one that is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from actors.cli.refusals import NotFound, Refused
from actors.cli.running import Door
from actors.cli.short_ids import whole_id
from actors.cli.verdicts import HandedIn, hand_in
from insika.choices import QueueMode
from insika.storage.rows import Mail, SessionRow, TurnRow, TurnState


@dataclass(frozen=True, slots=True)
class Retried:
    turn_id: str
    handed_in: HandedIn


async def retry_turn(door: Door, session: SessionRow, turn_id: str | None) -> Retried:
    """`turn_id` None: the last turn of the session that failed. Raises Refused when there is none, or
    the one named did not fail."""
    turn = await _failed(await door.store.turns(session.id), turn_id, session.name)
    said = [row for row in await door.store.mail(session.id) if row.consumed_by == turn.id]
    id_ = f"retry-{turn.id}"
    job = json.dumps(_job(session, turn, said, id_)).encode()
    return Retried(turn.id, await hand_in(door.ingress, job, id=id_, session=session.name, source="retry"))


async def _failed(turns: Sequence[TurnRow], turn_id: str | None, name: str) -> TurnRow:
    if turn_id is None:
        failed = [turn for turn in turns if turn.state is TurnState.FAILED]
        if not failed:
            raise NotFound(f"no turn of session {name!r} has failed")
        return failed[-1]
    named = await whole_id(turn_id, _among(turns))
    turn = next((turn for turn in turns if turn.id == named), None)
    if turn is None:
        raise NotFound(f"session {name!r} has no turn {turn_id!r}")
    if turn.state is not TurnState.FAILED:
        raise Refused(f"turn {turn.id} is {turn.state}; only a failed one is run again")
    return turn


def _among(turns: Sequence[TurnRow]) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    async def beginning_with(prefix: str, limit: int) -> Sequence[str]:
        return [turn.id for turn in turns if turn.id.startswith(prefix)][:limit]

    return beginning_with


def _job(session: SessionRow, turn: TurnRow, said: Sequence[Mail], id_: str) -> dict[str, Any]:
    given = {
        "tenant": session.tenant or None,
        "customer": said[0].customer if said else None,
        "channel": turn.channel,
        "recipient": turn.recipient,
    }
    return {
        "id": id_,
        "session": session.name,
        "agent": turn.agent,
        "text": "\n\n".join(row.text for row in said),
        "origin": turn.origin,
        "queue_mode": str(QueueMode.FOLLOWUP),
        **{name: value for name, value in given.items() if value is not None},
    }
