from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from pydantic import ValidationError

from insika.choices import Guarantee, QueueMode, Split, Thinking
from insika.errors import InvalidConfiguration
from insika.limits.windows import LONGEST_WINDOW_S, TokenCeiling
from insika.settings import Settings, load_settings

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdefghijklmn").decode()
NEXT_SECRET = "whsec_" + base64.b64encode(b"nmlkjihgfedcba9876543210").decode()
CHANNEL: dict[str, Any] = {"id": "whatsapp", "url": "https://hooks.example.com/in?token=t0ken", "secret": SECRET}


def problems(data: Any) -> dict[str, str]:
    with pytest.raises(InvalidConfiguration) as caught:
        load_settings(data, "settings.yaml")
    assert caught.value.where == "settings.yaml"
    return dict(caught.value.problems)


def test_settings_that_say_nothing_leave_the_defaults() -> None:
    for nothing in (None, {}, {"channels": []}):
        settings = load_settings(nothing, "x")
        assert settings.queue.given() == {}
        assert settings.channels == ()
        assert (settings.edge.chat_rate_window, settings.edge.agent_token_window) == (60, 86_400)
        assert settings.channel("whatsapp") is None
    assert load_settings(None, "x") == Settings()


def test_every_supported_key_is_read() -> None:
    settings = load_settings(
        {
            "queue": {"queue_mode": "steer", "steer_join": "+ %{message}", "mailbox_max": None},
            "edge": {
                "chat_rate_limit": 0,
                "chat_rate_window": 30,
                "agent_token_window": 3600,
                "limit_response": "Wait.",
            },
            "thinking": False,
            "model_params": {"openai/gpt-4o-mini": {"thinking": None}},
            "channels": [CHANNEL],
        },
        "x",
    )
    assert settings.queue.given() == {"queue_mode": QueueMode.STEER, "steer_join": "+ %{message}", "mailbox_max": None}
    assert settings.edge.limit_response == "Wait."
    assert settings.thinking is Thinking.OFF
    assert settings.model_params["openai/gpt-4o-mini"].thinking is None


def test_a_channel_has_the_defaults_of_the_contract() -> None:
    channel = load_settings({"channels": [CHANNEL]}, "x").channel("whatsapp")
    assert channel is not None
    assert channel.url == CHANNEL["url"]
    assert channel.secrets == (SECRET,)
    assert (channel.guarantee, channel.split) == (Guarantee.AT_MOST_ONCE, Split.WHOLE)
    assert (channel.max_attempts, channel.timeout_s, channel.order_wait_s, channel.public) == (3, 15, 60, False)


def test_several_secrets_are_kept_in_their_order() -> None:
    channel = load_settings({"channels": [{**CHANNEL, "secret": [NEXT_SECRET, SECRET]}]}, "x").channels[0]
    assert channel.secrets == (NEXT_SECRET, SECRET)


@pytest.mark.parametrize("key", ["id", "url", "secret"])
def test_a_channel_needs_its_id_its_url_and_its_secret(key: str) -> None:
    assert problems({"channels": [{name: it for name, it in CHANNEL.items() if name != key}]}) == {
        f"channels.0.{key}": "is required"
    }


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("guarantee", "exactly_once", "must be one of 'at_most_once' or 'at_least_once', got 'exactly_once'"),
        ("split", "words", "must be one of 'whole' or 'paragraphs', got 'words'"),
        ("max_attempts", 0, "must be at least 1, got 0"),
        ("max_attempts", 2.5, "must be a whole number, got 2.5"),
        ("timeout_s", 0, "must be greater than 0, got 0"),
        ("timeout_s", "15", "must be a number, got '15'"),
        ("order_wait_s", -1, "must be at least 0, got -1"),
        ("public", "no", "must be true or false"),
        ("id", "a b", "must have 1 to 128 letters"),
        ("tiemout_s", 3, "unknown key; did you mean timeout_s?"),
    ],
)
def test_a_wrong_channel_value_is_named(key: str, value: Any, why: str) -> None:
    found = problems({"channels": [CHANNEL, {**CHANNEL, "id": "other", key: value}]})
    assert list(found) == [f"channels.1.{key}"]
    assert why in found[f"channels.1.{key}"]


