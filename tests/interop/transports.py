"""What there is between a client and a server, and which revisions are spoken over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.interop.peer_packages import Peer, Server

__all__ = ["ALL", "HTTP", "SESSIONLESS", "SSE", "STDIO", "TRANSPORTS", "Cell", "columns", "looked_at"]

ALL = "all"  # in a revision's place: all that the client has are offered

STDIO, HTTP, SESSIONLESS, SSE = "stdio", "http", "sessionless", "sse"

# As the page calls them.
TRANSPORTS = {
    STDIO: "stdio",
    HTTP: "Streamable HTTP",
    SESSIONLESS: "Streamable HTTP without sessions",
    SSE: "HTTP+SSE",
}

# What there is over Streamable HTTP alone, in one revision.
PECULIAR = {"reconnect": "2025-11-25", "parameter headers": "2026-07-28"}


class Cell(NamedTuple):
    """A column of the page: a client or server, by name, what is between it and ours, and what is spoken."""

    name: str
    transport: str
    revision: str

    def __str__(self) -> str:
        return f"{self.name} over {TRANSPORTS[self.transport]}, {self.revision}"


def columns(each: Peer | Server, transport: str, *, is_server: bool) -> list[str]:
    """Return what is offered over *transport*, oldest first; nothing, if it does not have that."""
    if transport not in (STDIO, *each.over):
        return []
    match transport:
        case "sessionless":
            return [[revision for revision in each.revisions if revision < "2026"][-1]]
        case "sse":  # which is what the oldest revision says of HTTP
            return [each.revisions[0], *([ALL] if is_server else [])]
        case _:
            return [*each.revisions, *([ALL] if is_server else [])]


def looked_at(features: Iterable[str], transport: str, revision: str) -> list[str]:
    """Return those of *features* that there are over *transport* when *revision* is spoken."""
    here = {each for each, only in PECULIAR.items() if transport == HTTP and revision == only}
    return [each for each in features if each not in PECULIAR or each in here]
