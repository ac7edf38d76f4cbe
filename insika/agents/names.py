"""How agents, channels and models are named in profiles, settings and jobs."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from insika.parsing import shown

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PROVIDER = r"[a-z0-9][a-z0-9_-]{0,63}"
_MODEL = re.compile(_PROVIDER + r"/[^\s/][^\s]{0,190}")


def _is_id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError(
            "must have 1 to 128 letters, digits, dots, hyphens and underscores, a letter or digit first, "
            f"got {shown(value)}"
        )
    return value


def _is_model(value: str) -> str:
    if not _MODEL.fullmatch(value):
        raise ValueError(f"must be provider/name, like offline/demo, got {shown(value)}")
    return value


def _is_provider(value: str) -> str:
    if not re.fullmatch(_PROVIDER, value):
        raise ValueError("must have 1 to 64 small letters, digits, hyphens and underscores, a letter or digit first")
    return value


def _text(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


Id = Annotated[str, AfterValidator(_is_id), _text(_ID.pattern)]
"""The id of an agent or a channel: it stands in URLs and file names."""
ModelRef = Annotated[str, AfterValidator(_is_model), _text(_MODEL.pattern)]
"""`provider/name`; the name is the provider's own and may hold more slashes."""
ProviderName = Annotated[str, AfterValidator(_is_provider)]
"""What stands before the slash of a model reference."""
