"""The shop that the fault tests break: its agents, its tools, its model, and a file in which every one of them writes
down what it did before it goes on.

What a turn does stands in the text that opens it, so that a test says in one line what is to be broken:

    A1: charge look_up@door | letter | weigh=7 | fail ~ pen

A label; then the steps, each a batch of calls; `@door` holds the call until that gate is opened; `=7` is what it is
called with, which otherwise is new each time; `fail` lets the provider fail for good; `~ pen` holds the stream of the
answer. Without steps the model answers at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import SecretStr

from actors.embedded import Parts
from actors.environment import Environment
from insika.clock import Clock
from insika.crash_points import Crash, no_crash
from insika.ports import ModelEvent, ModelProvider, ModelRequest
from insika.providers.adapters import adapter_for
from insika.providers.catalog import ModelCatalog
from insika.providers.endpoint import Endpoint
from insika.providers.hosted import HostedProviders
from insika.providers.offline import OfflineProvider
from insika.providers.scene import Scene
from insika.providers.script import Call, Calls, Fail, Say, Script, Step
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry
from insika.tools.tool import ToolContext
from tests.strict import Refused, check_anthropic, check_openai

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHANNEL = "web"
ONE_AT_A_TIME, TWO_AT_ONCE, SYNTHESIZES, COLLECTS, CAREFUL = "one", "two", "synthesizes", "collects", "careful"
LIMITS: Mapping[str, Mapping[str, Any]] = {
    ONE_AT_A_TIME: {"queue_mode": "steer"},
    TWO_AT_ONCE: {"queue_mode": "steer", "tool_concurrency": 2},
    SYNTHESIZES: {"on_exhausted": "synthesize"},
    COLLECTS: {"queue_mode": "collect", "debounce_ms": 30_000},
    CAREFUL: {"queue_mode": "followup"},
}
"""The agents, by their limits."""
APPROVALS: Mapping[str, Sequence[str]] = {CAREFUL: ["charge"]}
"""For which tools an agent must ask a person."""
ONCE_ONLY = frozenset({"charge", "letter", "burn", "seize"})
"""The tools that change the world and do not bear a second run."""


KEY, KEY_VARIABLE = "sk-of-the-shop", "SHOP_KEY"
"""What the shop's vendors take, whoever they are."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Who speaks for the shop's agents: its own script, or a model of `providers`, which are settings."""

    model: str = "offline/shop"
    providers: Sequence[Mapping[str, Any]] = ()
    params: Mapping[str, Any] = field(default_factory=dict)


OWN_SCRIPT = Asked()


class Diary:
    """A file of JSON lines that several processes may write to, each line on the disk before `__call__` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, kind: str, **facts: Any) -> None:
        os.write(self._file, json.dumps({"kind": kind, "pid": os.getpid(), **facts}).encode() + b"\n")
        os.fsync(self._file)


def diary_of(folder: Path) -> Path:
    return folder / "diary.jsonl"


class Gates:
    """Where tools and the model wait. `held` False: all are open. Used from one loop and the threads of its tools."""

    def __init__(self, *, held: bool = True) -> None:
        self._held = held
        self._gates: dict[str, tuple[asyncio.Event, threading.Event]] = {}

    def open(self, name: str) -> None:
        for event in self._gate(name):
            event.set()

    async def passed(self, name: str) -> None:
        if self._held and name:
            await self._gate(name)[0].wait()

    def passed_by_thread(self, name: str) -> None:
        if self._held and name:
            self._gate(name)[1].wait()

    def _gate(self, name: str) -> tuple[asyncio.Event, threading.Event]:
        return self._gates.setdefault(name, (asyncio.Event(), threading.Event()))


@dataclass(frozen=True, slots=True)
class Plan:
    """What a text asks for: batches of (tool, order, gate), and the gate of the answer."""

    label: str
    steps: tuple[tuple[tuple[str, str, str], ...], ...]
    pen: str

    @classmethod
    def read(cls, text: str) -> Plan:
        label, _, rest = text.partition(":")
        rest, _, pen = rest.partition("~")
        steps = (step.split() for step in rest.split("|"))
        named = tuple(tuple(_called(word) for word in step) for step in steps if step)
        return cls(label.strip(), named, pen.strip())


def _called(word: str) -> tuple[str, str, str]:
    word, _, gate = word.partition("@")
    name, _, order = word.partition("=")
    return name, order, gate


def next_step(scene: Scene) -> Step:
    plan, place = Plan.read(scene.text), scene.step_since_said
    if place >= len(plan.steps):
        return Say("Done: " + ", ".join(Plan.read(text).label for text in scene.said))
    step = plan.steps[place]
    if step == (("fail", "", ""),):
        return Fail("the shop's model is closed", fatal=True)
    calls = []
    for index, (name, order, gate) in enumerate(step):
        arguments = {"order": order or f"{plan.label}.{place}.{index}", "gate": gate}
        # A model does not always write the same keys in the same order.
        calls.append(Call(name, dict(reversed(arguments.items())) if place % 2 else arguments))
    return Calls(calls, text=f"{plan.label}, step {place}")


class Witnessed:
    """A provider behind a door as strict as both vendors', with every request that came through written down."""

    def __init__(self, diary: Diary, provider: ModelProvider) -> None:
        self._diary = diary
        self._provider = provider

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            check_anthropic(request.messages, sent=True)
            check_openai(request.messages, sent=True)
        except Refused as refused:
            self._diary("refused", why=str(refused))
            raise
        self._diary("request", text=Scene.of(request).text, messages=len(request.messages))
        async with aclosing(self._provider.stream(request)) as events:
            async for event in events:
                yield event


