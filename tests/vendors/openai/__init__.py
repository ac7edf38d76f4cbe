"""A fake of OpenAI's Chat Completions API and of those who speak it with an accent."""

from __future__ import annotations

from tests.vendors.openai.dialects import Dialect
from tests.vendors.openai.vendor import OpenAIVendor

__all__ = ["Dialect", "OpenAIVendor"]
