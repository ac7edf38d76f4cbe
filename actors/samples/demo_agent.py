"""The sample agent `demo`: a bookshop's, on a script that stands in for a language model."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from insika.agents.profile import Profile, load_profile
from insika.providers.catalog import ModelCatalog
from insika.providers.demo_script import demo_script
from insika.providers.offline import BeforeChunk, OfflineProvider, at_once
from insika.providers.script import Script

DEMO = "demo"

_PROFILE: Mapping[str, Any] = {
    "id": DEMO,
    "model": "offline/demo",
    "instructions": "You help the customers of a bookshop.",
    "tools_allow": ["order_lookup", "stock_check", "refund"],
    "limits": {"max_tool_calls": 20, "on_exhausted": "synthesize", "queue_mode": "steer"},
}


def demo_profile() -> Profile:
    """It takes what is said meanwhile into the running turn, and may call twenty tools in one."""
    return load_profile(dict(_PROFILE), "the sample agent demo")


def offline_models(
    before_chunk: BeforeChunk = at_once, scripts: Mapping[str, Script] = MappingProxyType({})
) -> ModelCatalog:
    """The models that need neither network nor key: the sample's, and the user's `scripts`. `before_chunk` may slow
    them down to a pace one can follow."""
    return ModelCatalog({"offline": OfflineProvider({DEMO: demo_script(), **scripts}, before_chunk)})