class WitnessedAdapter(Witnessed):
    """Of a vendor's API, over real HTTP."""

    def __init__(self, diary: Diary, endpoint: Endpoint) -> None:
        self._adapter = adapter_for(endpoint)
        super().__init__(diary, self._adapter)

    async def aclose(self) -> None:
        await self._adapter.aclose()


def shop_models(diary: Diary, gates: Gates) -> ModelCatalog:
    """The script here, which waits at its pens; and whatever the settings say of vendors, who are given one key."""

    async def before_chunk(request: ModelRequest, chunk: int, /) -> None:
        scene = Scene.of(request)
        plan = Plan.read(scene.text)
        if scene.step_since_said >= len(plan.steps):
            await gates.passed(plan.pen)

    script = OfflineProvider({"shop": Script(afterwards=next_step)}, before_chunk)
    hosted = HostedProviders({KEY_VARIABLE: KEY}, lambda endpoint: WitnessedAdapter(diary, endpoint))
    return ModelCatalog({"offline": Witnessed(diary, script)}, hosted)


def shop_tools(diary: Diary, gates: Gates) -> ToolRegistry:
    """`charge` and `letter` change the world, `reserve` too but bears a repeat; `look_up` and `weigh` only look, and
    `bomb` ends its process. Two of them block, in threads."""

    def note(name: str, order: str, context: ToolContext) -> None:
        key = context.idempotency_key
        diary("tool", tool=name, order=order, turn_id=context.turn_id, call_id=context.call_id, key=key)

    @tool(side_effect=True)
    def charge(order: str, gate: str, context: ToolContext) -> str:
        note("charge", order, context)
        gates.passed_by_thread(gate)
        return f"charged {order}"

    @tool(side_effect=True)
    async def letter(order: str, gate: str, context: ToolContext) -> str:
        note("letter", order, context)
        await gates.passed(gate)
        return f"posted {order}"

    @tool(side_effect=True, idempotent=True)
    async def reserve(order: str, gate: str, context: ToolContext) -> str:
        note("reserve", order, context)
        await gates.passed(gate)
        return f"reserved {order}"

    @tool
    async def look_up(order: str, gate: str, context: ToolContext) -> str:
        note("look_up", order, context)
        await gates.passed(gate)
        return "" if order == "nothing" else f"found {order}"

    @tool
    def weigh(order: str, gate: str, context: ToolContext) -> str:
        note("weigh", order, context)
        gates.passed_by_thread(gate)
        return f"weighed {order}"

    @tool
    async def bomb(order: str, gate: str, context: ToolContext) -> str:
        note("bomb", order, context)
        await gates.passed(gate)
        os._exit(137)

    return ToolRegistry([charge, letter, reserve, look_up, weigh, bomb])


def shop_parts(folder: Path, clock: Clock, gates: Gates, crash: Crash = no_crash) -> Parts:
    diary = Diary(diary_of(folder))
    return Parts(shop_models(diary, gates), shop_tools(diary, gates), clock, crash)


def configured(
    folder: Path,
    url: str,
    *,
    lease_s: float = 15.0,
    drain_s: float = 20.0,
    asked: Asked = OWN_SCRIPT,
    **channel: Any,
) -> Environment:
    """The shop's configuration as files in `folder`, and the environment that names them. `asked`: who speaks for its
    agents. `channel`: what else to say of the channel, whose receiver is at `url`."""
    agents = folder / "agents"
    agents.mkdir()
    for name, limits in LIMITS.items():
        profile: dict[str, Any] = {
            "id": name,
            "model": asked.model,
            "params": dict(asked.params),
            "instructions": "You keep a shop.",
            "limits": dict(limits),
        }
        profile["approvals_required"] = list(APPROVALS.get(name, ()))
        (agents / f"{name}.yaml").write_text(yaml.safe_dump(profile))
    settings = folder / "settings.yaml"
    channels = [{"id": CHANNEL, "url": url, "secret": SECRET, **channel}]
    settings.write_text(yaml.safe_dump({"channels": channels, "providers": list(asked.providers)}))
    return Environment(
        database_url=f"sqlite:///{folder / 'insika.db'}",
        settings=settings,
        agents_dir=agents,
        egress_allow_http=True,
        egress_allow_private=True,
        lease_s=lease_s,
        drain_s=drain_s,
    )


def as_variables(environment: Environment) -> Mapping[str, str]:
    """The environment as a process of its own is given it."""

    def shown(value: object) -> str:
        return value.get_secret_value() if isinstance(value, SecretStr) else str(value)

    return {
        f"INSIKA_{name.upper()}": shown(value) for name, value in environment if name in environment.model_fields_set
    }


def job(session: str, id: str, text: str, agent: str = ONE_AT_A_TIME, **fields: Any) -> dict[str, Any]:
    return {"session": session, "agent": agent, "id": id, "text": text, "channel": CHANNEL, **fields}


def raw(job: Mapping[str, Any]) -> bytes:
    return json.dumps(job).encode()


def diary_entries(folder: Path, kind: str) -> Iterator[Mapping[str, Any]]:
    path = diary_of(folder)
    lines = path.read_text().splitlines() if path.exists() else []
    return (entry for entry in map(json.loads, lines) if entry["kind"] == kind)
