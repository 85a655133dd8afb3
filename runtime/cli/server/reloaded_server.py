"""``mcpgen serve --reload`` on stdio: the host keeps its connection while the process of the server is replaced.

Theory of operation. The host is connected to a relay, and the relay to a process of ``mcpgen serve``. When a file
changes, messages from the host wait; the requests that are open get half a second to finish, and an error after that;
then the process ends and a new one starts. The new process knows nothing of the session, so the relay sends it the
host's ``initialize`` again, and drops the response. Then it tells the host that the lists may have changed. Streams of
``subscriptions/listen`` end with their process, as at the shutdown of a server. A process that cannot be started,
because of an error in the file, stays away until the next change; meanwhile each request gets an error.

Neither side fills the memory of the relay. While the host does not read, nothing more is read from the process, which
then stops reading, too. While the process does not read, messages from the host wait, and requests that have no room
get an error. The relay never stops reading from the host for this, so that it sees the end of the input.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import anyio
import click
import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.cli.server.request_log import Message, messages_of
from mcpgen.runtime.errors import McpgenError, RequestError
from mcpgen.runtime.limits import ClientLimits, Limits
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.payload_codec import UNREADABLE
from mcpgen.runtime.protocol.subscriptions import SUBSCRIPTION_ID, stream_end
from mcpgen.runtime.transports.interfaces import Channel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from contextlib import AbstractContextManager

    from mcpgen.runtime.cli.server.source_changes import SourceChanges
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import Endpoint, MessageWriter, Transport
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["ReloadedServer"]

# As long as a server's running handlers have when its input ends.
_GRACE_SECONDS: Final = 0.5

# From the end of the input until this process ends: the process of the server has to end meanwhile.
_END_SECONDS: Final = 1.5

# A host that sends more while the server restarts gets errors.
_MAX_WAITING: Final = 1000
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024

# What a new process is told of the session, in this order.
_REPEATED: Final = ("initialize", "notifications/initialized", "logging/setLevel")

_RESTARTED: Final = "the server was restarted because a file changed; send the request again"
_IS_BUSY: Final = "the server restarts, or reads its messages too slowly; wait, then send the request again"
_IS_AWAY: Final = "the server has exited, and starts again when a file changes; its standard error may give the reason"


class _Process(Channel, Protocol):
    """A channel to a process, whose messages need not be read at once."""

    def hold(self) -> None: ...

    def unhold(self) -> None: ...


class ReloadedServer:
    """A relay to a server whose process is replaced at each change. It is a `ServerInterface` for one connection.

    Args:
        transport: Starts the process.
        changes: The changes of the files.
    """

    def __init__(self, transport: Transport, changes: SourceChanges) -> None:
        self._transport = transport
        self._changes = changes
        self._is_connected = anyio.Event()
        self._relay: _Relay

    @property
    def limits(self) -> Limits:
        """The defaults, but more time to end: the server itself has its own limits, in its process."""
        return Limits(grace_seconds=_END_SECONDS)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the process, once there is a connection, until the end of the block."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._run)
            try:
                yield
            finally:
                self._changes.stop()
                group.cancel_scope.cancel()

    def connect(self, writer: MessageWriter, spawner: Spawner, /) -> Endpoint:
        """Return the connection."""
        del spawner
        self._relay = _Relay(writer)
        self._is_connected.set()
        return self._relay

    async def _run(self) -> None:
        await self._is_connected.wait()
        async with anyio.create_task_group() as group:
            changed = _Signal()
            group.start_soon(self._watch, changed)
            while True:
                await self._run_process(changed)
                await changed.wait()
                changed.clear()

    async def _watch(self, changed: _Signal) -> None:
        async for names in self._changes:
            click.echo(f"mcpgen: {names} changed; restarting the server", err=True)
            self._relay.expect()
            changed.set()

    async def _run_process(self, changed: _Signal) -> None:
        """Run the process until it exits or a file changes."""
        relay = self._relay
        try:
            async with self._transport.open(ClientLimits()) as opened:
                channel = cast("_Process", opened)
                relay.attach(channel)
                async with anyio.create_task_group() as group:
                    group.start_soon(relay.send_waiting, channel)
                    group.start_soon(relay.unhold, channel)
                    group.start_soon(self._until_exit, channel, group.cancel_scope)
                    await changed.wait()
                    relay.detach()
                    with anyio.move_on_after(_GRACE_SECONDS):
                        await relay.wait_finished()
                    group.cancel_scope.cancel()
        except McpgenError as error:
            click.echo(f"mcpgen: {error}", err=True)
        relay.fail_pending(_RESTARTED if changed.is_set() else _IS_AWAY)
        if not changed.is_set():
            relay.leave()
            click.echo("mcpgen: the server has exited; it starts again when a file changes", err=True)

    async def _until_exit(self, channel: Channel, scope: anyio.CancelScope) -> None:
        await channel.run(self._relay.server_side)
        scope.cancel()


class _Signal:
    """An event that can be cleared."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()


