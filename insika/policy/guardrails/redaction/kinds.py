"""What is taken out of answers: the kinds, from which strictness each counts, and what stands in its place.

By default secrets, and numbers that pay or prove who somebody is. A shop's address and telephone number belong into an
answer, and so does the number of its company; they go only at the highest strictness.
"""

from __future__ import annotations

from collections.abc import Mapping

from insika.choices import Strictness

REPLACEMENTS: Mapping[str, str] = {
    "access_key": "[key removed]",
    "token": "[token removed]",
    "private_key": "[private key removed]",
    "credentials": "[credentials removed]",
    "card": "[card number removed]",
    "iban": "[account number removed]",
    "national_id": "[ID number removed]",
    "company_id": "[company number removed]",
    "email": "[e-mail address removed]",
    "phone": "[phone number removed]",
}
COUNTS_FROM: Mapping[str, Strictness] = {
    "access_key": Strictness.LOW,
    "token": Strictness.LOW,
    "private_key": Strictness.LOW,
    "credentials": Strictness.LOW,
    "card": Strictness.LOW,
    "iban": Strictness.MEDIUM,
    "national_id": Strictness.MEDIUM,
    "company_id": Strictness.HIGH,
    "email": Strictness.HIGH,
    "phone": Strictness.HIGH,
}
