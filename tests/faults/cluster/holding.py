"""Holds an owner at a named operation of its store, in whichever worker it runs, until the test lets it go.

Which sessions, their names say, as `mailbox_matrix` makes them. An owner that is held holds up no other: its process
goes on, and so do its renewals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from actors.stores import Stores
from insika.storage.operations import Fence
from insika.storage.port import Store
from tests.faults.cluster.gates import FileGates
from tests.faults.cluster.mailbox_matrix import HELD_AT, UNOWNED, gate_of
from tests.faults.shop import Diary

TAKING_UP = "taking_up.{}"
"""While this gate is open, an owner that takes up a session of the fate "killed" is held before it has looked."""
_HELD = frozenset({"load", *HELD_AT.values()})


class HoldingStore:
    """A store in all but these operations. Whoever is held is written down in the diary."""

    def __init__(self, store: Store, diary: Diary, gates: FileGates) -> None:
        self._store = store
        self._diary = diary
        self._gates = gates
        self._names: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._store, name)
        return self._held(name, operation) if name in _HELD else operation

    def _held(self, name: str, operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def held(fence: Fence, *values: Any, **named: Any) -> Any:
            await self._wait(name, fence.session_id)
            return await operation(fence, *values, **named)

        return held

    async def _wait(self, operation: str, session_id: int) -> None:
        session = await self._name(session_id)
        moment, fate = session.split(".")[1:]
        if operation == "load":
            holds = fate == "killed" and moment in UNOWNED and self._gates.is_open(TAKING_UP.format(moment))
            gate = "never"
        else:
            gate = gate_of(moment, fate)
            holds = HELD_AT.get(moment) == operation and not self._gates.is_open(gate)
        if holds:
            self._diary("held", session=session, operation=operation)
            await self._gates.passed(gate)

    async def _name(self, session_id: int) -> str:
        if session_id not in self._names:
            row = await self._store.session_by_id(session_id)
            assert row is not None
            self._names[session_id] = row.name
        return self._names[session_id]


def holding(stores: Stores, diary: Diary, gates: FileGates) -> Stores:
    store: Any = HoldingStore(stores.store, diary, gates)
    return Stores(store, stores.outbox)
