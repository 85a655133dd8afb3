"""Which hosts the client may contact for a login: not those that only this machine or this network can reach.

Theory of operation. A server names the URLs of its metadata, so a hostile one could make the client send requests to a
router, or to the metadata service of a cloud. A URL must use https; only a loopback server may name http URLs, of the
loopback, too. The addresses of a host are checked where the connection is made, so that a name cannot lead elsewhere
after the check. If the MCP server itself is on a private network, its authorization server may be there as well. A
hostile server chooses what its own name leads to, and can answer each look-up with another address. So one with a
public address is not on a private network, and one without must prove with its certificate that it is there.

A proxy resolves names itself, so with one, only hosts that are written as addresses are checked.

Spec:
    2026-07-28, basic/authorization/security-considerations, "Communication Security"; RFC 9728, section 7.7.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.client.http_exchange import trusted_certificates
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AddressGuard", "RefusedHost", "is_address", "is_loopback_url", "is_reachable"]

_Place: TypeAlias = Literal["public", "private", "loopback", "refused"]

_MAX_SHOWN_CHARS: Final = 200
_MAX_URL_CHARS: Final = 64 * 1024  # Python keeps the last 128 URLs, and those of metadata could have 512 KiB
_HTTPS_PORT: Final = 443
_PROOF_SECONDS: Final = 5.0

# No URL has them (RFC 3986, section 2), but the commands that start browsers may give them a meaning.
_FORBIDDEN: Final = frozenset(' "<>\\^`{|}')

# Networks whose addresses end with one of IPv4, to which a gateway may send the packets: RFC 6052, 4291 and 2765.
_WITH_IPV4: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"), IPv6Network("::ffff:0:0:0/96"))
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")  # RFC 8215


class RefusedHost(OSError):  # noqa: N818 (what it is)
    """All addresses of a host are refused."""

    reason: ClassVar[str] = (
        "its address is not public, and mcpgen could not verify that the MCP server is in the same place (a private "
        "network, or this machine); if you trust the authorization server, pass its URL as `issuer`"
    )

    def __init__(self) -> None:
        super().__init__(self.reason)


class AddressGuard:
    """Checks the URLs and hosts of one login.

    Args:
        server_url: The URL of the MCP server.
        trusted: URLs that the program itself has configured, whose hosts are not checked.
    """

    def __init__(self, server_url: str, trusted: Iterable[str] = ()) -> None:
        self._server_url = server_url
        self._server_host = urlsplit(server_url).hostname or ""
        self._server_is_local = is_loopback_url(server_url)
        self._trusted = {urlsplit(each).hostname for each in trusted if each}
        self._server_places: set[_Place] | None = None  # not resolved yet

    def check_url(self, url: str, what: str) -> None:
        """Check that *url* may be requested, or opened in a browser.

        Raises:
            LoginFailed: It may not.
        """
        # First: `urlsplit` normalises a host, which takes a time that grows with the square of its combining marks.
        is_short = len(url) <= _MAX_URL_CHARS
        is_clean = is_short and url.isascii() and url.isprintable() and _FORBIDDEN.isdisjoint(url)
        try:
            parts = urlsplit(url if is_clean else "")
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            host, parts = "", urlsplit("")
        shown = printable(url[:_MAX_SHOWN_CHARS].partition("?")[0])
        if not host or "@" in parts.netloc or parts.scheme not in ("http", "https"):
            must = (
                "it must be a valid URL of https, in ASCII, with a host and without a user name"
                if is_short
                else f"it must have at most {_MAX_URL_CHARS:,} characters"
            )
            raise LoginFailed(f"{what} is {shown!r}; {must}; do not log in")
        if parts.scheme == "http" and not (is_loopback_url(url) and self._server_is_local):
            raise LoginFailed(f"{what} is {shown!r}; a login is safe only over https; do not log in over http")

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of *host* that may be connected.

        Raises:
            RefusedHost: There is none.
            OSError: The host is not known.
        """
        found = await _resolve(host, port)
        if host in self._trusted or host == self._server_host:
            return found
        usable = [each for each in found if _place(ip_address(each)) == "public"]
        if usable:
            return usable
        if self._server_places is None:
            self._server_places = await self._own_places()
        usable = [each for each in found if _place(ip_address(each)) in self._server_places]
        if not usable:
            raise RefusedHost
        return usable

    async def _own_places(self) -> set[_Place]:
        """Return where the MCP server is: on the loopback, on a private network, or on neither."""
        host, port = self._server_host, urlsplit(self._server_url).port or _HTTPS_PORT
        found = await _resolve(host, port)
        places: set[_Place] = {_place(ip_address(each)) for each in found}
        if "public" in places or not (is_address(host) or await is_reachable(host, found, port)):
            places.clear()
        places.discard("refused")
        return places


def is_address(host: str) -> bool:
    """Return whether *host* is an address, or a name of this machine."""
    return _literal(host) is not None or host.rstrip(".").endswith("localhost")


def is_loopback_url(url: str) -> bool:
    """Return whether the host of *url* is this machine."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    literal = _literal(host)
    return host == "localhost" or (literal is not None and literal.is_loopback)


async def is_reachable(host: str, addresses: Iterable[str], port: int) -> bool:
    """Return whether one of *addresses* has a certificate for *host*."""
    for each in addresses:
        with suppress(OSError, anyio.BrokenResourceError, anyio.EndOfStream), anyio.move_on_after(_PROOF_SECONDS):
            trust = trusted_certificates()
            stream = await anyio.connect_tcp(each, port, ssl_context=trust, tls_hostname=host)
            await anyio.aclose_forcefully(stream)
            return True
    return False


async def _resolve(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    host = host.rstrip(".")
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))  # 127.1, 2130706433 and 0x7f000001 are 127.0.0.1, too
    except (OSError, UnicodeEncodeError):
        return None


def _place(address: IPv4Address | IPv6Address) -> _Place:
    if isinstance(address, IPv6Address) and not (address.is_loopback or address.is_unspecified):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and any(address in each for each in _WITH_IPV4):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _place(inner)
        if address.is_site_local or address in _LOCAL_NAT64:
            return "private"
    if address.is_loopback:
        return "loopback"
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return "refused"
    return "public" if address.is_global else "private"
