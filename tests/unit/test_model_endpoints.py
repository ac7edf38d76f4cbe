"""Providers as settings: what may be written, what is refused and where, and that no key is ever shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from insika.errors import InvalidConfiguration
from insika.model_endpoints import Dialect, HostedModels, Kind, dialect_of
from insika.settings import load_settings

GATEWAY: dict[str, Any] = {
    "name": "gateway",
    "kind": "openai",
    "base_url": "https://models.example.com/v1",
    "key_variable": "GATEWAY_KEY",
}
KEY = "sk-ant-api03-abcdefghijklmnop"


def read(*providers: Any) -> tuple[HostedModels, ...]:
    return load_settings({"providers": list(providers)}, "settings.yaml").providers


def problems(*providers: Any) -> dict[str, str]:
    with pytest.raises(InvalidConfiguration) as caught:
        read(*providers)
    return dict(caught.value.problems)


def wrong(**fields: Any) -> dict[str, str]:
    return problems({**GATEWAY, **fields})


def test_a_provider_is_read() -> None:
    (provider,) = read(GATEWAY)
    assert (provider.name, provider.kind, provider.key_variable) == ("gateway", Kind.OPENAI, "GATEWAY_KEY")
    assert (provider.address, provider.host) == (GATEWAY["base_url"], "models.example.com")


def test_the_vendor_s_own_address_need_not_be_written() -> None:
    (europe,) = read({"name": "europe", "kind": "anthropic", "key_variable": "EUROPE_KEY"})
    assert (europe.address, europe.speaks) == ("https://api.anthropic.com", None)
    (second,) = read({"name": "second", "kind": "openai", "key_variable": "SECOND_KEY"})
    assert (second.address, second.speaks) == ("https://api.openai.com/v1", Dialect.OPENAI)


def test_a_server_without_a_key_is_one_with_an_address() -> None:
    (own,) = read({"name": "own", "kind": "openai", "base_url": "http://127.0.0.1:11434/v1"})
    assert own.key_variable is None
    assert problems({"name": "own", "kind": "openai"}) == {
        "providers.0.key_variable": "is required where there is no base_url: the vendor's own API wants a key"
    }


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("", Dialect.OPENAI),
        ("https://api.openai.com/v1", Dialect.OPENAI),
        ("https://eu.api.openai.com/v1", Dialect.OPENAI),
        ("https://api.deepseek.com", Dialect.DEEPSEEK),
        ("https://openrouter.ai/api/v1", Dialect.OPENROUTER),
        ("https://OpenRouter.ai:443/api/v1", Dialect.OPENROUTER),
        ("http://127.0.0.1:8000/v1", Dialect.COMPATIBLE),
        ("https://api.openai.com.example.com/v1", Dialect.COMPATIBLE),
        ("https://notopenrouter.ai/api/v1", Dialect.COMPATIBLE),
        ("https://example.com/api.openai.com", Dialect.COMPATIBLE),
    ],
)
def test_a_dialect_is_known_by_the_host(url: str, dialect: Dialect) -> None:
    assert dialect_of(url) is dialect


def test_a_dialect_that_is_written_wins() -> None:
    (provider,) = read({**GATEWAY, "dialect": "deepseek"})
    assert provider.speaks is Dialect.DEEPSEEK
    assert wrong(kind="anthropic", base_url="https://x.example", dialect="openai") == {
        "providers.0.dialect": "is for kind openai only; remove it"
    }


@pytest.mark.parametrize("name", ["anthropic", "openai", "a", "my_models-2", "0", "x" * 64])
def test_names_are_those_of_model_references(name: str) -> None:
    assert read({**GATEWAY, "name": name})[0].name == name


@pytest.mark.parametrize("name", ["", "Own", "my models", "a/b", "-a", "é", "x" * 65, "a\n"])
def test_a_name_that_no_model_reference_has_is_refused(name: str) -> None:
    assert list(wrong(name=name)) == ["providers.0.name"]


def test_offline_cannot_be_taken_and_no_name_is_given_twice() -> None:
    assert "built in" in wrong(name="offline")["providers.0.name"]
    assert problems(GATEWAY, {**GATEWAY, "name": "other"}, GATEWAY) == {
        "providers.2.name": "is the name of providers.0 already"
    }


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://x.example", "https://"),
        ("models.example.com/v1", "https://"),
        ("https://", "with a host"),
        ("https://user:t0ken@x.example/v1", "no user or password"),
        ("https://x.example/v1?key=t0ken", "must end before a ?"),
        ("https://x.example/v1#t0ken", "must end before a ?"),
        ("https://x.example/v1?", "must end before a ?"),
        ("https://x.example:99999/v1", "must be a URL"),
        ("https://x.example/v1/chat/completions", "must end before /chat/completions"),
        ("https://x.example/v1/chat/completions/", "must end before /chat/completions"),
    ],
)
def test_an_address_that_no_path_can_be_put_behind_is_refused(url: str, says: str) -> None:
    found = wrong(base_url=url)
    assert list(found) == ["providers.0.base_url"]
    assert says in found["providers.0.base_url"]
    assert "t0ken" not in found["providers.0.base_url"]


def test_an_address_of_anthropic_s_api_ends_before_its_version() -> None:
    assert "must end before /v1" in wrong(kind="anthropic")["providers.0.base_url"]
    assert read({**GATEWAY, "kind": "anthropic", "base_url": "https://x.example/anthropic/"})


@pytest.mark.parametrize("value", [KEY, "sk-proj-abc", "gsk_abcdefgh", "a8f3c1d2e4", "", "A-B", "A B", "x" * 200, "1A"])
def test_what_may_be_a_key_is_refused_in_its_variable_s_place_and_not_shown(value: str) -> None:
    found = wrong(key_variable=value)
    assert list(found) == ["providers.0.key_variable"]
    assert "name of an environment variable" in found["providers.0.key_variable"]
    assert not value or value not in found["providers.0.key_variable"]


def test_insika_s_own_secrets_are_sent_to_no_model() -> None:
    assert "Insika's own" in wrong(key_variable="INSIKA_WEBHOOK_SECRET")["providers.0.key_variable"]


@pytest.mark.parametrize("slip", ["api_key", "key", "token", "API_KEY"])
def test_a_key_under_a_key_of_its_own_is_told_where_it_belongs(slip: str) -> None:
    found = wrong(**{slip: KEY})
    assert list(found) == [f"providers.0.{slip}"]
    assert "key_variable" in found[f"providers.0.{slip}"]
    assert KEY not in found[f"providers.0.{slip}"]


def test_other_mistakes_are_named_by_their_paths_and_without_what_stands_there() -> None:
    assert problems(
        {"kind": "azure", "base_ur": KEY}, {**GATEWAY, "dialect": "vllm", "key_variable": [KEY]}, KEY, {}
    ) == {
        "providers.0.name": "is required",
        "providers.0.kind": "must be one of 'anthropic' or 'openai'",
        "providers.0.base_ur": "unknown key; did you mean base_url?",
        "providers.1.key_variable": "must be a string",
        "providers.1.dialect": "must be one of 'openai', 'deepseek', 'openrouter' or 'compatible'",
        "providers.2": "must be a mapping",
        "providers.3.name": "is required",
        "providers.3.kind": "is required",
    }
    assert problems_of_settings({"providers": {"name": "a"}}) == {"providers": "must be a list"}


def problems_of_settings(data: Any) -> dict[str, str]:
    with pytest.raises(InvalidConfiguration) as caught:
        load_settings(data, "settings.yaml")
    return dict(caught.value.problems)


def test_people_see_where_a_provider_is_reached_and_how() -> None:
    settings = load_settings({"providers": [GATEWAY, {"name": "a", "kind": "anthropic", "key_variable": "A"}]}, "x")
    assert settings.redacted()["providers"] == [
        {**GATEWAY, "dialect": "compatible"},
        {
            "name": "a",
            "kind": "anthropic",
            "base_url": "https://api.anthropic.com",
            "key_variable": "A",
            "dialect": None,
        },
    ]


def test_what_is_stored_makes_the_same_providers() -> None:
    settings = load_settings({"providers": [GATEWAY]}, "x")
    again = load_settings(json.loads(json.dumps(settings.document())), "the store")
    assert again == settings
    assert settings.document() == {"providers": [GATEWAY]}
    assert again.revision() == settings.revision()
