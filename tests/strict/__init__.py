"""Strict checks of a conversation by what the model vendors document and enforce. For tests only.

`check_anthropic` and `check_openai` raise `Refused`, which names every rule that is broken and where. With
`sent=True` the conversation is one that is about to be sent; without, it is one at rest, whose last message may be an
assistant message whose batch is still running.
"""

from __future__ import annotations

from tests.strict.anthropic import check_anthropic
from tests.strict.openai import check_openai
from tests.strict.problems import Problem, Refused

__all__ = ["Problem", "Refused", "check_anthropic", "check_openai"]
