"""Keep the results of a server exactly as they came, while the client reads them as types.

A result decoded into the types of the newest revision is no longer what the server sent. And a result that needed
several rounds (``input_required``) is known only after the last one.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Malformed, Request, Response
from mcpgen.runtime.protocol.reading_policy import SUSPECT, meant_id, meant_message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Hashable, Sequence

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.protocol.messages import Message, RequestId
    from mcpgen.runtime.transports.interfaces import Channel, ClientEndpoint, Transport

__all__ = ["RecordingTransport"]


# Requests whose response comes only at their end.
_STREAMS: Final = frozenset({"subscriptions/listen"})

# Of the requests of the server. It may send more than the client answers, with ids of any length.
_MAX_ASKED: Final = 1000


class _Hello(Struct, rename="camel"):
    protocol_version: str = ""


_decode_hello: Final = msgspec.json.Decoder(_Hello).decode


class RecordingTransport:
    """A `mcpgen.runtime.transports.interfaces.Transport` that records the results which pass over another one.

    Args:
        transport: The transport that reaches the server.

    Attributes:
        sent: The methods of the requests that were sent.
        frames: How many frames have passed, in both directions.
    """

    def __init__(self, transport: Transport) -> None:
        self.sent: set[str] = set()
        self.frames: int = 0
        self._pending: dict[RequestId | None, str] = {}
        self._asked: set[int] = set()  # the hashes of their ids
        self._pauses = 0
        self._transport = transport
        self._results: dict[str, bytes] = {}
        self._revision = ""  # of a handshake

    @property
    def identity(self) -> Hashable | None:
        """That of the other transport."""
        return self._transport.identity

    @property
    def description(self) -> str:
        """That of the other transport."""
        return self._transport.description

    def result(self, method: str) -> Any:  # noqa: ANN401 (any JSON value)
        """Return the last result of *method*; None if there is none."""
        found = self._results.get(method)
        return None if found is None else msgspec.json.decode(found)

    def result_size(self, method: str) -> tuple[int, int]:
        """Return the bytes of the last result of *method*, and about the memory of its values; 0 if there is none."""
        found = self._results.get(method, b"")
        return len(found), decoded_bytes(Raw(found))

    @property
    def awaited(self) -> str | None:
        """The method of a request that the server has not answered.

        None if there is none, if the server itself waits for an answer, or if a person logs in.
        """
        return None if self._asked or self._pauses else next(iter(self._pending.values()), None)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Record that a person is asked to log in within the block."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1

    def note_sent(self, message: bytes) -> None:
        """Record the messages in a frame for the server."""
        self.frames += 1
        found = envelope.decode(message)
        for each in found.items if isinstance(found, Batch) else [found]:
            if isinstance(each, Request):
                self.sent.add(each.method)
                if each.method not in _STREAMS:
                    self._pending[each.id] = each.method
            elif isinstance(each, Response | ErrorResponse):
                self._asked.discard(hash(each.id))

    def note_received(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Record the messages in frames of the server."""
        self.frames += len(frames)
        for each in (message for frame in frames for message in self._messages(frame)):
            if isinstance(each, Request):
                if len(self._asked) < _MAX_ASKED:
                    self._asked.add(hash(each.id))
            elif isinstance(each, Response | ErrorResponse):
                method = self._pending.pop(each.id, None) or self._pending.pop(meant_id(each.id), None)
                if method is not None and isinstance(each, Response):
                    self._results[method] = bytes(each.result)
                    if method == "initialize":
                        self._revision = _revision_in(each.result)
            elif isinstance(each, Malformed) and each.is_answer:
                self._pending.pop(each.id, None)

    def _messages(self, frame: Frame | OversizedLine) -> Sequence[Message | Malformed]:
        """Return the messages that the client reads in *frame*.

        They must be the same: a command reads the result that is recorded without any further check of its types.
        """
        if not isinstance(frame, bytes):
            return ()
        found = envelope.decode(frame)
        meant = meant_message(frame, found)[0] if isinstance(found, SUSPECT) else found
        if not isinstance(meant, Batch):
            return (meant,)
        return meant.items if envelope.allows_batches(self._revision) else ()

    def note_lost(self, request_id: RequestId) -> None:
        """Record that a request will not be answered."""
        self._pending.pop(request_id, None)

    def note_closed(self) -> None:
        """Record that the connection has ended."""
        self._pending.clear()
        self._asked.clear()

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[Channel]:
        """Open the other transport, and record its results."""
        async with self._transport.open(limits) as channel:
            try:
                yield _RecordingChannel(channel, self)
            finally:
                self.note_closed()


class _RecordingChannel:
    def __init__(self, channel: Channel, recorder: RecordingTransport) -> None:
        self._channel = channel
        self._recorder = recorder
        self.drain = channel.drain
        self.close_reason = channel.close_reason
        self._endpoint: ClientEndpoint

    @property
    def is_full(self) -> bool:
        return self._channel.is_full

    @property
    def stderr(self) -> str:
        return self._channel.stderr

    def write(self, message: bytes) -> None:
        self._recorder.note_sent(message)
        self._channel.write(message)

    async def run(self, endpoint: ClientEndpoint, /) -> None:
        self._endpoint = endpoint
        await self._channel.run(self)

    # --- as the endpoint of the other channel

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        self._recorder.note_received(frames)
        self._endpoint.receive(frames)

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        self._recorder.note_lost(request_id)
        self._endpoint.request_lost(request_id, failure)

    def awaits(self, request_id: RequestId) -> bool:
        return self._endpoint.awaits(request_id)

    def session_renewed(self) -> None:
        self._endpoint.session_renewed()

    @contextmanager
    def paused(self) -> Generator[None]:
        with self._recorder.paused(), self._endpoint.paused():
            yield

    async def ready(self) -> None:
        await self._endpoint.ready()

    def end_of_input(self) -> None:
        self._endpoint.end_of_input()

    async def wait_finished(self) -> None:
        await self._endpoint.wait_finished()

    def close(self) -> None:
        self._endpoint.close()


def _revision_in(hello: Raw) -> str:
    """Return the revision that the result of `initialize` names; empty if the client refuses the result."""
    try:
        return _decode_hello(hello).protocol_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
