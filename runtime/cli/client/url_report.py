"""Check a URL that a server asks the user to open: its real host, and what is misleading about it.

A browser reads a URL differently from people: text before an ``@`` is a user name, a backslash is a slash, and letters
of other alphabets look like Latin ones. So the user sees the host on a separate line, as DNS sees it, and a warning for
everything that may mislead. This module never opens a URL.

Spec:
    2025-11-25 and 2026-07-28, client/elicitation, "Safe URL Handling".
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from mcpgen.runtime.cli.terminal_text import escaped_line

__all__ = ["UrlReport", "check_url"]

# Browsers accept any number of slashes after the scheme.
_SLASHES: Final = re.compile(r"\A(https?):/*", re.IGNORECASE)

_XN: Final = "xn--"

# A name in DNS has 253, each of which may be written as a percent escape. Punycode takes time with the square of it.
_MAX_HOST_CHARS: Final = 1000

_NUMBERS: Final = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?", re.ASCII)


class UrlReport(NamedTuple):
    """What the user should see of a URL.

    Attributes:
        text: The whole URL on one line, escaped.
        host: The host and port, as in a DNS lookup; empty if there is none.
        warnings: One sentence for each misleading part.
    """

    text: str
    host: str
    warnings: tuple[str, ...]


def check_url(url: str) -> UrlReport:
    """Return the host and the warnings of *url*."""
    warnings: list[str] = []
    if any(character.isspace() or not character.isprintable() for character in url):
        warnings.append("The URL has characters that are invisible or that a browser removes.")
    # As browsers do: remove tabs and line breaks, and read backslashes as slashes.
    cleaned = "".join(each for each in url.strip() if each not in "\t\r\n")
    if "\\" in cleaned:
        warnings.append("The URL has a backslash, which a browser reads as a slash.")
        cleaned = cleaned.replace("\\", "/")
    cleaned = _SLASHES.sub(r"\1://", cleaned)
    try:
        parts = urlsplit(cleaned)
        host, user, scheme, port = parts.hostname or "", parts.netloc.rpartition("@")[0], parts.scheme, parts.port
    except ValueError as error:
        warnings.append(f"The URL is not valid: {escaped_line(str(error))}.")
        return UrlReport(escaped_line(url), "", tuple(warnings))
    if scheme == "http":
        warnings.append("The connection is not encrypted (http): others on the network can read and change it.")
    elif scheme != "https":
        found = f"its scheme is {escaped_line(scheme)!r}" if scheme else "it has no scheme"
        warnings.append(f"The URL is not a web page: {found}.")
    if user:
        warnings.append(f"The text before the @ ({escaped_line(user)!r}) is not the host.")
    if len(host) > _MAX_HOST_CHARS:
        warnings.append(f"The host is longer than any name in DNS: it has {len(host):,} characters.")
        return UrlReport(escaped_line(url), escaped_line(host[:_MAX_HOST_CHARS]), tuple(warnings))
    host, more = _dns_host(host)
    warnings += more
    if not host:
        warnings.append("The URL has no host.")
    return UrlReport(escaped_line(url), f"{host}:{port}" if port is not None else host, tuple(warnings))


def _dns_host(host: str) -> tuple[str, list[str]]:
    """Return *host* as DNS sees it, and the warnings about it."""
    warnings: list[str] = []
    if "%" in host:
        warnings.append("The host has percent escapes.")
        host = unquote(host)
    if not host.isascii():
        # The labels in ASCII stay as they are. After `unquote`, they can have control characters.
        seen, host = host, escaped_line(_punycode(host))
        warnings.append(
            f"The host {escaped_line(seen)} has letters that can look like others. Its real name in DNS is {host}."
        )
    elif any(label.startswith(_XN) for label in host.split(".")):
        shown = _unicode(host)
        if shown.isprintable() and not shown.isascii():
            warnings.append(f"A browser may show the host as {shown}, which has letters that can look like others.")
        else:
            warnings.append(f"The host has a part that begins with {_XN}, but is not valid.")
    if _is_ip_address(host):
        warnings.append("The host is an IP address, not a name.")
    return escaped_line(host), warnings


def _punycode(host: str) -> str:
    labels = re.split("[.\u3002\uff0e\uff61]", host)
    try:
        return ".".join(label.encode("idna").decode("ascii") if label else "" for label in labels)
    except UnicodeError:
        return ".".join(
            label if label.isascii() else _XN + label.lower().encode("punycode").decode("ascii") for label in labels
        )


def _unicode(host: str) -> str:
    labels: list[str] = []
    for label in host.split("."):
        try:
            labels.append(label[len(_XN) :].encode("ascii").decode("punycode") if label.startswith(_XN) else label)
        except UnicodeError:
            labels.append(label)
    return ".".join(labels)


def _is_ip_address(host: str) -> bool:
    if _NUMBERS.fullmatch(host):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
