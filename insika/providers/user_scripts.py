"""The scripts in a user's modules: stand-ins for a model, so that an agent and its tools can be tried without a key.

Every `Script` at the top level of a module is a model: `shop = Script(...)` is `offline/shop`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from insika.errors import InvalidConfiguration
from insika.providers.script import Script
from insika.user_modules import WHERE, import_module, module_names


def load_scripts(
    modules: str | Iterable[str], taken: Iterable[str] = (), directory: Path | None = None
) -> Mapping[str, Script]:
    """Import the named modules, as `load_tools` does, and gather their scripts by name.

    Raises InvalidConfiguration when two different scripts have one name, or one has a name that is `taken`."""
    base = (directory or Path.cwd()).resolve()
    found: dict[str, Script] = {}
    clashes: list[tuple[str, str]] = []
    for module in module_names(modules):
        for name, value in vars(import_module(module, base)).items():
            if not isinstance(value, Script):
                continue
            if name in taken or found.setdefault(name, value) is not value:
                clashes.append((f"{module}.{name}", f"there is another script called {name!r}; rename this one"))
    if clashes:
        raise InvalidConfiguration(WHERE, clashes)
    return found
