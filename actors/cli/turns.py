"""`insika turns`: the latest, one in full, and asking one to end."""

from __future__ import annotations

from dataclasses import dataclass

import click

from actors.cli import json_views
from actors.cli.conversation import how_it_stands
from actors.cli.lazy import Group
from actors.cli.options import json_option, limit_option, tenant_option, wait_option
from actors.cli.outcomes import outcome, patience_s
from actors.cli.output import (
    moment,
    on_one_line,
    one_line,
    print_fields,
    print_heading,
    print_json,
    print_table,
    short_id,
)
from actors.cli.refusals import NotFound, Refused, no_session
from actors.cli.running import open_desk, open_store, run
from actors.cli.short_ids import as_given, whole_id
from actors.cli.turn_times import STEPS, step_rows, times_shown
from actors.turn_start import CLASSIFY
from insika.storage.port import ReadStore
from insika.storage.rows import (
    TERMINAL,
    Accepted,
    CallRow,
    ModelCallRow,
    SessionRow,
    TurnRow,
    TurnState,
    Verdict,
)
from insika.turn.moderating import MODERATE

ID = click.argument("turn_id", metavar="ID")
"""Or its beginning."""
REFUSED = "by a guard: nothing of it is in the conversation; why is told by the event guardrail_blocked"
ASKED_BEFORE = (MODERATE, CLASSIFY)
"""What is asked of models before the requests of a step that depend on it, in that order."""


@dataclass(frozen=True, slots=True)
class Turn:
    row: TurnRow
    session: SessionRow | None
    calls: tuple[CallRow, ...]
    model_calls: tuple[ModelCallRow, ...]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """`ended`: the turn, if it had come to its end within the time of waiting."""

    turn_id: str
    asked: Accepted
    ended: TurnRow | None


@click.group(cls=Group)
def turns() -> None:
    """Turns: from a person's message to the answer.

    \b
    Example:  insika turns list --session ana && insika turns show 0b5cb1f4
    """


@turns.command("list")
@click.option("--session", "name", metavar="SESSION", help="Only this conversation's; absent: all.")
@tenant_option
@limit_option
@json_option
def list_(name: str | None, tenant: str, limit: int, as_json: bool) -> None:
    """List turns, the newest first.

    \b
    Example:  insika turns list --session ana --json
    """
    rows = run(_latest(name, tenant, limit))
    if as_json:
        print_json([{**json_views.turn_json(row), **_whose(session)} for row, session in rows])
        return
    print_table(
        ["turn", "session", "agent", "created", "state"],
        [
            (short_id(row.id), session.name if session else "-", row.agent, moment(row.created_at), how_it_stands(row))
            for row, session in rows
        ],
        whole=("turn", "created"),
        cut=("state",),
        empty="No turns yet.",
    )


@turns.command()
@ID
@json_option
def show(turn_id: str, as_json: bool) -> None:
    """Show one turn: its state, its tool calls, and what its model calls cost.

    \b
    Example:  insika turns show 0b5cb1f4 --json
    """
    turn = run(_turn(turn_id))
    if as_json:
        print_json(
            {
                **json_views.turn_json(turn.row),
                **_whose(turn.session),
                "usage": json_views.usage_json(json_views.spent(turn.model_calls)),
                "calls": [json_views.call_json(row) for row in turn.calls],
                "model_calls": [json_views.model_call_json(row) for row in turn.model_calls],
            }
        )
        return
    _print(turn)


@turns.command()
@ID
@wait_option
@json_option
@click.pass_context
def cancel(context: click.Context, turn_id: str, *, wait: bool, as_json: bool) -> None:
    """Ask a turn to end. One that runs ends at once while its model is asked, else at its next step, and says nothing;
    one that waits for a person ends without the call; one that has not begun never runs.

    \b
    Example:  insika turns cancel 0b5cb1f4
    """
    cancelled = run(_cancel(turn_id, wait=wait))
    asked, ended = cancelled.asked, cancelled.ended
    again = asked.verdict is Verdict.DUPLICATE
    if as_json:
        print_json(
            {
                "turn_id": cancelled.turn_id,
                "turn_state": asked.turn_state,
                "asked_before": again,
                "ended": ended.state if ended is not None else None,
            }
        )
    elif ended is None:
        said = "was asked to end before" if again else "is asked to end"
        click.echo(f"turn {cancelled.turn_id} {said}; it was {asked.turn_state} just now")
    elif ended.state is TurnState.CANCELLED:
        click.echo(f"turn {ended.id} was cancelled")
    else:
        click.echo(f"Error: turn {ended.id} came to another end first: {on_one_line(how_it_stands(ended))}", err=True)
    context.exit(0 if ended is None or ended.state is TurnState.CANCELLED else 1)


