"""Who may ask a server at all: checks of Origin and Host against DNS rebinding.

Theory of operation. A page of a stranger, open in a browser on the server's machine, can send requests to a server that
only listens there. The browser says in Origin whose page it is, and a browser's word can be trusted here, since the
browser is not the attacker. Where it sends none, because the stranger's name was made to point to this machine and page
and server seem to be the same site, Host still has the stranger's name. So both are compared with what is allowed,
after parsing: a text that does not parse is not allowed.

A program that is no browser sends no Origin, and is not what this protects from.

Spec:
    2025-11-25, basic/transports, "Security Warning"; 2026-07-28, basic/transports/streamable-http, "Security &
    Endpoint": an Origin that is there and not valid is answered with 403. RFC 6454, 7; RFC 9110, 7.2.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["OriginCheck"]

_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?")
_ORIGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]+)")
_ENDS_WITH_PORT: Final = re.compile(r":[0-9]+\Z")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MAX_PORT: Final = 65535

# What it is called in a program, and on a command line.
_HOSTS: Final = "allowed_hosts (--allow-host)"
_ORIGINS: Final = "allowed_origins (--allow-origin)"

# Names have 253 characters at most; what is longer is not repeated in full to whoever sent it.
_MAX_QUOTED: Final = 100

# A browser, and whoever else asks, keeps saying the same.
_MAX_REMEMBERED: Final = 100


class _Rule(Struct, frozen=True, gc=False):
    """One allowed origin or host.

    Attributes:
        scheme: None for http and https.
        host: As `_authority` writes it.
        port: None for any.
    """

    scheme: str | None
    host: str
    port: int | None


class OriginCheck:
    """Says of requests whether they come from where they may come from.

    A list that is given replaces what is allowed by default. An entry demands no more than it says: ``example.com`` is
    that host at any port, ``example.com:8443`` at one, ``[::1]`` an address. With a scheme, the port is that scheme's
    unless another is given: ``https://example.com`` is port 443, ``https://example.com:*`` any. ``*`` alone allows all.
    Upper and lower case are the same, and so is a name with a dot at its end.

    Args:
        allowed_origins: Whose pages may ask; without a scheme, those of http and of https. ``null`` is the origin of
            sandboxed pages and of files. By default the pages of this machine if the server is bound to a loopback
            address, and otherwise none.
        allowed_hosts: What the server may be called. By default ``localhost`` and loopback addresses, and what it is
            bound to, if that is one of them, and otherwise anything: behind a proxy, or with a public name, nobody here
            knows what it is called.
        bound_to: The address that the server listens on; None if that is not known. An address rather than a name that
            stands for it; of names, only ``localhost`` is known to be this machine.

    Raises:
        UsageError: An entry is no origin or no host, or there is no allowed host, so that every request were refused.
    """

    def __init__(
        self, *, allowed_origins: Sequence[str] | None, allowed_hosts: Sequence[str] | None, bound_to: str | None
    ) -> None:
        if allowed_hosts is not None and not allowed_hosts:
            raise UsageError("allowed_hosts is empty, so that every request were refused; ['*'] allows any host")
        own = None if bound_to is None else _own_name(bound_to)
        self._loopback_origins = own is not None and allowed_origins is None
        self._loopback_hosts = own is not None and allowed_hosts is None
        origins, hosts = _entries(allowed_origins, "allowed_origins"), _entries(allowed_hosts, "allowed_hosts")
        self._any_origin = "*" in origins
        self._any_host = "*" in hosts or (own is None and allowed_hosts is None)
        self._null = "null" in origins
        self._origins = [_rule(each, "allowed_origins") for each in origins if each not in {"*", "null"}]
        self._hosts = [_rule(each, "allowed_hosts") for each in hosts if each != "*"]
        if own is not None and allowed_origins is None:
            self._origins.append(_Rule(None, own, None))
        if own is not None and allowed_hosts is None:
            self._hosts.append(_Rule(None, own, None))
        self._good_origins: set[str] = set()
        self._good_hosts: set[str] = set()

    def refusal(self, headers: Mapping[str, str]) -> str | None:
        """Return why a request must not be served, in a sentence for whoever runs the server; None if it may be.

        Args:
            headers: Names in lower case. One that came several times has to have all its values, with commas between
                them, as HTTP defines: to look at one Host or Origin, and not at another, would be no check.
        """
        host, origin = headers.get("host"), headers.get("origin")
        if not self._any_host and host not in self._good_hosts:
            if host is None:
                return "The request has no Host; the server's allowed_hosts are checked, so that it needs one"
            if not self._allows_host(host):
                return f"The Host {_shown(host)} is not allowed; the server's {_HOSTS} has to name it"
            _remember(host, self._good_hosts)
        if origin is not None and not self._any_origin and origin not in self._good_origins:
            if not self._allows_origin(origin):
                return f"The Origin {_shown(origin)} is not allowed; the server's {_ORIGINS} has to name it"
            _remember(origin, self._good_origins)
        return None

    def _allows_host(self, text: str) -> bool:
        found = _authority(text)
        if found is None:
            return False
        host, port = found
        if self._loopback_hosts and _is_loopback(host):
            return True
        # Without a port it is the default one, of a scheme that only a proxy before us may know.
        ports = _DEFAULT_PORTS.values() if port is None else (port,)
        return any(rule.host == host and (rule.port is None or rule.port in ports) for rule in self._hosts)

    def _allows_origin(self, text: str) -> bool:
        if text == "null":
            return self._null
        found = _origin(text)
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
    if isinstance(allowed, str):  # a sequence of letters, to Python
        raise UsageError(f"{setting} is the text {allowed!r}; it has to be a list")
    return allowed or ()


def _rule(entry: str, setting: str) -> _Rule:
    """Return what an entry of a setting allows."""
    any_port = entry.endswith(":*")
    text = entry.removesuffix(":*").removesuffix("/")
    found: tuple[str | None, str, int | None] | None = None
    if "://" in text:
        found = _origin(text)
    elif authority := _authority(text) or _authority(f"[{text}]"):  # an address of IPv6 may come without its brackets
        found = None, *authority
    if found is None or (any_port and _ENDS_WITH_PORT.search(text)):
        raise UsageError(
            f"{setting} has {entry!r}, which is none; examples are example.com, [::1] and https://host:8443"
        )
    scheme, host, port = found
    return _Rule(scheme, host, None if any_port else port)


def _origin(text: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port of an origin as browsers write it: no path, and no user either."""
    match = _ORIGIN.fullmatch(text.lower()) if text.isascii() else None
    found = None if match is None else _authority(match[2])
    if match is None or found is None:
        return None
    host, port = found
    return match[1], host, _DEFAULT_PORTS.get(match[1]) if port is None else port


