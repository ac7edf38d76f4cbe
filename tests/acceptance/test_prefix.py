"""Over twenty turns with everything in them, the head of each request is the one before, to the byte: only its tail is
new. So for the messages as the engine gives them, and so for the prompts that vendors get to see.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from insika.model_endpoints import Dialect, Kind
from insika.providers.adapters import adapter_for
from insika.providers.endpoint import Endpoint
from tests.actor_world import Place, place_for, profile  # noqa: F401 - one of them is a fixture
from tests.prefix_scene import NOTE, PROFILE, SCRIPT, Engine, ExactModel, Turn, hold_conversation, without_verbatim
from tests.vendors import AnthropicVendor, OpenAIVendor, Vendor, serving
from tests.vendors import Dialect as Accent

Prompt = Sequence[bytes]
Bare = Callable[[Prompt], Prompt]
"""A prompt without the reasoning that goes back while its turn runs, and no longer."""

SAID = (
    "you have 10 tool calls left",
    "You have 5 tool calls left",
    "You have 2 tool calls left",
    "No tool can be called any more",
    "You have made the same call of look 3 times",
    "the blue one 3, please",
    "rejected it",
    "pay 5 done",
    "look 800 done",
)
"""What the conversation must have had in it, or it would prove little."""
KEEP_NOTHING = ("gpt-4o-mini", "some/model")
"""Models that give nothing to be sent back verbatim."""


def prefix_hash(prompt: Prompt, pieces: int) -> str:
    digest = hashlib.sha256()
    for piece in prompt[:pieces]:
        digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.hexdigest()


def grows(earlier: Prompt, later: Prompt) -> bool:
    """The whole of the earlier prompt stands at the head of the later one, which has more."""
    return len(later) > len(earlier) and prefix_hash(later, len(earlier)) == prefix_hash(earlier, len(earlier))


def without_note(prompt: Prompt, turn: Turn) -> Prompt:
    """The note stands last in each request of its turn, and in no other."""
    found = [at for at, piece in enumerate(prompt) if NOTE.encode() in piece]
    assert found == ([len(prompt) - 1] if turn.noted else [])
    return prompt[: len(prompt) - len(found)]


def hold(turns: Sequence[Turn], prompts: Sequence[Prompt], bare: Bare, *, reasons: bool) -> None:
    assert len(turns) == 20
    assert [turn.said for turn in turns if turn.state != "completed"] == ["fail 8"]
    asked = [(turn, without_note(prompts[at], turn)) for turn in turns for at in turn.asked]
    assert len(asked) == len(prompts) > 40
    for (turn, earlier), (next_turn, later) in itertools.pairwise(asked):
        where = f"{turn.said} -> {next_turn.said}"
        if turn is next_turn:
            assert grows(earlier, later), where
        else:
            assert grows(bare(earlier), bare(later)) == (turn.load_from == next_turn.load_from), where
    assert any(bare(prompt) != prompt for prompt in prompts) == reasons
    for turn in turns:
        opening = prompts[turn.asked[0]]
        assert bare(opening) == opening, f"reasoning of an earlier turn went back in {turn.said}"


def has_had_everything(turns: Sequence[Turn], prompts: Sequence[Prompt]) -> None:
    said = b"\n".join(prompts[-1]).decode()
    assert [words for words in SAID if words not in said] == []
    asked = {turn.said: len(turn.asked) for turn in turns}
    assert (asked["steer 3"], asked["dig 4"], asked["pay 5"], asked["exhaust 9"], asked["garble 13"]) == (3, 4, 2, 4, 3)


async def held(
    place: Place, provider: Any, monkeypatch: pytest.MonkeyPatch, asked: Callable[[], int], **values: Any
) -> list[Turn]:
    process = await place.process(profile(**{**PROFILE, **values}), model=provider)
    return await hold_conversation(place, process, Engine(monkeypatch), asked)


@pytest.mark.parametrize("context_budget", [None, 600])
async def test_the_engine_changes_nothing_that_it_has_said(
    place_for: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    context_budget: int | None,
) -> None:
    model = ExactModel()
    limits = {**PROFILE["limits"], "context_budget": context_budget}
    turns = await held(place_for(SCRIPT), model, monkeypatch, lambda: len(model.prompts), limits=limits)

    hold(turns, model.prompts, lambda prompt: [without_verbatim(piece) for piece in prompt], reasons=True)
    moved = len({turn.load_from for turn in turns}) > 2
    assert moved == (context_budget is not None)
    if not moved:
        has_had_everything(turns, model.prompts)


async def holds_at(
    vendor: Vendor,
    endpoint: tuple[Kind, Dialect],
    model: str,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    bare: Bare,
) -> list[Turn]:
    kind, dialect = endpoint
    async with serving(vendor):
        adapter = adapter_for(Endpoint("offline", kind, vendor.base_url, vendor.key, dialect))
        try:
            turns = await held(place, adapter, monkeypatch, lambda: len(vendor.requests), model=f"offline/{model}")
        finally:
            await adapter.aclose()
    assert [(seen.number, seen.refusals) for seen in vendor.requests if seen.refusals] == []
    prompts = [seen.pieces for seen in vendor.requests]
    hold(turns, prompts, bare, reasons=model not in KEEP_NOTHING)
    has_had_everything(turns, prompts)
    return turns


def anthropic_bare(prompt: Prompt) -> Prompt:
    return [piece for piece in prompt if json.loads(piece)[1].get("type") not in ("thinking", "redacted_thinking")]


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5"])
async def test_anthropic_s_models_get_a_prompt_that_only_grows(
    place_for: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    model: str,
) -> None:
    endpoint = (Kind.ANTHROPIC, Dialect.COMPATIBLE)
    await holds_at(AnthropicVendor(SCRIPT), endpoint, model, place_for(SCRIPT), monkeypatch, anthropic_bare)


def openai_bare(prompt: Prompt) -> Prompt:
    """DeepSeek wants the field also where there is nothing to say in it any more: then it holds a blank."""

    def bare(piece: bytes) -> bytes:
        head, said = json.loads(piece)
        if "reasoning_content" in said:
            said["reasoning_content"] = " "
        said.pop("reasoning_details", None)
        return json.dumps([head, said], ensure_ascii=False).encode()

    return [bare(piece) for piece in prompt]


@pytest.mark.parametrize(
    ("dialect", "model"),
    [("openai", "gpt-4o-mini"), ("deepseek", "deepseek-reasoner"), ("openrouter", "some/model")],
)
async def test_models_behind_chat_completions_get_a_prompt_that_only_grows(
    place_for: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    dialect: str,
    model: str,
) -> None:
    vendor = OpenAIVendor(SCRIPT, dialect=Accent(dialect))
    await holds_at(vendor, (Kind.OPENAI, Dialect(dialect)), model, place_for(SCRIPT), monkeypatch, openai_bare)
