"""What `@policy` makes of a function, and how policies are found in modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from insika.errors import InvalidConfiguration
from insika.policy import Allow, Arrival, Deny, policy
from insika.policy.own import OwnPolicies, OwnPolicy
from insika.policy_modules import load_policies
from insika.tools.registry import load_tools

ARRIVAL = Arrival("", "s", "a", "t", ("hi",), None, None, None, "customer", datetime(2030, 1, 1, tzinfo=UTC))
MODULE = """
from insika.policy import Allow, Arrival, Deny, policy

@policy("no_shouting")
def no_shouting(turn: Arrival) -> Allow | Deny:
    return Deny("shouting") if any(text.isupper() for text in turn.texts) else Allow()

@policy("vip")
async def vip(turn: Arrival) -> Allow | Deny:
    return Allow()
"""


@pytest.fixture(autouse=True)
def restored_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def allows(turn: Arrival) -> Allow | Deny:
    return Allow()


async def allows_later(turn: Arrival) -> Allow | Deny:
    return Allow()


def test_a_policy_is_its_function_by_a_name() -> None:
    own = policy("business-hours.v2")(allows)
    assert (own.name, own.blocking, own(ARRIVAL)) == ("business-hours.v2", True, Allow())
    assert "test_own_policies.py" in own.origin
    assert not policy("later")(allows_later).blocking


@pytest.mark.parametrize("name", ["", " hours", "a b", "x" * 65, "-x", "ü"])
def test_a_name_that_no_profile_could_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not allowed"):
        policy(name)


@pytest.mark.parametrize("name", ["tool_allowlist", "approval_required"])
def test_the_names_of_built_in_policies_are_taken(name: str) -> None:
    with pytest.raises(ValueError, match="is taken"):
        policy(name)


def test_a_policy_without_a_name_or_a_function_of_one_argument_is_refused() -> None:
    def none() -> Allow:
        return Allow()

    def generates(turn: Arrival) -> Iterator[Allow]:
        yield Allow()

    with pytest.raises(TypeError, match="needs a name"):
        policy(allows)  # type: ignore[arg-type]
    faulty: tuple[tuple[Any, str], ...] = (
        (none, "takes one argument"),
        (generates, "generator"),
        (Allow, "goes on a function"),
    )
    for function, why in faulty:
        with pytest.raises(TypeError, match=why):
            policy("x")(function)


def test_modules_may_hold_policies_alone(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(MODULE)
    assert load_policies("rules.py", tmp_path).names == ("no_shouting", "vip")
    assert load_tools("rules.py", tmp_path).names == ()


def test_two_policies_of_one_name_are_a_mistake_that_names_both_places(tmp_path: Path) -> None:
    for name in ("rules_a", "rules_b"):
        (tmp_path / f"{name}.py").write_text(MODULE)
    with pytest.raises(InvalidConfiguration) as caught:
        load_policies("rules_a.py,rules_b.py", tmp_path)
    assert [path for path, _ in caught.value.problems] == ["no_shouting", "vip"]
    assert "rules_a.py" in caught.value.problems[0][1]
    assert "rules_b.py" in caught.value.problems[0][1]


def test_the_same_policy_twice_is_one() -> None:
    own: OwnPolicy = policy("x")(allows)
    assert OwnPolicies([own, own]).clashes == ()
    assert OwnPolicies([own]).get("X") is None
