"""The egress guard of a process, as its environment widens it: one for deliveries, alerts and HTTP tools alike."""

from __future__ import annotations

from actors.environment import Environment
from insika.tools.egress import EgressGuard


def egress_guard(environment: Environment) -> EgressGuard:
    """Raises InvalidConfiguration for a host that is none."""
    return EgressGuard(
        allow_http=environment.egress_allow_http,
        allow_private=environment.egress_allow_private,
        hosts=environment.egress_hosts,
    )
