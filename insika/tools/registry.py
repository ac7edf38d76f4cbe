"""The tools of one process, by their exact names, and how they are found in the modules that a user names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from insika.errors import InvalidConfiguration
from insika.policy.own import collect_policies
from insika.ports import ToolSpec
from insika.tools.python_tools import collect
from insika.tools.tool import Tool
from insika.user_modules import WHERE, import_module, module_names


class ToolRegistry:
    """Immutable. A name means one tool, letter for letter. Raises InvalidConfiguration, naming both places, when two
    tools have one name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        found: dict[str, Tool] = {}
        clashes: list[tuple[str, str]] = []
        for tool in tools:
            first = found.setdefault(tool.name, tool)
            if first is not tool:
                clashes.append((tool.name, f"two tools have this name: {first.origin} and {tool.origin}; rename one"))
        if clashes:
            raise InvalidConfiguration(WHERE, clashes)
        self._tools = dict(sorted(found.items()))

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def grouped(self) -> tuple[tuple[str, str | None], ...]:
        """(name, group) of each tool, by name: what the tool lists of a profile are applied to."""
        return tuple((tool.name, tool.group) for tool in self)

    def specs(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """The named tools as a model is told of them. They come by name, whatever the order asked for, so that the
        list, and with it the vendor's cache of the prompt, stays the same byte for byte. Raises LookupError for a
        name that is not here."""
        wanted = set(names)
        if missing := sorted(wanted - self._tools.keys()):
            raise LookupError(f"there is no tool {', '.join(missing)}; there are: {', '.join(self._tools) or 'none'}")
        return tuple(tool.spec for name, tool in self._tools.items() if name in wanted)


def load_tools(modules: str | Iterable[str], directory: Path | None = None) -> ToolRegistry:
    """Import the named modules and gather the tools at their top level.

    A name is a dotted module name or the path of a .py file; one text may hold several, separated by commas. Modules
    are also looked for in `directory` (the working directory unless given), relative paths start there.

    Raises InvalidConfiguration with every module that has neither tools nor policies or could not be imported, and why;
    or as `ToolRegistry` does.
    """
    base = (directory or Path.cwd()).resolve()
    tools: list[Tool] = []
    problems: list[tuple[str, str]] = []
    for name in module_names(modules):
        try:
            module = import_module(name, base)
        except (Exception, SystemExit) as error:
            problems.append((name, f"cannot be imported: {type(error).__name__}: {error}"))
            continue
        found = collect(module)
        if not found and not collect_policies(module):
            problems.append((name, "has no @tool and no @policy functions"))
        tools.extend(found)
    if problems:
        raise InvalidConfiguration(WHERE, problems)
    return ToolRegistry(tools)
