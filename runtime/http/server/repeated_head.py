"""Heads of requests that a connection repeats, so that they are parsed once.

Theory of operation. A client sends the same headers with each call on a connection, but for the length of the body. So
a connection remembers the last head that it parsed. If a read of the socket is a whole request with that head, nothing
but its length is parsed. Any other data goes to the parser, which has not seen such requests, and is still between two
requests.

A head is remembered if it follows from its bytes alone what the parser made of it: the request line, and a line for
each header, whose `Content-Length` says where the body ends. The application gets a new list of the headers each time,
and beside it the same as a dict, for as long as no application around it has changed the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.protocol.headers import headers_by_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.server.responses import Scope

__all__ = ["HEADERS", "RepeatedHead"]

# A session and an access token take less.
_MAX_HEAD_BYTES: Final = 2048

_LENGTH: Final = b"content-length"
_MAX_DIGITS: Final = 6  # a read has at most 256 KiB

# With these, a request is more than its head and a body of the given length.
_OTHER_FRAMING: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"trailer"))

# An ASGI extension of `mcpgen serve`: the headers, as a list and as `headers_by_name` returns them.
HEADERS: Final = "mcpgen.headers"


class RepeatedHead:
    """The head of a request, but for the value of its `Content-Length`.

    Args:
        before: The bytes before this value.
        after: The bytes behind it, with the empty line.
        scope: The ASGI scope of a request with this head.
        index: The place of `Content-Length` in the headers.
        by_name: The headers, as `headers_by_name` returns them.
    """

    __slots__ = ("_after", "_before", "_by_name", "_index", "_lines", "_scope", "size")

    def __init__(self, before: bytes, after: bytes, scope: Scope, index: int, by_name: Mapping[str, str]) -> None:
        self._before = before
        self._after = after
        self._scope = dict(scope)
        self._lines: list[tuple[bytes, bytes]] = list(scope["headers"])
        self._index = index
        self._by_name = by_name
        self.size: int = len(before) + len(after)

    @classmethod
    def of(cls, data: bytes, url: bytes, scope: Scope) -> RepeatedHead | None:
        """Return the head that *data* starts with; None if it is not to be remembered.

        Args:
            data: A read of the socket.
            url: The target of the request that has just been parsed.
            scope: Its ASGI scope.
        """
        end = data.find(b"\r\n\r\n", 0, _MAX_HEAD_BYTES)
        first, *lines = data[: max(end, 0)].split(b"\r\n")
        headers = scope["headers"]
        if first != b"POST %b HTTP/1.1" % url or len(lines) != len(headers):
            return None
        value_start, index, length = 0, -1, b""
        place = len(first) + 2
        for number, (line, (name, value)) in enumerate(zip(lines, headers, strict=True)):
            written, colon, rest = line.partition(b":")
            if written.lower() != name or not colon or rest.strip(b" \t") != value or name in _OTHER_FRAMING:
                return None
            if name == _LENGTH:
                if index >= 0 or not value.isdigit() or len(value) > _MAX_DIGITS:
                    return None
                index, length = number, value
                value_start = place + line.index(value, len(written))
            place += len(line) + 2
        if index < 0:
            return None
        try:
            by_name = headers_by_name(headers)
        except ValueError:  # the application refuses it
            return None
        return cls(data[:value_start], data[value_start + len(length) : end + 4], scope, index, by_name)

    def body_of(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the length in the head, as it is written, and the body, if *data* is a request with this head."""
        if not data.startswith(self._before):
            return None
        start = len(self._before)
        end = data.find(b"\r", start, start + _MAX_DIGITS + 1)
        length = data[start:end] if end > 0 else b""
        if not length.isdigit() or not data.startswith(self._after, end):
            return None
        body = data[end + len(self._after) :]
        return (length, body) if body and len(body) == int(length) else None

    def new_scope(self, length: bytes, extensions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scope of a request with this head.

        Args:
            length: The length in the head, as it is written.
            extensions: The ASGI extensions of the connection.
        """
        lines = self._lines.copy()
        lines[self._index] = (_LENGTH, length)
        by_name = {**self._by_name, "content-length": length.decode("ascii")}
        scope = self._scope.copy()
        scope["headers"] = lines
        scope["extensions"] = {**extensions, HEADERS: {"lines": lines.copy(), "by_name": by_name}}
        return scope
