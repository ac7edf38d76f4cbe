"""How a model reference becomes a provider: the process's own, the settings', or one that is built in."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from insika.errors import InvalidConfiguration
from insika.model_endpoints import HostedModels
from insika.ports import ModelEvent, ModelRequest
from insika.providers.catalog import ModelCatalog
from insika.providers.endpoint import Dialect, Endpoint, Kind
from insika.providers.hosted import HostedProviders
from insika.settings import load_settings
from insika.testing import Script, ScriptedModel

MODEL = ScriptedModel(Script())
KEY = "sk-ant-api03-s3cret"
GATEWAY = {"name": "gateway", "kind": "openai", "base_url": "https://models.example/v1", "key_variable": "GATEWAY_KEY"}


class Adapter:
    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        raise AssertionError("nobody asks")
        yield

    async def aclose(self) -> None:
        self.closed += 1


class Makers:
    """Makes adapters, and keeps them."""

    def __init__(self) -> None:
        self.made: list[Adapter] = []

    def __call__(self, endpoint: Endpoint) -> Adapter:
        self.made.append(Adapter(endpoint))
        return self.made[-1]


def given(*providers: dict[str, Any]) -> Sequence[HostedModels]:
    return load_settings({"providers": list(providers)}, "test").providers


def catalog(makers: Makers | None = None, **variables: str) -> ModelCatalog:
    return ModelCatalog({"offline": MODEL}, HostedProviders(variables, makers or Makers()))


def refused(models: ModelCatalog, reference: str, providers: Sequence[HostedModels] = ()) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        models.resolve(reference, providers)
    ((field, why),) = caught.value.problems
    assert field == "model"
    return why


def test_a_reference_gives_the_provider_and_the_name_within_it() -> None:
    models = ModelCatalog({"offline": MODEL})
    assert models.resolve("offline/demo") == (MODEL, "demo")
    assert models.names() == ("offline",)


def test_only_the_first_slash_divides() -> None:
    assert ModelCatalog({"router": MODEL}).resolve("router/meta/llama") == (MODEL, "meta/llama")


def test_an_unknown_provider_is_named_with_those_there_are() -> None:
    models = ModelCatalog({"offline": MODEL, "other": MODEL})
    assert refused(models, "nowhere/demo") == "there is no provider 'nowhere' here; there are: offline, other"
    why = refused(catalog(), "antropic/x", given(GATEWAY))
    assert why.endswith("there are: offline, anthropic, openai, gateway")


@pytest.mark.parametrize("reference", ["", "offline", "/demo", "offline/", "/"])
def test_a_reference_that_is_none_says_what_it_should_be(reference: str) -> None:
    assert "must be provider/model" in refused(ModelCatalog({"offline": MODEL}), reference)


def test_providers_match_letter_for_letter() -> None:
    refused(catalog(), "Offline/demo")
    refused(catalog(ANTHROPIC_API_KEY=KEY), "Anthropic/x")


def test_two_providers_are_there_without_settings() -> None:
    makers = Makers()
    models = catalog(makers, ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY="sk-2")
    assert models.names() == ("offline", "anthropic", "openai")
    assert [models.resolve(f"{name}/m")[0] for name in ("anthropic", "openai")] == makers.made
    assert [adapter.endpoint for adapter in makers.made] == [
        Endpoint("anthropic", Kind.ANTHROPIC, "https://api.anthropic.com", KEY),
        Endpoint("openai", Kind.OPENAI, "https://api.openai.com/v1", "sk-2", Dialect.OPENAI),
    ]


def test_they_are_reached_where_their_variables_say() -> None:
    makers = Makers()
    models = catalog(
        makers,
        ANTHROPIC_API_KEY=KEY,
        ANTHROPIC_BASE_URL="http://127.0.0.1:1/",
        OPENAI_API_KEY="sk-2",
        OPENAI_BASE_URL="https://api.deepseek.com",
    )
    for name in ("anthropic", "openai"):
        models.resolve(f"{name}/m")
    assert [(adapter.endpoint.base_url, adapter.endpoint.dialect) for adapter in makers.made] == [
        ("http://127.0.0.1:1/", Dialect.COMPATIBLE),
        ("https://api.deepseek.com", Dialect.DEEPSEEK),
    ]


@pytest.mark.parametrize("url", ["x.example", "https://u:t0ken@x.example", "https://x.example/v1/chat/completions"])
def test_an_address_that_cannot_be_used_is_told_with_its_variable(url: str) -> None:
    models = catalog(OPENAI_API_KEY="sk-2", OPENAI_BASE_URL=url)
    why = refused(models, "openai/m")
    assert why.startswith("provider openai cannot be asked from this process: OPENAI_BASE_URL must ")
    assert "t0ken" not in why
    redefined = given({**GATEWAY, "name": "openai", "key_variable": "OPENAI_API_KEY"})
    assert models.lack("openai/m", redefined) == "", "the settings say another address"


def test_the_settings_add_providers_and_come_before_those_that_are_built_in() -> None:
    makers = Makers()
    models = catalog(makers, ANTHROPIC_API_KEY=KEY, GATEWAY_KEY="g")
    mine = given(GATEWAY, {**GATEWAY, "name": "anthropic", "dialect": "deepseek"})
    assert models.resolve("gateway/a/b", mine) == (makers.made[0], "a/b")
    models.resolve("anthropic/x", mine)
    assert makers.made[1].endpoint == Endpoint("anthropic", Kind.OPENAI, GATEWAY["base_url"], "g", Dialect.DEEPSEEK)


def test_a_process_s_own_provider_comes_before_all() -> None:
    models = ModelCatalog({"gateway": MODEL, "anthropic": MODEL}, HostedProviders({}, Makers()))
    assert models.resolve("gateway/x", given(GATEWAY)) == (MODEL, "x")
    assert models.resolve("anthropic/x") == (MODEL, "x")
    assert models.endpoint("gateway/x", given(GATEWAY)) is None


def test_without_hosted_providers_there_are_only_one_s_own() -> None:
    models = ModelCatalog({"mine": MODEL})
    assert refused(models, "gateway/x", given(GATEWAY)) == "there is no provider 'gateway' here; there is: mine"


def test_a_key_that_is_not_there_is_told_by_its_variable() -> None:
    models = catalog(ANTHROPIC_API_KEY="  ")
    missing = "ANTHROPIC_API_KEY is not set"
    assert refused(models, "anthropic/x") == f"provider anthropic cannot be asked from this process: {missing}"
    assert models.problem("anthropic/x") == "", "another process may have it"
    assert "GATEWAY_KEY is not set" in refused(models, "gateway/x", given(GATEWAY))


def test_a_server_that_wants_no_key_needs_none() -> None:
    makers = Makers()
    local = given({"name": "local", "kind": "openai", "base_url": "http://127.0.0.1:11434/v1"})
    catalog(makers).resolve("local/llama3", local)
    assert makers.made[0].endpoint.key == ""


@pytest.mark.parametrize("value", ['"sk-quoted"', "'sk-quoted'", "sk two words", "sk-line\nend", "sk-é"])
def test_what_cannot_be_a_key_is_told_and_not_shown(value: str) -> None:
    why = refused(catalog(ANTHROPIC_API_KEY=value), "anthropic/x")
    assert why.startswith(
        "provider anthropic cannot be asked from this process: ANTHROPIC_API_KEY holds what no key has"
    )
    assert value not in why


def test_a_line_end_behind_a_key_does_no_harm() -> None:
    makers = Makers()
    catalog(makers, ANTHROPIC_API_KEY=f"{KEY}\n").resolve("anthropic/x")
    assert makers.made[0].endpoint.key == KEY


def test_an_adapter_is_made_once_for_one_definition_and_follows_the_settings() -> None:
    makers = Makers()
    models = catalog(makers, GATEWAY_KEY="g", SECOND_KEY="h")
    first, _ = models.resolve("gateway/a", given(GATEWAY))
    assert models.resolve("gateway/b", given({**GATEWAY, "dialect": "compatible"}))[0] is first
    moved, _ = models.resolve("gateway/a", given({**GATEWAY, "key_variable": "SECOND_KEY"}))
    assert moved is not first
    assert models.resolve("gateway/a", given(GATEWAY))[0] is first, "a turn that holds it may go on"
    assert refused(models, "gateway/a").startswith("there is no provider 'gateway'")
    assert len(makers.made) == 2


async def test_closing_closes_what_was_made_and_one_that_fails_keeps_no_other_open() -> None:
    makers = Makers()
    models = catalog(makers, ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY="sk-2")
    models.resolve("anthropic/x")
    models.resolve("openai/x")

    async def fails() -> None:
        raise RuntimeError(KEY)

    makers.made[0].aclose = fails  # type: ignore[method-assign]
    with capture_logs() as logs:
        await models.aclose()
        await models.aclose()
    assert makers.made[1].closed == 1
    assert [(log["event"], log["provider"]) for log in logs] == [("provider not closed", "anthropic")]
    assert KEY not in str(logs)
    assert models.resolve("openai/x")[0] is not makers.made[1], "a closed one is not given again"


def test_an_adapter_that_cannot_be_made_is_told_without_what_was_raised() -> None:
    def breaks(endpoint: Endpoint) -> Adapter:
        raise RuntimeError(f"bad key {endpoint.key}")

    models = ModelCatalog({}, HostedProviders({"OPENAI_API_KEY": KEY}, breaks))
    why = refused(models, "openai/x")
    assert "RuntimeError" in why
    assert KEY not in why


def test_no_key_shows_in_a_repr() -> None:
    models = catalog(ANTHROPIC_API_KEY=KEY)
    models.resolve("anthropic/x")
    for thing in (
        models,
        models.hosted,
        models.endpoint("anthropic/x"),
        vars(models),
        Endpoint("a", Kind.OPENAI, key=KEY),
    ):
        assert KEY not in repr(thing)


def test_a_variable_that_is_set_later_does_not_count() -> None:
    variables: dict[str, str] = {}
    hosted = HostedProviders(variables, Makers())
    variables["ANTHROPIC_API_KEY"] = KEY
    assert ModelCatalog({}, hosted).lack("anthropic/x") != ""
