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

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

import anyio
import click
from msgspec import UNSET

from mcpgen.runtime.cli.server.process_endpoint import ProcessEndpoint
from mcpgen.runtime.cli.server.relayed_messages import changing_lists, id_in, messages_with_bytes, requests_in
from mcpgen.runtime.cli.server.request_log import messages_of
from mcpgen.runtime.errors import McpgenError, RequestError
from mcpgen.runtime.limits import ClientLimits, Limits
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.framing import OversizedLine
from mcpgen.runtime.protocol.messages import Error
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.subscriptions import SUBSCRIPTION_ID, stream_end
from mcpgen.runtime.transports.interfaces import Channel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from anyio.abc import TaskStatus

    from mcpgen.runtime.cli.server.source_changes import SourceChanges
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.transports.interfaces import Endpoint, MessageWriter, Transport
    from mcpgen.runtime.transports.spawner import Spawner

    StartProcess: TypeAlias = Callable[[int], Transport]

__all__ = ["ReloadedServer"]

# As long as a server's running handlers have when its input ends.
_GRACE_SECONDS: Final = 0.5

# From the end of the input until this process ends: the process of the server has to end meanwhile.
_END_SECONDS: Final = 1.5

# A host that sends more while the server restarts gets errors.
_MAX_WAITING: Final = 1000
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024

# The server refuses messages of the host that are too long for it. A result repeats its structured content as text.
_MAX_HOST_FRAME_BYTES: Final = 16 * 1024 * 1024
_MAX_SERVER_FRAME_BYTES: Final = 64 * 1024 * 1024

# What a new process is told of the session, in this order.
_REPEATED: Final = ("initialize", "notifications/initialized", "logging/setLevel")

_RESTARTED: Final = "the server was restarted because a file changed; send the request again"
_IS_BUSY: Final = "the server restarts, or reads its messages too slowly; wait, then send the request again"
_IS_TOO_LONG: Final = "the result is longer than {limit} bytes, which `mcpgen serve --reload` does not pass on"
_IS_AWAY: Final = "the server has exited, and starts again when a file changes; its standard error may give the reason"


class _Process(Channel, Protocol):
    """A channel to a process, whose messages need not be read at once."""

    def hold(self) -> None: ...

    def unhold(self) -> None: ...


