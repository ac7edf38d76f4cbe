"""Where a provider is reached: what an adapter is made of. A value; nothing is connected here.

Two kinds of API cover the field: Anthropic's Messages, and OpenAI's chat completions, which most others speak too, each
with its own deviations (`Dialect`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from insika.model_endpoints import Dialect, Kind

__all__ = ["Dialect", "Endpoint", "Kind"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`name` stands before the slash of a model reference. `base_url` "": the vendor's own. `key` "": none is sent, for
    servers that want none. `dialect` means something for chat completions only."""

    name: str
    kind: Kind
    base_url: str = ""
    key: str = field(default="", repr=False)
    dialect: Dialect = Dialect.COMPATIBLE

    @property
    def shown(self) -> str:
        """For errors and logs."""
        return f"{self.name} ({self.base_url})" if self.base_url else self.name
