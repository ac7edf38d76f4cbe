"""What an agent may spend in a calendar day and month, as a profile says it; `insika.limits.budgets` decides by it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from insika.parsing import Document

_Tokens = Annotated[int, Field(ge=0, le=10**15)] | None


class Budget(Document):
    """Billed tokens: input, output, cached and written to a cache, of every model call of the agent in one tenant.

    Days and months are those of UTC. Null and 0: no cap for that window. `soft`: a turn that arrives past a cap runs
    all the same, and its model is told. `alert_at`: the share of a cap at which operators are warned, above 0 and at
    most 1; null: not before the cap itself. Source of the numbers: the order's "Calendar budgets".
    """

    daily: _Tokens = None
    monthly: _Tokens = None
    soft: bool = False
    alert_at: Annotated[float, Field(gt=0, le=1)] | None = 0.8


NO_BUDGET = Budget()
