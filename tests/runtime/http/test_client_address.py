"""A request counts for its user, or else for the address of its client, which only trusted proxies can tell."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server.client_address import ClientAddresses

PROXY = "10.0.0.1"
NETWORK = ["10.0.0.0/8", "fd00::/8"]


def owner(trusted: list[str] | None, peer: str | None = PROXY, user: str = "", **headers: str) -> str:
    scope: dict[str, Any] = {"client": None if peer is None else (peer, 1)}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return ClientAddresses(trusted).client(scope, given, user).owner


@pytest.mark.parametrize("trusted", [None, [], ["10.0.0.2"], ["192.0.2.0/24"]])
@pytest.mark.parametrize("headers", [{"x_forwarded_for": "192.0.2.1"}, {"forwarded": "for=192.0.2.1"}])
def test_headers_of_a_peer_that_is_no_trusted_proxy_are_not_believed(
    trusted: list[str] | None, headers: dict[str, str]
) -> None:
    assert owner(trusted, **headers) == f"address {PROXY}"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:4711", "192.0.2.1"),
        ("203.0.113.9, 192.0.2.1", "192.0.2.1"),  # what is left of the client's address, it wrote itself
        ("10.9.9.9, 192.0.2.1", "192.0.2.1"),
        ("203.0.113.9, 192.0.2.1, 10.0.0.2", "192.0.2.1"),
        ("[2001:db8::1]:4711", "2001:db8::/64"),
        ("2001:db8::1", "2001:db8::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("10.0.0.3", "10.0.0.3"),  # a client that is in the network of the proxies
        ("192.0.2.1, unknown", PROXY),
        ("192.0.2.1, _hidden, 10.0.0.2", "10.0.0.2"),
        ("192.0.2.1, " + "9" * 1000, PROXY),
        ("192.0.2.1, ", PROXY),
        ("192.0.2.1" + ", 10.0.0.2" * 100, "10.0.0.2"),
    ],
)
def test_the_first_address_from_the_right_that_is_no_proxy_is_the_client_s(text: str, address: str) -> None:
    assert owner(NETWORK, x_forwarded_for=text) == f"address {address}"
    elements = [f'for="{each.strip()}";proto=https' for each in text.split(",")]
    assert owner(NETWORK, forwarded=", ".join(elements)) == f"address {address}"


def test_two_headers_that_differ_are_not_believed() -> None:
    both = {"x_forwarded_for": "192.0.2.1", "forwarded": "For=192.0.2.1"}

    assert owner(NETWORK, **both) == "address 192.0.2.1"
    assert owner(NETWORK, **{**both, "forwarded": "for=192.0.2.2"}) == f"address {PROXY}"
    assert owner(NETWORK, **{**both, "x_forwarded_for": "192.0.2.2"}) == f"address {PROXY}"


def test_a_user_counts_for_itself_wherever_it_is() -> None:
    assert owner(None, user="ann") == owner(NETWORK, user="ann", x_forwarded_for="192.0.2.1") == "user ann"
    assert owner(None, user="10.0.0.1") != owner(None, PROXY)


def test_addresses_of_one_site_are_one_owner() -> None:
    assert owner(None, "2001:db8::1") == owner(None, "2001:db8::2:3") != owner(None, "2001:db8:0:1::1")
    assert owner(None, "::ffff:10.0.0.1") == owner(None, PROXY)
    assert owner(None, "fe80::1%eth0") == "address fe80::/64"
    assert owner(None, None) == "address "


@pytest.mark.parametrize("trusted", [["proxy.example"], ["10.0.0.1/8"], "10.0.0.1", [7]])
def test_what_is_no_address_is_refused(trusted: Any) -> None:
    with pytest.raises(UsageError, match="`trusted_proxies`"):
        ClientAddresses(trusted)
