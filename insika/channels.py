"""A channel as settings data: where answers go, how they are signed, and what is promised about them.

Only its shape is checked here. Whether an address may be reached at all is the egress guard's to say, at sending.
"""

from __future__ import annotations

import base64
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, SerializationInfo, field_serializer

from insika.agents.names import Id
from insika.choices import Guarantee, Split
from insika.parsing import Document
from insika.urls import HIDDEN, redacted_url, webhook_url

REVEAL_SECRETS = "reveal_secrets"
"""Set in the context of a dump that is to be stored: only then are secrets written out."""

_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)


def signing_secret(value: object) -> str:
    """`value`, if it is a Standard Webhooks secret: `whsec_` and the base64 of 24 to 64 bytes.

    Raises ValueError, which never quotes it (standard-webhooks specification, "Signature scheme")."""
    if isinstance(value, str) and value.startswith(_PREFIX) and len(_decoded(value)) in _KEY_BYTES:
        return value
    raise ValueError("must be whsec_ followed by the base64 of 24 to 64 random bytes")


def _decoded(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:  # binascii.Error among them
        return b""


def _one_or_several(value: object) -> object:
    given = value if isinstance(value, list | tuple) else [value]
    if not given:
        raise ValueError("must be a secret, or a list of several while they are rotated")
    return tuple(signing_secret(secret) for secret in given)


class Channel(Document):
    """One receiver of answers.

    `secret`: given as one text or a list; deliveries are signed with each of them, so that a receiver may change over
    in its own time. `timeout_s` bounds one attempt; `order_wait_s` is how long a delivery that is stuck may hold up
    later ones to the same recipient, from its first attempt on. `public`: anybody may write there, so that it is taken
    only for agents with a `chat_rate_limit` in force.
    """

    id: Id
    url: Annotated[str, AfterValidator(webhook_url)]
    secret: Annotated[tuple[SecretStr, ...], BeforeValidator(_one_or_several)]
    guarantee: Guarantee = Guarantee.AT_MOST_ONCE
    split: Split = Split.WHOLE
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 3
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 15.0
    order_wait_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    public: bool = False

    @property
    def secrets(self) -> tuple[str, ...]:
        """The signing secrets in clear, first the one that receivers are moving to. Never log them."""
        return tuple(secret.get_secret_value() for secret in self.secret)

    @field_serializer("secret")
    def _write_secret(self, secret: tuple[SecretStr, ...], info: SerializationInfo) -> list[str]:
        return list(self.secrets) if _reveals(info) else [_PREFIX + HIDDEN for _ in secret]

    @field_serializer("url")
    def _write_url(self, url: str, info: SerializationInfo) -> str:
        return url if _reveals(info) else redacted_url(url)


def _reveals(info: SerializationInfo[Any]) -> bool:
    return bool((info.context or {}).get(REVEAL_SECRETS))
