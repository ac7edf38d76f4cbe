"""Which model the sample agent of `insika dev` speaks with: the one that is asked for, else one for which there is a
key, else the script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from actors.cli.refusals import Refused
from actors.references import model_problems
from actors.samples.demo_agent import OFFLINE_DEMO, demo_profile
from insika.errors import InvalidConfiguration
from insika.model_endpoints import OFFLINE, Dialect, HostedModels, Kind
from insika.providers.catalog import ModelCatalog
from insika.providers.hosted import BUILT_IN
from insika.providers.offline import notice

_BACK = f"`--model {OFFLINE_DEMO}` takes the script"

_CLAUDE = "claude-sonnet-5-5"
_MODELS: Mapping[Dialect, str] = {
    Dialect.OPENAI: "gpt-4o-mini",
    Dialect.DEEPSEEK: "deepseek-chat",
    Dialect.OPENROUTER: "openai/gpt-4o-mini",
    Dialect.COMPATIBLE: "gpt-4o-mini",
}
"""Models that call tools, answer soon and cost little. What is `compatible` may know another only."""


@dataclass(frozen=True, slots=True)
class SampleModel:
    """`told`: what to say of the choice, a line each."""

    reference: str
    told: tuple[str, ...]


def sample_model(asked: str | None, models: ModelCatalog, given: Sequence[HostedModels]) -> SampleModel:
    """`given`: the providers of the settings in force. Raises BadParameter for a model that there is not, and Refused
    for one that cannot be asked from here."""
    if asked is not None:
        return _asked(asked, models, given)
    built_in = [found for one in BUILT_IN if (found := models.endpoint(f"{one.name}/", given)) is not None]
    for hosted in built_in:
        if hosted.key_variable is not None and not models.hosted.lack(hosted):
            return _by_key(hosted)
    lacks = "; ".join(why for hosted in built_in if (why := models.hosted.lack(hosted)))
    wants = f"To talk with a real model, see to one of these and start again: {lacks}."
    return SampleModel(OFFLINE_DEMO, (notice(OFFLINE_DEMO), *([wants] if lacks else [])))


def _asked(asked: str, models: ModelCatalog, given: Sequence[HostedModels]) -> SampleModel:
    try:
        problems = model_problems(demo_profile(asked), models, given)
    except InvalidConfiguration as error:
        problems = error.problems
    if problems:
        raise click.BadParameter("; ".join(why for _, why in problems), param_hint="--model")
    if why := models.lack(asked, given):
        raise Refused(f"{why}; mend that and start again. `insika dev --model {OFFLINE_DEMO}` goes on without a model.")
    if models.own(asked) is not None:
        return SampleModel(asked, (notice(asked),) if asked.startswith(f"{OFFLINE}/") else ())
    return SampleModel(asked, (f"A hosted model answers, which may cost money; {_BACK}.",))


def _by_key(hosted: HostedModels) -> SampleModel:
    name = _CLAUDE if hosted.kind is Kind.ANTHROPIC else _MODELS[hosted.speaks or Dialect.COMPATIBLE]
    told = f"{hosted.key_variable} is set, so a hosted model answers, which costs money"
    return SampleModel(f"{hosted.name}/{name}", (f"{told}; `--model PROVIDER/NAME` takes another, {_BACK}.",))
