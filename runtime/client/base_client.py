"""A connection to a server of any revision, in the types of one of the caller's choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

import msgspec
from msgspec import UNSET, Raw

from mcpgen.generated import registry
from mcpgen.runtime.client.call_options import CallOptions, checked
from mcpgen.runtime.client.fast_path import CALL, FastCall
from mcpgen.runtime.client.outgoing_requests import OutgoingRequest, RequestSender
from mcpgen.runtime.client.pending_request import error_as_received
from mcpgen.runtime.client.result_reader import ResultReader
from mcpgen.runtime.client.subscriptions import SUBSCRIBE, Changes
from mcpgen.runtime.client.translated_methods import SET_LEVEL, TranslatedMethods
from mcpgen.runtime.errors import (
    AdaptationError,
    TransportClosed,
    UnknownMethod,
    UnsupportedByPeer,
    UsageError,
    printable,
)
from mcpgen.runtime.protocol.capabilities import has, needed, offers
from mcpgen.runtime.protocol.codec import OutgoingRequestCodec, codec
from mcpgen.runtime.protocol.log_levels import LEVELS
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Self

    from mcpgen.runtime.client.connection_task import ConnectionTask, Conversation
    from mcpgen.runtime.client.output_validation import OutputValidator
    from mcpgen.runtime.protocol.capabilities import ServerPeer
    from mcpgen.runtime.protocol.log_levels import Level
    from mcpgen.runtime.protocol.newest import models

__all__ = ["BaseClient", "ClientContext"]

_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
_ROOTS_CHANGED = "notifications/roots/list_changed"


class ClientContext:
    """What a function that answers a server knows beside the params.

    Attributes:
        peer: The server: who asks.
        method: What is asked or told.
    """

    __slots__ = ("_owner", "method", "peer")

    def __init__(self, owner: ConnectionTask, peer: ServerPeer, method: str) -> None:
        self._owner = owner
        self.peer: ServerPeer = peer
        self.method: str = method

    @property
    def client(self) -> BaseClient:
        """The client that is asked.

        Raises:
            UsageError: It is being connected still.
        """
        client: BaseClient | None = self._owner.client
        if client is None:
            raise UsageError("the client is being connected still")
        return client


class BaseClient:
    """A connection to a server, for callers who write in the types of a revision of their choice.

    It is the ``Sender`` of that revision's generated ``ClientMethods``: ``ClientMethods(client).call_tool(...)``.

    Attributes:
        native_revision: The revision in whose types it is written and read.
    """

    def __init__(
        self, owner: ConnectionTask, conversation: Conversation, native_revision: str, checker: OutputValidator
    ) -> None:
        self.native_revision: str = native_revision
        self._owner = owner
        self._checker = checker
        self._conversation = conversation
        self._session = conversation.session
        server = self._session.server
        if server is None:
            raise UsageError("a client is made by connect()")
        self._peer = server
        self._asking = RequestSender(conversation)
        self._services = TranslatedMethods(self._session, self.request_json, self._subscribe)
        self._session.on_tools_changed = checker.forget
        self._codec = codec(native_revision, server.revision, "client")
        offering = self._session.offering
        self._home_meta: dict[str, object] = offering.meta(native_revision)
        self._peer_meta: dict[str, object] | None = (
            None if server.revision == native_revision else offering.meta(server.revision)
        )
        self._asks: dict[str, OutgoingRequestCodec] = {}  # of what may be asked
        self._short: FastCall | None = None
        self._reader = ResultReader(native_revision, server.revision)

    @property
    def revision(self) -> str:
        """The revision that is spoken with the server."""
        return self._peer.revision

    @property
    def era(self) -> Literal["handshake", "stateless"]:
        """How that was agreed on: ``handshake`` or ``stateless``."""
        return self._peer.era

    @property
    def server(self) -> models.Implementation | None:
        """Name and version of the server, as it says; None if it does not. Nothing should depend on it."""
        return self._peer.info

    @property
    def capabilities(self) -> models.ServerCapabilities:
        """What the server has declared."""
        return self._peer.capabilities

    @property
    def instructions(self) -> str | None:
        """The server's advice on how to use it."""
        return self._peer.instructions

    @property
    def stderr(self) -> str:
        """The last of what the server's process has printed as errors; empty for any other server."""
        return self._conversation.writer.stderr

    @property
    def meta(self) -> dict[str, object]:
        """What each request says about this client, where home wants that of each: for ``meta`` of its params."""
        return dict(self._home_meta)

    def __repr__(self) -> str:
        named = "a server" if self.server is None else f"{self.server.name} {self.server.version}"
        return f"<{type(self).__name__} of {printable(named)}, {self.revision}>"

    async def __aenter__(self) -> Self:
        """Return the client, which is connected already; it is closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()

    async def begin(self) -> None:
        """Do what the handlers want done first: `connect` calls this."""
        await self._services.hear_lists()

    async def close(self) -> None:
        """End the conversation, and the server's process; from any task, and any number of times."""
        await self._owner.close()

    async def request(self, method: Any, params: Any = UNSET, /) -> Any:
        """Send a request of home's ``methods``, and return its result as home has it.

        Raises:
            RequestRefused: The server answered with an error.
            RequestTimedOut: It did not answer in time.
            TransportClosed: It is gone.
            UnsupportedByPeer: Its revision has no such request, or it has not declared it; nothing was sent.
            InvalidPayload: Its answer is not valid.
        """
        value: dict[str, Any] = {} if params is UNSET else msgspec.to_builtins(params)
        served = await self._services.serve(method.name, value)
        if served is None:
            return await self._ask(method.name, value)
        found = registry.revision(self.native_revision).bindings().models
        return found.decode(msgspec.json.encode(served), method.result)

    async def notify(self, method: Any, params: Any = UNSET, /) -> None:
        """Send a notification of home's ``methods``; one that says nothing to a server of this revision is not sent.

        Raises:
            UsageError: The engine sends it, where it is due; or this client has not declared that it would.
            UnsupportedByPeer: The server's revision has no such notification.
            RequestTimedOut: The server does not read.
            TransportClosed: It is gone.
        """
        if method.name in ("notifications/initialized", "notifications/cancelled"):
            raise UsageError(f"{method.name} is sent where it is due; to cancel a request, cancel the task that waits")
        if method.name == _ROOTS_CHANGED:
            self._check_roots()
        self._check_open()
        try:
            written = self._codec.notice_out(method.name).outgoing(params)
        except AdaptationError as error:
            if error.service == "roots":  # such a server asks for the roots each time that it needs them
                return
            raise self._unsupported(method.name, error.reason) from error
        await self._asking.room(method.name)
        self._session.notify(method.name, written)

    async def request_json(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request as it is in the server's own revision, and return the result as it came, with all its keys.

        Nothing is adapted or checked, and a demand for input is returned, not met. What each request has to say about
        its client is added.

        Raises:
            RequestRefused: The server answered with an error.
            RequestTimedOut: It did not answer in time.
            TransportClosed: It is gone.
        """
        value = dict(params or {})
        meta = {**value.pop("_meta", {}), **self._session.offering.meta(self.revision)}
        if self._session.level is not None:
            meta[_LOG_LEVEL] = self._session.level
        if meta:
            value["_meta"] = meta
        written = msgspec.json.encode(value) if value else UNSET
        question = OutgoingRequest(method=method, params=written, error=error_as_received)
        found: dict[str, Any] = msgspec.json.decode(await self._asking.once(question, written))
        return found

    def listen(
        self, *, tools: bool = False, prompts: bool = False, resources: bool = False, uris: Iterable[str] = ()
    ) -> Changes:
        """Return what hears of changes within an ``async with`` block.

        Args:
            tools: The list of tools is another.
            prompts: The list of prompts is.
            resources: The list of resources is.
            uris: One of these resources is.
        """
        if isinstance(uris, str):
            raise UsageError(f"uris are a list, such as [{uris!r}], not a string")
        wanted = SubscriptionFilter(
            tools_list_changed=tools,
            prompts_list_changed=prompts,
            resources_list_changed=resources,
            resource_subscriptions=list(dict.fromkeys(uris)),
        )
        if wanted == SubscriptionFilter():
            raise UsageError("say what to listen to: listen(tools=True)")
        return Changes(self._session, wanted, self._subscribe)

    async def ping(self) -> None:
        """Return when the server has answered, which it has to do at once."""
        if self.era == "stateless":
            await self.request_json("server/discover")
        else:
            await self.request_json("ping")

    async def set_log_level(self, level: Level) -> None:
        """Have the server log entries of this level and above: from now on, or with each request that follows.

        Raises:
            UsageError: There is no such level.
            UnsupportedByPeer: The server has not declared that it logs.
        """
        if level not in LEVELS:
            raise UsageError(f"there is no log level {level!r}; there are {', '.join(LEVELS)}")
        if self.era == "stateless":
            self._require("notifications/message")
            self._session.level = level
            return
        self._require(SET_LEVEL)
        await self.request_json(SET_LEVEL, {"level": level})

    async def roots_changed(self) -> None:
        """Tell the server that there are other roots now; one without sessions asks anew whenever it needs them.

        Raises:
            UsageError: This client has not declared that it would.
        """
        if self.era == "stateless":
            return
        self._check_roots()
        self._check_open()
        await self._asking.room(_ROOTS_CHANGED)
        self._session.notify(_ROOTS_CHANGED)

    async def _ask(self, method: str, value: dict[str, Any], **options: Unpack[CallOptions]) -> Any:
        """Return the result of a request whose params are *value*, both in terms of home."""
        on_progress, timeout_seconds, meta = checked(options) if options else (None, None, None)
        ask = self._asks.get(method) or self._asker(method)
        if method == CALL and self._short is not None and not (on_progress or meta or self._session.level):
            written = self._short.params(value)
            if written is not None:
                short = self._short.result
                question = OutgoingRequest(
                    method=CALL, params=written, error=ask.error, seconds=timeout_seconds, short=short
                )
                found = await self._asking.final(question)
                return self._reader.read(ask, found) if type(found) is Raw else found
        if "task" in value:
            self._require_task(method)
        token = None if on_progress is None else self._session.next_token()
        whole = {**value.get("_meta", {}), **(meta or {}), **self._home_meta}
        if token is not None:
            whole["progressToken"] = token
        peer_meta = self._peer_meta
        if self._session.level is not None:
            level = {_LOG_LEVEL: self._session.level}
            whole |= level if self._home_meta else {}
            peer_meta = None if peer_meta is None else {**peer_meta, **level}
        if whole:
            value = {**value, "_meta": whole}
        question = OutgoingRequest(
            method=method,
            params=ask.params(value, peer_meta),
            error=ask.error,
            token=token,
            on_progress=on_progress,
            seconds=timeout_seconds,
        )
        raw = await self._asking.final(question)
        result = self._reader.read(ask, raw)
        if self._checker.is_on and method in ("tools/call", "tools/list"):
            self._check(method, value, raw, result)
        return result

    def _check(self, method: str, value: dict[str, Any], raw: Raw, result: Any) -> None:
        """Check a structured result, or learn what such results are to be checked against; as the server wrote both.

        Raises:
            InvalidStructuredContent: It does not fit, and the policy is strict.
        """
        own = codec(self.revision, self.revision, "client").ask(method).result(raw)
        if method == "tools/call":
            self._checker.check(self.revision, str(value.get("name")), own, result)
        else:
            self._checker.learn(own.tools, is_first_page="cursor" not in value)

    def _asker(self, method: str) -> OutgoingRequestCodec:
        """Return what writes requests of *method*, if the server takes any.

        Raises:
            UnsupportedByPeer: Its revision has none, or it has not declared that it does.
        """
        try:
            ask = self._codec.ask(method)
        except (AdaptationError, UnknownMethod) as error:
            reason = error.reason if isinstance(error, AdaptationError) else str(error)
            raise self._unsupported(method, reason) from error
        self._require(method)
        self._asks[method] = ask
        if method == CALL and self.native_revision == NEWEST and not self._checker.is_on:
            self._short = FastCall(ask, self.revision, self._home_meta, self._peer_meta)
        return ask

    def _require(self, method: str) -> None:
        if not offers(self._peer.declared, self.revision, method):
            raise self._unsupported(method, f"it has not declared {needed(self.revision, method)}")

    def _require_task(self, method: str) -> None:
        if not has(self._peer.declared, ("tasks", "requests", *method.split("/"))):
            raise self._unsupported(method, "it has not declared that it runs this as a task")

    def _unsupported(self, what: str, reason: str) -> UnsupportedByPeer:
        return UnsupportedByPeer(revision=self.revision, what=what, reason=reason)

    async def _subscribe(self, uri: str) -> None:
        await self.request_json(SUBSCRIBE, {"uri": uri})

    def _check_roots(self) -> None:
        declared = self._session.offering.capabilities(self.revision)
        if self.era == "handshake" and not has(declared, ("roots", "listChanged")):
            raise UsageError("roots that may change are given as a function: connect(…, roots=function)")

    def _check_open(self) -> None:
        failure = self._session.failure
        if failure is not None:
            raise failure.again() if isinstance(failure, TransportClosed) else failure
