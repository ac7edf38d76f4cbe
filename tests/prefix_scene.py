"""A conversation of twenty turns in which everything happens that may add to a prompt, whoever the model is: notices of
the budget and of a circle, people who steer, approvals given and refused, turns that end in a synthesis or fail,
reasoning that goes back verbatim, notes of the engine, broken arguments. Each turn is sent once the one before has
ended; what was asked of the model in it is kept with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest

from actors.stage import Stage
from insika.errors import ProviderFatal
from insika.messages import ToolCall, Usage, Verbatim, assistant
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from insika.providers.scene import Scene, next_call_id
from insika.providers.script import Call, Calls, Fail, Rule, Say, Script
from insika.storage.rows import ApprovalDecision
from tests.actor_world import Gate, Place, Process
from tests.strict import check_anthropic, check_openai
from tests.vendors.spoken import spoken
from tests.vendors.steps import Think

NOTE = "[insika] The budget of this month is used up; keep it short."
PROFILE: dict[str, Any] = {
    "approvals_required": ["pay"],
    "limits": {"max_tool_calls": 12, "on_exhausted": "synthesize", "queue_mode": "steer"},
    "params": {"thinking": "low"},
}


def number(scene: Scene) -> int:
    """The one in what was said last: so that no call is made twice."""
    return int(re.findall(r"\d+", scene.text)[0])


def looks(first: int, count: int = 1, text: str = "") -> Callable[[Scene], Any]:
    def step(scene: Scene) -> Any:
        calls = [Call("look", {"n": 100 * number(scene) + first + index}) for index in range(count)]
        return Think(f"thought {first} of {scene.text}", Calls(calls, text))

    return step


def pays(scene: Scene) -> Any:
    return Think("this costs money", Call("pay", {"n": number(scene)}, text="I would pay now."))


def repeats(scene: Scene) -> Any:
    return Call("look", {"n": number(scene)})


def when(said: str, *steps: Any) -> Rule:
    """What was said last counts: a turn that failed has left no answer behind, and a steer begins something new."""
    return Rule(steps, when=f"^{said}", restarts=True)


SCRIPT = Script(
    rules=[
        when("look", looks(0, text="Let me look."), Say("I looked.")),
        when("dig", looks(0, 2), looks(2, 5, "More."), looks(7, 3), Say("I have dug.")),
        when("exhaust", looks(0, 6), looks(6, 6), looks(12, 3), Say("As far as I got.")),
        when("steer", looks(0, 2, "One moment."), Say("never")),
        when("the blue one", looks(50), Say("The blue one, then.")),
        when("pay", pays, Say("That is settled.")),
        when("circle", repeats, repeats, repeats, Say("It stays so.")),
        when("garble", Call("look", malformed="{half"), looks(0), Say("Now it is read.")),
        when("fail", looks(0), Fail("the account is closed", fatal=True)),
    ],
    afterwards=Say("Good day. \U0001f600"),
)
TURNS = (
    *("hello 1", "look 2", "steer 3", "dig 4", "pay 5", "note 6", "look 7", "fail 8", "exhaust 9", "hello 10"),
    *("refuse 11", "circle 12", "garble 13", "note 14", "steer 15", "look 16", "pay 17", "dig 18", "hello 19"),
    "look 20",
)


@dataclass(frozen=True, slots=True)
class Turn:
    """`asked`: which of all requests were its, by number. `load_from`: where the conversation began for it."""

    said: str
    asked: range
    noted: bool
    load_from: int
    state: str


class Engine:
    """What the engine says to the model in the turns that begin, or are taken up, while it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.note = ""
        staged_as_ever = Stage._staged

        def staged(stage: Stage, *about: Any) -> Any:
            made = staged_as_ever(stage, *about)
            return replace(made, identity=replace(made.identity, note=self.note))

        monkeypatch.setattr(Stage, "_staged", staged)


async def hold_conversation(place: Place, process: Process, engine: Engine, asked: Callable[[], int]) -> list[Turn]:
    """`asked` tells how many requests have been made so far."""
    held = []
    for said in TURNS:
        before = asked()
        engine.note = NOTE if said.startswith("note") else ""
        await _turn(place, process, said)
        row, last = await process.row(), (await process.turns())[-1]
        requests = range(before, asked())
        held.append(Turn(said, requests, bool(engine.note), row.load_from, str(last.state)))
    return held


async def _turn(place: Place, process: Process, said: str) -> None:
    kind, digits = said.split()
    gate = Gate()
    if kind == "steer":
        place.shop.gates["look", 100 * int(digits)] = gate
    await process.send({"refuse": f"pay {digits}", "note": f"look {digits}"}.get(kind, said))
    if kind == "steer":
        await gate.reached()
        await process.send(f"the blue one {digits}, please")
        gate.open()
    await process.idle()
    if kind in ("pay", "refuse"):
        waits = next(at for at, row in enumerate(await process.approvals()) if row.decision is None)
        word = ApprovalDecision.APPROVED if kind == "pay" else ApprovalDecision.REJECTED
        await process.decide(waits, word, reason='not "now"')
        await process.sweep()
        await process.idle()


class ExactModel:
    """Follows the script as the fake vendors do, and keeps each request as the pieces that a vendor would cache: the
    tools, the instructions, and each message as it was, with what goes back verbatim."""

    def __init__(self) -> None:
        self.prompts: list[list[bytes]] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        check_anthropic(request.messages, sent=True)
        check_openai(request.messages, sent=True)
        self.prompts.append(pieces_of(request))
        step = SCRIPT.answer(Scene.of(request))
        if isinstance(step, Fail):
            raise ProviderFatal(step.message)
        said = spoken(step)
        calls = [
            ToolCall(next_call_id(request.messages, at), call.name, *_arguments(call.raw))
            for at, call in enumerate(said.calls if request.may_call else ())
        ]
        if said.thinking:
            yield ThinkingDelta(said.thinking)
        if said.text:
            yield TextDelta(said.text)
        thought = {"type": "thinking", "thinking": said.thinking, "signature": f"sig of {said.thinking}"}
        message = assistant(said.text, *calls)
        kept = Verbatim(request.reference, (thought,)) if said.thinking and calls else Verbatim()
        yield Finished(replace(message, verbatim=kept), Usage(1, 1))


def pieces_of(request: ModelRequest) -> list[bytes]:
    pieces: list[Any] = [["tool", tool.name, tool.description, tool.parameters] for tool in request.tools]
    pieces.append(["instructions", request.instructions])
    for at, message in enumerate(request.messages):
        goes_back = at >= request.turn_from and message.verbatim.model == request.reference
        piece: dict[str, Any] = asdict(replace(message, verbatim=Verbatim()))
        piece[VERBATIM] = message.verbatim.parts if goes_back else ()
        pieces.append(["message", piece])
    if request.note:
        pieces.append(["note", request.note])
    return [json.dumps(piece, ensure_ascii=False).encode() for piece in pieces]


VERBATIM = "verbatim"


def without_verbatim(piece: bytes) -> bytes:
    head, *rest = json.loads(piece)
    if head != "message" or not rest[0].get(VERBATIM):
        return piece
    rest[0][VERBATIM] = ()
    return json.dumps([head, *rest], ensure_ascii=False).encode()


def _arguments(raw: str) -> tuple[dict[str, Any], str | None]:
    try:
        return json.loads(raw), None
    except ValueError:
        return {}, raw
