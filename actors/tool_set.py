"""The tools of one process: those that it was composed with, and those that the settings in force describe.

A name means one tool, letter for letter. Settings that give a tool of this process's own a second meaning are refused
by whoever reads them (`problems`); here the process's own tool keeps its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from actors.egress import egress_guard
from actors.environment import Environment
from actors.parts import Parts
from insika.http_tools.description import HttpTool
from insika.settings import Settings
from insika.tools.http.making import http_tool
from insika.tools.http.sending import Sender
from insika.tools.registry import ToolRegistry
from insika.tools.tool import Tool

Problem = tuple[str, str]
"""A dotted path and what is wrong there."""


class ToolSet:
    """`samples` are there as long as there is no other tool. `variables` are the environment's, for the secrets of HTTP
    tools: never shown."""

    def __init__(self, own: ToolRegistry, samples: ToolRegistry, sender: Sender, variables: Mapping[str, str]) -> None:
        self._own = own
        self._samples = samples
        self._sender = sender
        self._variables = variables
        self._given: Sequence[HttpTool] = ()
        self._under_given = self._registry(())

    def under(self, settings: Settings) -> ToolRegistry:
        """The tools that there are under these settings: the same object, as long as the settings are."""
        if settings.http_tools is not self._given:
            self._given, self._under_given = settings.http_tools, self._registry(settings.http_tools)
        return self._under_given

    def problems(self, settings: Settings) -> Sequence[Problem]:
        """Each HTTP tool whose name is taken here."""
        taken = ((at, self._own.get(tool.name)) for at, tool in enumerate(settings.http_tools))
        return [
            (f"http_tools.{at}.name", f"is the name of a tool already: {tool.origin}; rename one of them")
            for at, tool in taken
            if tool is not None
        ]

    def unset_variables(self, settings: Settings) -> Sequence[Problem]:
        """Each secret header whose variable is not set here: its tool fails where it is so."""
        return [
            (f"http_tools.{at}.secret_headers", f"the environment variable {name} is not set here")
            for at, tool in enumerate(settings.http_tools)
            for name in tool.variables
            if not self._variables.get(name, "").strip()
        ]

    def _registry(self, given: Sequence[HttpTool]) -> ToolRegistry:
        tools = [*self._own, *self._described(given)]
        return ToolRegistry(tools) if tools else self._samples

    def _described(self, given: Sequence[HttpTool]) -> Iterator[Tool]:
        for at, description in enumerate(given):
            if self._own.get(description.name) is None:
                yield http_tool(description, f"http_tools.{at} of the settings", self._sender, self._variables)


def tool_set(environment: Environment, parts: Parts) -> ToolSet:
    """Of a process with these parts. Raises InvalidConfiguration as `egress_guard` does."""
    return ToolSet(parts.tools, parts.samples, Sender(egress_guard(environment)), parts.variables)
