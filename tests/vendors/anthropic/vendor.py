"""The fake of Anthropic's Messages API: judges a request by all its rules, and answers by script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from insika.messages import Usage
from insika.ports import ModelRequest
from tests.vendors.anthropic import models, wire
from tests.vendors.anthropic.message_rules import message_problems
from tests.vendors.anthropic.models import Model
from tests.vendors.anthropic.option_rules import body_problem, header_problems, option_problems
from tests.vendors.anthropic.reading import as_house, ends_with_results, prompt_of
from tests.vendors.anthropic.thinking_rules import asked_type, block_problems, config_problems, thought_mark
from tests.vendors.cache import MarkedCache, prefix_hashes
from tests.vendors.refusals import Refusal
from tests.vendors.seals import Seals
from tests.vendors.seen import Seen
from tests.vendors.spoken import Spoken, made_id
from tests.vendors.troubles import Breaks
from tests.vendors.vendor import Reply, Scripts, Vendor

KEY = "sk-ant-api03-fake"


class AnthropicVendor(Vendor):
    """`name`: fakes of one name take each other's signatures, as one vendor's machines do."""

    def __init__(
        self,
        scripts: Scripts,
        *,
        keys: Sequence[str] = (KEY,),
        cache_minimum: int | None = None,
        name: str = "anthropic",
    ) -> None:
        super().__init__(scripts, keys=keys, cache_minimum=cache_minimum)
        self._seals = Seals(name)
        self._cache = MarkedCache()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> Sequence[str]:
        return ("/v1/messages",)

    @property
    def keep_alive(self) -> bytes:
        return b'event: ping\ndata: {"type": "ping"}\n\n'

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        """In either header: the SDK sends it as a bearer's (api/overview, "Authentication")."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        return headers.get("x-api-key") or (bearer if scheme.lower() == "bearer" else None)

    def judge(self, seen: Seen, key: str | None) -> Sequence[Refusal]:
        found = list(header_problems(seen.headers, key, self.keys))
        if problem := body_problem(seen.raw):
            return [*found, problem]
        seen.body = json.loads(seen.raw)
        seen.pieces, _ = prompt_of(seen.body)
        model = models.find(seen.model)
        if model is None:
            return [*found, Refusal("model", f"model: {seen.model}", 404)]
        betas = frozenset(value.strip() for value in seen.headers.get("anthropic-beta", "").split(","))
        found += option_problems(seen.body, model, seen.headers.get("anthropic-version", ""))
        found += message_problems(seen.body)
        found += config_problems(seen.body, model)
        found += block_problems(seen.body, model, betas, self._seals, prefix_hashes(seen.pieces))
        return found

    def as_house(self, body: Mapping[str, Any]) -> ModelRequest:
        return as_house(body)

    def speak(self, seen: Seen, said: Spoken) -> Reply:
        model = models.find(seen.model)
        assert model is not None
        if asked_type(seen.body, model) in ("disabled", "between_tools"):
            said = replace(said, thinking="", hidden=False)
        elif said.calls and not model.narrates and ends_with_results(seen.body):
            said = replace(said, thinking=said.thinking + said.text, text="")
        pieces, marks = prompt_of(seen.body)
        minimum = model.cache_minimum if self.cache_minimum is None else self.cache_minimum
        cached = self._cache.look(seen.model, pieces, marks, minimum)
        blocks = self._blocks(seen, model, said)
        id = f"msg_{made_id([seen.number, len(pieces)], 0)}"
        events = wire.events(id, seen.model, blocks, said, cached)
        return Reply(
            events,
            [at for at, event in enumerate(events) if b'"text_delta"' in event],
            wire.whole(id, seen.model, blocks, said, cached),
            Usage(cached.fresh, said.output_tokens, cached.read, cached.written),
        )

    def _blocks(self, seen: Seen, model: Model, said: Spoken) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if said.thinking:
            blocks.append(self._thinking(seen, model, said))
        if said.text:
            blocks.append({"type": "text", "text": said.text})
        head = thought_mark(seen.model) if said.thinking else "toolu_01"
        seed = seen.prefix_hash()
        for index, call in enumerate(said.calls):
            id = call.id or head + made_id(seed, index)
            blocks.append({"type": "tool_use", "id": id, "name": call.name, "raw": call.raw})
        return blocks

    def _thinking(self, seen: Seen, model: Model, said: Spoken) -> dict[str, Any]:
        asked = seen.body.get("thinking")
        display = asked.get("display") if isinstance(asked, Mapping) else None
        shows = model.shows if display is None else display == "summarized"
        prefix = prefix_hashes(seen.pieces)[-1]
        if said.hidden:
            return {"type": "redacted_thinking", "data": self._seals.seal(seen.model, "", prefix)}
        text = said.thinking if shows else ""
        return {"type": "thinking", "thinking": text, "signature": self._seals.seal(seen.model, text, prefix)}

    def error(self, refusal: Refusal, request_id: str) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        return wire.error_body(refusal, request_id), {}

    def broken(self, trouble: Breaks, request_id: str) -> bytes:
        return wire.error_event(trouble.kind, trouble.message, request_id)
