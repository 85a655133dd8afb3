"""The records of a server's sessions: requests that are being served, and requests to the client.

An *exchange* is one run of a handler. Most exchanges have one request. A client of a stateless revision answers a
server's request by sending its own request again. The exchange then continues under a new id, perhaps on another
connection; in between it has no open request.

Spec:
    2026-07-28, basic/patterns/mrtr, "Basic Workflow".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import RequestRefused, TransportClosed, UsageError

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.codec import IncomingRequestCodec, OutgoingRequestCodec
    from mcpgen.runtime.protocol.messages import ErrorResponse, RequestId
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.batch_response import BatchResponse
    from mcpgen.runtime.server.quota import Entry
    from mcpgen.runtime.server.session_output import SessionOutput
    from mcpgen.runtime.server.tasks.running_task import RunningTask
    from mcpgen.runtime.transports.spawner import StartedFunction

__all__ = [
    "Call",
    "Exchange",
    "InputRound",
    "MethodHandler",
    "OpenRequest",
    "RequestEnded",
    "ResponseBody",
    "ServerRequest",
    "Session",
]

Call: TypeAlias = Callable[[Any, Any], Awaitable[Any]]
"""A handler: called with params and context."""


class RequestEnded(TransportClosed):
    """The request that a handler works on was answered or cancelled, or its client has disconnected.

    A handler that loses another server gets other errors of the type `TransportClosed`.
    """


class ResponseBody(Struct, frozen=True):
    """The JSON of a result or of an error."""

    json: bytes
    is_error: bool = False


class MethodHandler(Struct, frozen=True, kw_only=True, eq=False):
    """How one method is served to the peers of one revision.

    Attributes:
        method: Its name.
        codec: Translates between the peer's JSON and values of the native revision.
        call: The author's handler, with middleware around it.
        may_request_input: Whether the result may be an ``InputRequiredResult`` (2026-07-28, basic/patterns/mrtr,
            "Supported Requests").
        fast_path: Returns a handler for one function and its decoded arguments; None if the call needs this one.
        slow_path: Set in what a fast path returns: the handler of the whole method.
        text_frame: Likewise: the JSON of a result before and after its text.
        structured_frame: Likewise: the JSON of a result before, between and after its text and its structured content;
            None if the revision has no structured content.
        takes_context: Likewise: whether the function takes a context. Without one it cannot send anything.
        may_wait: Likewise: whether the function may wait.
        has_begun: Whether the function has begun, and waits. Then its task must wait for nothing else: a time limit or
            task group in the function cancels the task, and expects that the function gets the cancellation.
        extension: The identifier of the extension that the method belongs to; empty for a method of the protocol.
        is_extended: Whether an extension adds results to the method.
    """

    method: str
    codec: IncomingRequestCodec
    call: Call
    may_request_input: bool = False
    fast_path: Callable[[RequestMeta], tuple[MethodHandler, Any] | None] | None = None
    slow_path: MethodHandler | None = None
    text_frame: tuple[bytes, bytes] | None = None
    structured_frame: tuple[bytes, bytes, bytes] | None = None
    takes_context: bool = True
    may_wait: bool = True
    has_begun: bool = False
    extension: str = ""
    is_extended: bool = False

    def handshake_params(self, raw: Raw | UnsetType, meta: Mapping[str, Any] | None = None) -> Any:
        """Return the params of a request of a handshake revision, which cannot be a retry.

        Such a client gets no `requestState`, so one that it sends is made up. Handlers rely on the signature.
        """
        params = self.codec.params(raw, meta)
        if getattr(params, "request_state", UNSET) is UNSET and getattr(params, "input_responses", UNSET) is UNSET:
            return params
        return msgspec.structs.replace(params, input_responses=UNSET, request_state=UNSET)


class OpenRequest(Struct, eq=False):
    """A client's request that has no response yet.

    Attributes:
        session: The session that it came by.
        id: Its id.
        peer: The client that sent it, as the request or the handshake describes it.
        progress_token: The token for progress notifications.
        log_level: The least severe log entries that it asks for; UNSET: those that the session asks for.
        batch: Collects the responses, if it came in a batch.
        on_cancel: Called when it is cancelled, if no handler runs for it.
        stream: What its response is sent on, if the connection has several streams; used by the transport only.
        size: The bytes that it costs while a handler runs for it; 0 if they are not known yet.
        held_bytes: The bytes that are charged for it, if no handler runs for it.
        access: What its access token allows; None if it has none.
        is_retry: Whether it has a request state, or answers to requests of the server.
        related_task: The task of the client that its result has to name; "" for none.
    """

    session: Session
    id: RequestId
    peer: Peer
    progress_token: RequestId | UnsetType = UNSET
    log_level: str | UnsetType = UNSET
    batch: BatchResponse | None = None
    on_cancel: Callable[[], object] | None = None
    stream: Any = None
    size: int = 0
    held_bytes: int = 0
    access: Access | None = None
    is_retry: bool = False
    related_task: str = ""


class ServerRequest(Struct, eq=False):
    """A request of the server to its client, and the result when there is one.

    Attributes:
        codec: Decodes the result into the native revision.
        params: The params as the client's revision writes them.
        value: The params in the native revision.
        on_done: Called once, when there is a result or an error.
        key: The id, or for a stateless client the key in ``inputRequests``.
        held_bytes: The bytes that are charged for it while it waits for an answer.
        exchange: Whose handler made it, if it was sent as a message of its own, and if a handler of a request made it.
        keep: Charges bytes of the answer, if a handler of a notification made it; returns whether there is room.
        is_done: Whether there is a result or an error.
    """

    codec: OutgoingRequestCodec
    params: bytes | UnsetType
    value: Any
    on_done: Callable[[], None] | None = None
    key: str = ""
    held_bytes: int = 0
    exchange: Exchange | None = None
    keep: Callable[[int], bool] | None = None
    is_done: bool = False
    _result: Any = None
    _failure: Exception | None = None

    def set_result(self, result: Any) -> None:
        """End the request with a decoded *result*."""
        self._result = result
        self._done()

    def set_error(self, response: ErrorResponse) -> None:
        """End the request with the client's error response."""
        self.fail(RequestRefused(self.codec.method, self.codec.error(response)))

    def fail(self, failure: Exception) -> None:
        """End the request with an exception."""
        self._failure = failure
        self._done()

    def disconnect(self) -> None:
        """End the request because the client has disconnected."""
        self.fail(RequestEnded("the client disconnected before it answered"))

    def result(self) -> Any:
        """Return the result.

        Raises:
            RequestRefused: The client answered with an error.
            InvalidPayload: The result is not valid in the client's revision.
            UnsupportedByPeer: The client that retried has not declared the capability any more.
            TransportClosed: The client has disconnected.
        """
        failure, self._failure = self._failure, None
        if failure is None:
            return self._result
        try:
            raise failure
        finally:
            del failure  # its traceback has this frame: a cycle, which would keep the request until the next collection

    def _done(self) -> None:
        if self.is_done:
            return
        self.is_done = True
        if self.on_done is not None:
            self.on_done()


