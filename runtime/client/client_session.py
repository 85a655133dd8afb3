"""The state of one connection of a client: what it has sent, and what it knows of its server. No waiting, no clock.

A request becomes a `PendingRequest`, and its response wakes the task that waits for it. That task also decodes the
response, so an invalid response fails one request only. `MessageDispatcher` handles the frames that the server sends.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, client/*; 2026-07-28, basic/transports/stdio, "Receiving Messages".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.client.pending_request import PendingRequest
from mcpgen.runtime.client.subscriptions import Subscriptions, kept_end
from mcpgen.runtime.client.url_elicitations import UrlElicitations
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import MAX_ID_CHARS
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.messages import ErrorResponse, Notification, RequestId, Response
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from mcpgen.runtime.client.client_features import ClientFeatures, NotificationHandler
    from mcpgen.runtime.client.pending_request import RawResponse
    from mcpgen.runtime.client.result_cache import ResultCache
    from mcpgen.runtime.client.subscriptions import Change, ChangeStream
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.capabilities import Peer, ServerPeer
    from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
    from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent
    from mcpgen.runtime.transports.spawner import StartedFunction

__all__ = ["ClientSession", "SessionOutput"]

# A server that floods the client with nonsense must not fill a disk.
_MAX_WARNINGS: Final = 20
_MAX_SKIPPED: Final = 2**52  # the ids after it are still below 2**53, and no session gets to greater ones

_TASK_RESULT: Final = "tasks/result"  # of 2025-11-25
_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"

_LOG = traceback_logger("mcpgen.session")


class SessionOutput(Protocol):
    """What a session uses of the shell that runs it."""

    @property
    def is_full(self) -> bool:
        """Whether the server reads too slowly."""
        ...

    @property
    def new_event(self) -> Callable[[], AutoResetEvent]:
        """Make the event that a caller waits for."""
        ...

    def write(self, message: bytes, /) -> None:
        """Send *message*."""
        ...

    def revision_agreed(self) -> None:
        """Handle the notifications that came before the revision was agreed."""
        ...

    def extend_deadline(self, request: PendingRequest) -> None:
        """Give *request* its full time again, since there was progress."""
        ...

    def queue_notification(self, handler: NotificationHandler, params: Raw | UnsetType) -> None:
        """Run the handler of a notification, after those of the earlier notifications."""
        ...

    def start(self, function: Callable[[], Coroutine[Any, Any, None]], /) -> None:
        """Run *function* beside the handlers. Do nothing while the server is started again."""
        ...


class _CancelledParams(Struct, rename="camel"):
    request_id: RequestId
    reason: str | UnsetType = UNSET
    meta: dict[str, object] | UnsetType = field(name="_meta", default=UNSET)


class _Task(Struct, rename="camel"):
    task_id: str


class _TaskCreated(Struct):
    task: _Task


_decode_created: Final = msgspec.json.Decoder(_TaskCreated).decode


class ClientSession:
    """One connection of a client.

    Attributes:
        features: What the client offers to the server.
        limits: The client's limits.
        output: The shell.
        reading: How the messages of the server are read.
        server: The server, once a revision is agreed; None before.
        client: This client, as that server sees it.
        offers_handshake: Whether the client offers a revision whose servers may send requests.
        pending: The open requests of the client, by id.
        subscriptions: The changes that the client listens for.
        cache: Keeps results while they are fresh; None if the client keeps none.
        url_elicitations: The ids of the URL elicitations that the server may report as completed.
        log_level: The least severe log entries that the client wants from a stateless server.
        failure: Why nothing can be sent any more; None while the connection is open.
        on_tools_changed: Called when the server reports that its list of tools has changed.
        tools_are_old: Whether the tools may have changed since `tools/list` was last sent.
        early_notifications: Those that came before a revision was agreed.
        input_count: The requests in results and errors whose handlers run, of all calls.
        input_bytes: The memory of these.
        input_scopes: What cancels these handlers when the connection ends.
    """

    def __init__(
        self, features: ClientFeatures, limits: ClientLimits, output: SessionOutput, reading: ReadingPolicy
    ) -> None:
        self.features = features
        self.limits = limits
        self.output = output
        self.reading = reading
        self.server: ServerPeer | None = None
        self.client: Peer | None = None
        self.offers_handshake: bool = True
        self.pending: dict[RequestId, PendingRequest] = {}
        self.subscriptions: Subscriptions = Subscriptions(limits.max_changes)
        self.cache: ResultCache | None = None
        self.url_elicitations: UrlElicitations = UrlElicitations()
        self.log_level: str | None = None
        self.failure: Exception | None = None
        self.on_tools_changed: Callable[[], None] | None = None
        self.tools_are_old: bool = False
        self.early_notifications: list[Notification] = []
        self.input_count: int = 0
        self.input_bytes: int = 0
        self.input_scopes: set[StartedFunction] = set()
        self._by_token: dict[RequestId, PendingRequest] = {}
        self._cancelled_tasks: dict[RequestId, None] = {}  # requests that are to become tasks, without a response yet
        self._last_id = 0
        self._warnings = 0
        self._overrun_bytes = 0  # of responses that were written while the output was full

    @property
    def is_stateless(self) -> bool:
        """Whether a stateless revision is agreed."""
        return self.server is not None and self.server.era == "stateless"

    @property
    def revision(self) -> str | None:
        """The revision that is agreed; None before."""
        return None if self.server is None else self.server.revision

    def agree(self, server: ServerPeer) -> None:
        """Store the server, whose revision is agreed now."""
        self.server = server
        self.client = self.features.as_peer(server.revision)
        self.output.revision_agreed()

    def next_token(self) -> int:
        """Return a progress token that this session has not used. It is taken from the same numbers as the ids."""
        self._last_id += 1
        while self._last_id in self._by_token:  # a caller has chosen it
            self._last_id += 1
        return self._last_id

    def own_token(self, meta: Mapping[str, Any]) -> RequestId | None:
        """Return the progress token that a caller has written into *meta*, the ``_meta``; None if there is none.

        Raises:
            UsageError: An open request has it.

        Spec:
            2025-11-25, basic/utilities/progress, "Progress Flow": unique across all active requests.
        """
        token = meta.get("progressToken")
        if not isinstance(token, str | int):
            return None
        if token in self._by_token:
            raise UsageError(f"`_meta` has the progressToken {token!r}, which another open request has; choose another")
        return token

    def send(
        self,
        method: str,
        params: bytes | UnsetType,
        *,
        token: RequestId | None = None,
        stream: ChangeStream | None = None,
        is_task: bool = False,
    ) -> PendingRequest:
        """Send a request.

        Args:
            method: The method, in the server's revision.
            params: The params, in the server's revision.
            token: The progress token in the params.
            stream: The stream that `subscriptions/listen` opens. The response sets the stream's event.
            is_task: Whether the request is to become a task (2025-11-25).

        Spec:
            2025-11-25, basic/utilities/progress, "Progress Flow": a task has its token until it has ended.
        """
        if is_task and isinstance(token, int) and self._last_id < token < _MAX_SKIPPED:
            self._last_id = token  # a caller has chosen it: `next_token` must not give it to another request
        self._last_id += 1
        request = PendingRequest(
            self._last_id, method, self.output.new_event() if stream is None else stream.event, token, is_task=is_task
        )
        if method == _TASK_RESULT:
            request.task_params = params
        elif method == "tools/list":
            self.tools_are_old = False
        if self.failure is not None:
            request.fail(self.failure)
            return request
        self.pending[request.id] = request
        if token is not None:
            self._by_token[token] = request
        if stream is not None:
            self.subscriptions.streams[request.id] = stream
        self.output.write(envelope.encode_request(request.id, method, params))
        return request

    def notify(self, method: str, params: bytes | UnsetType = UNSET) -> None:
        """Send a notification."""
        if self.failure is None:
            self.output.write(envelope.encode_notification(method, params))

    def respond(self, message: bytes) -> None:
        """Send a response. Drop it if the server sends many requests and does not read the responses."""
        if not self.output.is_full:
            self._overrun_bytes = 0
        elif self._overrun_bytes >= self.limits.max_buffered_bytes:
            self.warn("a response is dropped: the server sends requests, but does not read the responses to them")
            return
        else:
            self._overrun_bytes += len(message)
        self.output.write(message)

    def resolve(self, request: PendingRequest, response: RawResponse) -> None:
        """Finish *request* with its response, and the stream that it opened: nothing may come on that afterwards."""
        self.forget(request)
        is_stream = self.subscriptions.streams.pop(request.id, None) is not None
        request.resolve(kept_end(response) if is_stream else response)

    def fail_request(self, request: PendingRequest, failure: Exception) -> None:
        """Finish *request*, whose response cannot be read, and the stream that it opened."""
        self.forget(request)
        self.subscriptions.streams.pop(request.id, None)
        request.fail(failure)

    def forget(self, request: PendingRequest) -> bool:
        """Forget *request*. Return whether it was open."""
        if request.token is not None and self._by_token.get(request.token) is request:
            del self._by_token[request.token]
        return self.pending.pop(request.id, None) is not None

    def cancel(self, request: PendingRequest, reason: str) -> None:
        """Forget *request*, and notify the server that it is cancelled.

        Spec:
            2025-11-25, basic/utilities/cancellation: the `initialize` request MUST NOT be cancelled; 2026-07-28,
            basic/patterns/cancellation. The probe is not cancelled either: a server of a handshake revision need not be
            able to read a notification before `initialize`. 2025-11-25, basic/utilities/cancellation: a request that is
            to become a task is cancelled with `tasks/cancel` only, for which its response must come first.
        """
        if not self.forget(request) or self.server is None:
            return
        if request.is_task:
            self._cancelled_tasks[request.id] = None
            if len(self._cancelled_tasks) > self.limits.max_in_flight:
                del self._cancelled_tasks[next(iter(self._cancelled_tasks))]
        else:
            cancelled = _CancelledParams(request.id, reason, _task_meta(request))
            self.notify("notifications/cancelled", msgspec.json.encode(cancelled))

    def cancel_late_task(self, response: Response | ErrorResponse) -> bool:
        """Cancel the task that a cancelled request has become. Return whether *response* was for such a request."""
        if response.id is None or response.id not in self._cancelled_tasks:
            return False
        del self._cancelled_tasks[response.id]
        if isinstance(response, Response):
            try:
                task_id = _decode_created(response.result).task.task_id
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return True  # the server has not made a task of it
            if len(task_id) <= MAX_ID_CHARS:  # the server could choose ids of megabytes, and not read
                self.cancel_task(msgspec.json.encode({"taskId": task_id}))
        return True

    def cancel_task(self, params: bytes | UnsetType) -> None:
        """Send `tasks/cancel` with *params*, and do not wait for the response, if the server has declared the request.

        Spec:
            2025-11-25, basic/lifecycle, "Operation": both parties use only capabilities that were negotiated. The
            extension of 2026-07-28 has no capability of its own for this request.
        """
        server, method = self.server, "tasks/cancel"
        if self.is_stateless or (server is not None and offers(server.declared, server.revision, method)):
            self.forget(self.send(method, params))

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        """Fail one request with *failure*. The connection continues."""
        request = self.pending.get(request_id)
        if request is None:
            _LOG.debug(
                "the transport reported that the request %r was lost, but the client does not wait for it: %s",
                request_id,
                failure,
            )
            return
        self.subscriptions.end_stream(request_id, failure)
        self.forget(request)
        request.fail(failure)

    def changed(self, change: Change) -> None:
        """Forget what the client keeps of a list or a resource that has changed, or may have changed."""
        if change.kind == "tools":
            self.tools_changed()
        if self.cache is not None:
            self.cache.changed(change)

    def tools_changed(self) -> None:
        """Forget what the client keeps of the list of tools."""
        self.tools_are_old = True
        if self.on_tools_changed is not None:
            self.on_tools_changed()

    def by_token(self, token: RequestId) -> PendingRequest | None:
        """Return the open request with this progress token."""
        return self._by_token.get(token)

    def fail(self, failure: Exception) -> None:
        """Fail all that is pending, and all that is sent from now on: the connection is closed."""
        self.failure = failure
        pending, self.pending = list(self.pending.values()), {}
        self._by_token.clear()
        for each in pending:
            each.fail(failure)
        self.subscriptions.fail(failure)
        for scope in self.input_scopes:
            scope.cancel()

    def warn(self, what: str, *details: object, failure: BaseException | None = None) -> None:
        """Log a fault of the server or of a handler: the first as warnings, the rest at the level DEBUG."""
        self._warnings += 1
        level = logging.WARNING if self._warnings <= _MAX_WARNINGS else logging.DEBUG
        _LOG.log(level, what, *details, exc_info=failure)


def _task_meta(request: PendingRequest) -> dict[str, object] | UnsetType:
    """Return the ``_meta`` of a message about *request*, which names the task that the request waits for, if any.

    Spec:
        2025-11-25, basic/utilities/tasks, "Related Task Metadata": all requests, responses, and notifications.
    """
    if isinstance(request.task_params, UnsetType):
        return UNSET
    params: dict[str, object] = msgspec.json.decode(request.task_params)
    return {_RELATED_TASK: {"taskId": params.get("taskId")}}
