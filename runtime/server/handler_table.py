"""The methods that one server serves to the peers of each revision, and what it declares to them.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle; 2026-07-28, basic/versioning, server/discover.
"""

from __future__ import annotations

import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from mcpgen.generated import registry
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import AdaptationError, UsageError
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.codec import IncomingNotificationCodec, codec
from mcpgen.runtime.protocol.json_costs import PLAIN_COSTS
from mcpgen.runtime.protocol.native_revision import check_handlers, handler_names, native_revision_of, overrides
from mcpgen.runtime.protocol.negotiation import revisions_of_era
from mcpgen.runtime.protocol.newest import NEWEST, methods
from mcpgen.runtime.server.cache_hints import CacheHint
from mcpgen.runtime.server.exchange import Call, MethodHandler
from mcpgen.runtime.server.extensions import check_identifiers
from mcpgen.runtime.server.fast_path import FastPath
from mcpgen.runtime.server.middleware import around, for_method
from mcpgen.runtime.server.tool_headers import ToolHeaders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.json_costs import JsonCosts
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.extensions import ServerExtension
    from mcpgen.runtime.server.interfaces import TaskDeclarations
    from mcpgen.runtime.server.middleware import RegisteredMiddleware

__all__ = ["HandlerTable", "NotificationHandler"]

