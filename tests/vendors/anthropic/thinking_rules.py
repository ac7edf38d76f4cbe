"""The rules for thinking: how it is asked for, and how it is sent back.

Sources, under platform.claude.com/docs/en/build-with-claude:
- thinking-troubleshooting: types by model, `budget_tokens` of at least 1,024 and under `max_tokens`, the 400 messages.
- thinking-tool-workflows, "The rules this walkthrough applies": no forced tool in manual mode, thinking goes back
  complete and unmodified with the results.
- preserved-thinking and preserved-thinking/fix-bound-to-a-different-conversation: what newer models bind it to, and
  `thinking.block_binding.prefix_mismatch_behavior`, which needs the beta `thinking-binding-controls-2026-08-01`.
- The message "Expected `thinking` or `redacted_thinking`" as reported in pydantic/pydantic-ai 3757, "Invalid
  `signature`" after a change of model in vybestack/llxprt-code 2335 and can1357/oh-my-pi 6379.
Stricter than the vendor: thinking of another of its models is refused on every model, while the newest drop it without
a word; and thinking that was dropped from the running tool loop is missed on every model that was asked to think. With
adaptive thinking the vendor wants none at all (build-with-claude/adaptive-thinking, "Validation changes"): there it is
missed only behind the last text of a user, for what stands before that may be of a turn that ended without an answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from tests.vendors.anthropic.models import Model
from tests.vendors.anthropic.reading import Block, Body, messages_of, pieces_before
from tests.vendors.refusals import Refusal
from tests.vendors.seals import Seals, Verdict

BINDING_BETA = "thinking-binding-controls-2026-08-01"


def thought_mark(model: str) -> str:
    """How the ids begin that the fake gives to calls that came with this model's thinking: so it knows later, without a
    memory."""
    return f"toolu_01T{hashlib.sha256(model.encode()).hexdigest()[:4]}"


def asked_type(body: Body, model: Model) -> str:
    """The type in force: what is asked, or what the model does by itself."""
    asked = body.get("thinking")
    if isinstance(asked, Mapping):
        return str(asked.get("type"))
    return "adaptive" if model.thinks else "disabled"


def config_problems(body: Body, model: Model) -> Iterator[Refusal]:
    asked = body.get("thinking")
    if asked is None:
        return
    if not isinstance(asked, Mapping):
        yield Refusal("shape", "thinking: Input should be an object")
        return
    kind = str(asked.get("type"))
    effort = _effort(body)
    if kind not in model.thinking:
        yield Refusal(
            "thinking-type",
            f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.',
        )
    elif kind == "disabled" and model.thinks and effort in ("xhigh", "max"):
        yield Refusal("thinking-type", f'"thinking.type.disabled" is not supported with effort "{effort}".')
    for key in asked.keys() - {"type", "budget_tokens", "display", "block_binding"}:
        yield Refusal("extra-field", f"thinking.{kind}.{key}: Extra inputs are not permitted")
    if kind == "enabled":
        yield from _budget(asked.get("budget_tokens"), body.get("max_tokens"))
        if _forced(body):
            yield Refusal("forced-tool", "Thinking may not be enabled when tool_choice forces tool use.")
    elif "budget_tokens" in asked:
        yield Refusal("extra-field", f"thinking.{kind}.budget_tokens: Extra inputs are not permitted")
    if asked.get("display") not in (None, "summarized", "omitted"):
        yield Refusal("shape", "thinking.display: Input should be 'summarized' or 'omitted'")


def block_problems(
    body: Body, model: Model, betas: frozenset[str], seals: Seals, prefixes: Sequence[str]
) -> Iterator[Refusal]:
    """`prefixes`: the hashes of the prompt's prefixes, by number of pieces minus one."""
    conversation = messages_of(body)
    lenient = _drops_mismatches(body, betas)
    for at, (role, blocks) in enumerate(conversation):
        if role == "assistant":
            before = pieces_before(body, at)
            prefix = prefixes[before - 1] if model.binds and not lenient and before else None
            for index, block in enumerate(blocks):
                yield from _signature(f"messages.{at}.content.{index}", block, str(body.get("model")), seals, prefix)
    yield from _running_loop(body, model, conversation)


