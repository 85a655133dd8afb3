"""The heads of requests and responses, where uvicorn leaves something to wish for.

Theory of operation. httptools bounds neither the length of a request's head nor the time in which it has to come. Both
are counted here; a head that comes at once costs nothing. And uvicorn writes the head of a response by itself, so that
it is a packet of its own, with a system call of its own, most often right before the body. It is held back for as long
as the event loop's turn lasts, and goes out with the body if that comes until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["BoundedHeads"]

# What a head may take: 64 KiB is h11's limit, too. A tool's arguments may be in headers, so that it cannot be small.
MAX_HEAD_BYTES: Final = 64 * 1024
_HEAD_SECONDS: Final = 10


class BoundedHeads(HttpToolsProtocol):
    """uvicorn's protocol, with bounds on the head of a request: its length, and how long it takes to come."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Begin to count."""
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type] # all of it that is used
        self._is_in_head = True
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = self.loop.call_later(_HEAD_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head."""
        super().data_received(data)
        if not self._is_in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large", b"the head of the request is over 64 KiB")
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._too_slow)

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._is_in_head = False
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        """Begin anew."""
        self._is_in_head = True
        super().on_message_begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(b"408 Request Timeout", b"the head of the request did not come in time")

    def _refuse(self, status: bytes, reason: bytes) -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, len(reason)) + reason)
        self.transport.close()


class _Joined:
    """A transport that writes the head of a response together with what follows in the same turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
            self._transport.write(data)
        elif data.startswith(b"HTTP/"):
            self._head = data
            self._loop.call_soon(self._flush)
        elif data:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (whatever else a transport has)
        return getattr(self._transport, name)
