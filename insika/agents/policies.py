"""The policies that a profile may name, and what is said of one that it may not.

Both that exist join by themselves, once the profile has something for them to keep: naming one asks for nothing more,
and is allowed because people write down what they rely on. A name that nobody would keep is refused: a protection
that is written down and not kept would be a lie.
"""

from __future__ import annotations

import enum
from typing import Annotated

from pydantic import AfterValidator

from insika.parsing import did_you_mean, shown


class Policy(enum.StrEnum):
    TOOL_ALLOWLIST = "tool_allowlist"
    """Joins with `tools_allow`, `tools_allow_groups` or `tools_deny`."""
    APPROVAL_REQUIRED = "approval_required"
    """Joins with `approvals_required`."""


def _is_built_in(name: str) -> str:
    if name not in list(Policy):
        raise ValueError(
            f"no policy {shown(name)} is enforced by this version of Insika, which knows {' and '.join(Policy)} "
            f"and none of your own; remove it{did_you_mean(name, Policy)}"
        )
    return name


PolicyName = Annotated[str, AfterValidator(_is_built_in)]
