"""Signs deliveries by Standard Webhooks (https://www.standardwebhooks.com), and checks the signatures.

The bytes signed are the bytes sent: `body_of` gives the same ones at every attempt, in every process, whatever order
a store gives an object's keys back in. The timestamp is that of the claim, so that a receiver refuses a request that
overslept; nothing is signed anew while sending.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError
from standardwebhooks.webhooks import EmptyWebhookSecretError

from insika.errors import InsikaError


class UnusableSecret(InsikaError):
    """A signing secret that is empty, or not base64 after its `whsec_`."""

    type = "invalid_configuration"


class BadSignature(InsikaError):
    """Headers are missing, too old or too new, or no signature fits the body."""

    type = "unauthorized"


def body_of(payload: Mapping[str, Any]) -> bytes:
    """The request's body: compact JSON in UTF-8 with sorted keys. Half of an emoji becomes a JSON escape, because it
    has no UTF-8."""
    text = json.dumps(payload, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def signature_headers(secrets: Sequence[str], *, delivery_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The three headers of a signed request. Each secret gives one signature, so that a receiver may know either of
    two while they are rotated. `at` must be aware UTC. Raises UnusableSecret."""
    if not secrets:
        raise UnusableSecret("there is no secret to sign with", field="secret")
    text = body.decode("utf-8")
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(_webhook(secret).sign(delivery_id, at, text) for secret in secrets),
    }


def verify(secrets: Sequence[str], headers: Mapping[str, str], body: bytes) -> None:
    """Raises BadSignature unless one of the secrets signed this body within five minutes of now, and UnusableSecret
    when one of them cannot sign at all."""
    reason = "there is no secret to check with"
    for webhook in [_webhook(secret) for secret in secrets]:
        try:
            webhook.verify(body, dict(headers), json_parse=False)
        except WebhookVerificationError as error:
            reason = str(error)
        except ValueError:
            # The library splits and decodes what a stranger sent without a guard of its own.
            reason = "the signature header or the body cannot be read"
        else:
            return
    raise BadSignature(reason)


def _webhook(secret: str) -> Webhook:
    try:
        return Webhook(secret)
    except (EmptyWebhookSecretError, ValueError) as error:
        raise UnusableSecret("a signing secret must be base64 behind whsec_", field="secret") from error
