"""What holds for all tests: which variables they see, where they find services, and how hard Hypothesis tries.

HYPOTHESIS_PROFILE says the last, and `ci` is used when it is unset.
check: few examples, the same ones each time, for `scripts/check`. ci: the same ones each time, so that a red run is red
again. thorough: many, and other ones each time, for a search by hand or at night.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is not a slow strategy, and no test here may depend on the time it takes.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

pytest_plugins = ["tests.services_here"]

# Keys among it: no test may ever reach a vendor.
_OF_HAND_WORK = ("INSIKA_", "ANTHROPIC_", "OPENAI_")

settings.register_profile("check", _UNHURRIED, derandomize=True, max_examples=25, database=None)
settings.register_profile("ci", _UNHURRIED, derandomize=True, max_examples=100, database=None)
settings.register_profile("thorough", _UNHURRIED, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure(config: pytest.Config) -> None:
    """What the caller has set up for work by hand, such as the output of `scripts/services env`, is not for tests."""
    config.addinivalue_line("markers", "alone: needs the machine for itself; scripts/test runs it after all others")
    for name in [name for name in os.environ if name.startswith(_OF_HAND_WORK) and not name.startswith("INSIKA_TEST_")]:
        del os.environ[name]
