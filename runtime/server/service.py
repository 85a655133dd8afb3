"""What one server offers to the peers of each revision, the same for all its sessions.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle; 2026-07-28, basic/versioning, server/discover.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from mcpgen.generated import registry
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import AdaptationError
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.codec import IncomingNotificationCodec, codec
from mcpgen.runtime.protocol.native_revision import check_handlers, handler_names, native_revision_of, overrides
from mcpgen.runtime.protocol.negotiation import revisions_of_era
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.protocol.param_headers import InvalidParamHeader, ParamHeaders, param_headers_of
from mcpgen.runtime.server.exchange import Entry
from mcpgen.runtime.server.fast_path import FastPath
from mcpgen.runtime.server.parked_requests import ParkedRequests

if TYPE_CHECKING:
    from types import ModuleType

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.request_state import RequestStateSealer
    from mcpgen.runtime.server.tasks.task_requests import TaskRequests

__all__ = ["Call", "NotificationHandler", "Middleware", "SERVER_INFO", "HandlerTable"]

# 2026-07-28, basic/index, "Per-response protocol fields".
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
# 2026-07-28, basic/index, "Per-request protocol fields".
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

# Answered by the engine, whatever home is (`mcpgen.runtime.server.builtin_methods`).
_ENGINE = frozenset(
    {
        "initialize",
        "logging/setLevel",
        "ping",
        "resources/subscribe",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
    }
)

# The names that the generated handlers have for what the engine answers, and needs no help with.
_ENGINES_OWN = ("discover", "initialize", "ping", "subscriptions_listen")

_LOG = logging.getLogger("mcpgen.http")

Call: TypeAlias = Callable[[Any, Any], Awaitable[Any]]
Middleware: TypeAlias = Callable[[Any, Any, Call], Awaitable[Any]]
"""Called with the params, the context, and what to call next with both."""


class NotificationHandler(Struct, frozen=True, eq=False):
    """A handler of notifications of clients, and what makes values of home out of what they carry."""

    codec: IncomingNotificationCodec
    call: Call


class HandlerTable:
    """What one server offers.

    Args:
        handlers: An instance of a subclass of some revision's generated ``ServerHandlers``.
        served: The revisions to be served, oldest first.
        info: Name and version, as the newest revision has them.
        instructions: What a model should know to use the server well.
        middleware: What is called around each handler, outermost first; it may grow, if `forget` is called then.
        limits: How much peers may ask for.
        sealer: Seals the state that stateless clients bring back.
        clock: Seconds that only ever grow.
        wall_clock: Seconds of Unix time.
        token: Returns an unguessable text, a new one each time.
        tasking: The tasks that tool calls may become.
    """

    def __init__(  # noqa: PLR0913 (the parts that a server is put together from)
        self,
        handlers: Any,
        *,
        served: Sequence[str],
        info: Any,
        instructions: str | None,
        middleware: Sequence[Middleware],
        limits: Limits,
        sealer: RequestStateSealer,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        token: Callable[[], str],
        tasking: TaskRequests | None = None,
    ) -> None:
        self.handlers = handlers
        self.native_revision: str = native_revision_of(handlers, "server")
        self.served: tuple[str, ...] = tuple(served)
        self.handshakes: tuple[str, ...] = revisions_of_era(self.served, "handshake")
        self.stateless: tuple[str, ...] = revisions_of_era(self.served, "stateless")
        self.limits = limits
        self.sealer = sealer
        self.token = token
        self.tasking = tasking
        self.clock = clock
        self.wall_clock = wall_clock
        self.waiting: ParkedRequests = ParkedRequests(limits, clock)
        tables = self.methods(self.native_revision)
        self._requests = handler_names(tables, tables.CLIENT_REQUESTS)
        self._notifications = handler_names(tables, tables.CLIENT_NOTIFICATIONS)
        self._listeners: dict[tuple[str, str], NotificationHandler | None] = {}
        called = (*self._requests.values(), *self._notifications.values())
        check_handlers(handlers, self.native_revision, "server", called=called, answered=_ENGINES_OWN)
        self._info = info
        self._instructions = instructions
        self._middleware = middleware
        self._tables: dict[str, Mapping[str, Entry]] = {}
        self._capabilities: dict[str, Mapping[str, object]] = {}
        self._bodies: dict[tuple[str, str], bytes] = {}
        self._signatures: dict[str, bytes] = {}
        self._mirrors: dict[str, ParamHeaders] = {}

    def forget(self) -> None:
        """Look anew at what the handlers offer: something was registered or removed."""
        self._tables.clear()
        self._capabilities.clear()
        self._bodies.clear()
        self._mirrors.clear()

    def methods(self, revision: str) -> ModuleType:
        """Return the tables of methods of *revision*."""
        module: ModuleType = bindings(revision).methods
        return module

    def entries(self, revision: str) -> Mapping[str, Entry]:
        """Return the methods that handlers serve to peers of *revision*."""
        found = self._tables.get(revision)
        if found is None:
            found = self._tables[revision] = self._entries(revision)
        return found

    def capabilities(self, revision: str) -> Mapping[str, object]:
        """Return what this server declares to peers of *revision*, in its terms."""
        found = self._capabilities.get(revision)
        if found is None:
            declared: dict[str, object] = msgspec.to_builtins(self.handlers.capabilities())
            if self.tasking is not None:
                declared["tasks"] = self.tasking.capabilities
            adapted = codec(self.native_revision, revision).definition("ServerCapabilities", declared)
            silent: dict[str, object] = {"completions": {}} if self._completes_silently(revision) else {}
            found = self._capabilities[revision] = {**adapted, **silent}
        return found

    def _completes_silently(self, revision: str) -> bool:
        """Whether home completes and cannot say so (2024-11-05), while peers of *revision* want to be told."""
        native, peer = (
            bindings(each).models.ServerCapabilities.__struct_fields__ for each in (self.native_revision, revision)
        )
        return "completions" in peer and "completions" not in native and self._overrides("complete")

    def info(self, revision: str) -> Mapping[str, object]:
        """Return name and version, in the terms of *revision*."""
        return codec(NEWEST, revision).definition("Implementation", msgspec.to_builtins(self._info))

    def client_meta(self, peer: Peer) -> Mapping[str, object] | None:
        """Return what each request of a session says about its client, if home wants to hear it from each request.

        Spec:
            2026-07-28, basic/index, "Per-request protocol fields".
        """
        if registry.revision(self.native_revision).era != "stateless":
            return None
        way = codec(NEWEST, self.native_revision)
        capabilities = way.definition("ClientCapabilities", msgspec.to_builtins(peer.capabilities))
        meta: dict[str, object] = {CLIENT_CAPABILITIES: capabilities}
        if peer.info is not None:
            meta[CLIENT_INFO] = way.definition("Implementation", msgspec.to_builtins(peer.info))
        return meta

    def may_replay(self, exchange: Exchange) -> bool:
        """Whether the handler of *exchange* may be run again with the answers that it got before."""
        may = getattr(self.handlers, "may_replay", None)
        if may is None:
            return False
        entry = exchange.entry
        params = exchange.params if entry.long is None else entry.codec.params(exchange.raw)
        return bool(may(entry.method, params))

    def mirror(self, tool: str) -> ParamHeaders | None:
        """Return which arguments of a tool HTTP repeats in headers; None if that is not known, or there are none.

        Handlers say so by a method ``input_schema(name)``.

        Spec:
            2026-07-28, server/tools#x-mcp-header.
        """
        if tool not in self._mirrors:
            find = getattr(self.handlers, "input_schema", None)
            schema = None if find is None else find(tool)
            if schema is None:
                return None  # whatever a client calls is not kept
            try:
                self._mirrors[tool] = param_headers_of(schema)
            except InvalidParamHeader as error:  # clients leave such a tool out, so that none repeats anything of it
                _LOG.warning("the input schema of %s is not valid over HTTP: %s", tool, error)
                self._mirrors[tool] = ParamHeaders()
        found = self._mirrors[tool]
        return found if found.annotations else None

    def initialize_result(self, revision: str) -> bytes:
        """Return the result of `initialize` that agrees on *revision*.

        Spec:
            2025-11-25, basic/lifecycle, "Initialization".
        """
        return self._body(
            "initialize",
            revision,
            lambda: {
                "protocolVersion": revision,
                "capabilities": self.capabilities(revision),
                "serverInfo": self.info(revision),
            },
        )

    def discover_result(self, revision: str) -> bytes:
        """Return the result of `server/discover`.

        Spec:
            2026-07-28, server/discover, "Response"; server/utilities/caching.
        """
        return self._body(
            "server/discover",
            revision,
            lambda: {
                "resultType": "complete",
                "supportedVersions": list(reversed(self.served)),
                "capabilities": self.capabilities(revision),
                "ttlMs": 0,
                "cacheScope": "private",
            },
        )

    def sign(self, result: bytes, revision: str) -> bytes:
        """Return the JSON of a *result* with this server's name in its metadata, unless it names one itself.

        Spec:
            2026-07-28, basic/index, "Per-response protocol fields": servers SHOULD.
        """
        signature = self._signatures.get(revision)
        if signature is None:
            signature = self._signatures[revision] = msgspec.json.encode({SERVER_INFO: self.info(revision)})
        if b'"_meta"' not in result:  # every result of this era has its type at least, so that a comma is right
            return result[:-1] + b',"_meta":' + signature + b"}"
        members = msgspec.json.decode(result, type=dict[str, Raw])
        meta = msgspec.json.decode(members["_meta"], type=dict[str, Raw]) if "_meta" in members else {}
        if SERVER_INFO in meta:
            return result
        members["_meta"] = Raw(msgspec.json.encode({**meta, **msgspec.json.decode(signature, type=dict[str, Raw])}))
        return msgspec.json.encode(members)

    def listener(self, revision: str, method: str) -> NotificationHandler | None:
        """Return what a notification of a client is told to, if anybody wants to know."""
        key = (revision, method)
        if key not in self._listeners and method in self._notifications:  # whatever else a peer sends is not kept
            self._listeners[key] = self._listener(revision, method)
        return self._listeners.get(key)

    def _listener(self, revision: str, method: str) -> NotificationHandler | None:
        name = self._notifications[method]
        if method not in self.methods(revision).CLIENT_NOTIFICATIONS or not self._overrides(name):
            return None
        try:
            return NotificationHandler(
                codec(self.native_revision, revision).notice_in(method), getattr(self.handlers, name)
            )
        except AdaptationError:
            return None  # home has no such thing from a client

    def hook(self, method: str) -> Call | None:
        """Return the handler that home has for a *method* which the engine answers, if it is overridden."""
        name = self._requests.get(method)
        return getattr(self.handlers, name) if name is not None and self._overrides(name) else None

    def _entries(self, revision: str) -> dict[str, Entry]:
        peer = self.methods(revision)
        declared = self.capabilities(revision)
        made: dict[str, Entry] = {}
        for method, name in self._requests.items():
            if method in _ENGINE or method not in peer.CLIENT_REQUESTS or not self._overrides(name):
                continue
            if not offers(declared, revision, method):
                continue
            try:
                translate = codec(self.native_revision, revision).request(method)
            except AdaptationError:
                continue  # tasks, which are offered only where home is the peer's revision
            params = peer.CLIENT_REQUESTS[method].params
            may_ask = "input_responses" in getattr(params, "__struct_fields__", ())
            made[method] = Entry(method=method, codec=translate, call=self._wrapped(name), may_ask=may_ask)
        find = getattr(self.handlers, "short_way", None)
        if find is not None and not self._middleware and "tools/call" in made:  # middleware wants to see the params
            long = made["tools/call"]
            is_signed = registry.revision(revision).era == "stateless"
            short = FastPath(long, find, partial(self.sign, revision=revision) if is_signed else bytes)
            made["tools/call"] = msgspec.structs.replace(long, short=short)
        return made

    def _wrapped(self, name: str) -> Call:
        call: Call = getattr(self.handlers, name)
        for each in reversed(self._middleware):
            call = partial(_through, each, call)
        return call

    def _overrides(self, name: str) -> bool:
        return overrides(self.handlers, self.native_revision, "server", name)

    def _body(self, method: str, revision: str, make: Callable[[], dict[str, object]]) -> bytes:
        found = self._bodies.get((method, revision))
        if found is None:
            value = make()
            if self._instructions is not None:
                value["instructions"] = self._instructions
            found = self._bodies[method, revision] = msgspec.json.encode(value)
        return found


async def _through(middleware: Middleware, call: Call, params: Any, context: Any) -> Any:
    return await middleware(params, context, call)
