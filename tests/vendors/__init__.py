"""Fakes of the vendors of hosted models, over real HTTP on loopback, as strict as the real ones. For tests only.

    async with serving(AnthropicVendor(SCRIPT)) as vendor:
        ... base_url=vendor.base_url, api_key=vendor.key ...
        assert not vendor.requests[0].refusals

`SCRIPT` is one of the house's (`insika.providers.script`), whose steps may be wrapped in those of `steps`: what is said
follows from the request alone, so that any number of sessions and processes can talk to one fake. What goes wrong is
said by `troubles`. In a process of its own: `python -m tests.vendors`.
"""

from __future__ import annotations

from tests.vendors.anthropic import AnthropicVendor
from tests.vendors.openai import Dialect, OpenAIVendor
from tests.vendors.seen import Seen
from tests.vendors.server import serving
from tests.vendors.vendor import Vendor

__all__ = ["AnthropicVendor", "Dialect", "OpenAIVendor", "Seen", "Vendor", "serving"]
