"""The machines of windows and circuits over Redis: fewer lives than within one process, each as long."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.circuits_machine import CircuitsMachine
from tests.limits_world import Counting, over_redis
from tests.windows_machine import PROCESSES, WindowsMachine


@pytest.mark.parametrize("machine", [WindowsMachine, CircuitsMachine])
def test_processes_count_together(machine: type[RuleBasedStateMachine], redis_url: str) -> None:
    class OverRedis(machine):  # type: ignore[misc, valid-type]
        def open(self) -> AbstractAsyncContextManager[Counting]:
            return over_redis(redis_url, PROCESSES)

    run_state_machine_as_test(OverRedis, settings=settings(max_examples=50, deadline=None))
