"""Which tools a profile may name, as far as a command can know: those of this environment, and those that settings
describe. Settings are looked at only for a profile that names what is not here."""

from __future__ import annotations

from collections.abc import Sequence

from actors.cli.known_settings import known_settings
from actors.environment import Environment
from actors.parts import Parts
from actors.references import Problem, tool_warnings
from actors.tool_set import tool_set
from insika.agents.profile import Profile
from insika.settings import Settings


class KnownTools:
    def __init__(self, environment: Environment, parts: Parts) -> None:
        self._environment = environment
        self._tools = tool_set(environment, parts)
        self._settings: Sequence[Settings] | None = None

    def warnings(self, profile: Profile) -> Sequence[Problem]:
        """Each name that stands for nothing, here and under all settings that are known. Raises InvalidConfiguration
        when the settings file of the environment cannot be read."""
        warnings = tool_warnings(profile, self._tools.under(Settings()))
        if not warnings:
            return ()
        if self._settings is None:
            self._settings = known_settings(self._environment)
        for settings in self._settings:
            still = dict(tool_warnings(profile, self._tools.under(settings)))
            warnings = [(path, still[path]) for path, _ in warnings if path in still]
        return warnings
