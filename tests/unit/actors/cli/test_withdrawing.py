"""Taking a message back by the command line: in time, too late, not looked at yet."""

from __future__ import annotations

from typing import Any

from insika.storage.operations import SettleMail
from insika.storage.rows import Ended, TurnState
from tests.store_world import World


async def taken_back(world: World) -> None:
    accepted = await world.say("one", job_id="m1")
    await world.store.withdraw("s", "m1", request_id="withdraw-m1")
    owner = await world.own(accepted.session_id)
    mail = SettleMail((1,), Ended.WITHDRAWN, accepted.turn_id, TurnState.CANCELLED, (2,))
    assert await owner.store.settle_mail(owner.fence, owner.seen, mail)


async def read(world: World) -> str:
    accepted = await world.say("one", job_id="m1")
    await (await world.own(accepted.session_id)).run_turn()
    return str(accepted.turn_id)


def test_a_request_that_nobody_has_looked_at_is_asked_for_once(command_line: Any) -> None:
    command_line.seed(lambda world: world.say("one", job_id="m1"))
    assert command_line.json("sessions", "withdraw", "s", "m1", "--no-wait") == {
        "session": "s",
        "tenant": None,
        "id": "m1",
        "position": 1,
        "withdrawn": None,
        "ended": None,
        "consumed_by": None,
        "error": None,
    }
    again = command_line.run("sessions", "withdraw", "s", "m1", "--no-wait")
    assert again.output.splitlines() == [
        "asked      m1",
        "Nobody has looked yet. `insika sessions show s` tells whether this came in time.",
    ]
    mail = command_line.json("sessions", "show", "s")["mail"]
    assert [(row["mode"], row["withdraws"]) for row in mail] == [("followup", None), ("withdraw", 1)]


def test_a_message_that_was_taken_back_stays_so(command_line: Any) -> None:
    command_line.seed(taken_back)
    again = command_line.run("sessions", "withdraw", "s", "m1")
    assert (again.exit_code, again.output) == (0, "withdrawn  m1\nIt had been taken back before.\n")
    assert command_line.json("sessions", "withdraw", "s", "m1")["withdrawn"] is True


def test_a_message_that_a_turn_has_read_cannot_be_taken_back(command_line: Any) -> None:
    turn_id = command_line.seed(read)
    late = command_line.run("sessions", "withdraw", "s", "m1")
    assert (late.exit_code, late.stdout) == (1, "")
    assert late.stderr == f"Error: too late: turn {turn_id} had read message m1; nothing was changed\n"
    told = command_line.json("sessions", "withdraw", "s", "m1", code=1)
    assert (told["withdrawn"], told["consumed_by"], told["error"]["type"]) == (False, turn_id, "refused")


def test_a_message_that_is_not_known_is_an_error(command_line: Any) -> None:
    command_line.seed(lambda world: world.say("one", job_id="m1"))
    missing = command_line.run("sessions", "withdraw", "s", "m2")
    assert (missing.exit_code, "session 's' knows no message 'm2'" in missing.stderr) == (1, True)
