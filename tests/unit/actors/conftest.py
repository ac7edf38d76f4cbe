"""The tests here run whole processes over a file. What a process sets once, its log, is set back after each."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from tests.actor_world import place_for

__all__ = ["place_for"]


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
