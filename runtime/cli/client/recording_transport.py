"""Keep the results of a server exactly as they came, while the client reads them as types.

A result decoded into the types of the newest revision is no longer what the server sent. And a result that needed
several rounds (``input_required``) is known only after the last one.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.messages import Batch, Response
from mcpgen.runtime.protocol.reading_policy import SUSPECT, meant_id, meant_message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Hashable, Sequence

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import Channel, ClientEndpoint, Transport

__all__ = ["RecordingTransport"]


# Requests whose response comes only at their end.
_STREAMS: Final = frozenset({"subscriptions/listen"})

# Of the requests of the server. It may send more than the client answers, with ids of any length.
_MAX_ASKED: Final = 1000


class _Message(Struct):
    id: str | int | float | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


_decode_one = msgspec.json.Decoder(_Message).decode
_decode_many = msgspec.json.Decoder(list[_Message]).decode


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
        self._pending: dict[object, str] = {}
        self._asked: set[int] = set()  # the hashes of their ids
        self._pauses = 0
        self._transport = transport
        self._results: dict[str, bytes] = {}

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
        for each in _messages(message):
            if isinstance(each.method, UnsetType):
                self._asked.discard(hash(each.id))
            elif not isinstance(each.id, UnsetType):
                self.sent.add(each.method)
                if each.method not in _STREAMS:
                    self._pending[each.id] = each.method

    def note_received(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Record the messages in frames of the server."""
        self.frames += len(frames)
        for each in (message for frame in frames for message in _messages(frame)):
            if not isinstance(each.method, UnsetType):
                if not isinstance(each.id, UnsetType) and len(self._asked) < _MAX_ASKED:
                    self._asked.add(hash(each.id))
                continue
            method = self._pending.pop(each.id, None) or self._pending.pop(_meant_id(each), None)
            if method is not None and not isinstance(each.result, UnsetType):
                self._results[method] = bytes(each.result)

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


def _messages(frame: Frame | OversizedLine) -> list[_Message]:
    """Return the messages in a frame; none if it is not valid, which the client reports itself."""
    if not isinstance(frame, bytes):
        return []
    try:
        return _decode_many(frame) if frame[:64].lstrip().startswith(b"[") else [_decode_one(frame)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _meant_messages(frame)


def _meant_id(answer: _Message) -> RequestId | None:
    return meant_id(answer.id) if isinstance(answer.id, str) else None


def _meant_messages(frame: bytes) -> list[_Message]:
    """Return the responses in a frame that is not valid, but that the client reads."""
    found = envelope.decode(frame)
    meant = meant_message(frame, found)[0] if isinstance(found, SUSPECT) else found
    items = meant.items if isinstance(meant, Batch) else [meant]
    return [_Message(id=each.id, result=each.result) for each in items if isinstance(each, Response)]
