"""Hosted models by the command line: what is told of a provider and its key before a turn would fail, and no key."""

from __future__ import annotations

from typing import Any

import pytest

KEY = "sk-ant-api03-s3cret"
CLAUDE = "id: shop\nmodel: anthropic/claude-sonnet-4-5\n"
GATEWAY = """
providers:
- {name: gateway, kind: openai, base_url: "https://models.example/v1", key_variable: GATEWAY_KEY, dialect: deepseek}
- {name: local, kind: openai, base_url: "http://127.0.0.1:11434/v1"}
"""
NO_KEY = "provider anthropic cannot be asked from this process: ANTHROPIC_API_KEY is not set"


@pytest.fixture
def shop(migrated: Any) -> Any:
    migrated.write("shop.yaml", CLAUDE)
    migrated.write("settings.yaml", GATEWAY)
    return migrated


@pytest.mark.parametrize("command", ["validate", "apply"])
def test_a_key_that_is_not_here_is_warned_of_and_no_mistake(
    shop: Any, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checked,) = shop.json("agents", command, "shop.yaml")
    assert checked["valid"]
    assert checked["warnings"] == [{"path": "model", "message": NO_KEY}]
    assert f"  warning: model: {NO_KEY}\n" in shop.run("agents", command, "shop.yaml").stderr
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    (checked,) = shop.json("agents", command, "shop.yaml")
    assert checked["warnings"] == []


def test_a_hosted_model_is_checked_without_a_database(command_line: Any) -> None:
    command_line.write("shop.yaml", CLAUDE)
    assert command_line.json("agents", "validate", "shop.yaml")[0]["valid"]
    assert not command_line.database.exists()


def test_a_provider_of_the_settings_in_force_is_known(shop: Any) -> None:
    shop.write("shop.yaml", "id: shop\nmodel: local/llama3\n")
    (checked,) = shop.json("agents", "validate", "shop.yaml", code=1)
    assert checked["problems"][0]["message"].startswith("there is no provider 'local' here")
    shop.run("settings", "apply", "settings.yaml")
    (checked,) = shop.json("agents", "validate", "shop.yaml")
    assert (checked["problems"], checked["warnings"]) == ([], [])


def test_a_provider_of_the_settings_file_is_known(command_line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    command_line.write("settings.yaml", GATEWAY)
    command_line.write("shop.yaml", "id: shop\nmodel: gateway/large\n")
    monkeypatch.setenv("INSIKA_SETTINGS", "settings.yaml")
    (checked,) = command_line.json("agents", "validate", "shop.yaml")
    assert checked["problems"] == []
    assert "GATEWAY_KEY is not set" in checked["warnings"][0]["message"]


def test_a_shown_agent_says_where_its_model_is_reached(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.run("agents", "apply", "shop.yaml")
    told = shop.run("agents", "show", "shop").output
    reached = "# model anthropic/claude-sonnet-4-5: anthropic at https://api.anthropic.com, key from ANTHROPIC_API_KEY"
    assert f"{reached}; {NO_KEY}\n" in told
    assert shop.json("agents", "show", "shop")["provider"] == {
        "name": "anthropic",
        "kind": "anthropic",
        "base_url": "https://api.anthropic.com",
        "key_variable": "ANTHROPIC_API_KEY",
        "dialect": None,
        "problem": NO_KEY,
    }
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert f"{reached}\n" in shop.run("agents", "show", "shop").output
    assert shop.json("agents", "show", "shop")["provider"]["problem"] is None
    assert KEY not in str(shop.json("agents", "show", "shop"))


def test_a_shown_agent_without_a_network_has_no_provider_to_tell_of(shop: Any) -> None:
    shop.write("shop.yaml", "id: shop\nmodel: offline/demo\n")
    shop.run("agents", "apply", "shop.yaml")
    assert shop.json("agents", "show", "shop")["provider"] is None
    assert "# model" not in shop.run("agents", "show", "shop").output


def test_a_shown_agent_follows_the_settings_in_force(shop: Any) -> None:
    shop.run("settings", "apply", "settings.yaml")
    shop.write("shop.yaml", "id: shop\nmodel: gateway/large\n")
    shop.run("agents", "apply", "shop.yaml")
    assert shop.json("agents", "show", "shop")["provider"]["dialect"] == "deepseek"
    shop.write("settings.yaml", "queue: {}\n")
    shop.run("settings", "apply", "settings.yaml")
    assert "there is no provider 'gateway' here" in shop.run("agents", "show", "shop").output


@pytest.mark.parametrize("command", ["validate", "apply"])
def test_settings_warn_of_keys_that_are_not_here(shop: Any, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (checked,) = shop.json("settings", command, "settings.yaml")
    why = "GATEWAY_KEY is not set"
    assert (checked["valid"], checked["warnings"]) == (True, [{"path": "providers.0.key_variable", "message": why}])
    assert f"warning: providers.0.key_variable: {why}\n" in shop.run("settings", command, "settings.yaml").stderr
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    assert shop.json("settings", command, "settings.yaml")[0]["warnings"] == []


def test_settings_show_providers_and_no_key(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    shop.run("settings", "apply", "settings.yaml")
    gateway, local = shop.json("settings", "show")["settings"]["providers"]
    assert (gateway["key_variable"], gateway["dialect"]) == ("GATEWAY_KEY", "deepseek")
    assert (local["key_variable"], local["dialect"]) == (None, "compatible")
    told = shop.run("settings", "show").output
    assert "key_variable: GATEWAY_KEY" in told
    assert KEY not in told


def test_a_key_in_the_settings_is_refused_and_not_shown(shop: Any) -> None:
    shop.write("bad.yaml", f"providers: [{{name: own, kind: anthropic, key_variable: {KEY}}}]\n")
    for command in ("validate", "apply"):
        told = shop.run("settings", command, "bad.yaml")
        assert told.exit_code == 1
        assert "providers.0.key_variable: must be the name of an environment variable" in told.stderr
        assert KEY not in told.output + told.stderr
