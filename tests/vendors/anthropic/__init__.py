"""A fake of Anthropic's Messages API, as strict as the real one."""

from __future__ import annotations

from tests.vendors.anthropic.vendor import AnthropicVendor

__all__ = ["AnthropicVendor"]