def as_asked(call: ModelCallRow) -> tuple[int, int, int]:
    """Sorts the requests of a turn by step, and within a step by what depended on what."""
    rank = ASKED_BEFORE.index(call.purpose) if call.purpose in ASKED_BEFORE else len(ASKED_BEFORE)
    return call.step, rank, call.attempt


def _print(turn: Turn) -> None:
    row, usage = turn.row, json_views.spent(turn.model_calls)
    print_fields(
        {
            "turn": row.id,
            "session": turn.session.name if turn.session else None,
            "tenant": (turn.session.tenant or None) if turn.session else None,
            "state": how_it_stands(row),
            "refused": REFUSED if row.state is TurnState.REFUSED else None,
            "agent": row.agent,
            "route": row.route,
            "channel": row.channel,
            "recipient": row.recipient,
            "attempts": str(row.attempt) if row.attempt > 1 else None,
            "synthesized": "yes" if row.synthesized else None,
            "created": moment(row.created_at),
            "started": moment(row.started_at),
            "ended": moment(row.ended_at),
            "time": times_shown(row.timing),
            "tokens": f"{usage.total} ({usage.input} in, {usage.output} out)",
        }
    )
    print_heading("Tool calls")
    print_table(
        ["step", "tool", "state", "result"],
        [(str(call.step), call.name, _state(call), one_line(call.result or "")) for call in turn.calls],
        whole=("state",),
        empty="None.",
    )
    print_heading("Model calls")
    print_table(
        ["step", "try", "purpose", "model", "tokens", "state"],
        [
            (str(call.step), str(call.attempt), call.purpose, call.model, str(call.usage.total), call.state)
            for call in turn.model_calls
        ],
        whole=("state",),
        empty="None.",
    )
    if steps := step_rows(row.timing):
        print_heading("Model time")
        print_table(STEPS, steps, empty="None.")


def _whose(session: SessionRow | None) -> dict[str, str | None]:
    return {"session": session.name if session else None, "tenant": (session.tenant or None) if session else None}


def _state(call: CallRow) -> str:
    return f"{call.state}, error" if call.is_error and call.state == "done" else str(call.state)


def _missing(turn_id: str) -> NotFound:
    return NotFound(f"there is no turn {as_given(turn_id)}; `insika turns list` shows those there are")


async def _latest(name: str | None, tenant: str, limit: int) -> list[tuple[TurnRow, SessionRow | None]]:
    async with open_store() as store:
        only = None if name is None else await store.session(name, tenant=tenant)
        if name is not None and only is None:
            raise no_session(name, tenant)
        rows = await store.latest_turns(limit, session_id=only.id if only else None)
        sessions = {id_: await store.session_by_id(id_) for id_ in {row.session_id for row in rows}}
        return [(row, sessions[row.session_id]) for row in rows]


async def _turn(turn_id: str) -> Turn:
    async with open_store() as store:
        row = await _named(store, turn_id)
        session = await store.session_by_id(row.session_id)
        model_calls = sorted(await store.model_calls(row.id), key=as_asked)
        return Turn(row, session, tuple(await store.calls(row.id)), tuple(model_calls))


async def _cancel(turn_id: str, *, wait: bool) -> Cancelled:
    async with open_desk() as desk:
        row = await _named(desk.store, turn_id)
        asked = await desk.control.cancel(row.id, request_id=f"cancel-{row.id}")
        if asked is None:
            raise Refused(f"turn {row.id} has ended already ({row.state}); nothing was changed")

        async def ended() -> TurnRow | None:
            turn = await desk.store.turn(row.id)
            return turn if turn is not None and turn.state in TERMINAL else None

        patience = patience_s(await desk.store.session_by_id(asked.session_id)) if wait else 0
        return Cancelled(row.id, asked, await outcome(ended, patience))


async def _named(store: ReadStore, turn_id: str) -> TurnRow:
    row = await store.turn(await whole_id(turn_id, store.turn_ids))
    if row is None:
        raise _missing(turn_id)
    return row