# The methods that `mcpgen.runtime.server.builtin_methods` answers, whatever the native revision is.
_BUILTIN = frozenset(
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

# Generated handlers that are never called: the built-in methods of these names ask no handler.
_NEVER_CALLED = ("discover", "initialize", "ping", "subscriptions_listen")
# Those that the built-in methods call first, if the native revision has them.
_CALLED_FIRST = ("set_level", "subscribe", "unsubscribe")

_META_KEY = methods.MetaKey


class NotificationHandler(Struct, frozen=True, eq=False):
    """A handler of a client's notification, and the codec of the params."""

    codec: IncomingNotificationCodec
    call: Call


# The one revision whose own capabilities and lists speak of tasks.
_TASKS_REVISION = "2025-11-25"


class HandlerTable:
    """The methods that one server serves to the peers of each revision, and what it declares to them.

    Args:
        handlers: An instance of a subclass of some revision's generated ``ServerHandlers``.
        served: The revisions to be served, oldest first.
        info: Name and version, as the newest revision writes them.
        instructions: How a model should use the server.
        middleware: Called around each handler, outermost first. The sequence may grow; call `refresh` then.
        more_capabilities: What is declared beyond the capabilities of the handlers, in the native revision.

    Attributes:
        native_revision: The revision that the handlers are written in.
        handshake_revisions: The served revisions that start with `initialize`.
        stateless_revisions: The served revisions that do not.
        method_handlers: Returns the methods that the author's handlers serve to peers of a revision.
        capabilities: Returns the capabilities that the server declares to peers of a revision.
        initialize_result: Returns the result of `initialize` that agrees on a revision.
        discover_result: Returns the result of `server/discover` in a revision.
        discover_hint: The cache hint of `server/discover`.
        extensions: The extensions of the server.
        tool_headers: Which arguments of tools HTTP repeats in headers.
        scopes: Returns the scopes that a method needs for a name or URI; None if no function needs any.
        json_costs: What the values in the params take when they are decoded.
    """

    def __init__(  # noqa: PLR0913 (the parts that a server is made of)
        self,
        handlers: Any,
        *,
        served: Sequence[str],
        info: Any,
        instructions: str | None,
        middleware: Sequence[RegisteredMiddleware],
        more_capabilities: Mapping[str, object],
    ) -> None:
        self.native_revision: str = native_revision_of(handlers, "server")
        self.served: tuple[str, ...] = tuple(served)
        self.handshake_revisions: tuple[str, ...] = revisions_of_era(self.served, "handshake")
        self.stateless_revisions: tuple[str, ...] = revisions_of_era(self.served, "stateless")
        self._handlers = handlers
        tables = self.methods(self.native_revision)
        self._requests = handler_names(tables, tables.CLIENT_REQUESTS)
        self._notifications = handler_names(tables, tables.CLIENT_NOTIFICATIONS)
        called = (*self._requests.values(), *self._notifications.values())
        answered = (*_NEVER_CALLED, *(name for name in _CALLED_FIRST if name not in called))
        check_handlers(handlers, self.native_revision, "server", called=called, answered=answered)
        self._info = info
        self._instructions = instructions
        self._middleware = middleware
        self._more_capabilities = more_capabilities
        self.discover_hint: CacheHint = CacheHint()
        self._tasks: TaskDeclarations | None = None
        self.extensions: tuple[ServerExtension, ...] = ()
        self._set_caches()

    def _set_caches(self) -> None:
        """Set what is filled as peers need it."""
        caches = (
            cache(self._method_handlers),
            cache(self._adapted_capabilities),
            cache(self._initialize_result),
            cache(self._discover_result),
        )
        self._caches = caches
        self.method_handlers: Callable[[str], Mapping[str, MethodHandler]] = caches[0]
        self.capabilities: Callable[[str], Mapping[str, object]] = caches[1]
        self.initialize_result: Callable[[str], bytes] = caches[2]
        self.discover_result: Callable[[str], bytes] = caches[3]
        self._notification_handlers: dict[tuple[str, str], NotificationHandler | None] = {}
        self._signatures: dict[str, bytes] = {}
        self._last_client: tuple[Peer, Mapping[str, object] | None] | None = None
        self.tool_headers: ToolHeaders = ToolHeaders(self._handlers)
        self.scopes: Callable[[str, str], Iterable[str] | None] | None = self._find_scopes()
        self.json_costs: JsonCosts = getattr(self._handlers, "json_costs", PLAIN_COSTS)

    def refresh(self) -> None:
        """Read the handlers again: something was registered or removed."""
        for each in self._caches:
            each.cache_clear()
        self.tool_headers = ToolHeaders(self._handlers)
        self.scopes = self._find_scopes()
        self.json_costs = getattr(self._handlers, "json_costs", PLAIN_COSTS)

    def _find_scopes(self) -> Callable[[str, str], Iterable[str] | None] | None:
        find = getattr(self._handlers, "scopes", None)
        return find if getattr(self._handlers, "has_scopes", True) else None

    def is_handled(self, method: str) -> bool:
        """Return whether handlers get the requests of a *method*, and not the engine."""
        return method in self._requests and method not in _BUILTIN

    def over(self, handlers: object) -> HandlerTable:
        """Return this table with other *handlers* of the same class."""
        table = copy.copy(self)
        table._replace_handlers(handlers)  # noqa: SLF001 (a copy of this object)
        return table

    def _replace_handlers(self, handlers: Any) -> None:
        self._handlers = handlers
        self.discover_hint = self.discover_hint.for_one_user()
        if self._tasks is not None:  # these run the functions of the other handlers
            extension, self._tasks = self._tasks.extension, None
            self.extensions = tuple(each for each in self.extensions if each.extension.handlers is not extension)
        self._set_caches()

    def declare_tasks(self, tasks: TaskDeclarations) -> None:
        """Declare *tasks* from now on."""
        self._tasks = tasks
        self.refresh()

    def extend(self, extension: ServerExtension) -> None:
        """Add an extension.

        Raises:
            UsageError: Another extension has its identifier, or one of its methods.
        """
        extension.check(self.served)
        for each in self.extensions:
            if each.id == extension.id:
                raise UsageError(f"the extension {each.id} was added before; call extend() once for each extension")
            taken = sorted(each.requests.keys() & extension.requests.keys())
            if taken:
                raise UsageError(f"{taken[0]} is a method of both {each.id} and {extension.id}; remove one of them")
        self.extensions = (*self.extensions, extension)
        self._notification_handlers.clear()
        self.refresh()

    def methods(self, revision: str) -> ModuleType:
        """Return the generated table of methods of *revision*."""
        module: ModuleType = bindings(revision).methods
        return module

    def _adapted_capabilities(self, revision: str) -> Mapping[str, object]:
        declared: dict[str, object] = {**msgspec.to_builtins(self._handlers.capabilities())}
        declared |= self._more_capabilities
        check_identifiers(declared.get("extensions"))
        adapted = codec(self.native_revision, revision).definition("ServerCapabilities", declared)
        silent: dict[str, object] = {"completions": {}} if self._completes_silently(revision) else {}
        of_tasks: Mapping[str, object] = (
            self._tasks.capabilities if self._tasks is not None and revision == _TASKS_REVISION else {}
        )
        used = {each.id: each.extension.settings for each in self.extensions if each.extension.is_used_in(revision)}
        extensions = {"extensions": {**adapted.get("extensions", {}), **used}} if used else {}
        return {**adapted, **silent, **extensions, **of_tasks}

    def _completes_silently(self, revision: str) -> bool:
        """Whether the native revision has completions without a capability (2024-11-05), and *revision* has one."""
        native, peer = (
            bindings(each).models.ServerCapabilities.__struct_fields__ for each in (self.native_revision, revision)
        )
        return "completions" in peer and "completions" not in native and self._overrides("complete")

    def info(self, revision: str) -> Mapping[str, object]:
        """Return name and version as *revision* writes them."""
        return codec(NEWEST, revision).definition("Implementation", msgspec.to_builtins(self._info))

    def client_meta(self, peer: Peer) -> Mapping[str, object] | None:
        """Return the metadata that the native revision wants in each request; None if it wants none.

        Sessions of the same *peer* that follow each other share it; clients with equal declarations share a peer.

        Spec:
            2026-07-28, basic/index, "Per-request protocol fields".
        """
        last = self._last_client
        if last is None or last[0] is not peer:
            last = self._last_client = peer, self._make_client_meta(peer)
        return last[1]

    def _make_client_meta(self, peer: Peer) -> Mapping[str, object] | None:
        if registry.revision(self.native_revision).era != "stateless":
            return None
        to_native = codec(NEWEST, self.native_revision)
        capabilities = to_native.definition("ClientCapabilities", msgspec.to_builtins(peer.capabilities))
        meta: dict[str, object] = {_META_KEY.CLIENT_CAPABILITIES: capabilities}
        if peer.info is not None:
            meta[_META_KEY.CLIENT_INFO] = to_native.definition("Implementation", msgspec.to_builtins(peer.info))
        return meta

    def may_replay(self, exchange: Exchange) -> bool:
        """Whether the handler of *exchange* may run again with the client's results so far."""
        may_replay = getattr(self._handlers, "may_replay", None)
        if may_replay is None:
            return False
        handler = exchange.handler
        params = exchange.params if handler.slow_path is None else handler.codec.params(exchange.raw)
        return bool(may_replay(handler.method, params))

    def _initialize_result(self, revision: str) -> bytes:
        """Return the result of `initialize` that agrees on *revision*.

        Spec:
            2025-11-25, basic/lifecycle, "Initialization".
        """
        return self._with_instructions(
            {
                "protocolVersion": revision,
                "capabilities": self.capabilities(revision),
                "serverInfo": self.info(revision),
            }
        )

    def _discover_result(self, revision: str) -> bytes:
        """Return the result of `server/discover`.

        Spec:
            2026-07-28, server/discover, "Response"; server/utilities/caching.
        """
        return self._with_instructions(
            {
                "resultType": "complete",
                "supportedVersions": list(reversed(self.served)),
                "capabilities": self.capabilities(revision),
                "ttlMs": self.discover_hint.ttl_ms,
                "cacheScope": self.discover_hint.scope,
            }
        )

    def _with_instructions(self, result: dict[str, object]) -> bytes:
        if self._instructions is not None:
            result["instructions"] = self._instructions
        return msgspec.json.encode(result)

    def sign(self, result: bytes, revision: str) -> bytes:
        """Return the JSON of a *result* with this server's name in its metadata, unless it names one itself.

        Spec:
            2026-07-28, basic/index, "Per-response protocol fields": servers SHOULD.
        """
        signature = self._signatures.get(revision)
        if signature is None:
            signature = self._signatures[revision] = msgspec.json.encode({_META_KEY.SERVER_INFO: self.info(revision)})
        if result.find(b'"_meta"') < 0:  # every result of this era has a resultType, so a comma is right
            return result[:-1] + b',"_meta":' + signature + b"}"
        members = msgspec.json.decode(result, type=dict[str, Raw])
        meta = msgspec.json.decode(members["_meta"], type=dict[str, Raw]) if "_meta" in members else {}
        if _META_KEY.SERVER_INFO in meta:
            return result
        members["_meta"] = Raw(msgspec.json.encode({**meta, **msgspec.json.decode(signature, type=dict[str, Raw])}))
        return msgspec.json.encode(members)

    def notification_handler(self, revision: str, method: str) -> NotificationHandler | None:
        """Return the handler of a notification of clients of *revision*, if there is one."""
        key = (revision, method)
        if key not in self._notification_handlers and method in self._notifications:  # others are not kept: no limit
            self._notification_handlers[key] = self._make_notification_handler(revision, method)
        for each in self.extensions:
            if method in each.notifications and each.extension.is_used_in(revision):
                return NotificationHandler(*each.notifications[method])
        return self._notification_handlers.get(key)

    def _make_notification_handler(self, revision: str, method: str) -> NotificationHandler | None:
        name = self._notifications[method]
        if method not in self.methods(revision).CLIENT_NOTIFICATIONS or not self._overrides(name):
            return None
        try:
            notification = codec(self.native_revision, revision).incoming_notification(method)
        except AdaptationError:
            return None  # clients of the native revision send no such notification
        return NotificationHandler(notification, getattr(self._handlers, name))

    def overridden(self, method: str) -> Call | None:
        """Return the author's handler of a built-in *method*, if there is one."""
        name = self._requests.get(method)
        return getattr(self._handlers, name) if name is not None and self._overrides(name) else None

    def _method_handlers(self, revision: str) -> Mapping[str, MethodHandler]:
        peer = self.methods(revision)
        declared = self.capabilities(revision)
        made: dict[str, MethodHandler] = {}
        for method, name in self._requests.items():
            if method in _BUILTIN or method not in peer.CLIENT_REQUESTS or not self._overrides(name):
                continue
            if not offers(declared, revision, method):
                continue
            try:
                request = codec(self.native_revision, revision).incoming_request(method)
            except AdaptationError:
                continue  # tasks, which are served to peers of the native revision only
            params = peer.CLIENT_REQUESTS[method].params
            may_request_input = "input_responses" in getattr(params, "__struct_fields__", ())
            call = around(getattr(self._handlers, name), for_method(self._middleware, method))
            made[method] = MethodHandler(method=method, codec=request, call=call, may_request_input=may_request_input)
        speaks_of_tasks = self._tasks is not None and revision == _TASKS_REVISION != self.native_revision
        if self._tasks is not None and speaks_of_tasks and "tools/list" in made:
            listing = made["tools/list"]
            made["tools/list"] = msgspec.structs.replace(listing, codec=self._tasks.list_support(listing.codec))
        if "tools/list" in made and registry.revision(revision).era == "stateless":
            listing = made["tools/list"]
            made["tools/list"] = msgspec.structs.replace(listing, codec=self.tool_headers.only_valid(listing.codec))
        for each in self.extensions:
            if each.extension.is_used_in(revision):
                _add_extension(made, each, self._middleware)
        find = getattr(self._handlers, "fast_tool", None)
        has_middleware = for_method(self._middleware, "tools/call")  # it gets the params
        if find is not None and not has_middleware and "tools/call" in made:
            slow_path = made["tools/call"]
            is_signed = registry.revision(revision).era == "stateless"
            has_structured = "structured_content" in bindings(revision).models.CallToolResult.__struct_fields__
            sign = partial(self.sign, revision=revision) if is_signed else bytes
            fast_path = FastPath(slow_path, find, sign, has_structured_content=has_structured)
            made["tools/call"] = msgspec.structs.replace(slow_path, fast_path=fast_path)
        return made

    def _overrides(self, name: str) -> bool:
        return overrides(self._handlers, self.native_revision, "server", name)


def _add_extension(
    made: dict[str, MethodHandler], extension: ServerExtension, middleware: Sequence[RegisteredMiddleware]
) -> None:
    """Add the methods of *extension*, and mark those that it adds results to."""
    for method, handler in made.items():
        if extension.extends(method):
            made[method] = msgspec.structs.replace(handler, is_extended=True)
    for method, (request, call) in extension.requests.items():
        wrapped = around(call, for_method(middleware, method))
        made[method] = MethodHandler(method=method, codec=request, call=wrapped, extension=extension.id)
