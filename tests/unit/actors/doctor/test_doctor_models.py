"""What is said of the hosted models that agents speak with: their keys and addresses, and never a key."""

from __future__ import annotations

from typing import Any

import pytest

from actors.doctor import configuration, models
from actors.doctor.finding import Finding, Level
from actors.parts import Parts
from actors.samples.demo_agent import offline_models
from insika.agents.profile import Profile, load_profile
from insika.providers.hosted import HostedProviders
from insika.settings import load_settings

KEY = "sk-ant-api03-s3cret"
FOUND = ["93.184.216.34"]


def profile(id: str = "shop", model: str = "anthropic/claude-sonnet-4-5") -> Profile:
    return load_profile({"id": id, "model": model}, "test")


def findings(
    *profiles: Profile,
    providers: list[dict[str, Any]] | None = None,
    resolved: dict[str, Any] | None = None,
    **variables: str,
) -> list[Finding]:
    catalog = offline_models(hosted=HostedProviders(variables))
    used = models.used(profiles, catalog, load_settings({"providers": providers or []}, "test").providers)
    found = list(models.judged(used, {one.host: FOUND for one in used} if resolved is None else resolved))
    assert not any(KEY in f"{finding.what}{finding.do}" for finding in found)
    return found


def told(found: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level.value, finding.what) for finding in found]


def test_a_provider_with_its_key_is_well() -> None:
    assert told(findings(profile(), ANTHROPIC_API_KEY=KEY)) == [
        ("ok", "Provider anthropic is at api.anthropic.com, its key in ANTHROPIC_API_KEY.")
    ]


def test_only_what_agents_speak_with_is_looked_at() -> None:
    assert findings(profile(model="offline/demo"), profile(model="nowhere/x")) == []


def test_a_provider_without_its_key_is_told_once_with_its_agents() -> None:
    ((level, what),) = told(findings(profile("b"), profile("a")))
    assert level == "fail"
    assert what == "Provider anthropic, wanted by agents a, b, cannot be asked from here: ANTHROPIC_API_KEY is not set."
    ((_, what),) = told(findings(*[profile(f"a{n}") for n in range(5)]))
    assert "agents a0, a1, a2 and 2 more" in what


def test_an_address_that_cannot_be_read_is_told() -> None:
    variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"https://u:{KEY}@x.example"}
    ((level, what),) = told(findings(profile(model="openai/x"), **variables))
    assert (level, "OPENAI_BASE_URL must hold no user" in what) == ("fail", True)


@pytest.mark.parametrize("resolved", [{"api.anthropic.com": "Name or service not known"}, {}])
def test_a_host_that_cannot_be_found_is_a_warning(resolved: dict[str, Any]) -> None:
    ((level, what),) = told(findings(profile(), resolved=resolved, ANTHROPIC_API_KEY=KEY))
    assert (level, "api.anthropic.com, cannot be found from here" in what) == ("warn", True)


@pytest.mark.parametrize(
    ("url", "open_"),
    [
        ("http://models.example/v1", True),
        ("http://93.184.216.34/v1", True),
        ("https://models.example/v1", False),
        ("http://127.0.0.1:8000/v1", False),
        ("http://10.0.0.7:8000/v1", False),
        ("http://[::1]:8000/v1", False),
        ("http://localhost:8000/v1", False),
        ("http://vllm:8000/v1", False),
    ],
)
def test_a_key_that_travels_in_the_open_is_a_warning(url: str, open_: bool) -> None:
    own = {"name": "own", "kind": "openai", "base_url": url}
    levels = [
        found.level for found in findings(profile(model="own/x"), providers=[{**own, "key_variable": "K"}], K=KEY)
    ]
    assert levels == ([Level.OK, Level.WARN] if open_ else [Level.OK])
    assert [found.level for found in findings(profile(model="own/x"), providers=[own])] == [Level.OK], "it has no key"


def test_an_agent_whose_provider_nobody_knows_is_told_where_to_name_it() -> None:
    parts = Parts(offline_models(hosted=HostedProviders({})))
    (finding,) = configuration.judged([profile(model="gateway/x")], parts)
    assert finding.level is Level.FAIL
    assert "there is no provider 'gateway' here" in finding.what
    assert "insika settings apply" in finding.do
    given = load_settings(
        {"providers": [{"name": "gateway", "kind": "openai", "base_url": "http://x/v1"}]}, "x"
    ).providers
    assert [one.level for one in configuration.judged([profile(model="gateway/x")], parts, given)] == [Level.OK]
