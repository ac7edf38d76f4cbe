"""What is said of the HTTP tools of the settings, as they are from here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.doctor import examination, http_tools
from actors.doctor.finding import Finding, Level
from actors.environment import Environment
from actors.parts import Parts
from actors.samples.demo_agent import offline_models
from actors.tool_set import tool_set
from insika.clock import SystemClock
from insika.settings import Settings, load_settings
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from insika.tools.egress import EgressGuard
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry

PUBLIC = EgressGuard()


@tool
def look() -> str:
    return ""


def described(url: str = "https://post.example/%{arguments.n}", **more: Any) -> Settings:
    parameters = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
    described = {"name": "post", "description": "d", "parameters": parameters, "request": {"url": url}, **more}
    return load_settings({"http_tools": [described]}, "x")


def reached(settings: Settings, *addresses: str, guard: EgressGuard = PUBLIC) -> list[Finding]:
    resolved = {host: list(addresses) or "nobody knows it" for host in http_tools.hosts(settings.http_tools, guard)}
    return list(http_tools.reached(settings.http_tools, guard, resolved))


@pytest.mark.parametrize(
    ("url", "addresses", "level", "says"),
    [
        ("https://post.example/%{arguments.n}", ["93.184.216.34"], "ok", "HTTP tool post may reach post.example"),
        ("https://post.example/", [], "warn", "cannot be found from here: nobody knows it"),
        ("https://post.example/", ["93.184.216.34", "10.0.0.1"], "fail", "INSIKA_EGRESS_ALLOW_PRIVATE"),
        ("https://post.example/", ["169.254.169.254"], "fail", "never reached"),
        ("https://169.254.169.254/%{arguments.n}", [], "fail", "never reached"),
        ("https://2130706433/", [], "fail", "host must be a name"),
        ("http://post.example/", [], "fail", "INSIKA_EGRESS_ALLOW_HTTP"),
    ],
)
def test_a_tool_is_judged_by_where_its_requests_would_go(url: str, addresses: list[str], level: str, says: str) -> None:
    (finding,) = reached(described(url), *addresses)
    assert (finding.level.value, says in finding.what) == (level, True)


def test_names_that_are_taken_and_secrets_that_are_not_set_are_faults() -> None:
    parts = Parts(offline_models(), ToolRegistry([look]), variables={"SET": "hush"})
    secrets = {"secret_headers": {"X-A": "%{env.SET}", "X-B": "%{env.UNSET}"}}
    tools = tool_set(Environment(), parts)
    taken, unset = http_tools.named(described(name="look", **secrets), tools)
    assert (taken.level, "test_doctor_http_tools.look" in taken.what) == (Level.FAIL, True)
    assert (unset.level, "variable UNSET is not set" in unset.what) == (Level.FAIL, True)
    assert list(http_tools.named(described(), tools)) == []


async def test_the_doctor_looks_at_them_and_counts_them_among_the_tools(tmp_path: Path) -> None:
    file = tmp_path / "insika.db"
    migrate(file, SystemClock().now)
    store = SqliteStore.open(file, SystemClock().now)
    settings = described("https://127.0.0.1/", secret_headers={"X-A": "%{env.UNSET}"})
    await store.apply_settings(settings.revision(), settings.document(), "operator")
    profile = {"id": "shop", "model": "offline/demo", "tools_allow": ["post", "pots"]}
    await store.apply_profile("shop", "revision", profile, "operator")
    await store.close()
    findings = await examination.examine(
        Environment.model_validate({"database_url": f"sqlite:///{file}"}),
        [],
        lambda: Parts(offline_models()),
        SystemClock(),
    )
    told = {finding.what for finding in findings if finding.level is not Level.OK}
    assert any("variable UNSET is not set here" in what for what in told)
    assert any(
        "HTTP tool post may not be called: the url leads to the private address 127.0.0.1" in what for what in told
    )
    assert any("tools_allow.1" in what for what in told)
    assert not any("tools_allow.0" in what for what in told)
