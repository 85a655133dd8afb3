"""Checks of Origin and Host, which protect a server against DNS rebinding and pages of other sites.

Theory of operation. A malicious page, open in a browser on the server's machine, can send requests to a server that
listens only there. The browser names the page's origin in Origin, and the page cannot change it. The browser may send
no Origin if the attacker's host name resolves to this machine, so that page and server seem to be one site; then Host
still has the attacker's name. So both headers are parsed and compared with what is allowed. A value that does not parse
is not allowed.

A program that is not a browser sends no Origin, and these checks do not protect from it.

Spec:
    2025-11-25, basic/transports, "Security Warning"; 2026-07-28, basic/transports/streamable-http, "Security &
    Endpoint": an Origin that is there and not valid is answered with 403. RFC 6454, 7; RFC 9110, 7.2.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.argument_checks import check_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["OriginCheck"]

_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?")
_ORIGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]+)")
_ENDS_WITH_PORT: Final = re.compile(r":[0-9]+\Z")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MAX_PORT: Final = 65535

# The settings as programs and the command line call them.
_HOSTS: Final = "`allowed_hosts` (--allow-host)"
_ORIGINS: Final = "`allowed_origins` (--allow-origin)"

# A host name has at most 253 characters; an error need not quote a longer text in full.
_MAX_QUOTED_CHARS: Final = 100

# A client sends the same headers with each request, so a few allowed values are worth remembering.
_MAX_REMEMBERED: Final = 100


class _Rule(Struct, frozen=True, gc=False):
    """One allowed origin or host.

    Attributes:
        scheme: None for both http and https.
        host: In the spelling of `_parse_authority`.
        port: None for any port.
    """

    scheme: str | None
    host: str
    port: int | None


class OriginCheck:
    """Checks the Origin and Host of requests.

    A given list replaces the defaults. An entry allows any port unless it names one: ``example.com`` allows any,
    ``example.com:8443`` one. ``[::1]`` is an address. An entry with a scheme allows only the scheme's port unless it
    names another: ``https://example.com`` allows 443, ``https://example.com:*`` any. ``*`` alone allows everything.
    Case and a dot at the end of a name do not matter.

    Args:
        allowed_origins: The origins whose pages may use the server; without a scheme, both http and https. ``null`` is
            the origin of sandboxed pages and files. By default, pages of this machine if the server is bound to a
            loopback address, and none otherwise.
        allowed_hosts: The host names by which the server may be called. If the server is bound to a loopback address,
            the default is that address, ``localhost`` and all loopback addresses. Otherwise it is any name, since the
            server does not know its public name or that of a proxy before it.
        bound_to: The address that the server listens on; None if unknown. Of host names, only ``localhost`` and those
            below it count as loopback.

    Raises:
        UsageError: An entry is not an origin or a host, or the list of hosts is empty, which refuses every request.
    """

    def __init__(
        self, *, allowed_origins: Sequence[str] | None, allowed_hosts: Sequence[str] | None, bound_to: str | None
    ) -> None:
        if allowed_hosts is not None and not allowed_hosts:
            raise UsageError("`allowed_hosts` is empty, which refuses every request; use ['*'] to allow any host")
        check_texts(bound_to=bound_to)
        own = None if bound_to is None else _loopback_name(bound_to)
        self._loopback_origins = own is not None and allowed_origins is None
        self._loopback_hosts = own is not None and allowed_hosts is None
        origins, hosts = _entries(allowed_origins, "allowed_origins"), _entries(allowed_hosts, "allowed_hosts")
        self._any_origin = "*" in origins
        self._any_host = "*" in hosts or (own is None and allowed_hosts is None)
        self._allows_null = "null" in origins
        self._origins = [_parse_rule(each, "allowed_origins") for each in origins if each not in {"*", "null"}]
        self._hosts = [_parse_rule(each, "allowed_hosts") for each in hosts if each != "*"]
        if own is not None and allowed_origins is None:
            self._origins.append(_Rule(None, own, None))
        if own is not None and allowed_hosts is None:
            self._hosts.append(_Rule(None, own, None))
        self._good_origins: set[str] = set()
        self._good_hosts: set[str] = set()

    def refusal(self, headers: Mapping[str, str]) -> str | None:
        """Return why a request must not be served, for the operator of the server; None if it may be.

        Args:
            headers: Headers by name in lower case. The values of a repeated header must be joined by commas, since it
                would be unsafe to check only one of them.
        """
        host, origin = headers.get("host"), headers.get("origin")
        if not self._any_host and host not in self._good_hosts:
            if host is None:
                return f"the request has no Host header, which the server's {_HOSTS} requires"
            if _parse_authority(host) is None:
                return f"the Host {_quoted(host)} is not valid; send a host, such as example.com:8443"
            if not self._allows_host(host):
                return f"the Host {_quoted(host)} is not allowed; add it to the server's {_HOSTS}"
            _remember(host, self._good_hosts)
        if origin is not None and not self._any_origin and origin not in self._good_origins:
            if origin != "null" and _parse_origin(origin) is None:
                return f"the Origin {_quoted(origin)} is not valid; send an origin, such as https://example.com:8443"
            if not self._allows_origin(origin):
                return f"the Origin {_quoted(origin)} is not allowed; add it to the server's {_ORIGINS}"
            _remember(origin, self._good_origins)
        return None

    def _allows_host(self, text: str) -> bool:
        found = _parse_authority(text)
        if found is None:
            return False
        host, port = found
        if self._loopback_hosts and _is_loopback(host):
            return True
        # Without a port it is the default port of http or https; behind a proxy, the server does not know which.
        ports = _DEFAULT_PORTS.values() if port is None else (port,)
        return any(rule.host == host and (rule.port is None or rule.port in ports) for rule in self._hosts)

    def _allows_origin(self, text: str) -> bool:
        if text == "null":
            return self._allows_null
        found = _parse_origin(text)
        if found is None:
            return False
        scheme, host, port = found
        is_web = scheme in _DEFAULT_PORTS
        if self._loopback_origins and is_web and _is_loopback(host):
            return True
        return any(
            rule.host == host
            and (is_web if rule.scheme is None else rule.scheme == scheme)
            and (rule.port is None or rule.port == port)
            for rule in self._origins
        )


def _entries(allowed: Sequence[str] | None, setting: str) -> Sequence[str]:
    if isinstance(allowed, str):  # which is a sequence of strings, too
        raise UsageError(f"`{setting}` must be a list of strings, not the string {allowed!r}")
    for each in allowed or ():
        if not isinstance(cast("object", each), str):
            raise UsageError(f"`{setting}` must be a list of strings, but it has {each!r}")
    return allowed or ()


def _parse_rule(entry: str, setting: str) -> _Rule:
    """Parse an entry of a setting."""
    any_port = entry.endswith(":*")
    text = entry.removesuffix(":*").removesuffix("/")
    found: tuple[str | None, str, int | None] | None = None
    if "://" in text:
        found = _parse_origin(text)
    elif authority := _parse_authority(text) or _parse_authority(f"[{text}]"):  # an IPv6 address may have no brackets
        found = None, *authority
    if found is None or (any_port and _ENDS_WITH_PORT.search(text)):
        raise UsageError(
            f"`{setting}` has the invalid entry {entry!r}; examples are example.com, [::1] and https://host:8443"
        )
    scheme, host, port = found
    return _Rule(scheme, host, None if any_port else port)


def _parse_origin(text: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port of an origin as browsers write it, without path and user; None if it is none."""
    match = _ORIGIN.fullmatch(text.lower()) if text.isascii() else None
    found = None if match is None else _parse_authority(match[2])
    if match is None or found is None:
        return None
    host, port = found
    return match[1], host, _DEFAULT_PORTS.get(match[1]) if port is None else port


