"""What a person reads whose text was refused."""

from __future__ import annotations

import pytest

from insika.agents.guardrails import Guardrails
from insika.choices import Language
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.policy.guardrails.verdict import ALLOW, Block

LIBRARY = read_library()
FOUND = Block("injection", "de.override-all", "de")


def test_the_profile_s_reply_for_the_category_comes_first_then_its_default_then_ours() -> None:
    both = Guardrails(responses={"default": "Nope.", "injection": "Not that."})
    assert LIBRARY.safe_reply(FOUND, both) == "Not that."
    assert LIBRARY.safe_reply(Block("abuse", "x", "de"), both) == "Nope."
    assert LIBRARY.safe_reply(FOUND, Guardrails(responses={"abuse": "Be kind."})) == LIBRARY.replies["de"]["injection"]


@pytest.mark.parametrize("language", list(Language))
def test_ours_is_in_the_language_of_what_was_found(language: Language) -> None:
    for category in ("injection", "abuse"):
        assert LIBRARY.safe_reply(Block(category, "x", language), Guardrails()) == LIBRARY.replies[language][category]


def test_where_that_is_none_it_is_in_the_agent_s_first_language() -> None:
    block = Block("injection", "any.jailbreak-name", "any")
    assert LIBRARY.safe_reply(block, Guardrails()) == LIBRARY.replies["en"]["injection"]
    assert (
        LIBRARY.safe_reply(block, Guardrails(languages=(Language.FR, Language.EN)))
        == LIBRARY.replies["fr"]["injection"]
    )
    assert LIBRARY.safe_reply(block, Guardrails(languages=())) == LIBRARY.replies["en"]["injection"]


def test_a_category_of_the_profile_s_own_has_our_default() -> None:
    assert LIBRARY.safe_reply(Block("rivals", "rival", "own"), Guardrails()) == LIBRARY.replies["en"]["default"]


def test_our_replies_name_no_machine_and_would_not_be_refused_themselves() -> None:
    guards = Guards(LIBRARY)
    for replies in LIBRARY.replies.values():
        assert set(replies) == {"default", "injection", "abuse", "moderated"}
        for reply in replies.values():
            assert guards.verdict(reply, Guardrails()) == ALLOW
            assert "AI" not in reply.split()
