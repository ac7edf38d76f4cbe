"""Scripts: data by which the offline provider answers.

An answer follows from the messages of the request and from nothing else. A script counts nothing by itself, so one
script serves any number of sessions at once, and a turn that another process takes up goes on where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from insika.providers.scene import Scene


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with `text`."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Announce one call; `text` is said with it. With `malformed`, raw text stands in place of the arguments. `id` is
    made up unless given."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    malformed: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Announce several calls in one message. The texts of the single calls are not said, `text` is."""

    calls: Sequence[Call]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail before the first chunk: with ProviderFatal if `fatal`, else with a ProviderError that may be tried again.
    `retry_after` is in seconds."""

    message: str = "the script says that this request fails"
    fatal: bool = False
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Begin `step`, and break off after `after_chunks` chunks of its text, or all of them if it has fewer: the message
    is never finished."""

    step: Say | Call | Calls
    after_chunks: int = 0


Step = Say | Call | Calls | Fail | Cut
Entry = Step | Callable[[Scene], Step]
"""A step, or a function that chooses one. It must be pure: the same scene, the same step."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Steps for the turns in which a person said something that `when` is found in (a regular expression, whatever
    the case; None is always). By default that is what was said last.

    The nth message of the turn follows the nth step. With `restarts`, what joins a running turn starts the steps anew.
    """

    steps: Sequence[Entry]
    when: str | None = None
    restarts: bool = False

    def matches(self, scene: Scene) -> bool:
        return self.when is None or re.search(self.when, scene.text, re.IGNORECASE) is not None

    def step(self, scene: Scene) -> Entry | None:
        """None: all steps have been made."""
        place = scene.step_since_said if self.restarts else scene.step
        return self.steps[place] if place < len(self.steps) else None


ALL_SAID = Say("That is the end of the script.")


class Script:
    """The first of `rules` that matches answers; without one, `steps` do. Past the last step comes `afterwards`, each
    time; a script that is one function has only that.

    While no tools are on offer, a step that calls some only says its text (`ALL_SAID` if it has none), as a
    well-behaved model would; with `disobeys` it calls them all the same.
    """

    def __init__(
        self,
        steps: Sequence[Entry] = (),
        *,
        rules: Sequence[Rule] = (),
        afterwards: Entry = ALL_SAID,
        disobeys: bool = False,
    ) -> None:
        self._rules = (*rules, Rule(steps))
        self._afterwards = afterwards
        self._disobeys = disobeys

    def answer(self, scene: Scene) -> Step:
        """The step that the model takes now."""
        entry = next(rule for rule in self._rules if rule.matches(scene)).step(scene) or self._afterwards
        step = entry(scene) if callable(entry) else entry
        return step if scene.tools or self._disobeys else _without_calls(step)


def _without_calls(step: Step) -> Step:
    if isinstance(step, (Call, Calls)):
        return Say(step.text) if step.text else ALL_SAID
    if isinstance(step, Cut) and not isinstance(step.step, Say):
        return Cut(Say(step.step.text), step.after_chunks)
    return step
