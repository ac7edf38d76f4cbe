"""What the fake vendors say in tests that run real processes."""

from __future__ import annotations

from insika.providers.script import Call, Rule, Say, Script
from tests.vendors.steps import Make, Think
from tests.vendors.troubles import Cuts, Ending

LOOKUP = Call("order_lookup", {"order_id": "1234"}, text="Let me look.")

THINKING = Script(
    rules=[
        Rule(
            [Think("They want an order.\nI look it up.", LOOKUP), Think("It is there.", Say("It left."))], when="order"
        ),
    ],
    afterwards=Say("Hello there."),
)

BREAKING = Script(
    rules=[
        Rule([Make(Cuts(6, ending=Ending.CLOSE), Think("A plan.\nAnd more of it.", Say("Never whole.")))], when="break")
    ],
    afterwards=Say("Hello there."),
)
"""At "break" the connection goes down after some of the thinking."""
