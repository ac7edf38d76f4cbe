"""The machines of windows and circuits over the twin within one process."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from tests.circuits_machine import CircuitsMachine
from tests.limits_world import Counting, within_one_process
from tests.windows_machine import PROCESSES, WindowsMachine


class LocalWindowsMachine(WindowsMachine):
    def open(self) -> AbstractAsyncContextManager[Counting]:
        return within_one_process(PROCESSES)


class LocalCircuitsMachine(CircuitsMachine):
    def open(self) -> AbstractAsyncContextManager[Counting]:
        return within_one_process(PROCESSES)


TestWindowsMachine = LocalWindowsMachine.TestCase
TestCircuitsMachine = LocalCircuitsMachine.TestCase
