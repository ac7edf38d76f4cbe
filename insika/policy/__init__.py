"""Guardrails, approvals, tool lists, and policies of one's own. These are the names that a module of policies needs."""

from insika.policy.decision import Allow, Deny
from insika.policy.own import Arrival, policy

__all__ = ["Allow", "Arrival", "Deny", "policy"]
