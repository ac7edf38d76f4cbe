"""Which spellings of a URL and which addresses may be reached."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insika.errors import InvalidConfiguration
from insika.policy.decision import Deny
from insika.tools.egress import Allow, EgressGuard, Reach, Target, reach_of

STRICT = EgressGuard()
OPEN = EgressGuard(allow_http=True, allow_private=True)


def spelled(url, guard=STRICT):
    decision = guard.check_url(url)
    return str(decision.url) if isinstance(decision, Target) else decision


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://example.com/hook?a=b", "https://example.com/hook?a=b"),
        ("https://EXAMPLE.com.:8443/", "https://example.com:8443/"),
        ("https://bücher.example/x", "https://xn--bcher-kva.example/x"),
        ("https://my_host.example/", "https://my_host.example/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2001:4860:4860::8888]/", "https://[2001:4860:4860::8888]/"),
    ],
)
def test_a_public_https_url_may_be_reached_in_its_one_spelling(url, canonical):
    assert spelled(url) == canonical


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "198.18.0.1",
        "[::1]",
        "[fd00::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:10.0.0.1]",
        "[::127.0.0.1]",
        "[2002:7f00:1::]",
        "[2002:a00:1::1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::10.0.0.1]",
        "①②⑦.⓪.⓪.①",
    ],
)
def test_an_address_that_is_private_in_any_spelling_is_denied(host):
    decision = STRICT.check_url(f"https://{host}/")
    assert isinstance(decision, Deny)
    assert "INSIKA_EGRESS_ALLOW_PRIVATE" in decision.reason


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "168.63.129.16",
        "100.100.100.200",
        "0.0.0.0",
        "[::]",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "[ff02::1]",
        "[64:ff9b:1::a00:1]",
        "[2001:0:1::1]",
        "[fec0::1]",
        "[4000::1]",
    ],
)
def test_what_is_never_reached_is_denied_whatever_is_allowed(host):
    assert isinstance(OPEN.check_url(f"https://{host}/"), Deny)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7F.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "1.2.3.4.5",
        "256.1.1.1",
        "8.8.8.08",
        "134744072",
        "example.0x7f",
        "[fe80::1%25eth0]",
        "[::1%25lo]",
        "%31%32%37.0.0.1",
        "exa%6dple.com",
        "example..com",
        "example.com..",
        ".example.com",
        "-example.com",
        "exa mple.com",
        "a,b.example",
        "1.2.3.4%00.example.com",
        "x" * 64 + ".example",
        ".".join(["abcdefgh"] * 32),
    ],
)
def test_an_odd_spelling_of_a_host_is_denied_even_when_everything_is_allowed(host):
    assert isinstance(OPEN.check_url(f"http://{host}/"), Deny)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://",
        "https:///path",
        "//example.com/",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://:pass@example.com/",
        "https://8.8.8.8@127.0.0.1/",
        "https://example.com\\@127.0.0.1/",
        "https://exam\tple.com/",
        "https://example.com/\r\nx: y",
        " https://example.com/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:port/",
        "https://[::1/",
        "https://[nonsense]/",
        "https://xn--a/",
    ],
)
def test_a_url_that_is_not_plainly_one_is_denied_even_when_everything_is_allowed(url):
    assert isinstance(OPEN.check_url(url), Deny)


def test_http_needs_to_be_allowed():
    denied = STRICT.check_url("http://example.com/")
    assert isinstance(denied, Deny)
    assert "INSIKA_EGRESS_ALLOW_HTTP" in denied.reason
    assert spelled("http://example.com/", EgressGuard(allow_http=True)) == "http://example.com/"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "10.0.0.1", "[fd00::1]", "100.64.0.1"])
def test_private_addresses_can_be_allowed(host):
    assert isinstance(OPEN.check_url(f"http://{host}:8080/"), Target)


def test_a_list_of_hosts_is_the_only_hosts_and_lifts_no_other_rule():
    guard = EgressGuard(hosts=["Hooks.Example.com", "*.trusted.example", "127.0.0.1", "bücher.example"])
    assert isinstance(guard.check_url("https://hooks.example.com/"), Target)
    assert isinstance(guard.check_url("https://a.b.trusted.example/"), Target)
    assert isinstance(guard.check_url("https://xn--bcher-kva.example/"), Target)
    assert isinstance(guard.check_url("https://trusted.example/"), Deny)
    assert isinstance(guard.check_url("https://nottrusted.example/"), Deny)
    assert isinstance(guard.check_url("https://sub.hooks.example.com/"), Deny)
    assert isinstance(guard.check_url("https://8.8.8.8/"), Deny)
    assert isinstance(guard.check_url("http://hooks.example.com/"), Deny)
    assert isinstance(guard.check_url("https://127.0.0.1/"), Deny)


@pytest.mark.parametrize("pattern", ["", "*", "a b", "*.", "http://example.com", "example.com:8080", "127.1"])
def test_a_host_list_with_something_that_is_no_host_is_an_error_that_names_it(pattern):
    with pytest.raises(InvalidConfiguration) as caught:
        EgressGuard(hosts=["example.com", pattern])
    assert caught.value.problems[0][0] == pattern


def test_one_bad_address_among_those_of_a_name_denies_them_all():
    assert STRICT.check_addresses("h", ["8.8.8.8", "2001:4860::1"]) == Allow(("8.8.8.8", "2001:4860::1"))
    assert isinstance(STRICT.check_addresses("h", ["8.8.8.8", "10.0.0.1"]), Deny)
    assert isinstance(OPEN.check_addresses("h", ["8.8.8.8", "169.254.169.254"]), Deny)
    assert isinstance(OPEN.check_addresses("h", ["fe80::1%eth0"]), Deny)
    assert isinstance(STRICT.check_addresses("h", []), Deny)
    assert isinstance(STRICT.check_addresses("h", ["example.com"]), Deny)


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_reaches_further_inside_ipv6_than_by_itself(address):
    for prefix in ("::ffff:0:0", "64:ff9b::"):
        assert reach_of(IPv6Address(int(IPv6Address(prefix)) | int(address))) is reach_of(address)
    assert reach_of(IPv6Address((0x2002 << 112) | (int(address) << 80) | 1)) is reach_of(address)
    assert reach_of(address) is not Reach.PUBLIC or (address.is_global and not address.is_multicast)


@given(st.ip_addresses(v=6))
def test_no_ipv6_address_is_public_that_python_does_not_think_global(address):
    # Of 6to4 addresses Pythons think differently from one patch release to the next; the test above judges those.
    assert reach_of(address) is not Reach.PUBLIC or address.is_global or address.sixtofour is not None


@given(st.text() | st.from_regex(r"https?://[0-9a-fx.\[\]:%@]*(:[0-9]*)?/.*"))
def test_any_text_gets_a_decision_and_what_passes_is_never_a_private_literal(text):
    decision = STRICT.check_url(text)
    if isinstance(decision, Target):
        assert decision.url.scheme == "https"
        assert decision.url.user is None
        try:
            address = ip_address(decision.url.host or "")
        except ValueError:
            return
        assert isinstance(address, IPv4Address | IPv6Address)
        assert reach_of(address) is Reach.PUBLIC
