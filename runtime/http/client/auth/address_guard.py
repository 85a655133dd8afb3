"""Which hosts the client may contact for a login: not those that only this machine or this network can reach.

Theory of operation. A server names the URLs of its metadata, so a hostile one could make the client send requests to a
router, or to the metadata service of a cloud. A URL must use https; only a loopback server may name http URLs, of the
loopback, too. The addresses of a host are checked where the connection is made, so that a name cannot lead elsewhere
after the check. If the MCP server itself is on a private network, its authorization server may be there as well.

A proxy resolves names itself, so with one, only hosts that are written as addresses are checked.

Spec:
    2026-07-28, basic/authorization/security-considerations, "Communication Security"; RFC 9728, section 7.7.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AddressGuard", "RefusedHost", "is_address", "is_loopback_url"]

_Place: TypeAlias = Literal["public", "private", "loopback", "refused"]

_MAX_SHOWN_CHARS: Final = 200


class RefusedHost(OSError):  # noqa: N818 (what it is)
    """All addresses of a host are refused."""


class AddressGuard:
    """Checks the URLs and hosts of one login.

    Args:
        server_url: The URL of the MCP server.
        trusted: URLs that the program itself has configured, whose hosts are not checked.
    """

    def __init__(self, server_url: str, trusted: Iterable[str] = ()) -> None:
        self._server_host = urlsplit(server_url).hostname or ""
        self._server_is_local = is_loopback_url(server_url)
        self._trusted = {urlsplit(each).hostname or "" for each in trusted}
        self._server_places: set[_Place] | None = None  # not resolved yet

    def check_url(self, url: str, what: str) -> None:
        """Check that *url* may be requested, or opened in a browser.

        Raises:
            LoginFailed: It may not.
        """
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            host, parts = "", urlsplit("")
        is_clean = (
            url.isascii() and url.isprintable() and " " not in url and "\\" not in url and "@" not in parts.netloc
        )
        shown = printable(url[:_MAX_SHOWN_CHARS].partition("?")[0])
        if not host or not is_clean or parts.scheme not in ("http", "https"):
            raise LoginFailed(f"{what} is {shown!r}, which is not a URL of https")
        if parts.scheme == "http" and not (is_loopback_url(url) and self._server_is_local):
            raise LoginFailed(f"{what} is {shown!r}; only https is safe there")

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of *host* that may be connected.

        Raises:
            RefusedHost: There is none.
            OSError: The host is not known.
        """
        found = await _resolve(host, port)
        if host in self._trusted or host == self._server_host:
            return found
        if self._server_places is None:
            self._server_places = {_place(ip_address(each)) for each in await _resolve(self._server_host, port)}
        allowed = {"public", *(self._server_places - {"refused"})}
        usable = [each for each in found if _place(ip_address(each)) in allowed]
        if not usable:
            raise RefusedHost("its address belongs to a private network, but the MCP server is not there")
        return usable


def is_address(host: str) -> bool:
    """Return whether *host* is an address, and not a name."""
    return _literal(host) is not None


def is_loopback_url(url: str) -> bool:
    """Return whether the host of *url* is this machine."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    literal = _literal(host)
    return host == "localhost" or (literal is not None and literal.is_loopback)


async def _resolve(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _place(address: IPv4Address | IPv6Address) -> _Place:
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return _place(inner)
    if address.is_loopback:
        return "loopback"
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return "refused"
    return "public" if address.is_global else "private"
