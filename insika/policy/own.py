"""A user's own policies: functions that say whether a turn of an agent that names them may begin.

There is no list of all policies here: `@policy(...)` gives an object, and `collect_policies` finds such objects in a
module. Running one, in whatever time it may take, is the caller's affair.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any

from insika.agents.policies import Policy, is_policy_name
from insika.policy.decision import Allow, Deny

Decision = Allow | Deny


@dataclass(frozen=True, slots=True)
class Arrival:
    """A turn that wants to begin. `texts` are what was said, oldest first; a guard has let each of them pass.

    `tenant` is "" for the platform itself. `channel`, `recipient` and `customer` are those of the job that opens the
    turn, None where it names none; `origin` is customer, engine or scheduled. `at` is the store's time, in UTC.
    """

    tenant: str
    session: str
    agent: str
    turn_id: str
    texts: tuple[str, ...]
    channel: str | None
    recipient: str | None
    customer: str | None
    origin: str
    at: datetime


PolicyFunction = Callable[[Arrival], Decision | Awaitable[Decision]]


@dataclass(frozen=True, slots=True, eq=False)
class OwnPolicy:
    """`function` by the name that profiles use. Called directly it is that function. `origin` says where it stands,
    for people."""

    name: str
    function: PolicyFunction
    origin: str

    @property
    def blocking(self) -> bool:
        """It is no coroutine function, and may take long where it is called."""
        return not inspect.iscoroutinefunction(self.function)

    def __call__(self, arrival: Arrival) -> Decision | Awaitable[Decision]:
        return self.function(arrival)


def policy(name: str) -> Callable[[PolicyFunction], OwnPolicy]:
    """Make a policy of a function, sync or async, that takes an `Arrival` and returns `Allow()` or `Deny(reason)`.

    The reason is for operators: it stands in the turn's error. A sync function is run in a thread and may block; an
    async one is run on the event loop and must not. What raises, returns something else or takes longer than a few
    seconds denies.

    Raises ValueError for a name that is not allowed or a built-in policy's, TypeError where there is no function of
    one argument.
    """
    if not isinstance(name, str):
        raise TypeError('@policy needs a name, by which profiles ask for it: @policy("business_hours")')
    if not is_policy_name(name):
        raise ValueError(
            f"policy name {name!r} is not allowed: use 1 to 64 letters, digits, dots, hyphens and underscores, a "
            "letter or digit first"
        )
    if name in list(Policy):
        raise ValueError(f"policy name {name!r} is taken: it is a built-in policy's; take another")

    def decorate(function: PolicyFunction) -> OwnPolicy:
        origin = _origin(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{origin}: a policy gives one decision, so it cannot be a generator")
        try:
            inspect.signature(function).bind(None)
        except TypeError:
            raise TypeError(f"{origin}: a policy takes one argument, the Arrival that it decides about") from None
        return OwnPolicy(name, function, origin)

    return decorate


def collect_policies(module: ModuleType) -> list[OwnPolicy]:
    """The policies that stand at the top level of `module`, also those it imported, by name; each once."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, OwnPolicy)}
    return sorted(found.values(), key=lambda one: one.name)


class OwnPolicies:
    """Immutable, by exact names. `clashes` are (name, why) of each name that two policies have; the first one keeps
    it, and whoever finds any should not go on."""

    def __init__(self, policies: Iterable[OwnPolicy] = ()) -> None:
        found: dict[str, OwnPolicy] = {}
        clashes: list[tuple[str, str]] = []
        for one in policies:
            first = found.setdefault(one.name, one)
            if first is not one:
                clashes.append((one.name, f"two policies have this name: {first.origin} and {one.origin}; rename one"))
        self.clashes = tuple(clashes)
        self._policies: Mapping[str, OwnPolicy] = dict(sorted(found.items()))

    def get(self, name: str) -> OwnPolicy | None:
        return self._policies.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._policies)


def _origin(function: Any) -> str:
    if not inspect.isfunction(function):
        raise TypeError(f"@policy goes on a function, got {type(function).__name__}")
    code = function.__code__
    return f"{function.__module__}.{function.__qualname__}, {code.co_filename}:{code.co_firstlineno}"
