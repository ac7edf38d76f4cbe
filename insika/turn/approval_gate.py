"""Asks people about the calls of a batch, and lets the turn wait for them.

All questions of a batch are asked in one write, before anything of it runs: whoever decides sees them together, and
the other calls run meanwhile. No argument of a call is in any event: those who decide read it from the store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

from insika.events import EventType
from insika.policy.approvals import Asked, Standing, approval_id, arguments_hash
from insika.storage.operations import AskApproval
from insika.storage.rows import ApprovalDecision, CallRow
from insika.turn.log import Suspended
from insika.turn.ports import TurnPorts
from insika.turn.state import OpenBatch, TurnIdentity


class ApprovalGate:
    def __init__(self, turn: TurnIdentity, ports: TurnPorts) -> None:
        self._turn = turn
        self._toolbox = ports.toolbox
        self._log = ports.log
        self._emit = ports.emit

    def undecided(self, batch: OpenBatch, row: CallRow) -> bool:
        """A person has yet to decide about this call. Whoever was asked is waited for, also when this agent's calls of
        the tool need no approval any more."""
        asked = batch.asked.get(row.call_id)
        return self._toolbox.needs_approval(row.name) if asked is None else asked.standing is Standing.PENDING

    async def ask(self, batch: OpenBatch, rows: Iterable[CallRow]) -> OpenBatch:
        """Ask about those of the calls about which nobody was asked; the batch, with these questions."""
        new = [row for row in rows if row.call_id not in batch.asked]
        if not new:
            return batch
        valid_s = self._turn.limits.approval_timeout_s
        asks = [self._question(row, valid_s) for row in new]
        await self._log.ask_approvals(asks)
        for ask in asks:
            about = {"approval_id": ask.id, "call_id": ask.call_id, "tool": ask.tool, "step": batch.step}
            self._emit(EventType.APPROVAL_REQUESTED, {**about, "expires_in_s": valid_s})
        pending = {ask.call_id: Asked(ask.id, Standing.PENDING, ask.arguments_hash) for ask in asks}
        return replace(batch, asked={**batch.asked, **pending})

    async def wait(self, batch: OpenBatch, undecided: int) -> NoReturn:
        """Let the session go until somebody decides. Raises Suspended once it is let go, Superseded when something has
        come first."""
        await self._log.suspend()
        self._emit(EventType.TURN_SUSPENDED, {"approvals": undecided, "step": batch.step})
        raise Suspended

    def tell(self, batch: OpenBatch, row: CallRow, became: ApprovalDecision) -> None:
        """Tell of a question that has ended otherwise than by a person's word."""
        about = {"approval_id": batch.asked[row.call_id].id, "call_id": row.call_id, "tool": row.name}
        self._emit(EventType.APPROVAL_DECIDED, {**about, "decision": str(became)})

    def _question(self, row: CallRow, valid_s: float) -> AskApproval:
        tool = self._toolbox.find(row.name)
        called = arguments_hash(row.name, row.arguments, tool.definition if tool is not None else "")
        return AskApproval(approval_id(self._turn.turn_id, row.call_id), row.call_id, row.name, called, valid_s)
