"""The sample agent `demo`: a bookshop's, on a script that stands in for a language model, or on a model it is given."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from insika.agents.profile import Profile, load_profile
from insika.model_endpoints import OFFLINE
from insika.providers.catalog import ModelCatalog
from insika.providers.demo_script import demo_script
from insika.providers.hosted import HostedProviders
from insika.providers.offline import BeforeChunk, OfflineProvider, at_once
from insika.providers.script import Script

DEMO = "demo"
OFFLINE_DEMO = "offline/demo"

_PROFILE: Mapping[str, Any] = {
    "id": DEMO,
    "model": OFFLINE_DEMO,
    "instructions": "You help the customers of a bookshop.",
    "tools_allow": ["order_lookup", "stock_check", "refund"],
    "limits": {"max_tool_calls": 20, "on_exhausted": "synthesize", "queue_mode": "steer"},
}


def demo_profile(model: str = OFFLINE_DEMO) -> Profile:
    """It takes what is said meanwhile into the running turn, and may call twenty tools in one. The same model gives the
    same revision."""
    return load_profile({**_PROFILE, "model": model}, "the sample agent demo")


def is_sample(document: Mapping[str, Any]) -> bool:
    """Whether a profile is the sample agent's, on whatever model."""
    return {**document, "model": OFFLINE_DEMO} == _PROFILE


def offline_models(
    before_chunk: BeforeChunk = at_once,
    scripts: Mapping[str, Script] = MappingProxyType({}),
    hosted: HostedProviders | None = None,
) -> ModelCatalog:
    """The models that need neither network nor key, the sample's and the user's `scripts`, and those of `hosted`.
    `before_chunk` may slow the scripts down to a pace one can follow."""
    return ModelCatalog({OFFLINE: OfflineProvider({DEMO: demo_script(), **scripts}, before_chunk)}, hosted)