class ReloadedServer:
    """A relay to a server whose process is replaced at each change. It is a `ServerInterface` for one connection.

    Args:
        start: Returns the transport to a new process, whose requests have greater ids than the given number.
        changes: The changes of the files.
    """

    def __init__(self, start: StartProcess, changes: SourceChanges) -> None:
        self._start = start
        self._changes = changes
        self._is_connected = anyio.Event()
        self._relay: _Relay

    @property
    def limits(self) -> Limits:
        """More than the defaults: the server itself has its own limits, in its process."""
        return Limits(grace_seconds=_END_SECONDS, max_frame_bytes=_MAX_HOST_FRAME_BYTES)

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
            await group.start(self._watch, changed)
            while True:
                await self._run_process(changed)
                await changed.wait()
                changed.clear()

    async def _watch(self, changed: _Signal, *, task_status: TaskStatus[None]) -> None:
        watched = aiter(self._changes)
        await anext(watched, "")
        task_status.started()
        async for names in watched:
            click.echo(f"mcpgen: {names} changed; restarting the server", err=True)
            self._relay.expect()
            changed.set()

    async def _run_process(self, changed: _Signal) -> None:
        """Run the process until it exits or a file changes."""
        relay = self._relay
        try:
            transport = self._start(relay.last_asked)
            async with transport.open(ClientLimits(max_frame_bytes=_MAX_SERVER_FRAME_BYTES)) as opened:
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
        self.server_side: ProcessEndpoint = ProcessEndpoint(self.answered, self.answered_too_long)
        self.last_asked = 0  # the greatest id of the requests of all processes
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
        self._asked: dict[object, None] = {}  # the open requests of the process
        self._repeated: dict[str, tuple[object, bytes]] = {}
        self._ignored: set[object] = set()  # requests that were sent again, whose responses the host has
        self._lists: list[str] = []

    def attach(self, channel: _Process) -> None:
        """Use a new process: tell it of the session, and send what waits."""
        is_new_session = not self._repeated
        waiting = self._requests_that_wait()
        self._ignored = set()
        for method in _REPEATED:
            request_id, frame = self._repeated.get(method, (UNSET, b""))
            if frame and frame not in self._waiting and request_id not in waiting:
                channel.write(frame)
                if request_id not in self._pending:
                    self._ignored.add(request_id)
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
        kept |= self._requests_that_wait()
        for each in self._pending - kept:
            if each in self._streams:
                self._end_stream(each)
            else:
                self._fail(each, reason)
        for each in self._asked:
            cancelled = {"requestId": each, "reason": "the server has ended"}
            self._writer.write(envelope.encode_notification("notifications/cancelled", cancelled))
        self._asked.clear()

    def _requests_that_wait(self) -> set[object]:
        return {each for frame in self._waiting for each in requests_in(frame)}

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
        self._repeated = {method: each for method, each in self._repeated.items() if each[0] != request_id}

    def _end(self, request_id: object) -> None:
        self._pending.discard(request_id)
        self._streams.discard(request_id)
        if not self._pending:
            self._idle.set()

    # --- as the endpoint of the host

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for frame in frames:
            if isinstance(frame, OversizedLine):
                self._refuse(frame)
            else:
                self._take(frame)

    def _refuse(self, line: OversizedLine) -> None:
        """Answer a message that is too long, or let the process know that its request is not answered."""
        found = envelope.decode_oversized(line)
        if found.is_answer and self._channel is not None:
            self._channel.write(envelope.encode_error(found.id, Error(found.fault.code, found.reason)))
        elif (refusal := envelope.refusal(found, None)) is not None:
            self._writer.write(refusal)

    def _take(self, frame: bytes) -> None:
        messages, requests = messages_with_bytes(frame), requests_in(frame)
        for each, _ in messages:
            if each.method == "notifications/cancelled":
                self._end(id_in(each.params, "requestId"))  # it is not answered
            elif each.method is UNSET:
                self._asked.pop(each.id, None)
        self._pending.update(requests)
        if requests:
            self._idle.clear()
        size = self._waiting_bytes + len(frame)
        is_too_much = len(self._waiting) >= _MAX_WAITING or size > _MAX_WAITING_BYTES
        must_wait = self._channel is None or self._waiting or self._channel.is_full
        if must_wait and (self._is_away or is_too_much):
            for request_id in requests:
                self._fail(request_id, _IS_AWAY if self._is_away else _IS_BUSY)
            return
        # Of a batch only this message: the functions that others call must not run again.
        self._repeated |= {str(each.method): (each.id, data) for each, data in messages if each.method in _REPEATED}
        if self._channel is not None and not must_wait:
            self._channel.write(frame)
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
                if each.id in self._ignored:
                    self._ignored.discard(each.id)
                    return
                if each.id == self._repeated.get("initialize", (None, b""))[0]:
                    self._lists = list(changing_lists(each))
                self._end(each.id)
            elif each.id is not UNSET:
                self._asked[each.id] = None
                self.last_asked = max(self.last_asked, each.id if isinstance(each.id, int) else 0)
            elif each.method == "notifications/cancelled":
                self._asked.pop(id_in(each.params, "requestId"), None)
            elif each.method == "notifications/subscriptions/acknowledged":
                self._streams.add(id_in(each.params, "_meta", SUBSCRIPTION_ID))
        self._writer.write(frame)
        if self._writer.is_full and self._process is not None:
            self._process.hold()
            self._is_held.set()

    def answered_too_long(self, line: OversizedLine) -> None:
        """Answer the request whose response is too long to be passed on."""
        found = envelope.decode_oversized(line)
        if found.id in self._pending:
            self._fail(found.id, _IS_TOO_LONG.format(limit=line.limit_bytes))