def _authority(text: str) -> tuple[str, int | None] | None:
    """Return host and port, the host in the one way to write it, or None if *text* is something else."""
    # Before lower(), to which the sign for kelvin is a k.
    match = _AUTHORITY.fullmatch(text.lower()) if text.isascii() else None
    if match is None:
        return None
    host = _address(match[1]) if match[1].startswith("[") else match[1].removesuffix(".")
    port = None if match[2] is None else int(match[2])
    if not host or not all(host.split(".")) or (port is not None and port > _MAX_PORT):
        return None
    return host, port


def _address(text: str) -> str | None:
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


def _own_name(bound_to: str) -> str | None:
    """Return what a server is called that is bound to a loopback address; None if it is bound to another."""
    text = bound_to.partition("%")[0]  # behind it, the interface that an address of IPv6 is meant of
    found = _authority(text) or _authority(f"[{text}]")
    if found is None:
        return None
    host, _ = found
    # Where it can be doubted, it is one: the checks are then on. 127.1 is a short way to write 127.0.0.1.
    return host if _is_loopback(host) or host.endswith(".localhost") or re.fullmatch(r"127[0-9.]*", host) else None


def _remember(text: str, good: set[str]) -> None:
    if len(good) < _MAX_REMEMBERED:
        good.add(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…")
