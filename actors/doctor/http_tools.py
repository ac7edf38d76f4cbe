"""Whether the HTTP tools of the settings can do their work from here: their names, the variables that hold their
secrets, and their hosts as the egress guard sees them from this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from actors.doctor.finding import Finding, fail, ok, warn
from actors.tool_set import ToolSet
from insika.http_tools.description import HttpTool
from insika.http_tools.urls import path_and_query
from insika.policy.decision import Deny
from insika.settings import Settings
from insika.tools.egress import EgressGuard, Target

ABOUT = "http tools"

Resolved = Mapping[str, Sequence[str] | str]
"""By host: its addresses, or why there are none."""


def hosts(tools: Sequence[HttpTool], guard: EgressGuard) -> set[str]:
    """Those whose addresses decide."""
    targets = [guard.check_url(_origin(tool)) for tool in tools]
    return {target.url.host for target in targets if isinstance(target, Target) and target.url.host}


def named(settings: Settings, tools: ToolSet) -> Iterator[Finding]:
    """What this process has against the tools' names and misses of their secrets."""
    for path, why in tools.problems(settings):
        what = f"The settings cannot hold in a worker with the tools that are here: {path} {why}."
        yield fail(ABOUT, what, "Rename it and apply the settings again; until then no worker starts with them.")
    for path, why in tools.unset_variables(settings):
        what = f"An HTTP tool fails where it is so: {path}: {why}."
        yield fail(ABOUT, what, "Set it in the environment of each worker, and restart them.")


def reached(tools: Sequence[HttpTool], guard: EgressGuard, resolved: Resolved) -> Iterator[Finding]:
    for tool in tools:
        target = guard.check_url(_origin(tool))
        if isinstance(target, Deny):
            yield _refused(tool, target)
            continue
        host = target.url.host or ""
        addresses = resolved.get(host, "it was not looked up in time")
        if isinstance(addresses, str):
            what = f"The host of HTTP tool {tool.name} cannot be found from here: {addresses}."
            yield warn(ABOUT, what, "Check its name, and the DNS of the machines that run workers.")
            continue
        allowed = guard.check_addresses(host, addresses)
        if isinstance(allowed, Deny):
            yield _refused(tool, allowed)
        else:
            yield ok(ABOUT, f"HTTP tool {tool.name} may reach {host}.")


def _refused(tool: HttpTool, denied: Deny) -> Finding:
    what = f"HTTP tool {tool.name} may not be called: {denied.reason}."
    return fail(ABOUT, what, "Correct its url, or allow it by INSIKA_EGRESS_ALLOW_HTTP, _ALLOW_PRIVATE or _HOSTS.")


def _origin(tool: HttpTool) -> str:
    return path_and_query(tool.request.url)[0]
