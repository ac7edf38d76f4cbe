"""Finds a user's own policies in the modules that hold their tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from insika.errors import InvalidConfiguration
from insika.policy.own import OwnPolicies, collect_policies
from insika.user_modules import WHERE, import_module, module_names


def load_policies(modules: str | Iterable[str], directory: Path | None = None) -> OwnPolicies:
    """Import the named modules, as `load_tools` does, and gather the policies at their top level.

    Raises InvalidConfiguration, naming both places, when two policies have one name, and whatever importing raises:
    `load_tools` is asked first, and says that better."""
    base = (directory or Path.cwd()).resolve()
    found = [one for name in module_names(modules) for one in collect_policies(import_module(name, base))]
    policies = OwnPolicies(found)
    if policies.clashes:
        raise InvalidConfiguration(WHERE, list(policies.clashes))
    return policies
