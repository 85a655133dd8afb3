"""Sending a request and waiting for its result: options, progress, timeouts, cancellation, and input for the server.

Theory of operation. The caller's task waits here. It also calls the progress callback, so the callback has returned
before the result does, and its exceptions reach the caller. If the task is cancelled, the request is cancelled.
"""

from __future__ import annotations

import difflib
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

import anyio
import msgspec
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.client import input_required
from mcpgen.runtime.errors import (
    InvalidPayload,
    RequestError,
    RequestLost,
    RequestRefused,
    RequestTimedOut,
    UsageError,
)
from mcpgen.runtime.protocol.argument_checks import check_parameters
from mcpgen.runtime.protocol.finite_numbers import check_finite
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.protocol.spans import has_opentelemetry, note_request_id
from mcpgen.runtime.transports.auto_reset_event import OTHER_LOOP

if TYPE_CHECKING:
    from collections import deque

    from mcpgen.runtime.client.connection import ClientConnection
    from mcpgen.runtime.client.pending_request import PendingRequest, Progress
    from mcpgen.runtime.client.result_cache import CacheKey, ResultCache
    from mcpgen.runtime.protocol.codec import OutgoingRequestCodec
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = [
    "CallOptions",
    "OnProgress",
    "OutgoingRequest",
    "RequestSender",
    "check_call_options",
    "encoded_params",
    "kept_bytes",
]

_LOG = logging.getLogger("mcpgen.client")

# Requests that a server may handle twice without harm.
_ONLY_READ: Final = frozenset(
    {
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    }
)

OnProgress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[object] | object]
"""A plain or async function of progress, total and message. Total and message may be None."""


class CallOptions(TypedDict, total=False):
    """The options of every request."""

    on_progress: OnProgress | None
    """A function that is called with each progress notification, in the task that waits for the result."""
    timeout_seconds: float | None
    """The time limit. Each progress notification restarts it. The default is `ClientLimits.call_seconds`."""
    meta: Mapping[str, object] | None
    """Additional `_meta` of the request. Use keys with a prefix of your own."""


def _meant_options(name: str) -> list[str]:
    """Return the options that *name* resembles: it has a typing mistake, or contains one of their words.

    An argument of a tool, such as ``message``, may have letters in common with ``meta``, but is not meant so.
    """
    known = list(CallOptions.__annotations__)
    words = {option: option.removeprefix("on_").split("_") for option in known}
    return difflib.get_close_matches(name, known, 1, 0.8) or [
        option for option in known if any(word in name for word in words[option])
    ]


def check_call_options(options: CallOptions) -> tuple[OnProgress | None, float | None, Mapping[str, object] | None]:
    """Return ``on_progress``, ``timeout_seconds`` and ``meta``.

    Raises:
        UsageError: An option is unknown, has the wrong type, or cannot be called with its arguments.
    """
    for each in options:
        if each not in CallOptions.__annotations__:
            meant = _meant_options(each)
            if each in {"args", "argument", "arguments", "kwargs", "params", "parameters"}:
                hint = "call_tool(), start_tool() and get_prompt() have `arguments`"
            elif each == "task":
                hint = "call start_tool() to start a tool as a task"
            elif meant:
                hint = f"did you mean `{meant[0]}`?"
            else:
                hint = (
                    f"the options are {', '.join(CallOptions.__annotations__)}; arguments of a tool or prompt go into "
                    f"one dict, such as {{{each!r}: …}}"
                )
            raise UsageError(f"a request has no option `{each}`; {hint}")
    given: dict[str, object] = {**options}
    on_progress, seconds, meta = (given.get(each) for each in ("on_progress", "timeout_seconds", "meta"))
    if on_progress is not None and not callable(on_progress):
        raise UsageError(f"`on_progress` must be a function of progress, total and message, not {on_progress!r}")
    if callable(on_progress):
        check_parameters("on_progress", on_progress, "progress, total and message", 3)
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
        raise UsageError(f"`timeout_seconds` must be a number, not {seconds!r}")
    if meta is not None and not isinstance(meta, Mapping):
        raise UsageError(f"`meta` must be a mapping, such as {{'com.example/key': 1}}, not {meta!r}")
    return options.get("on_progress"), options.get("timeout_seconds"), options.get("meta")


