from __future__ import annotations

import pytest

from insika.policy.tool_lists import allowed_tools

REGISTERED = (("find", "shop"), ("refund", "money"), ("pay", "money"), ("clock", None))
ALL = ("find", "refund", "pay", "clock")


@pytest.mark.parametrize(
    ("lists", "allowed"),
    [
        ({}, ALL),
        ({"tools_allow": []}, ()),
        ({"tools_allow": ["clock", "find"]}, ("find", "clock")),
        ({"tools_allow_groups": ["money"]}, ("refund", "pay")),
        ({"tools_allow_groups": []}, ()),
        ({"tools_allow": ["clock"], "tools_allow_groups": ["money"]}, ("refund", "pay", "clock")),
        ({"tools_allow": ["clock"], "tools_allow_groups": []}, ("clock",)),
        ({"tools_allow": [], "tools_allow_groups": ["shop"]}, ("find",)),
        ({"tools_deny": ["refund"]}, ("find", "pay", "clock")),
        ({"tools_deny": []}, ALL),
        ({"tools_allow": ["refund", "find"], "tools_deny": ["refund"]}, ("find",)),
        ({"tools_allow_groups": ["money"], "tools_deny": ["refund"]}, ("pay",)),
        ({"tools_allow": ["refund"], "tools_allow_groups": ["money"], "tools_deny": ["refund"]}, ("pay",)),
        ({"tools_allow": ["nowhere"]}, ()),
    ],
)
def test_the_lists(lists: dict[str, list[str]], allowed: tuple[str, ...]) -> None:
    assert allowed_tools(REGISTERED, **lists) == allowed


@pytest.mark.parametrize("spelling", ["Refund", "refund ", "re-fund", "REFUND", "refundé"])
def test_names_match_letter_for_letter(spelling: str) -> None:
    assert allowed_tools(REGISTERED, tools_allow=[spelling]) == ()
    assert "refund" in allowed_tools(REGISTERED, tools_deny=[spelling])


@pytest.mark.parametrize("spelling", ["Money", "money ", "None", ""])
def test_groups_match_letter_for_letter_and_no_group_matches_none(spelling: str) -> None:
    assert allowed_tools(REGISTERED, tools_allow_groups=[spelling]) == ()


def test_a_group_name_allows_no_tool_of_that_name() -> None:
    registered = [("money", None), ("refund", "money")]
    assert allowed_tools(registered, tools_allow_groups=["money"]) == ("refund",)
    assert allowed_tools(registered, tools_allow=["money"]) == ("money",)
