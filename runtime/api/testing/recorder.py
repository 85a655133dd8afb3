"""A transport that records what passes through another one, and checks each message against its revision.

Theory of operation. `Recorder` wraps the transport to a target. It hands each frame on as it is, and gives it to a
`Tracer`, the one of ``mcpgen trace``: that checks the type of each part, keys of other revisions, methods, directions
and ids. Each connection has a tracer of its own.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpgen.runtime.api.connect import as_transport
from mcpgen.runtime.api.testing.transcript import Transcript
from mcpgen.runtime.protocol.trace.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AbstractContextManager

    from mcpgen.runtime.api.connect import Target
    from mcpgen.runtime.errors import TransportClosed
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.protocol.trace.annotations import Annotation, Direction
    from mcpgen.runtime.transports.interfaces import Channel, ClientEndpoint, Transport

__all__ = ["Recorder"]

# A failure shows this much of each message that violates its revision.
_MAX_SHOWN = 1000


class Recorder:
    """Records the messages between a client and *target*. Pass it to `connect`, `connect_sync` or `connect_as`.

        recorder = Recorder(server)
        with connect_as(recorder, "2025-11-25") as client:
            client.ping()
        assert recorder.transcript() == …

    Args:
        target: The server, as for `connect`.
    """

    def __init__(self, target: Target) -> None:
        self._transport: Transport = as_transport(target)
        self._annotations: list[Annotation] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.description!r}: {len(self._annotations)} messages>"

    @property
    def identity(self) -> None:
        """None: a connection begins in the same way each time, whatever an earlier one found out about the server."""
        return

    @property
    def description(self) -> str:
        """The name of the server."""
        return self._transport.description

    def problems(self) -> list[str]:
        """Return what the revisions do not allow: each time the message, the place in it, and the reason."""
        return [
            f"{each.revision or 'unknown revision'}: {_title(each)}, at {found.pointer or 'the whole message'}: "
            f"{found.reason}\n    {_shown(each)}"
            for each in self._annotations
            for found in each.violations
        ]

    def verify(self) -> None:
        """Fail if a message violates its revision. `connect_as` calls this at the end of its block.

        Raises:
            AssertionError: It lists the violations.
        """
        problems = self.problems()
        if problems:
            raise AssertionError("\n".join(problems))

    def transcript(self) -> str:
        """Return all messages as text, one line each, for a snapshot.

        Each line has an arrow (``→`` from the client, ``←`` from the server), the method or ``result`` or ``error``,
        and the params, result or error as JSON with sorted keys. Whatever differs from run to run is numbered instead:
        ids, tokens, cursors, request states; times are ``<time>``.
        """
        transcript = Transcript()
        return "".join(f"{transcript.line(each)}\n" for each in self._annotations if each.kind != "batch")

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[Channel]:
        """Open a connection to the server within the block."""
        tracer = Tracer(max_frame_bytes=limits.max_frame_bytes)

        def record(direction: Direction, frame: Frame | OversizedLine) -> None:
            # The time is of no use: transcripts are the same in each run.
            self._annotations += tracer.annotate(direction, frame, 0.0)

        async with self._transport.open(limits) as channel:
            yield _RecordedChannel(channel, record)


class _RecordedChannel:
    def __init__(self, channel: Channel, record: Any) -> None:
        self._channel = channel
        self._record = record

    @property
    def is_full(self) -> bool:
        return self._channel.is_full

    @property
    def stderr(self) -> str:
        return self._channel.stderr

    def write(self, message: bytes) -> None:
        self._record("to server", message)
        self._channel.write(message)

    async def drain(self) -> None:
        await self._channel.drain()

    async def run(self, endpoint: ClientEndpoint, /) -> None:
        await self._channel.run(_RecordedEndpoint(endpoint, self._record))

    async def close_reason(self) -> TransportClosed:
        return await self._channel.close_reason()


class _RecordedEndpoint:
    def __init__(self, endpoint: ClientEndpoint, record: Any) -> None:
        self._endpoint = endpoint
        self._record = record

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for each in frames:
            self._record("to client", each)
        self._endpoint.receive(frames)

    def end_of_input(self) -> None:
        self._endpoint.end_of_input()

    async def wait_finished(self) -> None:
        await self._endpoint.wait_finished()

    def close(self) -> None:
        self._endpoint.close()

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        self._endpoint.request_lost(request_id, failure)

    def awaits(self, request_id: RequestId) -> bool:
        return self._endpoint.awaits(request_id)

    def session_renewed(self) -> None:
        self._endpoint.session_renewed()

    def paused(self) -> AbstractContextManager[object]:
        return self._endpoint.paused()

    async def ready(self) -> None:
        await self._endpoint.ready()


def _title(annotation: Annotation) -> str:
    about = f" of {annotation.method}" if annotation.method else ""
    kind = "malformed message" if annotation.kind == "malformed" else annotation.kind
    return f"the {kind}{about} {annotation.direction}"


def _shown(annotation: Annotation) -> str:
    text = "" if annotation.frame is None else bytes(annotation.frame).decode(errors="replace")
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
