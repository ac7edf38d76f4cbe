"""Whether operators can be told: the webhook of each agent for alerts, as the guard at the door of every delivery sees
it from this machine, and the secret that signs what goes there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from actors.doctor.channels import Resolved
from actors.doctor.finding import Finding, fail, ok, warn
from insika.agents.profile import Profile
from insika.policy.decision import Deny
from insika.tools.egress import EgressGuard, Target
from insika.urls import redacted_url

ABOUT = "alerts"


def hosts(profiles: Sequence[Profile], guard: EgressGuard) -> set[str]:
    """Those whose addresses decide."""
    targets = [guard.check_url(webhook) for _, webhook in _webhooks(profiles)]
    return {target.url.host for target in targets if isinstance(target, Target) and target.url.host}


def judged(profiles: Sequence[Profile], guard: EgressGuard, resolved: Resolved, *, signed: bool) -> Iterator[Finding]:
    """`signed`: there is a secret for them here."""
    webhooks = _webhooks(profiles)
    if webhooks and not signed:
        what = f"INSIKA_WEBHOOK_SECRET is not set, so that no alert of {_names(webhooks)} can be sent."
        do = "Set it to whsec_ and the base64 of 24 to 64 random bytes, in the environment of whatever delivers."
        yield fail(ABOUT, what, do)
    for agent, webhook in webhooks:
        yield _webhook(agent, webhook, guard, resolved)


def _webhook(agent: str, webhook: str, guard: EgressGuard, resolved: Resolved) -> Finding:
    target = guard.check_url(webhook)
    if isinstance(target, Deny):
        return _refused(agent, target)
    addresses = resolved.get(target.url.host or "", "it was not looked up in time")
    if isinstance(addresses, str):
        what = f"The host of the alerts of agent {agent} cannot be found from here: {addresses}."
        return warn(ABOUT, what, "Check its name, and the DNS of the machines that run `insika outbox`.")
    allowed = guard.check_addresses(target.url.host or "", addresses)
    if isinstance(allowed, Deny):
        return _refused(agent, allowed)
    return ok(ABOUT, f"Alerts of agent {agent} may go to {urlsplit(redacted_url(webhook)).netloc}.")


def _refused(agent: str, denied: Deny) -> Finding:
    what = f"Alerts of agent {agent} may not be sent: {denied.reason}."
    do = "Correct alerts.webhook, or allow it by INSIKA_EGRESS_ALLOW_HTTP, _ALLOW_PRIVATE or _HOSTS."
    return fail(ABOUT, what, do)


def _webhooks(profiles: Sequence[Profile]) -> list[tuple[str, str]]:
    """(agent, URL) of each agent whose operators want to be told."""
    return [
        (profile.id, profile.alerts.webhook)
        for profile in profiles
        if profile.alerts is not None and profile.alerts.webhook is not None
    ]


def _names(webhooks: Sequence[tuple[str, str]]) -> str:
    return ", ".join(agent for agent, _ in webhooks)
