"""How many tool calls one turn may make, and what is done when they are used up.

The policy lives with the number it belongs to: without a limit there is nothing to exhaust. Nothing here speaks to
the model; the warnings before the end are `insika.turn.turn_budget`'s.
"""

from __future__ import annotations

from insika.errors import InsikaError
from insika.text import counted


class StepLimit:
    """Counts calls up to `max`. Only the start of a turn resets it: a message that joins a running turn must not,
    or somebody who keeps writing would keep the turn alive for ever.

    `max` is a whole number from 1. `on_exhausted` says what the loop does then: `raise` ends the turn as failed,
    `synthesize` asks for one last answer without tools. Raises ValueError (TypeError for a `max` that is no whole
    number), naming the value.
    """

    ON_EXHAUSTED = ("raise", "synthesize")

    class Exceeded(InsikaError):
        """More calls than `max` were asked for."""

        type = "tool_limit"

        def __init__(self, max: int) -> None:
            super().__init__(
                f"the turn has used up its {counted(max, 'tool call')}; raise limits.max_tool_calls, "
                "or set limits.on_exhausted to synthesize to get an answer from what was found"
            )
            self.max = max

    def __init__(self, max: int, on_exhausted: str = "raise") -> None:
        if isinstance(max, bool) or not isinstance(max, int):
            raise TypeError(f"max must be a whole number of calls, got {max!r}")
        if max <= 0:
            raise ValueError(f"max must be at least 1, got {max}")
        if on_exhausted not in self.ON_EXHAUSTED:
            raise ValueError(f"on_exhausted must be one of {', '.join(self.ON_EXHAUSTED)}, got {on_exhausted!r}")
        self._max = max
        self._on_exhausted = on_exhausted
        self._step = 0

    @property
    def max(self) -> int:
        return self._max

    @property
    def on_exhausted(self) -> str:
        return self._on_exhausted

    @property
    def step(self) -> int:
        """Calls counted since the last reset, with those that were refused."""
        return self._step

    @property
    def remaining(self) -> int:
        """Calls that may still run; 0 when the limit has been reached or passed."""
        return max(0, self._max - self._step)

    @property
    def exhausted(self) -> bool:
        """More calls than `max` were asked for: what `on_exhausted` says is due."""
        return self._step > self._max

    def tick(self) -> None:
        """Count a call that is about to run. Raises Exceeded, once it is counted, for each beyond `max`."""
        self._step += 1
        if self.exhausted:
            raise self.Exceeded(self._max)

    def reset(self) -> None:
        self._step = 0

    def __str__(self) -> str:
        policy = "" if self._on_exhausted == "raise" else f", on_exhausted={self._on_exhausted}"
        return f"StepLimit(max={self._max}{policy})"


class NoStepLimit:
    """No limit: ticks for ever and counts nothing."""

    max: None = None
    on_exhausted = "raise"
    step = 0
    remaining: None = None
    exhausted = False

    def tick(self) -> None:
        return None

    def reset(self) -> None:
        return None

    def __str__(self) -> str:
        return "NoStepLimit()"
