"""Conversations of the client with real servers, judged as they are heard where the client sits.

async with heard(Memory(server), ["2025-11-25"]) as transport, connect(transport) as client:
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpgen.generated.registry import REVISIONS
from tests.harness.client_recorder import ClientRecorder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.interfaces import Channel, Endpoint, Transport


@asynccontextmanager
async def heard(transport: Transport, revisions: Iterable[str] | None = None) -> AsyncGenerator[Transport]:
    """Judge what a client says over *transport* within the block."""
    made = _Heard(transport, [each.label for each in REVISIONS] if revisions is None else list(revisions))
    yield made
    assert made.recorders
    for each in made.recorders:
        each.verify()


class _Heard:
    def __init__(self, transport: Transport, revisions: list[str]) -> None:
        self.identity = transport.identity
        self.description = transport.description
        self.recorders: list[ClientRecorder] = []
        self._transport = transport
        self._revisions = revisions

    @asynccontextmanager
    async def open(self, limits: ClientLimits) -> AsyncGenerator[Channel]:
        recorder = ClientRecorder(self._revisions)
        self.recorders.append(recorder)
        async with self._transport.open(limits) as channel:
            yield _HeardChannel(channel, recorder)


class _HeardChannel:
    def __init__(self, channel: Channel, recorder: ClientRecorder) -> None:
        self._channel = channel
        self._recorder = recorder
        self.drain = channel.drain
        self.close_reason = channel.close_reason

    @property
    def is_full(self) -> bool:
        return self._channel.is_full

    @property
    def stderr(self) -> str:
        return self._channel.stderr

    def write(self, message: bytes) -> None:
        self._recorder.said(bytes(message))
        self._channel.write(message)

    async def run(self, endpoint: Endpoint) -> None:
        await self._channel.run(_HeardEndpoint(endpoint, self._recorder))


class _HeardEndpoint:
    def __init__(self, endpoint: Endpoint, recorder: ClientRecorder) -> None:
        self._endpoint = endpoint
        self._recorder = recorder
        self.end_of_input = endpoint.end_of_input
        self.wait_finished = endpoint.wait_finished
        self.close = endpoint.close

    def receive(self, frames: Any) -> None:
        for each in frames:
            self._recorder.heard(bytes(each))
            self._endpoint.receive([each])
