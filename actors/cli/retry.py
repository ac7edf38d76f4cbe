"""One more try of a failed turn: what its person said, as a new job.

The new job's id follows from the failed turn, so that however often somebody asks, the turn is run once more, not
several times. It never joins another turn: it is the failed one that is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from actors.cli.running import Door
from actors.cli.verdicts import HandedIn, hand_in
from insika.choices import QueueMode
from insika.storage.rows import Mail, SessionRow, TurnRow, TurnState


@dataclass(frozen=True, slots=True)
class Retried:
    turn_id: str
    handed_in: HandedIn


async def retry_turn(door: Door, session: SessionRow, turn_id: str | None) -> Retried:
    """`turn_id` None: the last turn of the session that failed. Raises click.ClickException when there is none, or
    the one named did not fail."""
    turn = _failed(await door.store.turns(session.id), turn_id, session.name)
    said = [row for row in await door.store.mail(session.id) if row.consumed_by == turn.id]
    id_ = f"retry-{turn.id}"
    job = json.dumps(_job(session, turn, said, id_)).encode()
    return Retried(turn.id, await hand_in(door.ingress, job, id=id_, session=session.name, source="retry"))


def _failed(turns: Sequence[TurnRow], turn_id: str | None, name: str) -> TurnRow:
    if turn_id is None:
        failed = [turn for turn in turns if turn.state is TurnState.FAILED]
        if not failed:
            raise click.ClickException(f"no turn of session {name!r} has failed")
        return failed[-1]
    turn = next((turn for turn in turns if turn.id == turn_id), None)
    if turn is None:
        raise click.ClickException(f"session {name!r} has no turn {turn_id!r}")
    if turn.state is not TurnState.FAILED:
        raise click.ClickException(f"turn {turn_id} is {turn.state}; only a failed one is run again")
    return turn


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