class OutgoingRequest(Struct, frozen=True, kw_only=True):
    """A request to send.

    Attributes:
        method: The method, in the server's revision.
        params: The params, in the server's revision.
        decode_error: Converts the server's error to the native revision.
        token: The progress token in the params.
        on_progress: The progress callback.
        timeout_seconds: How long it may take; None for the client's limit.
        used_seconds: How much of its time in all its call has used before.
        decode_fast: Decodes a result on the fast path; None for one that has to go the regular path.
        is_extended: Whether an extension adds types of results, which the caller decodes.
        is_task: Whether the request is to become a task (2025-11-25).
    """

    method: str
    params: bytes | UnsetType
    decode_error: Callable[[ErrorResponse], RequestError]
    token: RequestId | None = None
    on_progress: OnProgress | None = None
    timeout_seconds: float | None = None
    used_seconds: float = 0.0
    decode_fast: Callable[[Raw], Any] | None = None
    is_extended: bool = False
    is_task: bool = False


class _CallTime(Struct):
    """The time that the requests of one call have waited: the first one, and those with input."""

    used_seconds: float = 0.0


class RequestSender:
    """Sends the requests of one client."""

    def __init__(self, connection: ClientConnection) -> None:
        self._session = connection.session
        self._deadlines = connection.deadlines
        self._connection = connection
        self._make_context = connection.context
        self._runs_here = connection.runs_here
        self._has_spans = has_opentelemetry()

    async def send_cached(self, request: OutgoingRequest, cache: ResultCache, key: CacheKey) -> Raw:
        """Return the final result, undecoded: a fresh one of *cache*, or that of `send`, which is kept under *key*.

        Raises:
            McpgenError: See `send`.
        """
        kept, state = cache.get(key), cache.state
        if kept is not None:
            return kept
        rounds: list[None] = []
        try:
            found: Raw = await self.send(request, rounds)
        except RequestRefused:
            if key[1] is not None and key[0].endswith("/list"):
                # 2026-07-28, server/utilities/caching, "Interaction with Pagination": the cursor may be invalid.
                cache.forget(key[0])
            raise
        if not rounds:  # "Cacheable Results": the result of a retry with input is not kept
            cache.put(key, found, state)
        return found

    async def send(self, request: OutgoingRequest, rounds: list[None] | None = None) -> Any:
        """Return the final result, undecoded unless the fast path has decoded it.

        Input for the server is collected. Each time is noted in *rounds*.

        Raises:
            RequestRefused: The server answered with an error.
            RequestTimedOut: The server did not answer in time.
            TransportClosed: The connection is closed.
            InvalidPayload: The server requires input that it may not require.
        """
        session, params = self._session, request.params
        call_time = _CallTime()
        visited: set[int] = set()  # the hashes of ids, which can have megabytes
        noted: list[None] = [] if rounds is None else rounds
        for _ in range(session.limits.max_rounds + 1):
            try:
                try:
                    found = await self.send_once(request, params, call_time)
                except RequestLost as lost:
                    if not self._may_send_again(request, lost):
                        raise
                    found = await self.send_once(request, params, call_time)
                if request.decode_fast is not None and (value := request.decode_fast(found)) is not None:
                    return value
                required: Raw | input_required.InputRequired = found
                if session.is_stateless:
                    required = input_required.read_input_required(
                        session, request.method, found, is_extended=request.is_extended
                    )
                if isinstance(required, Raw):
                    return required
            except RequestRefused as refusal:
                urls = await self._visit(request.method, refusal, visited)
                if not urls:
                    raise
                visited |= urls
                continue
            del found  # it would keep the whole frame alive
            noted.append(None)
            if len(noted) > session.limits.max_rounds:
                break  # and do not ask the user in vain
            responses = await input_required.collect_input(session, request.method, required, self._make_context)
            params = input_required.retry_params(
                b"{}" if isinstance(params, UnsetType) else params, required, responses
            )
            del required, responses  # a state of megabytes must not stay beside the params that repeat it
        raise input_required.too_many_rounds(session, request.method)

    def _may_send_again(self, request: OutgoingRequest, lost: RequestLost) -> bool:
        """Return whether to send a request once more, because its connection or stream broke and it only reads.

        The caller decides about other requests, such as calls of tools: the server may have handled them.

        Spec:
            2026-07-28, changelog, "Major changes": the client issues such a request again, with a new id.
        """
        is_safe = request.method in _ONLY_READ and self._session.is_stateless
        if not is_safe or lost.is_refusal or lost.is_general:
            return False
        _LOG.info("%s is sent again: %s", request.method, lost)
        return True

    async def _visit(self, method: str, refusal: RequestRefused, visited: set[int]) -> set[int]:
        """Ask the user to visit the URLs that an error of 2025-11-25 lists, without those in *visited* (hashes of ids).

        Return the hashes of the ids of their elicitations; none if there are no such URLs, or the user has not accepted
        all of them.
        """
        session = self._session
        urls = input_required.url_elicitation_required(session, refusal, visited)
        if urls is None or session.is_stateless or method not in input_required.INPUT_REQUIRED_METHODS:
            return set()
        try:
            responses = await input_required.collect_input(
                session, method, urls, self._make_context, kept_bytes=kept_bytes(refusal)
            )
        except InvalidPayload:
            return set()  # the client has not declared URL elicitation: the caller gets the error
        return set(map(hash, urls.input_requests)) if input_required.all_accepted(responses) else set()

    async def send_once(
        self, request: OutgoingRequest, params: bytes | UnsetType, call_time: _CallTime | None = None
    ) -> Raw:
        """Return the result, which may require input. Its wait is added to *call_time*.

        Raises:
            RequestRefused: The server answered with an error.
            RequestTimedOut: The server did not answer in time.
            TransportClosed: The connection is closed.
            UsageError: The timeout is not positive, or another event loop runs.
        """
        if not self._runs_here():
            raise UsageError(OTHER_LOOP)
        limits = self._session.limits
        seconds = limits.call_seconds if request.timeout_seconds is None else request.timeout_seconds
        if not seconds > 0:  # written so that it refuses nan, too
            raise UsageError(f"`timeout_seconds` is {seconds}; it must be greater than 0")
        call_time, waited = call_time or _CallTime(request.used_seconds), 0.0
        if self._connection.is_full:
            began = self._deadlines.now()
            await self.wait_for_room(request.method, seconds)
            waited = self._deadlines.now() - began
            call_time.used_seconds += waited
        pending = self._session.send(request.method, params, token=request.token, is_task=request.is_task)
        self._deadlines.start(pending, seconds, limits.max_call_seconds, call_time.used_seconds, waited)
        if self._has_spans:
            note_request_id(pending.id)
        try:
            while True:
                await pending.event.wait()
                if pending.progress:
                    await _report(pending.progress, pending, request)
                if pending.is_done:
                    break
                # anyio cancels no task whose future is done: a server that never stops sending would keep it running.
                await checkpoint_if_cancelled()
        except BaseException:
            self._session.cancel(pending, "the caller was cancelled")
            raise
        call_time.used_seconds = self._deadlines.used_seconds(pending)
        response = pending.response()
        if isinstance(response, ErrorResponse):
            error = request.decode_error(response)
            del pending, response  # the traceback would keep them, and so the whole frame, while the caller handles it
            raise RequestRefused(request.method, error)
        return response

    async def wait_for_room(self, method: str, seconds: float | None = None) -> None:
        """Return when the server has read most of the earlier messages.

        Raises:
            RequestTimedOut: The server does not read.
        """
        if self._connection.is_full:
            seconds = self._session.limits.call_seconds if seconds is None else seconds
            with anyio.move_on_after(seconds) as scope:
                await self._connection.channel.drain()
            if scope.cancelled_caught:
                event = f"the server did not read the earlier messages, so {method} could not be sent"
                raise RequestTimedOut(method, seconds, event=event)


def kept_bytes(refusal: RequestRefused) -> int:
    """Return the memory of the text and the data of *refusal*."""
    data, size = refusal.data, sys.getsizeof(refusal.message)
    return size if data is UNSET else size + decoded_bytes(Raw(msgspec.json.encode(data)))


async def _report(progress: deque[Progress], pending: PendingRequest, request: OutgoingRequest) -> None:
    # After a failure, such as the end of its time, the caller waits for one slow callback, not for a hundred.
    while progress and not pending.has_failed:
        each = progress.popleft()
        if request.on_progress is not None:
            outcome = request.on_progress(each.progress, each.total, each.message)
            if inspect.isawaitable(outcome):
                await outcome


def encoded_params(ask: OutgoingRequestCodec, params: Any, meta: Mapping[str, object] | None) -> Any:
    """Return the encoded *params* of a request.

    Raises:
        UsageError: They are not valid. `InvalidPayload` would blame the server.
    """
    try:
        encoded = ask.params(params, meta)
    except InvalidPayload as error:
        raise UsageError(f"{error}; correct the arguments of the call") from error
    check_finite(params, encoded)
    return encoded
