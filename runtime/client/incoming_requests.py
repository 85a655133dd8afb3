"""The requests that a server of a handshake revision sends to its client.

Spec:
    2024-11-05 to 2025-11-25, client/roots, client/sampling, client/elicitation, basic/utilities/ping; 2025-11-25,
    basic/utilities/tasks, "Associating Task-Related Messages".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct, UnsetType, field

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.client.url_elicitations import check_url
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestError, quoted
from mcpgen.runtime.limits import MAX_FORM_FIELDS
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.envelope import error_json
from mcpgen.runtime.protocol.exception_groups import sole_exception
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.missing_capabilities import capability_names, missing_capabilities
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.sampling_messages import find_imbalance
from mcpgen.runtime.protocol.value_syntax import form_dialect_fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.client.batch_response import BatchResponse
    from mcpgen.runtime.client.client_features import RequestHandler
    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.protocol.messages import Request, RequestId
    from mcpgen.runtime.transports.spawner import StartedFunction

__all__ = ["IncomingRequest", "IncomingRequests", "checked_form", "find_handler"]

# The requests of a client that may come before the server is known.
_OURS = frozenset({"initialize", "server/discover"})

# A field has at least its name, its type and their quotes.
_MIN_FIELD_BYTES: Final = 20

_EMPTY_RESULT = b"{}"
_INTERNAL_ERROR = "the client failed to handle this request"

# The one revision of which messages name the task that they belong to.
_TASKS_REVISION: Final = "2025-11-25"


class _Task(Struct, rename="camel"):
    task_id: str


class _TaskMeta(Struct):
    task: _Task = field(name="io.modelcontextprotocol/related-task")


class _TaskParams(Struct):
    meta: _TaskMeta = field(name="_meta")


_decode_task_params: Final = msgspec.json.Decoder(_TaskParams).decode
_decode_task: Final = msgspec.json.Decoder(_Task).decode

# The params and results of these name tasks, so their metadata is ignored.
_STATE_OF_TASKS: Final = frozenset({"tasks/get", "tasks/list", "tasks/cancel"})
_TASK_RESULT: Final = "tasks/result"


class IncomingRequest(Struct, eq=False):
    """A request of the server whose handler runs.

    Attributes:
        id: Its id.
        method: Its method.
        handler: The handler.
        params: The params, in the native revision.
        size: The memory of the params, and the characters of the id.
        batch: Collects the responses, if the request came in a batch.
        meta: What the ``_meta`` of the result must have: the task of the server that the request belongs to.
        task: The task that runs the handler.
    """

    id: RequestId
    method: str
    handler: RequestHandler
    params: Any
    size: int = 0
    batch: BatchResponse | None = None
    meta: dict[str, object] | None = None
    task: StartedFunction | None = None


class IncomingRequests:
    """The open requests of one server.

    Args:
        session: The session with the server.
        start_handler: Runs the handler of a request. It calls `complete` or `fail` with the outcome.

    Attributes:
        open: The requests without a response, by id.
        running: How many handlers run, those of cancelled requests included.
        held_bytes: The sizes of these.
    """

    def __init__(self, session: ClientSession, start_handler: Callable[[IncomingRequest], None]) -> None:
        self.open: dict[RequestId, IncomingRequest] = {}
        self.running: int = 0
        self.held_bytes: int = 0
        self._session = session
        self._start_handler = start_handler

    def receive(self, message: Request, batch: BatchResponse | None) -> None:
        """Respond to *message*, or start its handler."""
        session = self._session
        if session.is_stateless or not session.offers_handshake:
            # 2026-07-28, basic/transports/stdio: a server MUST NOT send requests, a client MUST NOT write responses.
            session.warn(
                "the server sent the request %s, but its revision does not allow requests of a server; it is ignored",
                quoted(message.method),
            )
            return
        try:
            request = self._check(message, batch)
        except RequestError as error:
            self.send(envelope.encode_error(message.id, error_json(error)), batch)
            return
        if request is None:
            meta = _task_meta(session, message)
            result = _EMPTY_RESULT if meta is None else msgspec.json.encode({"_meta": meta})
            self.send(envelope.encode_response(message.id, result), batch)
            return
        if batch is not None:
            batch.open_requests += 1
        self.open[message.id] = request
        self.running += 1
        self.held_bytes += request.size
        self._start_handler(request)

    def complete(self, request: IncomingRequest, result: Any) -> None:
        """Respond to *request* with the result of its handler.

        Raises:
            InvalidPayload: The native revision does not allow the result.
            AdaptationError: The server's revision cannot express it.
        """
        if self.open.get(request.id) is request:
            meta = request.meta
            if meta is None and self._session.revision == _TASKS_REVISION:
                meta = _created_task_meta(result)
            written = request.handler.codec.result(result, meta)
            self._respond(request, envelope.encode_response(request.id, written))

    def fail(self, request: IncomingRequest, failure: BaseException) -> None:
        """Respond to *request* with what its handler raised."""
        if self.open.get(request.id) is not request:
            return
        failure = sole_exception(failure)
        error = RequestError(ErrorCode.INTERNAL_ERROR, _INTERNAL_ERROR)
        if isinstance(failure, RequestError):
            error = RequestError(failure.code, failure.message, failure.data)
        else:
            self._session.warn("the handler of %s failed", request.method, failure=failure)
        try:
            body = _encode_error(request, error)
        except (InvalidPayload, TypeError, ValueError, RecursionError) as problem:
            self._session.warn(
                "the handler of %s raised an error that cannot be sent, so an internal error is sent instead: %s",
                request.method,
                problem,
            )
            body = error_json(RequestError(ErrorCode.INTERNAL_ERROR, _INTERNAL_ERROR))
        self._respond(request, envelope.encode_error(request.id, body))

    def cancel(self, request_id: RequestId) -> None:
        """Cancel the handler of a request, if it is open. There will be no response."""
        request = self.open.pop(request_id, None)
        if request is None:
            return
        if request.task is not None:
            request.task.cancel()
        if request.batch is not None:
            request.batch.open_requests -= 1
            request.batch.send_if_finished(self._session)

    def cancel_all(self) -> None:
        """Cancel all handlers."""
        for each in list(self.open):
            self.cancel(each)

    def _check(self, message: Request, batch: BatchResponse | None) -> IncomingRequest | None:
        """Return the request for which a handler is to run; None for a ping.

        Raises:
            RequestError: The request is refused.
        """
        session = self._session
        if message.id in self.open:
            raise RequestError(ErrorCode.INVALID_REQUEST, "another request with this id is still open; use a new id")
        if message.method == "ping":
            return None
        if session.server is None and message.method in _OURS:
            raise RequestError(
                ErrorCode.METHOD_NOT_FOUND,
                "the server sent a request that only clients send; check that the server is an MCP server, and not a "
                "program that repeats its input",
            )
        if session.server is None:
            raise RequestError(ErrorCode.METHOD_NOT_FOUND, "the handshake is not complete; send requests after it")
        if max(self.running, len(self.open)) >= session.limits.max_in_flight:
            raise RequestError(
                ErrorCode.INTERNAL_ERROR, "too many requests are pending (max_in_flight); wait for their responses"
            )
        size = len(message.id) if isinstance(message.id, str) else 0
        if not isinstance(message.params, UnsetType):
            size += decoded_bytes(message.params)
        # An error repeats an id of up to 4 MiB, and waits with the other responses of its batch.
        batches = {each.batch for each in self.open.values()} | {batch}
        kept = sum(each.kept_bytes for each in batches if each is not None)
        if self.held_bytes + kept + size > session.limits.max_in_flight_bytes:
            raise RequestError(
                ErrorCode.INTERNAL_ERROR,
                "this request and the pending ones are too large (max_in_flight_bytes); send less at once",
            )
        handler, params = find_handler(session, message.method, message.params)
        meta = _task_meta(session, message)
        return IncomingRequest(message.id, message.method, handler, params, size, batch, meta)

    def _respond(self, request: IncomingRequest, message: bytes) -> None:
        del self.open[request.id]
        batch = request.batch
        if batch is None:
            self._session.respond(message)
            return
        batch.open_requests -= 1
        batch.add_result(message, request.id)
        batch.send_if_finished(self._session)

    def send(self, message: bytes, batch: BatchResponse | None) -> None:
        """Send a response, or add it to those of its batch."""
        if batch is None:
            self._session.respond(message)
            return
        batch.add(message)
        batch.send_if_finished(self._session)


def _task_meta(session: ClientSession, message: Request) -> dict[str, object] | None:
    """Return the ``_meta`` that names the task of a request, for the response to it; None if it has to name none.

    Spec:
        2025-11-25, basic/utilities/tasks, "Related Task Metadata": of the requests about tasks, only the response to
        ``tasks/result`` names the task, which is the one of the params.
    """
    params, method = message.params, message.method
    if session.revision != _TASKS_REVISION or isinstance(params, UnsetType):
        return None
    if method in _STATE_OF_TASKS:
        return None
    try:
        meta = _TaskMeta(_decode_task(params)) if method == _TASK_RESULT else _decode_task_params(params).meta
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    found: dict[str, object] = msgspec.to_builtins(meta)
    return found


def _created_task_meta(result: Any) -> dict[str, object] | None:
    """Return the ``_meta`` that names the task which a handler has created; None if it has created none."""
    task: Any = result.get("task") if is_object(result) else getattr(result, "task", None)
    task_id = task.get("taskId") if is_object(task) else getattr(task, "task_id", None)
    if not isinstance(task_id, str):
        return None
    found: dict[str, object] = msgspec.to_builtins(_TaskMeta(_Task(task_id)))
    return found


def find_handler(session: ClientSession, method: str, raw: Any) -> tuple[RequestHandler, Any]:
    """Return the handler of a server's request, and the decoded params.

    Raises:
        RequestError: The client has not declared the capability, or the server's revision does not allow the params.

    Spec:
        2025-11-25, client/roots, client/sampling, client/elicitation, "Error Handling" each: -32601 for a method that
        is not supported, -32602 for a mode or for tools that were not declared.
    """
    if method == "elicitation/create":
        raw = checked_form(raw)
    revision = session.revision or ""
    handler = session.features.request_handler(revision, method)
    if handler is None or session.client is None:
        raise RequestError(ErrorCode.METHOD_NOT_FOUND, f"this client does not answer {quoted(method)}")
    try:
        try:
            params = handler.codec.params(raw)
        except InvalidPayload:
            normalized = session.reading.payload(revision, method, "params", "server", raw)
            if normalized is None:
                raise
            raw = normalized
            params = handler.codec.params(raw)
        value: dict[str, Any] = msgspec.json.decode(raw) if isinstance(raw, Raw) else {}
    except (InvalidPayload, AdaptationError, msgspec.DecodeError, RecursionError) as error:
        raise RequestError(ErrorCode.INVALID_PARAMS, str(error)) from None
    missing = missing_capabilities(session.client, method, value)
    if missing is not None:
        lacks_method = method.partition("/")[0] in missing and not any(missing.values())
        code = ErrorCode.METHOD_NOT_FOUND if lacks_method else ErrorCode.INVALID_PARAMS
        raise RequestError(code, f"this client has not declared {', '.join(capability_names(missing))}")
    _check_params(session, method, value)
    return handler, params


def checked_form(raw: Any) -> Any:
    """Return the params of an elicitation, each key once, so that the fields that are counted are all that are decoded.

    Raises:
        RequestError: The form has too many fields.
    """
    if not isinstance(raw, Raw) or len(memoryview(raw)) <= MAX_FORM_FIELDS * _MIN_FIELD_BYTES:
        return raw
    try:
        value = msgspec.json.decode(raw)
        fields = value["requestedSchema"]["properties"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return raw  # decoding it exactly explains the error, or there is no form
    if is_object(fields) and len(fields) > MAX_FORM_FIELDS:
        reason = f"the form has {len(fields)} fields; this client reads at most {MAX_FORM_FIELDS}"
        raise RequestError(ErrorCode.INVALID_PARAMS, reason)
    return Raw(msgspec.json.encode(value))


def _check_params(session: ClientSession, method: str, value: dict[str, Any]) -> None:
    """Check valid params beyond their types.

    Raises:
        RequestError: The specification forbids them.
    """
    if method == "sampling/createMessage":
        imbalance = find_imbalance(value["messages"])
        if imbalance is not None:
            raise RequestError(ErrorCode.INVALID_PARAMS, imbalance)
    elif method == "elicitation/create" and value.get("mode") == "url" and "url" in value:
        check_url(value["url"])
        session.url_elicitations.add(value.get("elicitationId"))
    elif method == "elicitation/create" and "requestedSchema" in value:
        unsupported = form_dialect_fault(value["requestedSchema"])
        if unsupported is not None:
            raise RequestError(ErrorCode.INVALID_PARAMS, f"`requestedSchema`: {unsupported}")


def _encode_error(request: IncomingRequest, error: RequestError) -> bytes:
    try:
        return request.handler.codec.error(error.code, error.message, error.data)
    except AdaptationError:  # a stateless native revision has no such errors; all handshake revisions write them alike
        return error_json(error)
