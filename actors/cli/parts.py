"""What this process can run: hosted models, by the keys that its environment holds, and what is in the modules that the
environment names: tools, policies, and scripts that stand in for models."""

from __future__ import annotations

import os

from actors.environment import Environment
from actors.parts import Parts
from actors.samples.demo_agent import DEMO, offline_models
from actors.samples.demo_tools import demo_tools
from insika.policy_modules import load_policies
from insika.providers.catalog import ModelCatalog
from insika.providers.hosted import HostedProviders
from insika.providers.offline import BeforeChunk, at_once
from insika.providers.user_scripts import load_scripts
from insika.tools.registry import ToolRegistry, load_tools


def models_here(environment: Environment, before_chunk: BeforeChunk = at_once) -> ModelCatalog:
    """Call after `tools_here`, which says what is wrong with a module. The keys of hosted models are those in the
    environment now. Raises InvalidConfiguration."""
    scripts = load_scripts(environment.tools, taken=(DEMO,))
    return offline_models(before_chunk, scripts, HostedProviders(os.environ))


def models_of_hosts() -> ModelCatalog:
    """For who asks only where hosted models are reached: no module of a user's is imported."""
    return offline_models(hosted=HostedProviders(os.environ))


def parts_here(environment: Environment, before_chunk: BeforeChunk = at_once) -> Parts:
    """Raises InvalidConfiguration."""
    tools = tools_here(environment)
    samples = ToolRegistry() if environment.tools else ToolRegistry(demo_tools())
    return Parts(
        models_here(environment, before_chunk),
        tools,
        samples=samples,
        policies=load_policies(environment.tools),
        variables=dict(os.environ),
    )


def tools_here(environment: Environment) -> ToolRegistry:
    """Those of the modules that the environment names. Raises InvalidConfiguration."""
    return load_tools(environment.tools)
