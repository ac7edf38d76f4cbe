"""What differs between those who compose a process: models, tools, and what tests put in time's and death's place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from insika.clock import Clock, SystemClock
from insika.crash_points import Crash, no_crash
from insika.policy.own import OwnPolicies
from insika.providers.catalog import ModelCatalog
from insika.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Parts:
    """`policies` are the user's own. `samples` are offered as long as there are no other tools. `variables` are those
    of the environment in which the secrets of HTTP tools are looked up."""

    models: ModelCatalog
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    clock: Clock = field(default_factory=SystemClock)
    crash: Crash = no_crash
    samples: ToolRegistry = field(default_factory=ToolRegistry)
    policies: OwnPolicies = field(default_factory=OwnPolicies)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
