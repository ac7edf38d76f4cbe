"""Asks an agent's moderator about texts that its detectors let through, on behalf of the owner of one session.

A moderator that fails, is late or gives no answer lets everything pass, and an event says so: it may make a
conversation safer, never stop it. Each request has its row before it is sent and is booked whatever comes of it; the
same text is not asked about again by this owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from actors.lease import Lease, LeaseRanOut
from actors.moderators import Moderator
from actors.turn_events import ScopedEvents, events_of
from actors.world import World
from insika.events import EventType
from insika.messages import NO_USAGE, Usage
from insika.ports import ModelRequest
from insika.storage.operations import ModelCallKey, Seen, SettledModelCall
from insika.storage.port import NOTHING_OF_THE_LOG, StoreUnavailable
from insika.storage.rows import Loaded, Mail
from insika.turn.estimate import estimate_usage
from insika.turn.input_guard import Refusal
from insika.turn.log import Superseded
from insika.turn.moderating import LIMIT_S, MODERATE, refused_by
from insika.turn.side_request import Heard, SideRequest

FAILED = "moderator_failed"
_STEP = 0
"""Texts are screened before the step that says them."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """Why texts are looked at: what the owner has loaded and seen, and the turn that pays."""

    loaded: Loaded
    seen: Seen
    turn_id: str


class Moderation:
    """Raises Superseded when it may not ask, or was cut: load again."""

    def __init__(self, lease: Lease, world: World) -> None:
        self._lease = lease
        self._world = world
        self._judged: dict[tuple[int, Moderator], bool] = {}
        self._one_at_a_time = asyncio.Lock()
        self._request: SideRequest | None = None
        self._left = NO_USAGE
        self._urgent = 0
        self._looking = False

    @property
    def owed(self) -> Usage:
        """What the request may have cost in the middle of which this owner was stopped."""
        return self._left

    async def refusals(self, occasion: Occasion, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        """Those of the rows that must not be said, by position."""
        refused: dict[int, Refusal] = {}
        for agent in dict.fromkeys(row.agent for row in mail):
            moderator = self._world.moderators.of(agent)
            if moderator is None:
                continue
            rows = [row for row in mail if row.agent == agent]
            async with self._one_at_a_time:
                await self._judge(occasion, moderator, rows)
            for row in rows:
                if self._judged[row.position, moderator]:
                    refused[row.position] = moderator.refusal
        return refused

    async def look(self) -> None:
        """Something urgent may lie in the mailbox: if it came after what was seen, the request under way is cut."""
        request = self._request
        if request is None or not request.asking or self._looking:
            return
        self._looking = True
        try:
            loaded = await self._world.store.load(self._lease.fence, log_after=NOTHING_OF_THE_LOG)
        except StoreUnavailable:
            return
        finally:
            self._looking = False
        if loaded is None or loaded.session.urgent_seq > self._urgent:
            request.cut()

    async def _judge(self, occasion: Occasion, moderator: Moderator, mail: Sequence[Mail]) -> None:
        rows = [row for row in mail if (row.position, moderator) not in self._judged]
        if not rows:
            return
        question = moderator.question([row.text for row in rows])
        key = await self._open(occasion, question)
        emit = self._events(occasion, moderator)
        heard = await self._ask(occasion, moderator, question, key, emit)
        refused = None if heard.error is not None else refused_by(heard.text, len(rows))
        for place, row in enumerate(rows):
            self._judged[row.position, moderator] = refused is not None and place in refused
        await self._book(occasion, key, heard.usage, measured=heard.measured)
        if refused is None:
            emit(EventType.GUARDRAIL_FLAGGED, {"reason": FAILED, "model": moderator.model, "count": len(rows)})

    async def _open(self, occasion: Occasion, question: ModelRequest) -> ModelCallKey:
        key = await self._world.store.open_model_call(
            self._lease.fence,
            occasion.seen,
            occasion.turn_id,
            _STEP,
            purpose=MODERATE,
            model=question.reference,
            estimate=estimate_usage(question.instructions, question.messages),
        )
        if key is None:
            raise Superseded
        return key

    async def _ask(
        self, occasion: Occasion, moderator: Moderator, question: ModelRequest, key: ModelCallKey, emit: ScopedEvents
    ) -> Heard:
        session, policies = occasion.loaded.session, self._world.policies
        attempts = policies.attempts(moderator.profile, session.tenant, occasion.turn_id, session.name, emit)
        request = SideRequest(moderator.provider, attempts, self._lease.may_start)
        self._request, self._urgent = request, occasion.seen.urgent
        try:
            return await request.ask(question, LIMIT_S)
        except (Superseded, LeaseRanOut):
            await self._book(occasion, key, request.owed, measured=False)
            raise
        except asyncio.CancelledError:
            self._left = request.owed
            raise
        finally:
            self._request = None

    async def _book(self, occasion: Occasion, key: ModelCallKey, usage: Usage, *, measured: bool) -> None:
        settled = SettledModelCall(key, usage, "measured" if measured else "estimated")
        await self._world.store.settle_model_call(occasion.turn_id, settled)
        await self._world.tokens.of(occasion.loaded.session.tenant, occasion.turn_id, None)

    def _events(self, occasion: Occasion, moderator: Moderator) -> ScopedEvents:
        world = self._world
        return events_of(
            occasion.loaded, self._lease.epoch, world.events, world.clock, occasion.turn_id, moderator.profile.id
        )
