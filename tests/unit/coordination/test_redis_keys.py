"""What is counted apart has keys apart, and nobody's name can be read in one."""

from __future__ import annotations

from insika.coordination.redis.keys import circuit_keys, spent_keys, window_key
from insika.limits.windows import SettledTokens, TokenCeiling, TurnAttempt
from insika.reliability.circuit import Circuit

PERSON = "+49 151 5550100"


def test_a_session_cannot_be_read_in_its_key():
    key = window_key("insika", TurnAttempt("acme", PERSON, "t1", 1, 60))
    assert key.startswith("insika:attempts:60:")
    assert PERSON not in key
    assert "555" not in key


def test_agents_and_models_can_be_read_and_not_be_mistaken_for_others():
    ceiling, settled = TokenCeiling("acme", "shop", 1, 60), SettledTokens("acme", "shop", 60, "t", 1, 1, "answer", 1)
    assert window_key("insika", ceiling) == spent_keys("insika", settled)[0] == "insika:tokens:60:acme:shop"
    names = ["", ":", "calls", "older", "a:calls", "a", "a:calls:older", "a%3Acalls", "\ud800", "❤"]
    keys = [
        key
        for tenant in names
        for agent in names
        for key in spent_keys("insika", SettledTokens(tenant, agent, 60, "t", 1, 1, "answer", 1))
    ]
    assert len(set(keys)) == 3 * len(names) ** 2
    assert all(key.isascii() and key.isprintable() for key in keys)
    assert circuit_keys("insika", Circuit("", "openai/gpt-4o-mini"))[0] == "insika:circuit::openai/gpt-4o-mini"
    circuits = [key for t in names for m in [*names, "failures"] for key in circuit_keys("insika", Circuit(t, m))]
    assert len(set(circuits)) == len(circuits)
