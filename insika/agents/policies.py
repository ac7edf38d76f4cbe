"""The policies that a profile may name: those built in, and a user's own.

The two built-in ones join by themselves, once the profile has something for them to keep: naming one asks for nothing
more, and is allowed because people write down what they rely on. Any other name is a policy of the user's own: whether
there is such a one is not known here but where a turn is to begin, and there a name that nobody keeps lets none begin.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from insika.parsing import shown

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Policy(enum.StrEnum):
    TOOL_ALLOWLIST = "tool_allowlist"
    """Joins with `tools_allow`, `tools_allow_groups` or `tools_deny`."""
    APPROVAL_REQUIRED = "approval_required"
    """Joins with `approvals_required`."""


def is_policy_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def own_policies(named: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that are not built in, in their order, each once."""
    return tuple(name for name in dict.fromkeys(named) if name not in list(Policy))


def _is_name(name: str) -> str:
    if not is_policy_name(name):
        raise ValueError(
            f"must be a policy's name: {' or '.join(Policy)}, or one of your own, of 1 to 64 letters, digits, dots, "
            f"hyphens and underscores, a letter or digit first; got {shown(name)}"
        )
    return name


PolicyName = Annotated[
    str, AfterValidator(_is_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})
]
