"""HTTP as the bench needs it: the heads of requests, where a response ends, and the messages in it.

It is not a client: it knows what the servers here send, that is a length or chunks, and JSON or events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from tests.bench.traffic import STATELESS, WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD_END: Final = b"\r\n\r\n"
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"
_CHUNKED: Final = b"\r\ntransfer-encoding: chunked"
_EVENTS: Final = b"text/event-stream"
_SESSION: Final = b"\r\nmcp-session-id:"


class Address(msgspec.Struct, frozen=True):
    """Where a server is.

    Attributes:
        host: Its name or address.
        port: Its port.
        path: Of the endpoint.
        token: The access token that it wants, if any.
    """

    host: str
    port: int
    path: str
    token: str = ""

    @property
    def url(self) -> str:
        """The address as a URL."""
        return f"http://{self.host}:{self.port}{self.path}"


def address(url: str, token: str = "") -> Address:
    """Return what *url* says."""
    parts = urlsplit(url)
    return Address(parts.hostname or "", parts.port or 80, parts.path, token)


def post(  # noqa: PLR0913 (each is a header)
    where: Address, revision: str, method: str, *, length: int, name: str = "", session: str = ""
) -> bytes:
    """Return the head of a POST, as a client of the revision would write it.

    Args:
        where: The server.
        revision: What the client speaks.
        method: Of the message that is the body.
        length: Bytes of the body.
        name: Of the tool, for a call.
        session: The id that the server gave, if it did.
    """
    lines = [
        "content-type: application/json",
        f"content-length: {length}",
        f"mcp-protocol-version: {revision}" if revision in STATELESS or session else "",
        f"mcp-method: {method}" if revision in STATELESS else "",
        f"mcp-name: {name}" if name and revision in STATELESS else "",
    ]
    return _head("POST", where, "application/json, text/event-stream", session, lines)


def get(where: Address, revision: str, session: str) -> bytes:
    """Return the request for the stream of a session."""
    return _head("GET", where, "text/event-stream", session, [f"mcp-protocol-version: {revision}"])


def delete(where: Address, revision: str, session: str) -> bytes:
    """Return the request that ends a session."""
    return _head("DELETE", where, "*/*", session, [f"mcp-protocol-version: {revision}"])


def is_complete(response: bytes) -> bool:
    """Return whether *response*, which may be a part of one, is all of it."""
    end = response.find(_HEAD_END)
    if end < 0:
        return False
    head = response[:end].lower()
    if _CHUNKED in head:
        return response.endswith(_LAST_CHUNK)
    return len(response) >= end + len(_HEAD_END) + int(_value(head, _LENGTH) or b"0")


def status(response: bytes) -> int:
    """Return the status code."""
    return int(response.split(b" ", 2)[1])


def session(response: bytes) -> str:
    """Return the id of the session that the server opened, or nothing."""
    # The id itself keeps its letters.
    head = response.partition(_HEAD_END)[0]
    at = head.lower().find(_SESSION)
    return "" if at < 0 else head[at + len(_SESSION) :].partition(b"\r\n")[0].strip().decode()


def messages(response: bytes) -> list[bytes]:
    """Return the JSON in a whole response that went well, one message an entry.

    Raises:
        WrongAnswer: It did not go well, or is not whole.
    """
    head, _, body = response.partition(_HEAD_END)
    if not 200 <= status(response) < 300 or not is_complete(response):
        raise WrongAnswer(response.decode(errors="replace"))
    lowered = head.lower()
    if _CHUNKED in lowered:
        body = b"".join(chunks(body))
    elif len(body) != int(_value(lowered, _LENGTH) or b"0"):  # another one is stuck to it
        raise WrongAnswer(response.decode(errors="replace"))
    return events(body) if _EVENTS in lowered else [body] if body else []


def chunks(body: bytes) -> Iterable[bytes]:
    """Yield what is in each chunk, up to the last that is whole."""
    at = 0
    while (line := body.find(b"\r\n", at)) > 0:
        size = int(body[at:line], 16)
        start = line + 2
        if not size or start + size > len(body):
            return
        yield body[start : start + size]
        at = start + size + 2


def events(body: bytes) -> list[bytes]:
    """Return the data of each event that has any."""
    found = []
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
        lines = [line.removeprefix(b"data:").strip() for line in event.split(b"\n") if line.startswith(b"data:")]
        if data := b"\n".join(lines).strip():
            found.append(data)
    return found


def _head(verb: str, where: Address, accept: str, session: str, lines: Iterable[str]) -> bytes:
    known = [
        f"{verb} {where.path} HTTP/1.1",
        f"host: {where.host}:{where.port}",
        "user-agent: bench/1.2.3",
        f"accept: {accept}",
        f"authorization: Bearer {where.token}" if where.token else "",
        *lines,
        f"mcp-session-id: {session}" if session else "",
    ]
    return "\r\n".join([*filter(None, known), "\r\n"]).encode()


def _value(head: bytes, name: bytes) -> bytes:
    at = head.find(name)
    return b"" if at < 0 else head[at + len(name) :].partition(b"\r\n")[0].strip()
