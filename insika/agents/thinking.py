"""How much a model is to reason in one turn: which layer has the word. Pure.

What the words ask of each vendor is its adapter's to say. Whether anybody gets to read the reasoning is another
switch, the profile's `edge_stream`.
"""

from __future__ import annotations

from insika.choices import Thinking


def thinking_in_force(
    session: Thinking | None, agent: Thinking | None, model: Thinking | None, platform: Thinking | None
) -> Thinking | None:
    """The word of the first layer that has said one: the session (what its jobs' vars asked for and did not clear),
    the profile's `params.thinking`, the settings' `model_params` for the agent's model, the settings' `thinking`.

    A layer that is None has said nothing: null and blank are read so (`insika.choices.read_thinking`), and inherit.
    `off` is a word like any other. None: nobody has spoken, and nothing is said to the vendor either.
    """
    return next((layer for layer in (session, agent, model, platform) if layer is not None), None)
