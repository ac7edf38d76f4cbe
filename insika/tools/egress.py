"""Where the engine may connect to: https and public addresses only, unless an operator opened more. Pure decisions.

A name is judged twice: its spelling here (`check_url`), and every address it resolves to (`check_addresses`), by the
resolver that the connection itself uses (`insika.tools.egress_connector`). Whoever checks a name and lets something
else resolve it again has checked nothing.

Sources: IANA special-purpose registries by way of `ipaddress.is_global`; RFC 6052 and 8215 (NAT64), 3056 (6to4), 4380
(Teredo), 4291 (mapped and compatible addresses); the WHATWG URL standard on hosts that end in a number.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from yarl import URL

from insika.errors import InsikaError, InvalidConfiguration
from insika.policy.decision import Deny


class EgressDenied(InsikaError):
    """Raised at the rim only, by the connector. Nothing was sent, and trying again cannot help."""

    type = "policy_denied"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that may be connected to, provided that the addresses of its host may. Use `url`, not the text."""

    url: URL


@dataclass(frozen=True, slots=True)
class Allow:
    """The addresses that may be connected to, in their one canonical spelling, in the order given."""

    addresses: tuple[str, ...]


class Reach(enum.Enum):
    """`FORBIDDEN` is what no setting opens: link-local (where clouds keep credentials), multicast, reserved."""

    PUBLIC = "public"
    PRIVATE = "private"
    FORBIDDEN = "forbidden"


class EgressGuard:
    """`hosts`, when not empty, are the only hosts that may be reached: names, addresses, or `*.example.com` for every
    name below it. They lift neither of the other two rules. Raises InvalidConfiguration for one that is none of these.
    """

    def __init__(self, *, allow_http: bool = False, allow_private: bool = False, hosts: Iterable[str] = ()) -> None:
        self._schemes = ("https", "http") if allow_http else ("https",)
        self._allow_private = allow_private
        self._hosts = frozenset(_canonical_pattern(host) for host in hosts)

    def check_url(self, text: str) -> Target | Deny:
        """The spelling of a URL: its scheme, host, port and, where the host is an address, that address."""
        if _SUSPICIOUS.search(text):
            return Deny("the url holds spaces, control characters or backslashes")
        try:
            url = URL(text)
            _ = url.host  # decodes IDNA, which is where a broken xn-- name shows
        except (ValueError, UnicodeError):
            return Deny("the url cannot be read")
        if url.scheme not in self._schemes:
            return Deny(f"the url's scheme must be {' or '.join(self._schemes)}{self._http_hint(url.scheme)}")
        if url.user is not None or url.password is not None:
            return Deny("the url must not carry a user name or a password")
        if url.explicit_port == 0:
            return Deny("the url's port must be between 1 and 65535")
        return self._check_host(url)

    def check_addresses(self, host: str, addresses: Sequence[str]) -> Allow | Deny:
        """What a host resolved to: one address that may not be reached denies them all."""
        if not addresses:
            return Deny(f"{host} has no address")
        canonical = []
        for text in addresses:
            try:
                address = ip_address(text)
            except ValueError:
                return Deny(f"{host} resolves to something that is not an address")
            reach = reach_of(address)
            if reach is Reach.FORBIDDEN:
                return Deny(f"{host} leads to {address}, which is never reached (link-local, multicast or reserved)")
            if reach is Reach.PRIVATE and not self._allow_private:
                return Deny(
                    f"{host} leads to the private address {address}; INSIKA_EGRESS_ALLOW_PRIVATE would allow it"
                )
            canonical.append(str(address))
        return Allow(tuple(canonical))

    def _check_host(self, url: URL) -> Target | Deny:
        host = _canonical_host(url)
        if host is None:
            return Deny("the url's host must be a name, a dotted IPv4 address or a bracketed IPv6 address")
        if self._hosts and not self._listed(host):
            return Deny(f"{host} is not among the hosts of INSIKA_EGRESS_HOSTS")
        if _is_literal(host):
            match self.check_addresses("the url", (host,)):
                case Deny() as denied:
                    return denied
        return Target(url.with_host(host))

    def _listed(self, host: str) -> bool:
        labels = host.split(".")
        wildcards = {"*." + ".".join(labels[i:]) for i in range(1, len(labels))}
        return host in self._hosts or (not _is_literal(host) and not wildcards.isdisjoint(self._hosts))

    def _http_hint(self, scheme: str) -> str:
        return "; INSIKA_EGRESS_ALLOW_HTTP would allow http" if scheme == "http" else ""


