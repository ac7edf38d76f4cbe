"""The script that these tests use, and the requests that break the rules."""

from __future__ import annotations

from insika.providers.script import Call, Rule, Say, Script
from tests.vendors.steps import CutOff, Think

LOOKUP = Call("order_lookup", {"order": "A-17", "why": 'he said "now"\n😀'}, text="Let me look.")
SCRIPT = Script(
    rules=[
        Rule([Think("They want their order.", LOOKUP), Think("It is there.", Say("It left today. 😀"))], when="order"),
        Rule([CutOff(LOOKUP)], when="long"),
    ],
    afterwards=Say("Hello there."),
)
