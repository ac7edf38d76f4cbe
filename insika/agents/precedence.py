"""Which layer has the word. Pure: layers come in as values, strongest first.

Queue rules: the session's vars, then the agent, then the platform, then the default; a key that is present wins, also
when it says null or 0. A job's own queue mode comes before all layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from insika.choices import Origin, QueueMode

Value = TypeVar("Value")


def first_present(key: str, *layers: Mapping[str, Any], default: Value) -> Value | None:
    """The value of the first layer that has `key`; None when that layer says null (off)."""
    for layer in layers:
        if key in layer:
            value: Value | None = layer[key]
            return value
    return default


def job_queue_mode(origin: Origin, queue_mode: QueueMode | None) -> QueueMode | None:
    """What a job itself says, before all layers; None: it leaves it to them. What the engine or a timer wrote waits
    for its own turn, whatever it asks for: it must not steer or interrupt a person's."""
    return queue_mode if origin is Origin.CUSTOMER else QueueMode.FOLLOWUP


def queue_mode_in_force(
    job: QueueMode | None, session: QueueMode | None, agent: Mapping[str, Any], platform: Mapping[str, Any]
) -> QueueMode:
    """The mode that counts for one message. `job` is `job_queue_mode`'s answer, `agent` and `platform` are the queue
    rules that they give."""
    if job is not None:
        return job
    if session is not None:
        return session
    return first_present("queue_mode", agent, platform, default=QueueMode.FOLLOWUP) or QueueMode.FOLLOWUP