def _signature(where: str, block: Block, model: str, seals: Seals, prefix: str | None) -> Iterator[Refusal]:
    kind = block.get("type")
    if kind not in ("thinking", "redacted_thinking"):
        return
    if "cache_control" in block:
        yield Refusal("cache-on-thinking", f"{where}.{kind}.cache_control: Extra inputs are not permitted")
    field = "signature" if kind == "thinking" else "data"
    value = block.get(field)
    if not isinstance(value, str):
        yield Refusal("signature-missing", f"{where}.{kind}.{field}: Field required")
        return
    thinking = block.get("thinking") if kind == "thinking" else ""
    if not isinstance(thinking, str):
        yield Refusal("shape", f"{where}.thinking.thinking: Field required")
        return
    bad = f"{where}: Invalid `{field}` in `{kind}` block"
    match seals.check(value, model, thinking, prefix):
        case Verdict.FORGED:
            yield Refusal("signature-forged", bad)
        case Verdict.FOREIGN:
            yield Refusal("signature-foreign", bad)
        case Verdict.CHANGED:
            yield Refusal(
                "thinking-modified",
                f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                "modified. These blocks must remain as they were in the original response.",
            )
        case Verdict.MOVED:
            yield Refusal(
                "thinking-moved",
                f"{bad}. The block is bound to a different conversation. Remove the block, or set "
                '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
            )


def _running_loop(body: Body, model: Model, conversation: list[tuple[str, list[Block]]]) -> Iterator[Refusal]:
    """The assistant messages whose results are being sent back, up to the last thing a person said."""
    kind = asked_type(body, model)
    if kind in ("disabled", "between_tools") or kind not in model.thinking:
        return
    mark = thought_mark(str(body.get("model")))
    for nth, (at, blocks, spoken_behind) in enumerate(_loop(conversation)):
        if blocks and blocks[0].get("type") in ("thinking", "redacted_thinking"):
            continue
        first = blocks[0].get("type") if blocks else "nothing"
        thought = any(str(block.get("id", "")).startswith(mark) for block in blocks)
        if (thought and not (kind == "adaptive" and spoken_behind)) or (kind == "enabled" and nth == 0):
            yield Refusal(
                "thinking-dropped",
                f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When "
                "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
                "lastmost set of `tool_use` and `tool_result` blocks).",
            )


def _loop(conversation: list[tuple[str, list[Block]]]) -> Iterator[tuple[int, list[Block], bool]]:
    """Newest first, and whether a user has said anything behind it. Turns of one role are joined, as the vendor joins
    them; one of a user that holds no result ends the loop: before it was another turn."""
    joined: list[tuple[str, int, list[Block]]] = []
    for at, (role, blocks) in enumerate(conversation):
        if joined and joined[-1][0] == role:
            joined[-1][2].extend(blocks)
        else:
            joined.append((role, at, list(blocks)))
    spoken_behind = False
    for role, at, blocks in reversed(joined):
        if role == "user" and not any(block.get("type") == "tool_result" for block in blocks):
            return
        if role == "user":
            spoken_behind = spoken_behind or any(block.get("type") == "text" for block in blocks)
        if role == "assistant":
            yield at, blocks, spoken_behind


def _budget(budget: object, max_tokens: object) -> Iterator[Refusal]:
    if not isinstance(budget, int):
        yield Refusal("thinking-budget", "thinking.enabled.budget_tokens: Field required")
    elif budget < 1024:
        yield Refusal(
            "thinking-budget", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        )
    elif isinstance(max_tokens, int) and budget >= max_tokens:
        yield Refusal("thinking-budget", "`max_tokens` must be greater than `thinking.budget_tokens`.")


def _effort(body: Body) -> object:
    config = body.get("output_config")
    return config.get("effort") if isinstance(config, Mapping) else None


def _forced(body: Body) -> bool:
    choice = body.get("tool_choice")
    return isinstance(choice, Mapping) and choice.get("type") in ("any", "tool")


def _drops_mismatches(body: Body, betas: frozenset[str]) -> bool:
    asked = body.get("thinking")
    binding = asked.get("block_binding") if isinstance(asked, Mapping) else None
    asks = isinstance(binding, Mapping) and binding.get("prefix_mismatch_behavior") == "drop_block"
    return asks and BINDING_BETA in betas
