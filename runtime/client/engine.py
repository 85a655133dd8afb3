"""A client at work: it encodes requests for the server's revision, sends them, and decodes the results.

`mcpgen.runtime.client.base_client.BaseClient` is what users see of it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Unpack

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpgen.generated import registry
from mcpgen.runtime.client.changes import SUBSCRIBE, Changes
from mcpgen.runtime.client.declared_methods import DeclaredMethods, Undeclared, unsupported
from mcpgen.runtime.client.extensions import (
    check_result_type,
    filters_json,
    find_extension,
    has_untyped_extension,
    is_foreign_result,
    without_keys_of_meta,
)
from mcpgen.runtime.client.fast_path import TOOLS_CALL, FastCall
from mcpgen.runtime.client.outgoing_notifications import OutgoingNotifications
from mcpgen.runtime.client.outgoing_requests import (
    CallOptions,
    OutgoingRequest,
    RequestSender,
    check_call_options,
    encoded_params,
)
from mcpgen.runtime.client.pending_request import error_as_received
from mcpgen.runtime.client.result_reader import ResultReader
from mcpgen.runtime.client.translated_methods import TranslatedMethods
from mcpgen.runtime.errors import AdaptationError, InvalidStructuredContent, UnknownMethod, UsageError
from mcpgen.runtime.protocol.capabilities import has_capability
from mcpgen.runtime.protocol.codec import OutgoingRequestCodec, codec
from mcpgen.runtime.protocol.finite_numbers import check_finite
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.newest import NEWEST, MetaKey
from mcpgen.runtime.protocol.spans import Operation, client_span, has_opentelemetry
from mcpgen.runtime.transports.event_loops import next_turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence

    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.connection import ClientConnection
    from mcpgen.runtime.client.connection_task import ConnectionTask
    from mcpgen.runtime.client.extensions import ClientExtension
    from mcpgen.runtime.client.output_validation import OutputValidator
    from mcpgen.runtime.client.tool_tasks import ToolTasks
    from mcpgen.runtime.errors import RequestError
    from mcpgen.runtime.protocol.capabilities import ServerPeer
    from mcpgen.runtime.protocol.messages import ErrorResponse
    from mcpgen.runtime.protocol.spans import Outcome
    from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter

__all__ = ["ClientEngine"]

_TASKS: Final = "io.modelcontextprotocol/tasks"

# Smaller results take less than a millisecond to decode.
_LARGE_BYTES: Final = 16 * 1024


class ClientEngine:
    """A client at work.

    Args:
        task: The task that owns the connection.
        connection: The connection, with an agreed revision.
        native_revision: The revision in whose types the caller reads and writes.
        validator: Checks structured content.
        undeclared: What to do about undeclared capabilities; None for what the revision says.

    Attributes:
        call: Returns the result of a request: `_call`, within a span if the program uses OpenTelemetry.
        call_extension: Likewise `_call_extension`.
        client: The client, which the maker of the engine sets.
        server: The server, in the agreed revision.
        declared: The requests that the server has declared.
        notifications: Sends notifications to the server.
        native_meta: The `_meta` that the native revision wants in each request.
        translated: Serves the requests that the server's revision does not have.
    """

    def __init__(
        self,
        task: ConnectionTask,
        connection: ClientConnection,
        native_revision: str,
        validator: OutputValidator,
        undeclared: Undeclared | None = None,
    ) -> None:
        self.client: Any = None
        self.task: ConnectionTask = task
        self.connection: ClientConnection = connection
        self.session: ClientSession = connection.session
        server = self.session.server
        if server is None:
            raise UsageError("do not create a client yourself; write: async with connect(…) as client")
        self.server: ServerPeer = server
        self.native_revision: str = native_revision
        self.declared: DeclaredMethods = DeclaredMethods(server, undeclared)
        self.translated: TranslatedMethods = TranslatedMethods(
            self.session, ask_json=self.ask_json, require=self.declared.require, subscribe=self._subscribe
        )
        self._validator = validator
        self._sender = RequestSender(connection)
        self._reader = ResultReader(native_revision, server.revision, self.session.reading)
        self._codec = codec(native_revision, server.revision, "client")
        self.notifications: OutgoingNotifications = OutgoingNotifications(
            self.session, server, self._codec, self._sender
        )
        self._request_codecs: dict[str, OutgoingRequestCodec] = {}  # of methods that the server has declared
        self._fast_call: FastCall | None = None
        self.native_meta: dict[str, object] = self.session.features.meta(native_revision)
        self._peer_meta: dict[str, object] | None = (
            None if server.revision == native_revision else self.session.features.meta(server.revision)
        )
        self._extended: frozenset[str] = frozenset(
            method for each in self.session.features.extensions if each.is_agreed(server) for method in each.changed
        )
        self._has_foreign_results = has_untyped_extension(self.session.features, server)
        self.tool_tasks: ToolTasks | None = self._tool_tasks()
        self.session.on_tools_changed = self._forget_tools
        self.call: Callable[..., Awaitable[Any]] = self._call
        self.call_extension: Callable[..., Awaitable[Any]] = self._call_extension
        if has_opentelemetry():
            self.call = self._call_with_span
            self.call_extension = self._call_extension_with_span

    def _tool_tasks(self) -> ToolTasks | None:
        """Return the tasks of the server, if it may run tools as tasks."""
        declared = has_capability(self.server.declared, ("tasks", "requests", "tools", "call"))
        if not declared and not any(each.id == _TASKS for each in self.session.features.extensions):
            return None
        from mcpgen.runtime.client.tool_tasks import tool_tasks  # noqa: PLC0415 (few servers have tasks)

        return tool_tasks(self, self.server)

    def _forget_tools(self) -> None:
        self._validator.forget()
        if self.tool_tasks is not None:
            self.tool_tasks.forget()

    async def _call(
        self,
        method: str,
        value: dict[str, Any],
        *,
        sizes: list[int] | None = None,
        keeps_tasks: bool = False,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Return the result of a request. Both are in the native revision.

        Args:
            method: The method.
            value: The params.
            sizes: Gets the memory of the result.
            keeps_tasks: Whether a result of an extension, such as a task, is returned as it came.
            **options: See `CallOptions`.
        """
        on_progress, timeout_seconds, meta = check_call_options(options) if options else (None, None, None)
        ask = self._request_codecs.get(method) or self._request_codec(method)
        log_level = self.session.log_level
        if method == TOOLS_CALL and self._fast_call is not None and not (on_progress or meta or log_level):
            params = self._fast_call.params(value)
            if params is not None:
                request = OutgoingRequest(
                    method=TOOLS_CALL,
                    params=params,
                    decode_error=ask.error,
                    timeout_seconds=timeout_seconds,
                    decode_fast=self._fast_call.result,
                    is_extended=method in self._extended or self._has_foreign_results,
                )
                found = await self._sender.send(request)
                return await self._read(ask, value, found, keeps_tasks) if type(found) is Raw else found
        cache = self.session.cache
        cache_key = None if cache is None else cache.key(method, value, meta)
        if "task" in value:
            self.declared.require_task(method)
        whole_meta = {**value.get("_meta", {}), **(meta or {}), **self.native_meta}
        if on_progress is not None:
            whole_meta["progressToken"] = self.session.next_token()
        token = self.session.own_token(whole_meta)
        peer_meta = self._peer_meta
        if log_level is not None:
            level = {MetaKey.LOG_LEVEL: log_level}
            whole_meta |= level if self.native_meta else {}
            peer_meta = None if peer_meta is None else {**peer_meta, **level}
        if whole_meta:
            value = {**value, "_meta": whole_meta}
        request = OutgoingRequest(
            method=method,
            params=encoded_params(ask, value, peer_meta),
            decode_error=ask.error,
            token=token,
            on_progress=on_progress,
            timeout_seconds=timeout_seconds,
            is_extended=method in self._extended or self._has_foreign_results,
            is_task="task" in value,
        )
        if cache is None or cache_key is None:
            raw = await self._sender.send(request)
        else:
            raw = await self._sender.send_cached(request, cache, cache_key)
        if sizes is not None:
            sizes.append(decoded_bytes(raw))
        return await self._read(ask, value, raw, keeps_tasks)

    async def request(self, method: Any, params: Any) -> Any:
        """Return the result of a request of the generated ``methods`` of the native revision."""
        extension = find_extension(self.session.features.extensions, method)
        if extension is not None:
            return await self.call_extension(extension, method.name, params)
        value: dict[str, Any] = {} if params is UNSET else msgspec.to_builtins(params)
        if method.name == TOOLS_CALL and self.tool_tasks is not None and not self.session.is_stateless:
            return await self.tool_tasks.call_raw(value)
        translated = await self.translated.serve(method.name, value)
        if translated is None:
            return await self.call(method.name, value)
        types = registry.revision(self.native_revision).bindings().models
        return types.decode(msgspec.json.encode(translated), method.result)

    async def _call_with_span(self, method: str, value: dict[str, Any], **options: Any) -> Any:
        with self._span(method, value, options) as outcome:
            result = await self._call(method, value, **options)
            outcome.set(result)
        return result

    async def _call_extension_with_span(
        self, extension: ClientExtension, method: str, params: Any, **options: Any
    ) -> Any:
        with self._span(method, {}, options) as outcome:
            result = await self._call_extension(extension, method, params, **options)
            outcome.set(result)
        return result

    @contextmanager
    def _span(self, method: str, value: dict[str, Any], options: dict[str, Any]) -> Generator[Outcome]:
        """Open an OpenTelemetry span, and add its context to the option ``meta``, which takes precedence."""
        operation = Operation(
            method=method, revision=self.server.revision, name=value.get("name"), uri=value.get("uri")
        )
        with client_span(operation) as (carrier, outcome):
            options["meta"] = {**carrier, **(options.get("meta") or {})}
            yield outcome

    async def _call_extension(
        self, extension: ClientExtension, method: str, params: Any, **options: Unpack[CallOptions]
    ) -> Any:
        """Return the result of a request of *extension*, of the type of its package; see `call` for the options."""
        on_progress, timeout_seconds, more = check_call_options(options) if options else (None, None, None)
        extension.require(self.server, method)
        ask = extension.outgoing_request(method)
        meta = {**(more or {}), **self.session.features.meta(self.server.revision)}
        if self.session.log_level is not None:
            meta[MetaKey.LOG_LEVEL] = self.session.log_level
        if on_progress is not None:
            meta["progressToken"] = self.session.next_token()
        token = self.session.own_token(meta)
        encoded = encoded_params(ask, params, meta)
        request = OutgoingRequest(
            method=method,
            params=encoded if self.session.is_stateless else without_keys_of_meta(encoded, self.native_meta),
            decode_error=ask.error,
            token=token,
            on_progress=on_progress,
            timeout_seconds=timeout_seconds,
            is_extended=True,
        )
        return extension.result(method, await self._sender.send(request), self.server)

    async def _read(self, ask: OutgoingRequestCodec, value: dict[str, Any], raw: Raw, keeps: bool) -> Any:  # noqa: FBT001 (of one caller)
        """Return the result in the native revision; one of an extension is finished by the handlers of the extension.

        Raises:
            InvalidPayload: The result is not valid, or no handler takes the result of an extension.
        """
        method = ask.method
        if method in self._extended:
            for each in self.session.features.extensions:
                found = each.read_result(method, raw) if each.is_agreed(self.server) else None
                if found is not None:
                    return found if keeps else await each.finish(method, found, self.connection.context(method))
        if self._has_foreign_results and is_foreign_result(raw):
            return self._reader.read_json(method, raw)
        if method in self._extended:
            check_result_type(raw, method, self.server)
        result = await self._reader.read(ask, raw)
        if method == "tools/list":
            self._learn_tasks(value, raw)
        if self._validator.is_on and method in ("tools/call", "tools/list"):
            await self._validate(method, value, raw, result)
        return result

    async def request_json(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of a request. Both are in the server's revision, and neither is adapted nor checked.

        Raises:
            InvalidPayload: The result has a number or a text that Python does not read.
        """
        return self._reader.read_json(method, await self.ask_json(method, params or {}))

    async def ask_json(self, method: str, params: Mapping[str, Any], **options: Any) -> Raw:
        """Return the result of a request, undecoded; *options* are others of `OutgoingRequest`."""
        encoded = self.json_params(params)
        options["token"] = options.get("token") or self.session.own_token(params.get("_meta", {}))
        request = OutgoingRequest(method=method, params=encoded, decode_error=error_as_received, **options)
        result = await self._sender.send_once(request, encoded)
        if method == "tools/list":
            self._learn_tasks(params, result)
        return result

    def _learn_tasks(self, params: Mapping[str, Any], page: Raw) -> None:
        if self.tool_tasks is not None:
            self.tool_tasks.learn(page, is_first_page="cursor" not in params)

    def json_params(self, params: Mapping[str, Any]) -> bytes | UnsetType:
        """Return *params* in the server's revision as JSON, with the `_meta` of each request."""
        value = dict(params)
        meta = {**value.pop("_meta", {}), **self.session.features.meta(self.server.revision)}
        if self.session.log_level is not None:
            meta[MetaKey.LOG_LEVEL] = self.session.log_level
        if meta:
            value["_meta"] = meta
        encoded = msgspec.json.encode(value) if value else UNSET
        check_finite(value, encoded)
        return encoded

    async def read_tool_result(self, raw: Raw, tool: str) -> Any:
        """Return the result of *tool* in the native revision; check its structured content if the name is known."""
        result = await self._reader.read(self._tools_call(), raw)
        if self._validator.is_on and tool:
            await self._validate(TOOLS_CALL, {"name": tool}, raw, result)
        return result

    def tool_error(self, response: ErrorResponse) -> RequestError:
        """Return the error of a tool in the native revision."""
        return self._tools_call().error(response)

    def _tools_call(self) -> OutgoingRequestCodec:
        return self._request_codecs.get(TOOLS_CALL) or self._request_codec(TOOLS_CALL)

    def listen(self, wanted: SubscriptionFilter, filters: Sequence[Any] = ()) -> Changes:
        """Return the changes that *wanted* lets through, and listen for the notifications that *filters* select.

        Raises:
            UsageError: A filter is not of the package of an extension of this client.
            UnsupportedByPeer: The server has not declared the extension.
        """
        more = filters_json(self.session.features.extensions, filters, self.server)
        return Changes(self.session, wanted, self._subscribe, more)

    async def _subscribe(self, uri: str) -> None:
        await self.request_json(SUBSCRIBE, {"uri": uri})

    async def _validate(self, method: str, value: dict[str, Any], raw: Raw, result: Any) -> None:
        """Check structured content, or store the output schemas; both as the server wrote them, and in several turns.

        Raises:
            InvalidStructuredContent: The content does not match the schema, and the policy is ``strict``.
        """
        if len(memoryview(raw)) > _LARGE_BYTES:
            await next_turn()
        revision = self.server.revision
        sent = self.session.reading.result(codec(revision, revision, "client").outgoing_request(method), "client", raw)
        if method == "tools/call":
            if self._validator.prepare(name := str(value.get("name"))):
                await next_turn()
            try:
                self._validator.check(revision, name, sent, result)
            except InvalidStructuredContent as error:
                del sent  # a second copy of the result, which the traceback would keep
                raise error.with_traceback(None)  # noqa: B904 (the same error)
        elif not self.session.tools_are_old:
            self._validator.learn(sent.tools, is_first_page="cursor" not in value)

    def _request_codec(self, method: str) -> OutgoingRequestCodec:
        """Return the codec of *method*.

        Raises:
            UnsupportedByPeer: The server's revision has no such request, or the server has not declared it.
        """
        try:
            ask = self._codec.outgoing_request(method)
        except (AdaptationError, UnknownMethod) as error:
            reason = error.reason if isinstance(error, AdaptationError) else str(error)
            raise unsupported(self.server, method, reason) from error
        self.declared.require(method)
        self._request_codecs[method] = ask
        if method == TOOLS_CALL and self.native_revision == NEWEST and not self._validator.is_on:
            self._fast_call = FastCall(ask, self.server.revision, self.native_meta, self._peer_meta)
        return ask
