"""The rules that must hold after a storm, whatever struck. Each is a function that yields what breaks it, in a line of
its own with ids and numbers; nothing yielded means that it holds. What each asks stands in its docstring's first line,
which is also what people read in the verdict."""

from __future__ import annotations

from scripts.storm.checks import deliveries, effects, jobs, rest, turns

ALL = (*jobs.CHECKS, *turns.CHECKS, *effects.CHECKS, *deliveries.CHECKS, *rest.CHECKS)
