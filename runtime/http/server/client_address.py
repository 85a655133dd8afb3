"""The owner of a request: its user, or else the address of the client, which a trusted proxy may report.

Theory of operation. A server behind a reverse proxy sees the address of the proxy. The proxy appends the address that
it sees to the header ``X-Forwarded-For``, or to ``Forwarded``. Anything before that was sent by the client, which can
write whatever it likes. So addresses are read from right to left, and only for a request that a trusted proxy sent: the
first address that is no trusted proxy is that of the client.

A proxy appends to one of the two headers, and may pass on what a client wrote into the other. So if both are there and
name different addresses, neither is believed.

Spec:
    RFC 7239, sections 4 and 5.2 (``Forwarded``), 7.4 and 8.1.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence

    from mcpgen.runtime.server.access import Access

__all__ = ["Client", "ClientAddresses", "site_of"]

# The longest text of an address: IPv6 with an embedded IPv4, a zone, brackets and a port.
_MAX_ADDRESS_CHARS: Final = 80

# Most requests come from an address that was seen just before.
_MAX_KNOWN: Final = 1000

_Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

# A chain of proxies is short. What a client prepends to it is not read.
_MAX_PROXIES: Final = 16

# RFC 7239 has four parameters.
_MAX_PARAMETERS: Final = 16

# A site has at least 2**64 addresses (RFC 6177), so that a limit for each of them would be none.
_IPV6_SITE_BITS: Final = 64


class Client(NamedTuple):
    """The client that sends a request.

    Attributes:
        user: The user; empty if unknown.
        owner: What the request counts for in limits: the user, or else the address.
        is_known: Whether the owner is certainly one client, and not all clients of a proxy.
        access: What its access token allows; None if the server takes no tokens.
        hides: Whether lists omit what the token does not allow.
        access_bytes: What `access` takes in memory.
    """

    user: str
    owner: str
    is_known: bool
    access: Access | None = None
    hides: bool = False
    access_bytes: int = 0


class ClientAddresses:
    """Find out for whom requests count.

    Args:
        trusted_proxies: Addresses and networks of the proxies whose headers are believed; None for no proxy.

    Attributes:
        are_trusted: Whether an address stands for one client. Without `trusted_proxies`, it may be that of a proxy.

    Raises:
        UsageError: One is neither an address nor a network.
    """

    def __init__(self, trusted_proxies: Sequence[str] | None) -> None:
        if isinstance(trusted_proxies, str):
            raise UsageError(f"`trusted_proxies` must be a sequence of addresses, not the text {trusted_proxies!r}")
        self.are_trusted: bool = trusted_proxies is not None
        self._known: dict[str, Client] = {}
        self._proxies = [_network(each) for each in trusted_proxies or ()]

    def client(self, scope: MutableMapping[str, Any], headers: Mapping[str, str], user: str) -> Client:
        """Return who sends a request."""
        if user:
            return Client(user, f"user {user}", is_known=True)
        peer = scope.get("client")
        address: str = peer[0] if peer else ""
        if self._proxies:
            address = self._forwarded(headers, address)
        found = self._known.get(address)
        if found is None:
            shown = site_of(address)
            found = Client("", f"address {shown}", self.are_trusted)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[address] = found
        return found

    def _forwarded(self, headers: Mapping[str, str], peer: str) -> str:
        if not self._is_proxy(peer):
            return peer
        found = {
            self._first_client(reversed(list(each)), peer)
            for each in (_x_forwarded_for(headers), _forwarded(headers))
            if each
        }
        return found.pop() if len(found) == 1 else peer

    def _first_client(self, addresses: Iterator[str], proxy: str) -> str:
        """Return the first address that is no proxy; the last proxy if there is none, or one cannot be read."""
        for each in addresses:
            address = None if len(each) > _MAX_ADDRESS_CHARS else _address(each)
            if address is None:
                break
            proxy = str(address)
            if not self._is_proxy(proxy):
                break
        return proxy

    def _is_proxy(self, text: str) -> bool:
        address = _address(text)
        return address is not None and any(address in each for each in self._proxies)


def _network(text: str) -> _Network:
    try:
        return ipaddress.ip_network(str(text))
    except ValueError as error:
        raise UsageError(
            f"`trusted_proxies` has {text!r}; it must be an address or a network, such as 10.0.0.1 or 10.0.0.0/8"
        ) from error


@lru_cache(maxsize=1024)
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address in *text*, which may have a port; None if it cannot be read."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found if mapped is None else mapped


def site_of(text: str) -> str:
    """Return the address of a client; of IPv6, the network of the site to which it belongs."""
    if ":" not in text:
        return text
    found = _address(text.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, _IPV6_SITE_BITS), strict=False))
    return text if found is None else str(found)


def _x_forwarded_for(headers: Mapping[str, str]) -> list[str]:
    text = headers.get("x-forwarded-for", "")
    return [each.strip() for each in text.rsplit(",", _MAX_PROXIES)][-_MAX_PROXIES:] if text else []


def _forwarded(headers: Mapping[str, str]) -> list[str]:
    text = headers.get("forwarded", "")
    return [_for(each) for each in text.rsplit(",", _MAX_PROXIES)][-_MAX_PROXIES:] if text else []


def _for(element: str) -> str:
    """Return the value of ``for`` in an element of ``Forwarded``; empty if there is none."""
    for pair in element.split(";", _MAX_PARAMETERS):
        name, _, value = pair.partition("=")
        if name.strip().lower() == "for":
            return value.strip().strip('"')
    return ""
