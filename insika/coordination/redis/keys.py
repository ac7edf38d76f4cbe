"""What windows and circuits are called in Redis. Names of people's sessions, which may be telephone numbers, are
digests; what operators name can be read."""

from __future__ import annotations

from urllib.parse import quote

from insika.documents import canonical_digest
from insika.limits.windows import SettledTokens, TokenCeiling, TurnAttempt, WindowCheck
from insika.reliability.circuit import Circuit


def window_key(namespace: str, check: WindowCheck) -> str:
    if isinstance(check, TurnAttempt):
        whose = canonical_digest([check.tenant, check.session])[:32]
        return f"{namespace}:attempts:{check.window_s}:{whose}"
    return _tokens_key(namespace, check)


def spent_keys(namespace: str, settled: SettledTokens) -> list[str]:
    """The window, the calls known there, and older ones."""
    key = _tokens_key(namespace, settled)
    return [key, f"{key}:calls", f"{key}:calls:older"]


def circuit_keys(namespace: str, circuit: Circuit) -> list[str]:
    """The state, and the failures."""
    key = f"{namespace}:circuit:{_plain(circuit.tenant)}:{_plain(circuit.model)}"
    return [key, f"{key}:failures"]


def _tokens_key(namespace: str, whose: TokenCeiling | SettledTokens) -> str:
    return f"{namespace}:tokens:{whose.window_s}:{_plain(whose.tenant)}:{_plain(whose.agent)}"


def _plain(name: str) -> str:
    return quote(name, safe="/", errors="surrogatepass")
