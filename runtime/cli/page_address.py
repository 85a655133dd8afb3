"""The address of a page that a server wants its user to visit: where it really leads, and what is odd about it.

A browser reads an address in ways that people do not: everything before an ``@`` is a name for the host to make of what
it will, a backslash is a slash, letters of other alphabets look like Latin ones. So the host is told on a line of its
own, in the form that is looked up, and whatever may mislead is pointed out. Nothing here opens anything.

Spec:
    2025-11-25 and 2026-07-28, client/elicitation, "Safe URL Handling".
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from mcpgen.runtime.cli.terminal_text import escaped_line

__all__ = ["Address", "address_of"]

# Browsers do not care how many slashes there are.
_SLASHES: Final = re.compile(r"\A(https?):/*", re.IGNORECASE)

_XN: Final = "xn--"
_NUMBERS: Final = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?", re.ASCII)


class Address(NamedTuple):
    """An address, as people should see it.

    Attributes:
        text: All of it, on one line.
        host: The host that it leads to, as it is looked up; empty if there is none.
        warnings: What is odd about it, a sentence each.
    """

    text: str
    host: str
    warnings: tuple[str, ...]


def address_of(url: str) -> Address:
    """Return what is to be seen of *url*."""
    warnings: list[str] = []
    if any(character.isspace() or not character.isprintable() for character in url):
        warnings.append("It holds characters that a browser leaves out or that nobody sees.")
    # As browsers do: what cannot be seen goes, and backslashes are slashes.
    read = "".join(each for each in url.strip() if each not in "\t\r\n")
    if "\\" in read:
        warnings.append("It holds a backslash, which a browser takes for a slash.")
        read = read.replace("\\", "/")
    read = _SLASHES.sub(r"\1://", read)
    try:
        parts = urlsplit(read)
        host, user, scheme, port = parts.hostname or "", parts.netloc.rpartition("@")[0], parts.scheme, parts.port
    except ValueError as error:
        return Address(
            escaped_line(url), "", (*warnings, f"It is no address that can be read: {escaped_line(str(error))}.")
        )
    if scheme != "https":
        what = "is not encrypted: everybody on the way can read and change it" if scheme == "http" else "is no web page"
        warnings.append(f"It begins with {escaped_line(scheme or 'nothing')!r}, so that it {what}.")
    if user:
        warnings.append(f"What stands before the @ ({escaped_line(user)!r}) is not where it leads.")
    host, odd = _looked_up(host)
    warnings += odd
    if not host:
        warnings.append("It names no host.")
    return Address(escaped_line(url), f"{host}:{port}" if port is not None else host, tuple(warnings))


def _looked_up(host: str) -> tuple[str, list[str]]:
    """Return *host* as it is looked up, and what is odd about it."""
    warnings: list[str] = []
    if "%" in host:
        warnings.append("Its host is written with escapes.")
        host = unquote(host)
    if not host.isascii():
        seen, host = host, _punycode(host)
        warnings.append(f"Its host is written with letters that may look like others: {escaped_line(seen)} is {host}.")
    elif any(label.startswith(_XN) for label in host.split(".")):
        warnings.append(f"A browser may show its host with letters that look like others: {_unicode(host)}.")
    if _is_number(host):
        warnings.append("Its host is a number, not a name.")
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
    return escaped_line(".".join(labels))


def _is_number(host: str) -> bool:
    if _NUMBERS.fullmatch(host):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