def reach_of(address: IPv4Address | IPv6Address) -> Reach:
    """How far an address leads. One that carries an IPv4 address within it leads where that one does."""
    if isinstance(address, IPv4Address):
        return _reach_of_v4(address)
    embedded = _embedded(address)
    if embedded is not None:
        return _reach_of_v4(embedded)
    if address.scope_id is not None or address in _METADATA_V6 or any(address in net for net in _FORBIDDEN_V6):
        return Reach.FORBIDDEN
    if address.is_loopback or address in _UNIQUE_LOCAL:
        return Reach.PRIVATE
    if address not in _GLOBAL_UNICAST:
        return Reach.FORBIDDEN
    return Reach.PUBLIC if address.is_global else Reach.PRIVATE


def _reach_of_v4(address: IPv4Address) -> Reach:
    if address in _METADATA_V4 or any(address in net for net in _FORBIDDEN_V4):
        return Reach.FORBIDDEN
    return Reach.PUBLIC if address.is_global else Reach.PRIVATE


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return low
    return None


def _canonical_host(url: URL) -> str | None:
    """The host in lower-case ASCII without its trailing dot, or an address in its one spelling; None when it is
    neither a plain name nor a plain address."""
    host = (url.raw_host or "").lower()
    if ":" in host:
        try:
            return str(IPv6Address(host)) if "%" not in host else None
        except ValueError:
            return None
    host = host.removesuffix(".")
    if not _NAME.fullmatch(host) or len(host) > 253:
        return None
    if _NUMERIC.fullmatch(host.rsplit(".", 1)[-1]):
        # 2130706433, 0x7f.1, 0177.0.0.1 and 127.1 are what a resolver would take for 127.0.0.1.
        return host if _DOTTED_QUAD.fullmatch(host) else None
    return host


def _canonical_pattern(pattern: str) -> str:
    name = pattern.strip().removeprefix("*.")
    try:
        host = _canonical_host(URL.build(scheme="https", host=name.strip("[]")))
    except ValueError:
        host = None
    if host is None:
        expected = "expected host names, addresses, or *.example.com for every name below it"
        raise InvalidConfiguration("INSIKA_EGRESS_HOSTS", [(pattern, expected)])
    return f"*.{host}" if pattern.strip().startswith("*.") else host


def _is_literal(host: str) -> bool:
    return ":" in host or _DOTTED_QUAD.fullmatch(host) is not None


_SUSPICIOUS = re.compile(r"[\x00-\x20\x7f\\]")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OCTET = r"(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_DOTTED_QUAD = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")

_FORBIDDEN_V4 = tuple(
    IPv4Network(net) for net in ("0.0.0.0/8", "169.254.0.0/16", "192.88.99.0/24", "224.0.0.0/4", "240.0.0.0/4")
)
_FORBIDDEN_V6 = tuple(IPv6Network(net) for net in ("::/128", "fe80::/10", "ff00::/8", "2001::/32", "3fff::/20"))
_UNIQUE_LOCAL = IPv6Network("fc00::/7")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_METADATA_V4 = frozenset({IPv4Address("100.100.100.200"), IPv4Address("168.63.129.16")})
"""Where clouds answer from an address that is not link-local: Alibaba Cloud, Azure."""
_METADATA_V6 = frozenset({IPv6Address("fd00:ec2::254")})
