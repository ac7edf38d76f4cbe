"""Writing at the tail of a conversation, and closing its open batch there.

A batch is answered from what is recorded: its N result messages are its N rows of tool_calls, in announced order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from insika.messages import Message, Role
from insika.storage.json_text import tool_calls_json, verbatim_json
from insika.storage.operations import CallResult
from insika.storage.rows import ApprovalDecision
from insika.storage.sqlite.queries import sql


class Tail:
    """Writes one turn's messages from `seq` on."""

    __slots__ = ("_connection", "_epoch", "_session_id", "_turn_id", "seq")

    def __init__(self, connection: sqlite3.Connection, session_id: int, turn_id: str, epoch: int, seq: int) -> None:
        self._connection = connection
        self._session_id = session_id
        self._turn_id = turn_id
        self._epoch = epoch
        self.seq = seq

    def user(self, step: int, content: str, position: int | None = None) -> None:
        """`position` is the mailbox row whose text it is; None for the engine's own words."""
        self._write(step, (Role.USER.value, content, None, None, 0, 0, None), position)

    def assistant(self, step: int, message: Message) -> None:
        calls = message.tool_calls
        calls_json = tool_calls_json(calls) if calls else None
        verbatim = verbatim_json(message.verbatim)
        self._write(step, (Role.ASSISTANT.value, message.content, calls_json, None, 0, len(calls), verbatim))

    def close_batch(self, step: int, results: Sequence[CallResult], *, unused: ApprovalDecision | None = None) -> None:
        """Record what is still missing from `results`, then write all results of the batch of `step`. `unused`: what
        becomes of the approval of a call that never began, where its result does not say.

        Raises ValueError when a call has neither a recorded result nor one among `results`."""
        given = {result.index: result for result in results}
        batch = self._connection.execute(sql("turns/batch"), {"turn_id": self._turn_id, "step": step}).fetchall()
        left = len(batch)
        for index, call_id, result, is_error in batch:
            content, failed = result, bool(is_error)
            if content is None:
                late = given.get(index)
                if late is None or not record(self._connection, self._turn_id, step, late, unused=unused):
                    raise ValueError(f"call {call_id} of step {step} is open and no result was given for it")
                content, failed = late.content, late.is_error
            left -= 1
            self._write(step, (Role.TOOL.value, content, None, call_id, int(failed), left, None))

    def _write(
        self,
        step: int,
        said: tuple[str, str, str | None, str | None, int, int, str | None],
        position: int | None = None,
    ) -> None:
        """`said`: role, content, tool_calls, tool_call_id, is_error, batch_open, verbatim."""
        where = (self._session_id, self.seq, self._turn_id, self._epoch, step)
        self._connection.execute(sql("turns/insert_message"), (*where, *said, position))
        self.seq += 1


def record(
    connection: sqlite3.Connection,
    turn_id: str,
    step: int,
    result: CallResult,
    *,
    unused: ApprovalDecision | None = None,
) -> bool:
    """Write how a call ended, and give up its approval while it has never begun: as the result says, else as `unused`.
    False: it had ended before, or there is no such call."""
    how = (result.state.value, result.content, int(result.is_error), int(result.halts))
    values = (*how, turn_id, step, result.index, result.call_id)
    row = connection.execute(sql("turns/record_result"), values).fetchone()
    becomes = result.approval or unused
    if row is not None and row[0] is None and becomes is not None:
        given_up = {"turn_id": turn_id, "call_id": result.call_id, "becomes": becomes.value}
        connection.execute(sql("turns/give_up_approval"), given_up)
    return row is not None


def last_batch(connection: sqlite3.Connection, turn_id: str) -> int:
    """The step whose batch was announced last."""
    step: int = connection.execute(sql("turns/last_batch_step"), {"turn_id": turn_id}).fetchone()[0]
    return step
