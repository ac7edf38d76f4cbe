"""Whether answers can go where they are to go: each channel's address, as the guard at the door of every delivery sees
it from this machine, and its secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from actors.doctor.finding import Finding, fail, ok, warn
from insika.channels import Channel
from insika.policy.decision import Deny
from insika.tools.egress import EgressGuard, Target
from insika.urls import redacted_url
from outbox.signing import UnusableSecret, signature_headers

ABOUT = "channels"
_SOME_TIME = datetime(2030, 1, 1, tzinfo=UTC)

Resolved = Mapping[str, Sequence[str] | str]
"""By host: its addresses, or why there are none."""


def hosts(channels: Sequence[Channel], guard: EgressGuard) -> set[str]:
    """Those whose addresses decide."""
    targets = [guard.check_url(channel.url) for channel in channels]
    return {target.url.host for target in targets if isinstance(target, Target) and target.url.host}


def judged(channels: Sequence[Channel], guard: EgressGuard, resolved: Resolved) -> Iterator[Finding]:
    if not channels:
        what = "There are no channels, so answers are kept and not delivered."
        yield warn(ABOUT, what, "Write some into a settings file, then: insika settings apply FILE")
    for channel in channels:
        yield _channel(channel, guard, resolved)


def _channel(channel: Channel, guard: EgressGuard, resolved: Resolved) -> Finding:
    try:
        signature_headers(channel.secrets, delivery_id="msg", at=_SOME_TIME, body=b"")
    except UnusableSecret as error:
        what = f"Channel {channel.id} cannot sign: {error.message}."
        return fail(ABOUT, what, "Give it a secret (whsec_ and the base64 of 24 to 64 random bytes).")
    target = guard.check_url(channel.url)
    if isinstance(target, Deny):
        return _refused(channel, target)
    addresses = resolved.get(target.url.host or "", "it was not looked up in time")
    if isinstance(addresses, str):
        what = f"The host of channel {channel.id} cannot be found from here: {addresses}."
        return warn(ABOUT, what, "Check its name, and the DNS of the machines that run `insika outbox`.")
    allowed = guard.check_addresses(target.url.host or "", addresses)
    if isinstance(allowed, Deny):
        return _refused(channel, allowed)
    host = urlsplit(redacted_url(channel.url)).netloc
    return ok(ABOUT, f"Channel {channel.id} may be delivered to {host}, {channel.guarantee}.")


def _refused(channel: Channel, denied: Deny) -> Finding:
    what = f"Channel {channel.id} may not be delivered to: {denied.reason}."
    return fail(ABOUT, what, "Correct its url, or allow it by INSIKA_EGRESS_ALLOW_HTTP, _ALLOW_PRIVATE or _HOSTS.")
