"""What a session remembers of the `vars` of its jobs.

All of them at first contact; afterwards only `queue_mode` and `thinking` still change anything, and null or blank
clears. `__llm__: {thinking}` is an older spelling of `thinking`; where both are given, the plain one counts. What is
remembered has the plain spelling only, so that there is one place to clear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from insika.choices import QueueMode, Thinking, read_queue_mode, read_thinking
from insika.documents import kind
from insika.errors import InvalidJob

_MODEL_VARS = "__llm__"


def var_updates(vars: Mapping[str, Any]) -> dict[str, str | None]:
    """The changes that a job's vars make to what its session remembers: a word, or None to clear it.

    Raises InvalidJob naming the variable that has a wrong value."""
    updates: dict[str, str | None] = {}
    model_vars = vars.get(_MODEL_VARS)
    if model_vars is not None and not isinstance(model_vars, Mapping):
        raise InvalidJob(f"vars.{_MODEL_VARS}: expected an object, got {kind(model_vars)}", field=f"vars.{_MODEL_VARS}")
    if model_vars is not None and "thinking" in model_vars:
        updates["thinking"] = _read(read_thinking, model_vars["thinking"], f"vars.{_MODEL_VARS}.thinking")
    if "thinking" in vars:
        updates["thinking"] = _read(read_thinking, vars["thinking"], "vars.thinking")
    if "queue_mode" in vars:
        updates["queue_mode"] = _read(read_queue_mode, vars["queue_mode"], "vars.queue_mode")
    return updates


def remembered_vars(vars: Mapping[str, Any]) -> dict[str, Any]:
    """What a session remembers of the vars of its first job. Raises as `var_updates` does."""
    updates = var_updates(vars)
    kept = {name: value for name, value in vars.items() if name not in ("thinking", "queue_mode", _MODEL_VARS)}
    if model_vars := {name: value for name, value in (vars.get(_MODEL_VARS) or {}).items() if name != "thinking"}:
        kept[_MODEL_VARS] = model_vars
    return kept | {name: value for name, value in updates.items() if value is not None}


def session_queue_mode(remembered: Mapping[str, Any]) -> QueueMode | None:
    """The session's own queue mode; None: it has none, the agent decides."""
    return read_queue_mode(remembered.get("queue_mode"))


def session_thinking(remembered: Mapping[str, Any]) -> Thinking | None:
    """The session's own thinking; None: it has none, the agent decides."""
    return read_thinking(remembered.get("thinking"))


def _read(reader: Callable[[object], str | None], value: object, field: str) -> str | None:
    try:
        word = reader(value)
    except ValueError as error:
        raise InvalidJob(f"{field}: {error}, got {kind(value)}", field=field) from None
    return None if word is None else str(word)