class InputRound(Struct, eq=False):
    """One ``InputRequiredResult`` that was sent to a stateless client.

    Attributes:
        token: Names the round; the sealed request state holds it.
        exchange: The exchange that waits for the input.
        expires: When the client's time to retry ends, on the clock of `ParkedRequests`.
        exchange_bytes: The bytes that the exchange costs.
        entry: Its entry in the quota of `ParkedRequests`.
        is_resumed: Whether a retry has come.
        response: What the retry was answered with.
        duplicates: Further retries with the same state that wait for the same response.
    """

    token: str
    exchange: Exchange
    expires: float
    exchange_bytes: int
    entry: Entry | None = None
    is_resumed: bool = False
    response: ResponseBody | None = None
    duplicates: list[OpenRequest] = []


class Exchange(Struct, eq=False):
    """One run of a handler.

    Attributes:
        request: The open request; None while the exchange waits for a retry.
        handler: How its method is served.
        params: The params in the native revision.
        raw: The params as they came.
        has_ended: Whether it has its final response, or was cancelled.
        is_flushing: Whether an ``InputRequiredResult`` is about to be sent.
        lacks_capability: Whether the handler has tried a request that its client does not support.
        server_requests: The handler's requests to the client that are not done, by key.
        delayed_requests: How many requests of the handler wait until they may be made.
        key_counts: How often each key was used.
        earlier_responses: The client's results so far, by key, for running the handler again.
        cannot_replay: Whether those were too many for a request state.
        input_round: The round that the open request resumed.
        round_count: How many rounds there were.
        unsent_response: The response of a handler that ended while there was no open request.
        progress: The last progress that was sent; progress only ever grows.
        handle: Stops the handler.
        task: The task that the request became. The request is answered then; the handler's result is the task's.
        last_peer: The client of the last open request.
        last_access: What the access token of the last open request allowed.
        session: The session that runs the handler.
        size: The bytes that are charged to that session until the handler has ended, those of the client's answers
            included; 0 while it is parked.
    """

    request: OpenRequest | None
    handler: MethodHandler
    params: Any
    raw: Raw | UnsetType
    has_ended: bool = False
    is_flushing: bool = False
    lacks_capability: bool = False
    server_requests: dict[str, ServerRequest] = {}
    delayed_requests: int = 0
    key_counts: dict[str, int] = {}
    earlier_responses: dict[str, Raw] = {}
    cannot_replay: bool = False
    input_round: InputRound | None = None
    round_count: int = 0
    unsent_response: ResponseBody | None = None
    progress: float | None = None
    handle: StartedFunction | None = None
    task: RunningTask | None = None
    last_peer: Peer | None = None
    last_access: Access | None = None
    session: Session | None = None
    size: int = 0

    @property
    def peer(self) -> Peer:
        """The client of the open request, or of the last one."""
        if self.request is not None:
            return self.request.peer
        if self.last_peer is None:  # unreachable: an exchange begins with an open request
            raise UsageError("the client is not known before its first request has arrived")
        return self.last_peer

    def retry_param(self, name: str, default: Any) -> Any:
        """Return a param of a retry; *default* on the fast path, where the params are a function's arguments."""
        found = UNSET if self.handler.slow_path is not None else getattr(self.params, name, UNSET)
        return default if found is UNSET else found

    def charge(self, size: int) -> None:
        """Charge *size* bytes more, or less if negative, to the session that runs the handler."""
        if self.session is not None:
            self.size += size
            self.session.charge(size)

    def abandon(self) -> None:
        """Stop the handler of a parked exchange, which gets no response."""
        self.has_ended = True
        self.withdraw_requests()
        if self.handle is not None:
            self.handle.cancel()

    def withdraw_requests(self) -> None:
        """Withdraw the requests to the client that are not done, because the exchange is over."""
        for each in list(self.server_requests.values()):
            if self.request is not None:
                self.request.session.withdraw(each, self)
            each.disconnect()
        self.server_requests.clear()
        self.earlier_responses = {}  # `ParkedRequests` keeps the exchange for a while, but never runs it again


class Session(Protocol):
    """What an open request needs of its session, a `ServerSession`.

    Attributes:
        user: The authenticated user; empty if the transport does not know.
        owner: Whom limits are shared among: the user, or else the address.
        access: What the access token of the HTTP request allows that is being read; None if there is none.
        log_level: The least severe log entries that the session asks for.
        output: The connection.
        exchanges: The open requests, by id.
    """

    user: str
    owner: str
    access: Access | None
    log_level: str | UnsetType
    output: SessionOutput
    exchanges: dict[RequestId, Exchange | OpenRequest]

    def reply(self, request: OpenRequest, body: ResponseBody, /) -> None:
        """Answer *request*."""
        ...

    def withdraw(self, request: ServerRequest, exchange: Exchange | None, /) -> None:
        """Withdraw *request* if the client has not answered it."""
        ...

    def charge(self, size: int, /) -> None:
        """Charge *size* bytes more, or less if negative, for what its handlers keep."""
        ...
