"""Which model `insika dev` takes for its sample agent, and what it says of that."""

from __future__ import annotations

from typing import Any

import click
import pytest

from actors.cli.company import Company
from actors.cli.refusals import NotFound, Refused
from actors.cli.sample_model import SampleModel, sample_model
from actors.samples.demo_agent import demo_profile, is_sample, offline_models
from insika.providers.catalog import ModelCatalog
from insika.providers.demo_script import demo_script
from insika.providers.hosted import HostedProviders
from insika.settings import load_settings

KEY = "sk-ant-api03-s3cret"
NOTICE = "offline/demo is a scripted stand-in, not a language model."


def catalog(**variables: str) -> ModelCatalog:
    return offline_models(hosted=HostedProviders(variables))


def chosen(asked: str | None = None, *, providers: list[dict[str, Any]] | None = None, **variables: str) -> SampleModel:
    return sample_model(asked, catalog(**variables), load_settings({"providers": providers or []}, "x").providers)


def test_without_a_key_it_is_the_script_and_says_what_a_real_model_wants() -> None:
    found = chosen()
    assert found.reference == "offline/demo"
    assert found.told == (
        NOTICE,
        "To talk with a real model, see to one of these and start again: ANTHROPIC_API_KEY is not set; "
        "OPENAI_API_KEY is not set.",
    )


@pytest.mark.parametrize(
    ("variables", "reference", "variable"),
    [
        ({"ANTHROPIC_API_KEY": KEY}, "anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        ({"OPENAI_API_KEY": KEY}, "openai/gpt-4o-mini", "OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}, "anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        (
            {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://api.deepseek.com"},
            "openai/deepseek-chat",
            "OPENAI_API_KEY",
        ),
        (
            {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://openrouter.ai/api/v1"},
            "openai/openai/gpt-4o-mini",
            "OPENAI_API_KEY",
        ),
        ({"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": "two words"}, "openai/gpt-4o-mini", "OPENAI_API_KEY"),
    ],
)
def test_with_a_key_it_is_a_hosted_model_and_says_the_way_back(
    variables: dict[str, str], reference: str, variable: str
) -> None:
    found = chosen(**variables)
    assert found.reference == reference
    (line,) = found.told
    assert line.startswith(f"{variable} is set, so a hosted model answers, which costs money; ")
    assert line.endswith("`--model offline/demo` takes the script.")
    assert KEY not in line


def test_a_key_that_cannot_be_one_is_told() -> None:
    assert "ANTHROPIC_API_KEY holds what no key has" in chosen(ANTHROPIC_API_KEY="two words").told[1]


def test_the_settings_in_force_say_where_a_built_in_provider_is_reached() -> None:
    gateway = {"name": "openai", "kind": "openai", "base_url": "https://api.deepseek.com", "key_variable": "MINE"}
    assert chosen(providers=[gateway], MINE=KEY).reference == "openai/deepseek-chat"
    assert "MINE is not set" in chosen(providers=[gateway], OPENAI_API_KEY=KEY).told[1]


def test_what_is_asked_for_is_taken() -> None:
    assert chosen("offline/demo", ANTHROPIC_API_KEY=KEY) == SampleModel("offline/demo", (NOTICE,))
    assert chosen("anthropic/claude-opus-4-5", ANTHROPIC_API_KEY=KEY).reference == "anthropic/claude-opus-4-5"


def test_a_script_of_one_s_own_is_named_for_what_it_is() -> None:
    found = sample_model("offline/down", offline_models(scripts={"down": demo_script()}), ())
    assert found.told == ("offline/down is a scripted stand-in, not a language model.",)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("claude", "must be provider/name"),
        ("nowhere/x", "there is no provider 'nowhere'"),
        ("offline/other", "there is no script 'other'"),
    ],
)
def test_what_is_asked_for_and_is_not_there_is_wrong_usage(asked: str, says: str) -> None:
    with pytest.raises(click.BadParameter, match=says):
        chosen(asked)


def test_what_is_asked_for_without_its_key_is_refused_with_the_way_back() -> None:
    with pytest.raises(Refused) as caught:
        chosen("openai/gpt-4o", ANTHROPIC_API_KEY=KEY)
    assert "OPENAI_API_KEY is not set; mend that and start again." in caught.value.message
    assert "--model offline/demo" in caught.value.message


def company(sampled: bool, variables: dict[str, str] | None = None, **models_of: str) -> Company:
    return Company(models_of, sampled, catalog(**(variables or {})), ())


def test_an_empty_folder_has_the_sample_to_talk_to() -> None:
    partner = company(True).partner(None, None)
    assert (partner.agent, partner.model, partner.told[0]) == ("demo", "offline/demo", NOTICE)
    assert company(True, {"OPENAI_API_KEY": KEY}).partner(None, None).model == "openai/gpt-4o-mini"


def test_the_sample_forgets_the_model_it_had() -> None:
    assert company(True, demo="openai/gpt-4o-mini").partner(None, None).model == "offline/demo"


def test_one_s_own_agent_speaks_with_what_its_profile_names() -> None:
    keys = {"ANTHROPIC_API_KEY": KEY}
    partner = company(False, keys, shop="offline/demo").partner(None, None)
    assert (partner.agent, partner.model, partner.told) == ("shop", "offline/demo", (NOTICE,))
    down = company(False, keys, shop="offline/down").partner(None, None)
    assert down.told == ("offline/down is a scripted stand-in, not a language model.",)
    assert company(False, keys, shop="anthropic/x").partner("shop", None).told == ()
    (told,) = company(False, shop="anthropic/x").partner(None, None).told
    assert told.startswith("shop cannot answer yet: provider anthropic cannot be asked from this process: ANTHROPIC_")
    assert "offline/demo" in told


def test_a_model_can_be_asked_for_the_sample_only() -> None:
    with pytest.raises(click.UsageError, match="shop speaks with offline/demo, as its profile says"):
        company(False, shop="offline/demo").partner(None, "offline/demo")
    assert company(True, shop="openai/x", demo="offline/demo").partner(None, "offline/demo").agent == "demo"


def test_who_is_not_there_is_named() -> None:
    with pytest.raises(NotFound, match="there are: demo"):
        company(True).partner("nobody", None)
    with pytest.raises(click.UsageError, match="several agents"):
        company(False, a="offline/demo", b="offline/demo").partner(None, None)


def test_the_sample_is_known_on_any_model_and_is_the_same_each_time() -> None:
    profile = demo_profile("anthropic/claude-sonnet-5-5")
    assert profile.revision() == demo_profile("anthropic/claude-sonnet-5-5").revision()
    assert profile.revision() != demo_profile().revision()
    assert is_sample(profile.document())
    assert is_sample(demo_profile().document())
    assert not is_sample({**profile.document(), "instructions": "Be brief."})
    assert not is_sample({"id": "shop", "model": "offline/demo"})
