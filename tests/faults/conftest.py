"""Keeps the log quiet: processes die here by the hundred, and each death would be painted in full."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def log():
    """What was logged, as dictionaries."""
    with capture_logs() as entries:
        yield entries
