"""The rules for all that is not in `messages`: key, model, limits, effort, tools, streaming.

Sources, under developers.openai.com/api/docs unless another place is named:
- API reference chat/create: fields, `stream_options` only with `stream`, at most 128 tools, names, `tool_choice`.
- guides/reasoning and the reports named in `models`: effort, limits and sampling of models that reason.
- guides/error-codes: 401 `invalid_api_key`, 404 `model_not_found`, 429 `rate_limit_exceeded` and `insufficient_quota`.
- guides/function-calling: schemas of objects.
- The other vendors' fields: `dialects`.
Stricter than the vendors: names of tools are unique; a limit that a vendor would silently ignore is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from tests.vendors.openai.dialects import ACCENTS, Dialect
from tests.vendors.openai.message_rules import NAME
from tests.vendors.openai.models import Model
from tests.vendors.openai.reading import Body, functions_of, objects
from tests.vendors.refusals import Refusal

COMMON = frozenset(
    [
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "stop",
        "n",
        "seed",
        "response_format",
        "logprobs",
        "top_logprobs",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "reasoning_effort",
        "parallel_tool_calls",
    ]
)
SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty")


def header_problems(
    headers: Mapping[str, str], key: str | None, keys: frozenset[str], dialect: Dialect
) -> Iterator[Refusal]:
    if key is None and ACCENTS[dialect].needs_key:
        yield Refusal("key", "You didn't provide an API key.", 401)
    elif key not in keys and ACCENTS[dialect].needs_key:
        yield Refusal("key", "Incorrect API key provided.", 401, code="invalid_api_key")
    if headers.get("content-type", "").partition(";")[0] != "application/json":
        yield Refusal("content-type", "you must send application/json", 400)


def option_problems(body: Body, model: Model | None, dialect: Dialect) -> Iterator[Refusal]:
    """`model`: known for OpenAI alone."""
    accent = ACCENTS[dialect]
    for key in body.keys() - COMMON - accent.fields - accent.limits:
        rule = "limit-ignored" if key in ("max_tokens", "max_completion_tokens") else "extra-field"
        yield Refusal(rule, f"Unrecognized request argument supplied: {key}", param=key, code="unknown_parameter")
    if not isinstance(body.get("stream", False), bool):
        yield Refusal("stream", "Invalid type for 'stream': expected a boolean.", param="stream", code="invalid_type")
    if body.get("stream_options") is not None and not body.get("stream"):
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield Refusal("stream-options", text, param="stream_options")
    if body.get("n", 1) != 1:
        yield Refusal("n", "the house asks for one answer", param="n")
    yield from _limits(body, model)
    yield from _tools(body)
    if model is not None:
        yield from _reasoning(body, model)


def _limits(body: Body, model: Model | None) -> Iterator[Refusal]:
    if "max_tokens" in body and "max_completion_tokens" in body:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        yield Refusal("limit-twice", text, param="max_tokens", code="invalid_parameter_combination")
    if model is not None and model.reasons and "max_tokens" in body:
        text = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        yield Refusal("limit-name", text, param="max_tokens", code="unsupported_parameter")
    for name in ("max_tokens", "max_completion_tokens"):
        limit = body.get(name)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            yield Refusal("limit-range", f"Invalid '{name}': integer below minimum value.", param=name)
        elif isinstance(limit, int) and model is not None and limit > model.max_output:
            text = (
                f"{name} is too large: {limit}. This model supports at most {model.max_output} completion tokens, "
                f"whereas you provided {limit}."
            )
            yield Refusal("limit-range", text, param=name, code="invalid_value")


def _reasoning(body: Body, model: Model) -> Iterator[Refusal]:
    effort = body.get("reasoning_effort")
    if effort is not None and not model.reasons:
        text = "Unrecognized request argument supplied: reasoning_effort"
        yield Refusal("effort", text, param="reasoning_effort", code="unknown_parameter")
    elif effort is not None and effort not in model.efforts:
        known = ", ".join(f"'{one}'" for one in sorted(model.efforts))
        text = f"Unsupported value: '{effort}' is not supported with this model. Supported values are: {known}."
        yield Refusal("effort", text, param="reasoning_effort", code="unsupported_value")
    elif model.tools_only_at_none and body.get("tools") and (effort or model.default) != "none":
        text = (
            f"Function tools with reasoning_effort are not supported for {body.get('model')} in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        )
        yield Refusal("effort-with-tools", text, param="reasoning_effort")
    if model.reasons and (effort or model.default) != "none":
        for name in SAMPLING:
            if body.get(name) not in (None, 1 if name in ("temperature", "top_p") else 0):
                text = f"Unsupported value: '{name}' does not support {body[name]} with this model."
                yield Refusal("sampling", text, param=name, code="unsupported_value")


def _tools(body: Body) -> Iterator[Refusal]:
    tools = objects(body.get("tools"))
    if "tools" in body and not tools:
        text = "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead."
        yield Refusal("empty-tools", text, param="tools", code="empty_array")
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in body and not tools:
            text = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            yield Refusal("needs-tools", text, param=name)
    if len(tools) > 128:
        yield Refusal("too-many-tools", "Invalid 'tools': array too long. Expected at most 128.", param="tools")
    functions = functions_of(body)
    names = [str(one.get("name")) for one in functions]
    if len(set(names)) < len(names):
        yield Refusal("tool-unique", "Tool names must be unique.", param="tools")
    for index, tool in enumerate(tools):
        if tool.get("type") != "function" or not isinstance(tool.get("function"), dict):
            yield Refusal("shape", f"Missing required parameter: 'tools[{index}].function'.", param=f"tools[{index}]")
        for key in tool.keys() - {"type", "function"}:
            yield Refusal("extra-field", f"Unknown parameter: 'tools[{index}].{key}'.", param=f"tools[{index}].{key}")
    for index, function in enumerate(functions):
        yield from _function(index, function)


def _function(index: int, function: Mapping[str, object]) -> Iterator[Refusal]:
    where = f"tools[{index}].function"
    if not NAME.fullmatch(str(function.get("name", ""))):
        text = (
            f"Invalid '{where}.name': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'."
        )
        yield Refusal("tool-name", text, param=f"{where}.name", code="invalid_value")
    schema = function.get("parameters")
    if schema is not None and (not isinstance(schema, Mapping) or schema.get("type") != "object"):
        text = (
            f"Invalid schema for function '{function.get('name')}': schema must be a JSON Schema of 'type: \"object\"'."
        )
        yield Refusal("tool-schema", text, param=f"{where}.parameters", code="invalid_function_parameters")


def body_problem(raw: bytes) -> Refusal | None:
    try:
        value = json.loads(raw)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Refusal("surrogate", "We could not parse the JSON body of your request: a surrogate stands alone.")
    except ValueError:
        return Refusal("json", "We could not parse the JSON body of your request.")
    return None if isinstance(value, dict) else Refusal("json", "We could not parse the JSON body of your request.")