def _parse_authority(text: str) -> tuple[str, int | None] | None:
    """Return the host in its canonical spelling, and the port; None if *text* is not a host."""
    # isascii() first: lower() turns the Kelvin sign into a k.
    match = _AUTHORITY.fullmatch(text.lower()) if text.isascii() else None
    if match is None:
        return None
    host = _parse_address(match[1]) if match[1].startswith("[") else match[1].removesuffix(".")
    port = None if match[2] is None else int(match[2])
    if not host or not all(host.split(".")) or (port is not None and port > _MAX_PORT):
        return None
    return host, port


def _parse_address(text: str) -> str | None:
    try:
        address = IPv6Address(text[1:-1])
    except AddressValueError:
        return None
    return f"[{address}]" if address.ipv4_mapped is None else str(address.ipv4_mapped)


def _is_loopback(host: str) -> bool:
    if host in {"localhost", "[::1]"}:
        return True
    try:
        return IPv4Address(host).is_loopback
    except AddressValueError:
        return False


def _loopback_name(bound_to: str) -> str | None:
    """Return the host of *bound_to* if it is a loopback address or name; None otherwise."""
    text = bound_to.partition("%")[0]  # after it comes the zone of an IPv6 address
    found = _parse_authority(text) or _parse_authority(f"[{text}]")
    if found is None:
        return None
    host, _ = found
    # In doubt it counts as loopback, which turns the checks on. 127.1 is a short form of 127.0.0.1.
    return host if _is_loopback(host) or host.endswith(".localhost") or re.fullmatch(r"127[0-9.]*", host) else None


def _remember(text: str, good: set[str]) -> None:
    if len(good) < _MAX_REMEMBERED:
        good.add(text)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]}…")