@pytest.mark.parametrize(
    "url",
    [
        "http://x.example",
        "https://x.example:8443/a/b?c=d",
        "https://[2001:db8::1]/in",
        "http://127.0.0.1:9000/",
        "HTTPS://X.example/",
    ],
)
def test_an_http_url_with_a_host_is_taken(url: str) -> None:
    assert load_settings({"channels": [{**CHANNEL, "url": url}]}, "x").channels[0].url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x.example/in",
        "ftp://x.example",
        "file:///etc/passwd",
        "https://",
        "https:///path",
        "https://:443/",
        "https://x.example:99999/",
        "https://x.example:port/",
        "https://x.example:0/",
        "https://[::1/",
        "https://x example/",
        "https://x.example/a\nb",
        "https://user:t0ken@x.example/",
        "https://t0ken@x.example/",
        None,
        5,
    ],
)
def test_what_is_no_http_url_with_a_host_is_refused(url: Any) -> None:
    found = problems({"channels": [{**CHANNEL, "url": url}]})
    assert list(found) == ["channels.0.url"]
    assert "t0ken" not in found["channels.0.url"]


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "t0ken",
        SECRET.removeprefix("whsec_"),
        "WHSEC_" + SECRET.removeprefix("whsec_"),
        "whsec_not base64 t0ken!!!!!!!!!!!!!!!!",
        "whsec_é",
        "whsec_" + base64.b64encode(b"t0ken").decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
        [],
        [SECRET, "t0ken"],
        [SECRET, None],
        None,
        5,
        {"value": SECRET},
    ],
)
def test_a_secret_that_is_none_is_refused_and_not_quoted(secret: Any) -> None:
    found = problems({"channels": [{**CHANNEL, "secret": secret}]})
    assert list(found) == ["channels.0.secret"]
    assert "t0ken" not in found["channels.0.secret"]
    assert SECRET not in found["channels.0.secret"]


def test_the_same_channel_id_twice_is_refused() -> None:
    found = problems({"channels": [CHANNEL, {**CHANNEL, "id": "slack"}, CHANNEL, {**CHANNEL, "url": 5}]})
    assert found == {
        "channels.2.id": "is the id of channels.0 already",
        "channels.3.id": "is the id of channels.0 already",
        "channels.3.url": "must be a string",
    }


def test_every_mistake_is_listed() -> None:
    assert problems(
        {
            "queue": {"debounce_ms": -1, "max_tool_calls": 4},
            "edge": {"chat_rate_window": 0},
            "chanels": [],
            "thinking": "loud",
            "model_params": {"gpt": {"thinking": False}, "openai/gpt": {"temperature": 1}},
            "fallback_models": None,
        }
    ) == {
        "queue.debounce_ms": "must be at least 0, got -1",
        "queue.max_tool_calls": "unknown key",
        "edge.chat_rate_window": "must be greater than 0, got 0",
        "chanels": "unknown key; did you mean channels?",
        "thinking": "must be one of off, on, low, medium, high",
        "model_params.gpt": "must be provider/name, like offline/demo, got 'gpt'",
        "model_params.openai/gpt.temperature": "unknown key",
        "fallback_models": "must be a list, got null",
    }


@pytest.mark.parametrize("data", [[], "x", 5])
def test_what_is_no_mapping_is_refused(data: Any) -> None:
    assert list(problems(data)) == [""]


def test_secrets_show_nowhere_but_in_what_is_stored() -> None:
    settings = load_settings({"channels": [{**CHANNEL, "secret": [SECRET, NEXT_SECRET]}]}, "x")
    shown = json.dumps(settings.redacted())
    for said in (repr(settings), str(settings), shown, settings.model_dump_json(), repr(settings.model_dump())):
        assert SECRET not in said
        assert NEXT_SECRET not in said
    assert "t0ken" not in shown
    assert "https://hooks.example.com/in?***" in shown
    assert SECRET in json.dumps(settings.document())


def test_people_see_the_defaults_too() -> None:
    shown = load_settings({"channels": [CHANNEL]}, "x").redacted()
    assert shown["queue"]["mailbox_max"] == 50
    assert shown["channels"][0]["secret"] == ["whsec_***"]
    assert shown["channels"][0]["guarantee"] == "at_most_once"


def test_what_is_stored_makes_the_same_settings() -> None:
    settings = load_settings({"queue": {"debounce_ms": None}, "channels": [CHANNEL], "thinking": "off"}, "x")
    again = load_settings(json.loads(json.dumps(settings.document())), "the store")
    assert again == settings
    assert again.queue.given() == {"debounce_ms": None}
    assert again.revision() == settings.revision()


def test_a_changed_secret_is_another_revision() -> None:
    one = load_settings({"channels": [CHANNEL]}, "x")
    assert one.revision() == load_settings({"channels": [dict(reversed(CHANNEL.items()))]}, "y").revision()
    assert one.revision() != load_settings({"channels": [{**CHANNEL, "secret": NEXT_SECRET}]}, "x").revision()


def test_settings_cannot_be_changed() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.thinking = Thinking.OFF  # type: ignore[misc]


@pytest.mark.parametrize("window", ["chat_rate_window", "agent_token_window"])
def test_a_window_of_an_edge_limit_can_be_counted(window: str) -> None:
    edge = load_settings({"edge": {window: LONGEST_WINDOW_S}}, "x").edge
    assert TokenCeiling("", "shop", 1, getattr(edge, window)).window_s == LONGEST_WINDOW_S
    assert f"edge.{window}" in problems({"edge": {window: LONGEST_WINDOW_S + 1}})