class _Relay:
    """The host's side: it takes the messages of the host, and passes them on or keeps them."""

    def __init__(self, writer: MessageWriter) -> None:
        self.server_side: _ServerSide = _ServerSide(self)
        self._writer = writer
        self._process: _Process | None = None  # the last one
        self._channel: _Process | None = None  # the same, if it may get messages
        self._is_away = False
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._has_waiting = _Signal()
        self._is_held = _Signal()
        self._pending: set[object] = set()
        self._streams: set[object] = set()
        self._idle = _Signal()
        self._idle.set()
        self._repeated: dict[str, tuple[object, bytes]] = {}
        self._lists: list[str] = []

    def attach(self, channel: _Process) -> None:
        """Use a new process: tell it of the session, and send what waits."""
        is_new_session = not self._repeated
        for method in _REPEATED:
            if method in self._repeated:
                channel.write(self._repeated[method][1])
        if not is_new_session:
            for each in self._lists:
                self._writer.write(envelope.encode_notification(f"notifications/{each}/list_changed"))
        self._process = self._channel = channel
        self._is_away = False
        for frame in self._taken():
            channel.write(frame)

    async def send_waiting(self, channel: _Process) -> None:
        """Pass on what waits, as fast as the process reads."""
        while True:
            await self._has_waiting.wait()
            await channel.drain()
            while self._waiting and self._channel is channel and not channel.is_full:
                frame = self._waiting.pop(0)
                self._waiting_bytes -= len(frame)
                channel.write(frame)
            if not self._waiting or self._channel is not channel:
                self._has_waiting.clear()

    async def unhold(self, channel: _Process) -> None:
        """Read the messages of the process again whenever the host has read some."""
        while True:
            await self._is_held.wait()
            await self._writer.drain()
            self._is_held.clear()
            channel.unhold()

    def detach(self) -> None:
        """Keep the messages of the host from now on."""
        self._channel = None

    def expect(self) -> None:
        """Keep the messages of the host until the next process, if there is none now."""
        self._is_away = False

    def leave(self) -> None:
        """Answer the requests of the host with an error from now on."""
        self._channel, self._is_away = None, True

    def fail_pending(self, reason: str) -> None:
        """End the open requests, except those that wait, or will be repeated to the next process.

        Spec:
            2026-07-28, basic/patterns/cancellation: MUST send a cancellation when it tears a stream down.
        """
        if reason is not _RESTARTED:
            self._taken()
        kept: set[object] = {each for each, _ in self._repeated.values()} if reason is _RESTARTED else set()
        kept |= {each.id for frame in self._waiting for each in messages_of(frame)}
        for each in self._pending - kept:
            if each in self._streams:
                self._end_stream(each)
            else:
                self._fail(each, reason)

    def _taken(self) -> list[bytes]:
        """Return what waits; it waits no longer."""
        taken, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return taken

    def _end_stream(self, request_id: Any) -> None:  # noqa: ANN401 (an id that JSON can express)
        cancelled, result = stream_end(request_id)
        self._writer.write(cancelled)
        self._writer.write(envelope.encode_response(request_id, result))
        self._end(request_id)

    def _fail(self, request_id: Any, reason: str) -> None:  # noqa: ANN401 (an id that JSON can express)
        error = envelope.error_json(RequestError(ErrorCode.INTERNAL_ERROR, reason))
        self._writer.write(envelope.encode_error(request_id, error))
        self._end(request_id)

    def _end(self, request_id: object) -> None:
        self._pending.discard(request_id)
        self._streams.discard(request_id)
        if not self._pending:
            self._idle.set()

    # --- as the endpoint of the host

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for frame in frames:
            if isinstance(frame, bytes):
                self._take(frame)

    def _take(self, frame: bytes) -> None:
        messages = messages_of(frame)
        requests = [each for each in messages if each.method is not UNSET and _has_id(each)]
        for each in messages:
            if each.method in _REPEATED:
                self._repeated[str(each.method)] = (each.id, frame)
            elif each.method == "notifications/cancelled":
                self._end(_id_in(each.params, "requestId"))  # it is not answered
        for each in requests:
            self._pending.add(each.id)
            self._idle.clear()
        size = self._waiting_bytes + len(frame)
        is_too_much = len(self._waiting) >= _MAX_WAITING or size > _MAX_WAITING_BYTES
        if self._channel is not None and not self._waiting and not self._channel.is_full:
            self._channel.write(frame)
        elif self._is_away or is_too_much:
            for each in requests:
                self._fail(each.id, _IS_AWAY if self._is_away else _IS_BUSY)
        else:
            self._waiting.append(frame)
            self._waiting_bytes = size
            self._has_waiting.set()

    def end_of_input(self) -> None:
        """Nothing to do: the process gets the end of its input when it is closed."""

    async def wait_finished(self) -> None:
        await self._idle.wait()

    def close(self) -> None:
        """Nothing to do: the process ends with `ReloadedServer.running`."""

    # --- for the server's side

    def answered(self, frame: bytes) -> None:
        """Pass on a message of the server, except the response to a request that was sent again."""
        for each in messages_of(frame):
            if each.method is UNSET:
                if each.id not in self._pending:
                    return
                if each.id == self._repeated.get("initialize", (None, b""))[0]:
                    self._lists = list(_changing_lists(each))
                self._end(each.id)
            elif each.method == "notifications/subscriptions/acknowledged":
                self._streams.add(_id_in(each.params, "_meta", SUBSCRIPTION_ID))
        self._writer.write(frame)
        if self._writer.is_full and self._process is not None:
            self._process.hold()
            self._is_held.set()


