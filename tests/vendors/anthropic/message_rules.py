"""The rules for what stands in `messages`: roles, blocks, calls and their results.

Sources, under platform.claude.com/docs/en unless another place is named:
- api/messages/create: roles, content, joined turns, at most 100,000 messages.
- agents-and-tools/tool-use/handle-tool-calls: results stand at once behind their calls, all of them, before any text.
- agents-and-tools/tool-use/define-tools: the form of a name.
- api/errors, "Prefill not supported".
- Messages as reported in public where the pages do not spell them out: non-whitespace text (anthropics/claude-code
  59812), empty text (23369), unique ids (BerriAI/litellm 23510), the form of ids (anomalyco/opencode 1279), empty
  errors (jlevy/markform 153), tools that must be defined when calls are in the history (camel-ai/owl 532; the vendor
  itself has become lenient there, gateways before it have not: anomalyco/opencode 8246).
Stricter than the vendor: `result-order` (it takes results in any order) and `prefill` (4.5 and older models take one).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.vendors.anthropic.reading import Block, Body, blocks_of, messages_of, objects
from tests.vendors.refusals import Refusal

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ALLOWED = {
    "user": frozenset({"text", "image", "document", "tool_result"}),
    "assistant": frozenset({"text", "thinking", "redacted_thinking", "tool_use"}),
}


def message_problems(body: Body) -> Iterator[Refusal]:
    yield from _shape(body)
    conversation = messages_of(body)
    if conversation and conversation[0][0] != "user":
        yield Refusal("first-user", 'messages: first message must use the "user" role')
    if conversation and conversation[-1][0] == "assistant":
        yield Refusal(
            "prefill",
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )
    for at, (role, blocks) in enumerate(conversation):
        for index, block in enumerate(blocks if role in ALLOWED else []):
            yield from _block(f"messages.{at}.content.{index}", role, block)
    yield from _ids(conversation)
    yield from _pairs(conversation)
    calls = any(block.get("type") in ("tool_use", "tool_result") for _, blocks in conversation for block in blocks)
    if calls and not objects(body.get("tools")):
        yield Refusal("tools-defined", "Requests which include `tool_use` or `tool_result` blocks must define tools")


def _shape(body: Body) -> Iterator[Refusal]:
    messages = body.get("messages")
    if not isinstance(messages, list):
        yield Refusal(
            "messages", "messages: Field required" if messages is None else "messages: Input should be a valid list"
        )
        return
    if not messages:
        yield Refusal("empty-conversation", "messages: at least one message is required")
    if len(messages) > 100_000:
        yield Refusal("too-many", "messages: at most 100000 messages are allowed")
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            yield Refusal("shape", f"messages.{at}: Input should be an object")
            continue
        for key in message.keys() - {"role", "content"}:
            yield Refusal("extra-field", f"messages.{at}.{key}: Extra inputs are not permitted")
        if message.get("role") not in ALLOWED:
            yield Refusal(
                "role",
                f'messages: Unexpected role "{message.get("role")}". The Messages API accepts a top-level `system` '
                'parameter, not "system" as an input message role.',
            )
        content = message.get("content")
        if not isinstance(content, (str, list)):
            yield Refusal("shape", f"messages.{at}.content: Input should be a valid list")
        elif not content:
            yield Refusal(
                "empty-content",
                f"messages.{at}: all messages must have non-empty content except for the optional final assistant "
                "message",
            )


def _block(where: str, role: str, block: Block) -> Iterator[Refusal]:
    kind = block.get("type")
    allowed = ALLOWED.get(role, frozenset())
    if kind not in allowed:
        tags = ", ".join(f"'{tag}'" for tag in sorted(allowed))
        yield Refusal(
            "block-kind",
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}",
        )
    elif kind == "text":
        yield from text_problems("messages", where, block)
    elif kind == "tool_use":
        yield from _call(where, block)
    elif kind == "tool_result":
        yield from _result(where, block)


def text_problems(field: str, where: str, block: Block) -> Iterator[Refusal]:
    text = block.get("text")
    for key in block.keys() - {"type", "text", "cache_control", "citations"}:
        yield Refusal("extra-field", f"{where}.{key}: Extra inputs are not permitted")
    if not isinstance(text, str):
        yield Refusal("shape", f"{where}.text.text: Input should be a valid string")
    elif not text:
        yield Refusal("blank-text", f"{field}: text content blocks must be non-empty")
    elif not text.strip():
        yield Refusal("blank-text", f"{field}: text content blocks must contain non-whitespace text")


def _call(where: str, block: Block) -> Iterator[Refusal]:
    for key in block.keys() - {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}:
        yield Refusal("extra-field", f"{where}.tool_use.{key}: Extra inputs are not permitted")
    if not ID.fullmatch(str(block.get("id", ""))):
        yield Refusal("id-form", f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not NAME.fullmatch(str(block.get("name", ""))):
        yield Refusal("name-form", f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(block.get("input"), dict):
        yield Refusal("input-object", f"{where}.tool_use.input: Input should be a valid dictionary")


def _result(where: str, block: Block) -> Iterator[Refusal]:
    for key in block.keys() - {"type", "tool_use_id", "content", "is_error", "cache_control"}:
        yield Refusal("extra-field", f"{where}.tool_result.{key}: Extra inputs are not permitted")
    if not ID.fullmatch(str(block.get("tool_use_id", ""))):
        yield Refusal("id-form", f"{where}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    content = block.get("content")
    if block.get("is_error") and not content:
        yield Refusal("empty-error", f"{where}.tool_result: content cannot be empty if `is_error` is true")
    if isinstance(content, list):
        for index, inner in enumerate(blocks_of(content)):
            if inner.get("type") == "text":
                yield from text_problems("messages", f"{where}.tool_result.content.{index}", inner)


def _ids(conversation: list[tuple[str, list[Block]]]) -> Iterator[Refusal]:
    seen: set[object] = set()
    for at, (_, blocks) in enumerate(conversation):
        for index, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                if block.get("id") in seen:
                    yield Refusal("id-unique", f"messages.{at}.content.{index}: `tool_use` ids must be unique")
                seen.add(block.get("id"))


def _pairs(conversation: list[tuple[str, list[Block]]]) -> Iterator[Refusal]:
    """The calls of each message against the results at the head of the next one, and results that answer nothing."""
    announced: list[object] = []
    for at, (_, blocks) in enumerate([*conversation, ("end", [])]):
        answered = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        leading = 0
        while leading < len(blocks) and blocks[leading].get("type") == "tool_result":
            leading += 1
        if missing := [id for id in announced if id not in answered[:leading]]:
            yield Refusal(
                "missing-result",
                f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(map(str, missing))}. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message.",
            )
        if strange := [id for id in answered if id not in announced]:
            yield Refusal(
                "strange-result",
                f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{', '.join(map(str, strange))}. Each `tool_result` block must have a corresponding `tool_use` block "
                "in the previous message.",
            )
        if len(set(map(str, answered))) < len(answered):
            yield Refusal(
                "double-result",
                f"messages.{at}: each tool_use must have a single result. Found multiple `tool_result` blocks with "
                "one id",
            )
        elif not missing and not strange and answered != announced:
            yield Refusal("result-order", f"messages.{at}: the results are not in announced order")
        announced = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
