from __future__ import annotations

import pytest

from insika.errors import InvalidConfiguration
from insika.providers.catalog import ModelCatalog
from insika.testing import Script, ScriptedModel

MODEL = ScriptedModel(Script())


def test_a_reference_gives_the_provider_and_the_name_within_it() -> None:
    catalog = ModelCatalog({"offline": MODEL})
    assert catalog.resolve("offline/demo") == (MODEL, "demo")
    assert catalog.providers == ("offline",)


def test_only_the_first_slash_divides() -> None:
    assert ModelCatalog({"router": MODEL}).resolve("router/meta/llama") == (MODEL, "meta/llama")


def test_an_unknown_provider_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidConfiguration, match="this version; there are: offline, other") as error:
        ModelCatalog({"offline": MODEL, "other": MODEL}).resolve("nowhere/demo")
    assert error.value.field == "model"


@pytest.mark.parametrize("reference", ["", "offline", "/demo", "offline/", "/"])
def test_a_reference_that_is_none_says_what_it_should_be(reference: str) -> None:
    with pytest.raises(InvalidConfiguration, match="must be provider/model"):
        ModelCatalog({"offline": MODEL}).resolve(reference)


def test_providers_match_letter_for_letter() -> None:
    with pytest.raises(InvalidConfiguration):
        ModelCatalog({"offline": MODEL}).resolve("Offline/demo")