class _ServerSide:
    """The server's side: it takes the messages of the process."""

    def __init__(self, relay: _Relay) -> None:
        self._relay = relay

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for frame in frames:
            if isinstance(frame, bytes):
                self._relay.answered(frame)

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        """Not called by a process."""

    def awaits(self, request_id: RequestId) -> bool:
        """Not called by a process."""
        del request_id
        return True

    def session_renewed(self) -> None:
        """Not called by a process."""

    def paused(self) -> AbstractContextManager[None]:
        """Not called by a process."""
        return nullcontext()

    async def ready(self) -> None:
        """Not called by a process: `_Relay` holds it."""

    def end_of_input(self) -> None:
        """Nothing to do: `Channel.run` returns."""

    async def wait_finished(self) -> None:
        """Nothing runs here."""

    def close(self) -> None:
        """Nothing runs here."""


def _has_id(message: Message) -> bool:
    return message.id is not UNSET and message.id is not None


def _id_in(value: Raw | UnsetType, *names: str) -> object:
    """Return the id in *value* that *names* lead to; None if there is none."""
    if isinstance(value, UnsetType):
        return None
    try:
        for each in names:  # other keys are not decoded: they may have numbers of any size
            value = msgspec.json.decode(value, type=dict[str, Raw])[each]
        return msgspec.json.decode(value, type=str | int | float)
    except (KeyError, *UNREADABLE):
        return None


def _changing_lists(response: Message) -> Iterator[str]:
    """Yield the lists whose changes the server declares in its response to ``initialize``."""
    if response.result is UNSET:
        return
    result: Any = msgspec.json.decode(response.result)
    capabilities = result.get("capabilities") if is_object(result) else None
    for each in ("tools", "prompts", "resources"):
        declared = capabilities.get(each) if is_object(capabilities) else None
        if is_object(declared) and declared.get("listChanged") is True:
            yield each
