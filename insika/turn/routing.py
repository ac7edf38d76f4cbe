"""Tells a turn's route from what the person said: the question to the classifier, and how its answer is read. Pure.

What holds: the answer is the name of a route or it is the default; nothing else that a model says has an effect. What
the person said stands apart from the question, as data, and cannot add a route.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from insika.agents.routes import Routes
from insika.turn import sentences

_WRAPPING = " \t\r\n\"'`*."
"""What models put around a word they were asked for alone."""
LONGEST_TEXT = 4_000
"""Characters of what was said that the classifier reads: its beginning and its end."""


def classifier_instructions(routes: Routes) -> str:
    """The same for the same routes, so that a vendor's cache can keep it."""
    listed = "\n".join(f"{name}: {' '.join(route.description.split())}" for name, route in routes.routes.items())
    return sentences.classify(listed)


def classifier_message(texts: Sequence[str]) -> str:
    """What was said to open the turn, oldest first, as one JSON list."""
    return json.dumps([_bounded(text) for text in texts], ensure_ascii=False)


def read_route(answer: str, routes: Routes) -> str:
    """The route that the classifier named, or the default."""
    return named_route(answer, routes) or routes.default


def named_route(answer: str, routes: Routes) -> str | None:
    """The route that the classifier named. None: its answer names none."""
    word = answer.strip(_WRAPPING)
    if word in routes.routes:
        return word
    alike = [name for name in routes.routes if name.casefold() == word.casefold()]
    return alike[0] if len(alike) == 1 else None


def _bounded(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]} … {text[-half:]}"
