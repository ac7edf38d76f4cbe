"""What became of a job that a command handed in, for `send`, `retry`, `requeue` and the chat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from actors.cli.output import on_one_line, print_json
from actors.ingress import Ingress, Kept
from insika.storage.rows import Accepted, Verdict

SENTENCES: Mapping[Verdict, str] = {
    Verdict.ACCEPTED: "gets a turn of its own",
    Verdict.MERGED: "joined a turn that has not started",
    Verdict.STEERED: "joins the running turn at its next boundary",
    Verdict.INTERRUPTING: "takes the place of the running turn",
    Verdict.DUPLICATE: "was handed in before",
}


@dataclass(frozen=True, slots=True)
class HandedIn:
    """The door's answer to one job. `error` is the contract's error object of a job that was not taken; `number` is
    the one under which it is kept in rejected_jobs."""

    id: str
    session: str | None
    verdict: Verdict
    turn_id: str | None = None
    position: int | None = None
    turn_state: str | None = None
    error: Mapping[str, Any] | None = None
    number: int | None = None

    @property
    def taken(self) -> bool:
        return self.verdict is not Verdict.REJECTED

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "id": self.id,
            "session": self.session,
            "turn_id": self.turn_id,
            "turn_state": self.turn_state,
            "position": self.position,
            "error": self.error,
            "rejected_job": self.number,
        }


async def hand_in(ingress: Ingress, raw: bytes, *, id: str, session: str | None, source: str) -> HandedIn:
    """Put one job through the door. `id` is used where the job has none. Raises StoreUnavailable."""
    answer = await ingress.take(raw, message_id=id, source=source)
    if isinstance(answer, Kept):
        return HandedIn(id, session, Verdict.REJECTED, error=answer.error.as_dict(), number=answer.number)
    return HandedIn(
        id,
        session,
        answer.verdict,
        answer.turn_id,
        answer.position,
        answer.turn_state,
        _error(answer),
        answer.rejected_job,
    )


def print_handed_in(handed_in: HandedIn, *, as_json: bool, more: Mapping[str, Any]) -> None:
    """On standard output; without `as_json`, why a job was not taken goes to standard error."""
    if as_json:
        print_json({**handed_in.as_dict(), **more})
        return
    if handed_in.error is not None:
        click.echo(f"Error: {on_one_line(sentence_of(handed_in))}", err=True)
        return
    click.echo(f"{handed_in.verdict}  turn {handed_in.turn_id}  id {on_one_line(handed_in.id)}")
    state = f"; that turn is {handed_in.turn_state}" if handed_in.turn_state else ""
    click.echo(f"The message {SENTENCES[handed_in.verdict]}{state}.")


def sentence_of(handed_in: HandedIn) -> str:
    """Why a job was not taken, with the field at fault in it, and where it is now."""
    error = handed_in.error or {}
    field, message = error.get("field"), str(error.get("message"))
    named = f"{field}: {message}" if field and not message.startswith(f"{field}:") else message
    kept = f" (kept as number {handed_in.number}; see `insika rejected show {handed_in.number}`)"
    return f"the message was rejected: {named}{kept if handed_in.number is not None else ''}"


def _error(answer: Accepted) -> Mapping[str, Any] | None:
    if answer.verdict is not Verdict.REJECTED:
        return None
    error: dict[str, Any] = {"type": "invalid_job" if answer.field else "mailbox_full", "message": answer.reason or ""}
    return {**error, "field": answer.field} if answer.field else error
