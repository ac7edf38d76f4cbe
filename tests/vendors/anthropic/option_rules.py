"""The rules for all that is not in `messages`: headers, model, limits, system prompt, tools, breakpoints.

Sources, under platform.claude.com/docs/en unless another place is named:
- api/overview and api/versioning: the key, as `x-api-key` or as a bearer, and `anthropic-version`; in 2026-10-21
  `temperature`, `top_p` and `top_k` are gone.
- api/messages/create: required fields, the system prompt at the top level.
- about-claude/models/overview: the largest `max_tokens`.
- build-with-claude/effort: which models know it.
- build-with-claude/prompt-caching: four breakpoints, where none may stand, longer times to live first.
- agents-and-tools/tool-use/define-tools: names, unique; schemas of objects; `tool_choice`.
- build-with-claude/working-with-messages and api/errors: requests of more than 32 MB are 413 `request_too_large`.
- A lone surrogate in the body: "The request body is not valid JSON: no low surrogate in string" (anthropics/claude-code
  2108, 6273).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.vendors.anthropic.message_rules import NAME, text_problems
from tests.vendors.anthropic.models import Model
from tests.vendors.anthropic.reading import Body, blocks_of, messages_of, objects
from tests.vendors.refusals import Refusal

VERSIONS = ("2023-06-01", "2026-10-21")
MAX_BREAKPOINTS = 4
FIELDS = frozenset(
    [
        "model",
        "messages",
        "max_tokens",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "thinking",
        "output_config",
        "metadata",
        "stop_sequences",
        "cache_control",
        "service_tier",
        "temperature",
        "top_p",
        "top_k",
        "inference_geo",
        "container",
        "speed",
        "diagnostics",
    ]
)


def header_problems(headers: Mapping[str, str], key: str | None, keys: frozenset[str]) -> Iterator[Refusal]:
    if key is None:
        yield Refusal("key", "x-api-key header is required", 401)
    elif key not in keys:
        yield Refusal("key", "invalid x-api-key", 401)
    version = headers.get("anthropic-version")
    if version is None:
        yield Refusal("version", "anthropic-version: header is required")
    elif version not in VERSIONS:
        yield Refusal("version", f'anthropic-version: "{version}" is not a valid version')
    if headers.get("content-type", "").partition(";")[0] != "application/json":
        yield Refusal("content-type", "content-type: application/json is required")


def option_problems(body: Body, model: Model, version: str) -> Iterator[Refusal]:
    for key in body.keys() - FIELDS:
        yield Refusal("extra-field", f"{key}: Extra inputs are not permitted")
    if not isinstance(body.get("stream", False), bool):
        yield Refusal("stream", "stream: Input should be a valid boolean")
    yield from _max_tokens(body, model)
    yield from _sampling(body, model, version)
    yield from _effort(body, model)
    yield from _system(body)
    yield from _tools(body, model)
    yield from _breakpoints(body)


def _max_tokens(body: Body, model: Model) -> Iterator[Refusal]:
    limit = body.get("max_tokens")
    if limit is None:
        yield Refusal("max-tokens", "max_tokens: Field required")
    elif not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield Refusal("max-tokens", "max_tokens: Input should be greater than or equal to 1")
    elif limit > model.max_output:
        yield Refusal(
            "max-tokens",
            f"max_tokens: {limit} > {model.max_output}, which is the maximum allowed number of output tokens for "
            f"{body.get('model')}",
        )


def _sampling(body: Body, model: Model, version: str) -> Iterator[Refusal]:
    thinking = isinstance(body.get("thinking"), Mapping) and body["thinking"].get("type") != "disabled"
    for key in ("temperature", "top_p", "top_k"):
        if key in body and (version == "2026-10-21" or not model.sampling):
            yield Refusal("sampling", f"{key}: Extra inputs are not permitted")
    if thinking and body.get("temperature", 1) != 1:
        yield Refusal("sampling", "`temperature` may only be set to 1 when thinking is enabled.")


def _effort(body: Body, model: Model) -> Iterator[Refusal]:
    config = body.get("output_config")
    effort = config.get("effort") if isinstance(config, Mapping) else None
    if effort is None:
        return
    if not model.effort:
        yield Refusal("effort", "This model does not support the effort parameter.")
    elif effort not in model.effort:
        known = ", ".join(f"'{value}'" for value in sorted(model.effort))
        yield Refusal("effort", f"output_config.effort: Input should be {known}")


def _system(body: Body) -> Iterator[Refusal]:
    system = body.get("system")
    if system is None:
        return
    if not isinstance(system, (str, list)):
        yield Refusal("system", "system: Input should be a valid string")
    for index, block in enumerate(blocks_of(system)):
        if block.get("type") != "text":
            yield Refusal("system", f"system.{index}: Input should be a text block")
        else:
            yield from text_problems("system", f"system.{index}", block)


def _tools(body: Body, model: Model) -> Iterator[Refusal]:
    tools = objects(body.get("tools"))
    if "tools" in body and not isinstance(body["tools"], list):
        yield Refusal("tools", "tools: Input should be a valid list")
    names = [tool.get("name") for tool in tools]
    if len(set(names)) < len(names):
        yield Refusal("tool-unique", "tools: Tool names must be unique.")
    for index, tool in enumerate(tools):
        if not NAME.fullmatch(str(tool.get("name", ""))):
            yield Refusal(
                "tool-name", f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )
        schema = tool.get("input_schema")
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            yield Refusal("tool-schema", f"tools.{index}.custom.input_schema.type: Input should be 'object'")
        known = {"name", "description", "input_schema", "cache_control", "type", "strict", "eager_input_streaming"}
        for key in tool.keys() - known:
            yield Refusal("extra-field", f"tools.{index}.custom.{key}: Extra inputs are not permitted")
    yield from _choice(body.get("tool_choice"), names, model)


def _choice(choice: object, names: list[Any], model: Model) -> Iterator[Refusal]:
    if choice is None:
        return
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if kind not in ("auto", "any", "tool", "none"):
        yield Refusal("tool-choice", "tool_choice: Input tag does not match any of the expected tags")
    elif not names:
        yield Refusal("tool-choice", "tool_choice may only be specified while providing tools.")
    elif kind in ("any", "tool") and not model.forces:
        yield Refusal("forced-tool", f'"tool_choice.type.{kind}" is not supported for this model.')
    elif isinstance(choice, Mapping) and kind == "tool" and choice.get("name") not in names:
        yield Refusal("tool-choice", f"Tool '{choice.get('name')}' not found in provided tools")


def _breakpoints(body: Body) -> Iterator[Refusal]:
    controls = [
        *(tool.get("cache_control") for tool in objects(body.get("tools"))),
        *(block.get("cache_control") for block in blocks_of(body.get("system"))),
        *(block.get("cache_control") for _, blocks in messages_of(body) for block in blocks),
        body.get("cache_control"),
    ]
    set_ones = [control for control in controls if control is not None]
    if len(set_ones) > MAX_BREAKPOINTS:
        yield Refusal(
            "breakpoints", f"A maximum of 4 blocks with cache_control may be provided. Found {len(set_ones)}."
        )
    seen_short = False
    for control in set_ones:
        if not isinstance(control, Mapping) or control.get("type") != "ephemeral":
            yield Refusal("breakpoint-form", "cache_control.type: Input should be 'ephemeral'")
            continue
        ttl = control.get("ttl", "5m")
        if ttl not in ("5m", "1h") or control.keys() - {"type", "ttl"}:
            yield Refusal("breakpoint-form", "cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
        elif ttl == "1h" and seen_short:
            yield Refusal("breakpoint-order", "a ttl='1h' cache_control block must not come after a ttl='5m' one")
        seen_short = seen_short or ttl == "5m"


def body_problem(raw: bytes) -> Refusal | None:
    """A body that is no JSON object, too large, or holds half of a surrogate pair."""
    if len(raw) > 32 * 1024 * 1024:
        return Refusal("too-large", "Request exceeds the maximum size", 413, kind="request_too_large")
    try:
        value = json.loads(raw)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Refusal("surrogate", "The request body is not valid JSON: no low surrogate in string")
    except ValueError as error:
        return Refusal("json", f"The request body is not valid JSON: {error}")
    return None if isinstance(value, dict) else Refusal("json", "The request body must be a JSON object")
