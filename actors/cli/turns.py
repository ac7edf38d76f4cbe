"""`insika turns`: one turn in full, and asking one to end."""

from __future__ import annotations

from dataclasses import dataclass

import click

from actors.cli import json_views
from actors.cli.conversation import how_it_stands
from actors.cli.options import json_option
from actors.cli.output import moment, one_line, print_fields, print_heading, print_json, print_table
from actors.cli.running import open_store, run
from insika.storage.rows import Accepted, CallRow, ModelCallRow, SessionRow, TurnRow, Verdict

ID = click.argument("turn_id", metavar="ID")


@dataclass(frozen=True, slots=True)
class Turn:
    row: TurnRow
    session: SessionRow | None
    calls: tuple[CallRow, ...]
    model_calls: tuple[ModelCallRow, ...]


@click.group()
def turns() -> None:
    """Turns: from a person's message to the answer. `insika sessions show` lists the turns of a session.

    \b
    Example:  insika turns show 0b5cb1f4-7a8e-4d0c-9c39-3ff1c55ba1c6
    """


@turns.command()
@ID
@json_option
def show(turn_id: str, as_json: bool) -> None:
    """Show one turn: its state, its tool calls, and what its model calls cost.

    \b
    Example:  insika turns show 0b5cb1f4-7a8e-4d0c-9c39-3ff1c55ba1c6 --json
    """
    turn = run(_turn(turn_id))
    if as_json:
        print_json(
            {
                **json_views.turn_json(turn.row),
                "session": turn.session.name if turn.session else None,
                "tenant": (turn.session.tenant or None) if turn.session else None,
                "usage": json_views.usage_json(json_views.spent(turn.model_calls)),
                "calls": [json_views.call_json(row) for row in turn.calls],
                "model_calls": [json_views.model_call_json(row) for row in turn.model_calls],
            }
        )
        return
    _print(turn)


@turns.command()
@ID
@json_option
def cancel(turn_id: str, as_json: bool) -> None:
    """Ask a turn to end. One that runs ends at once or at its next step, and says nothing; one that waits never runs.

    \b
    Example:  insika turns cancel 0b5cb1f4-7a8e-4d0c-9c39-3ff1c55ba1c6
    """
    asked = run(_cancel(turn_id))
    again = asked.verdict is Verdict.DUPLICATE
    if as_json:
        print_json({"turn_id": turn_id, "turn_state": asked.turn_state, "asked_before": again})
    else:
        said = "was asked to end before" if again else "is asked to end"
        click.echo(f"turn {turn_id} {said}; it was {asked.turn_state} just now")


def _print(turn: Turn) -> None:
    row, usage = turn.row, json_views.spent(turn.model_calls)
    print_fields(
        {
            "turn": row.id,
            "session": turn.session.name if turn.session else None,
            "tenant": (turn.session.tenant or None) if turn.session else None,
            "state": how_it_stands(row),
            "agent": row.agent,
            "channel": row.channel,
            "recipient": row.recipient,
            "attempts": str(row.attempt) if row.attempt > 1 else None,
            "synthesized": "yes" if row.synthesized else None,
            "created": moment(row.created_at),
            "started": moment(row.started_at),
            "ended": moment(row.ended_at),
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


def _state(call: CallRow) -> str:
    return f"{call.state}, error" if call.is_error and call.state == "done" else str(call.state)


def _missing(turn_id: str) -> click.ClickException:
    return click.ClickException(f"there is no turn {turn_id!r}; `insika sessions show SESSION` lists a session's turns")


async def _turn(turn_id: str) -> Turn:
    async with open_store() as store:
        row = await store.turn(turn_id)
        if row is None:
            raise _missing(turn_id)
        session = await store.session_by_id(row.session_id)
        return Turn(row, session, tuple(await store.calls(turn_id)), tuple(await store.model_calls(turn_id)))


async def _cancel(turn_id: str) -> Accepted:
    async with open_store() as store:
        asked = await store.cancel(turn_id, request_id=f"cancel-{turn_id}")
        if asked is not None:
            return asked
        row = await store.turn(turn_id)
        if row is None:
            raise _missing(turn_id)
        raise click.ClickException(f"turn {turn_id} has ended already ({row.state}); nothing was changed")
