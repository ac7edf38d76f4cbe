"""What this process can run: the models that come with this version, and the tools that the environment names."""

from __future__ import annotations

from actors.environment import Environment
from actors.samples.demo_agent import offline_models
from actors.samples.demo_tools import demo_tools
from insika.providers.catalog import ModelCatalog
from insika.providers.offline import BeforeChunk, at_once
from insika.tools.registry import ToolRegistry, load_tools


def models_here(before_chunk: BeforeChunk = at_once) -> ModelCatalog:
    return offline_models(before_chunk)


def tools_here(environment: Environment) -> ToolRegistry:
    """The sample tools are there as long as no others are named. Raises InvalidConfiguration."""
    return load_tools(environment.tools) if environment.tools else ToolRegistry(demo_tools())
