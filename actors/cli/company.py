"""With whom one can talk in `insika dev`: the agents in force, and the sample where there is nobody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import click

from actors.cli.refusals import NotFound
from actors.cli.sample_model import sample_model
from actors.configuration import OPERATOR, Configuration
from actors.embedded import Embedded
from actors.environment import Environment
from actors.samples.demo_agent import DEMO, demo_profile
from insika.config_files import load_profile_folder
from insika.model_endpoints import OFFLINE, HostedModels
from insika.providers.catalog import ModelCatalog
from insika.providers.offline import notice
from insika.storage.rows import Revision


@dataclass(frozen=True, slots=True)
class Partner:
    """Who is talked to, on which model. `told`: what to say of the model, a line each."""

    agent: str
    model: str
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Company:
    """`models_of`: the model of each agent in force. `sampled`: the sample is one of them, or there is nobody else."""

    models_of: Mapping[str, str]
    sampled: bool
    catalog: ModelCatalog
    given: Sequence[HostedModels]

    @classmethod
    async def of(cls, insika: Embedded, environment: Environment, catalog: ModelCatalog) -> Self:
        """Of a process that is open."""
        rows = await insika.store.current_profiles()
        sampled = not rows or any(_is_sample(row, environment) for row in rows)
        models_of = {row.name: str(row.data.get("model")) for row in rows}
        return cls(models_of, sampled, catalog, insika.configuration.settings().providers)

    def partner(self, agent: str | None, model: str | None) -> Partner:
        """Whom to talk to: who is asked for, else the only one, else `demo`. Raises NotFound for somebody who is not
        there, UsageError where one cannot be told from what was asked, and as `sample_model` does."""
        chosen = _chosen(agent, sorted({*self.models_of, *([DEMO] if self.sampled else [])}))
        if self.sampled and chosen == DEMO:
            sample = sample_model(model, self.catalog, self.given)
            return Partner(DEMO, sample.reference, sample.told)
        speaks_with = self.models_of[chosen]
        if model is not None:
            raise click.UsageError(
                f"--model is for the sample agent, {DEMO}; {chosen} speaks with {speaks_with}, as its profile says. "
                "Change it there, then: insika agents apply FILE"
            )
        return Partner(chosen, speaks_with, self._told_of(chosen, speaks_with))

    async def put_sample_in_force(self, configuration: Configuration, partner: Partner | None) -> Sequence[str]:
        """On `partner`'s model, where that is the sample; otherwise on the one that is chosen now. Nothing where there
        is no sample. Answers what whoever starts this process should know of all models."""
        others = {model for agent, model in self.models_of.items() if agent != DEMO or not self.sampled}
        scripted = [notice(model) for model in sorted(others) if _is_script(model)]
        if not self.sampled:
            return scripted
        sample = partner if partner is not None and partner.agent == DEMO else self.partner(DEMO, None)
        await configuration.apply_profiles([demo_profile(sample.model)], from_file=True)
        await configuration.refresh()
        return tuple(dict.fromkeys([*sample.told, *scripted]))

    def _told_of(self, agent: str, model: str) -> tuple[str, ...]:
        if _is_script(model):
            return (notice(model),)
        why = self.catalog.lack(model, self.given)
        without = f"With `model: {OFFLINE}/demo` in its profile it goes on without one."
        return (f"{agent} cannot answer yet: {why}. Set it and start again. {without}",) if why else ()


def _is_script(model: str) -> bool:
    return model.startswith(f"{OFFLINE}/")


def _is_sample(row: Revision, environment: Environment) -> bool:
    """Whether it was put in force here, by this version or an earlier one, and is nobody's own."""
    if row.name != DEMO or row.source == OPERATOR:
        return False
    folder = environment.agents_dir
    return folder is None or all(profile.id != DEMO for profile in load_profile_folder(folder))


def _chosen(agent: str | None, known: Sequence[str]) -> str:
    if agent is not None:
        if agent not in known:
            raise NotFound(f"there is no agent {agent!r}; there are: {', '.join(known)}")
        return agent
    if len(known) == 1:
        return known[0]
    if DEMO in known:
        return DEMO
    raise click.UsageError(f"there are several agents, so say which with --agent: {', '.join(known)}")
