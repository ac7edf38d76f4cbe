"""Ends messages that no turn will say: taken back, cancelled before their turn began, or refused by the guard.

Each is one fenced write, and then the news of it. What is to be settled says the queue policy; what may be said, the
guard. Nothing here starts, cuts or ends a turn that runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from actors.lease import Lease
from actors.moderation import Moderation, Occasion
from actors.refusing import EndsTurn, Refusing
from actors.turn_events import ScopedEvents, events_of
from actors.world import World
from insika.agents.limits import TurnLimits
from insika.choices import Origin
from insika.crash_points import CrashPoint
from insika.errors import Cancelled
from insika.events import EventType
from insika.jobs import turn_key
from insika.messages import Usage
from insika.storage.operations import Seen, SettleMail
from insika.storage.rows import Ended, Loaded, Mail, TurnState, Verdict
from insika.turn.input_guard import Refusal
from insika.turn.log import Superseded
from insika.turn.queue_policy import LOST_AFTER_DEATHS, Begin, Settlement, TakeBack, WithdrawQueued

BROKE_THE_GUARD = Refusal("guard_lost")
"""Of a text at which the guard itself must have killed its process, time after time."""


@dataclass(slots=True)
class SteerRoom:
    """What may join the running turn: messages with this key, and so many more of them."""

    key: str | None
    left: int


class Mailroom:
    """Of one session. Every operation raises Superseded when it may not write: load again."""

    def __init__(self, lease: Lease, world: World) -> None:
        self._lease = lease
        self._world = world
        self._refusing = Refusing(lease, world)
        self._moderation = Moderation(lease, world)

    @property
    def owed(self) -> Usage:
        """What asking a moderator may have cost that is not booked, where this owner was stopped."""
        return self._moderation.owed

    async def look(self) -> None:
        """Something urgent may lie in the mailbox, and a moderator that is being asked need not go on."""
        await self._moderation.look()

    async def settle(self, loaded: Loaded, settlement: Settlement) -> None:
        """Honour a control message that is not aimed at the running turn."""
        match settlement:
            case TakeBack():
                await self._take_back(loaded, settlement)
            case WithdrawQueued():
                await self._withdraw(loaded, settlement)

    async def screen(self, loaded: Loaded, begin: Begin) -> bool:
        """Ask the guard about exactly the messages with which a turn is about to begin, and end those that it refuses.
        False: there were some, so load again."""
        if loaded.session.deaths > LOST_AFTER_DEATHS:  # giving up was tried before, and only the guard stands before it
            refused: Mapping[int, Refusal] = {row.position: BROKE_THE_GUARD for row in begin.mail}
        else:
            refused = await self._world.guard.refusals(begin.mail)
        if not refused:
            return True
        await self._refuse(loaded, begin, refused)
        return False

    async def moderate(self, loaded: Loaded, begin: Begin) -> bool:
        """The same by the agent's moderator, a model: only once the turn may ask one."""
        said_to = begin.mail[0].turn_id if begin.steers_released else begin.turn_id
        occasion = Occasion(loaded, seen(loaded), said_to or begin.turn_id)
        refused = await self._moderation.refusals(occasion, begin.mail)
        if refused:
            await self._refuse(loaded, begin, refused)
        return not refused

    async def moderated(self, loaded: Loaded, seen: Seen, turn_id: str, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        """Those of the running turn's messages that a moderator refuses. They have been said: none of them ends."""
        return await self._moderation.refusals(Occasion(loaded, seen, turn_id), mail)

    async def screen_steers(self, loaded: Loaded, seen: Seen, turn_id: str, steers: Sequence[Mail]) -> bool:
        """The same for messages that are about to join the running turn."""
        refused = await self._world.guard.refusals(steers)
        if not refused:
            refused = await self._moderation.refusals(Occasion(loaded, seen, turn_id), steers)
        if not refused:
            return True
        await self._refusing.some(loaded, seen, steers[0], turn_id, refused)
        return False

    async def refuse_cuts(self, loaded: Loaded, cuts: Sequence[Mail], steers: SteerRoom) -> Sequence[Mail]:
        """The same for what cuts the running turn: an interrupt that is refused does not interrupt. Answers what cuts
        it all the same. Nothing: the turn goes on as if nobody had interrupted it; it takes steers again, if it has
        room for them."""
        interrupts = [row for row in cuts if row.verdict is not Verdict.CONTROL]
        refused = await self._refused_interrupts(loaded, interrupts)
        all_of_it = len(refused) == len(cuts)
        given_back = steers.key if all_of_it and steers.left > 0 else None
        for row in (row for row in interrupts if row.position in refused):
            ends = EndsTurn(row.turn_id or "", loaded.session.merge_turn == row.turn_id, given_back)
            await self._refusing.all(loaded, seen(loaded), row, ends, {row.position: refused[row.position]})
        return [row for row in cuts if row.position not in refused]

    async def _refused_interrupts(self, loaded: Loaded, interrupts: Sequence[Mail]) -> Mapping[int, Refusal]:
        if not interrupts:
            return {}
        refused = dict(await self._world.guard.refusals(interrupts))
        for row in interrupts:
            if row.position not in refused and row.turn_id is not None:
                refused |= await self._moderation.refusals(Occasion(loaded, seen(loaded), row.turn_id), [row])
        return refused

    async def _refuse(self, loaded: Loaded, begin: Begin, refused: Mapping[int, Refusal]) -> None:
        first = begin.mail[0]
        if len(refused) < len(begin.mail) or begin.steers_released:
            await self._refusing.some(loaded, seen(loaded), first, None, refused)
        else:
            await self._refusing.all(loaded, seen(loaded), first, EndsTurn(begin.turn_id, begin.merging), refused)

    async def _take_back(self, loaded: Loaded, withdrawal: TakeBack) -> None:
        mail = withdrawal.mail
        await self._write(
            seen(loaded),
            SettleMail(
                (mail.position,) if mail is not None else (),
                Ended.WITHDRAWN,
                withdrawal.ends_turn,
                TurnState.CANCELLED,
                (withdrawal.control,),
                withdrawal.merging,
            ),
        )
        if mail is None:
            return
        emit = self._events(loaded, mail.turn_id, mail.agent)
        emit(EventType.MESSAGE_WITHDRAWN, {"message_id": mail.job_id, "position": mail.position})
        if withdrawal.ends_turn is not None:
            emit(EventType.TURN_CANCELLED, {"outcome": "cancelled", "error": Cancelled.type})

    async def _withdraw(self, loaded: Loaded, withdraw: WithdrawQueued) -> None:
        await self._write(
            seen(loaded),
            SettleMail(
                tuple(row.position for row in withdraw.mail),
                Ended.WITHDRAWN,
                withdraw.turn_id if withdraw.mail else None,  # without mail it has ended already: only say so
                TurnState.CANCELLED,
                withdraw.control,
                withdraw.merging,
            ),
        )
        if withdraw.mail:
            emit = self._events(loaded, withdraw.turn_id, withdraw.mail[0].agent)
            emit(EventType.TURN_CANCELLED, {"outcome": "cancelled", "error": Cancelled.type})

    async def _write(self, seen: Seen, mail: SettleMail) -> None:
        if not await self._world.store.settle_mail(self._lease.fence, seen, mail):
            raise Superseded
        self._world.crash(CrashPoint.MAIL_SETTLED)

    def _events(self, loaded: Loaded, turn_id: str | None, agent: str) -> ScopedEvents:
        return events_of(loaded, self._lease.epoch, self._world.events, self._world.clock, turn_id, agent)


def steer_room(loaded: Loaded) -> SteerRoom:
    """Of the running turn, from its row and its log."""
    turn = loaded.turn
    if turn is None or turn.limits is None:
        return SteerRoom(None, 0)
    joined = sum(
        1 for entry in loaded.log if entry.turn_id == turn.id and entry.step > 0 and entry.position is not None
    )
    if turn.depth:  # messages go by the agent that they were sent to, which is not the one that has the turn now
        key = loaded.session.turn_key
    else:
        key = turn_key(turn.agent, turn.channel, turn.recipient or "", Origin(turn.origin))
    return SteerRoom(key, TurnLimits.from_dict(turn.limits).steer_max_messages - joined)


def seen(loaded: Loaded) -> Seen:
    """What an owner that has loaded this has looked at."""
    return Seen(loaded.session.mail_seq, loaded.session.urgent_seq)
