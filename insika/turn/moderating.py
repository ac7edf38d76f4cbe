"""Asks a model whether texts may be said: the question, and how its answer is read. Pure.

What holds: what people wrote stands apart from the question, as data, and an answer that is none of those that were
asked for is no answer: then nobody is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from insika.choices import Strictness, Thinking
from insika.messages import user
from insika.ports import ModelRequest
from insika.turn import sentences

MODERATE = "moderate"
"""The purpose of such a request."""
LIMIT_S = 10.0
"""How long a moderator may take: people wait for it."""
LONGEST_TEXT = 4_000
"""Characters of one text that it reads: its beginning and its end."""
LONGEST_OF_ALL = 24_000
"""Characters that it reads of several together."""

_ALLOW, _REFUSE = "allow", "refuse"
_WRAPPING = " \t\r\n\"'`*.[]"
"""What models put around what they were asked for alone."""
_NUMBERS = re.compile(r"[0-9]{1,4}(?:\s*,\s*[0-9]{1,4})*")


def question_to_moderator(
    model: str,
    strictness: Strictness,
    texts: Sequence[str],
    thinking: Thinking | None = None,
    max_tokens: int | None = None,
) -> ModelRequest:
    """`model`: a whole reference. The request has nothing in common with those of the conversation."""
    provider, _, name = model.partition("/")
    most = min(LONGEST_TEXT, LONGEST_OF_ALL // max(1, len(texts)))
    numbered = {str(number): _bounded(text, most) for number, text in enumerate(texts, start=1)}
    return ModelRequest(
        name,
        sentences.moderate(strictness),
        (user(json.dumps(numbered, ensure_ascii=False)),),
        provider=provider,
        may_call=False,
        thinking=thinking,
        max_tokens=max_tokens,
    )


def refused_by(answer: str, count: int) -> frozenset[int] | None:
    """Which of `count` texts the moderator refuses, from 0. None: its answer is none."""
    word = answer.strip(_WRAPPING).casefold()
    if word == _ALLOW:
        return frozenset()
    if word == _REFUSE:
        return frozenset(range(count))
    if not _NUMBERS.fullmatch(word):
        return None
    numbers = {int(number) for number in word.split(",")}
    return frozenset(number - 1 for number in numbers) if numbers <= set(range(1, count + 1)) else None


def _bounded(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … {text[-half:]}"
