"""A client in the types of a revision of the caller's choice, and what handlers know about their client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import UNSET

from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.protocol.argument_checks import check_flags, check_lists, check_method
from mcpgen.runtime.protocol.log_levels import LEVELS
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from mcpgen.runtime.client.changes import Changes
    from mcpgen.runtime.client.connection import ClientConnection
    from mcpgen.runtime.client.connection_task import ConnectionTask
    from mcpgen.runtime.client.engine import ClientEngine
    from mcpgen.runtime.protocol.capabilities import ServerPeer
    from mcpgen.runtime.protocol.log_levels import Level
    from mcpgen.runtime.protocol.newest import models

__all__ = ["BaseClient", "ClientContext"]


class ClientContext:
    """The context of a message from the server. A handler of the client gets it beside the params.

    Attributes:
        peer: The server that sent the message.
        method: The method of the message.
    """

    __slots__ = ("_connection", "_task", "method", "peer")

    def __init__(self, task: ConnectionTask, connection: ClientConnection, peer: ServerPeer, method: str) -> None:
        self._task = task
        self._connection = connection
        self.peer: ServerPeer = peer
        self.method: str = method

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.method}, revision {self.peer.revision}>"

    @property
    def client(self) -> BaseClient:
        """The client that received the message."""
        client: BaseClient = self._task.engine(self._connection).client
        return client


class BaseClient:
    """A connection to a server, for a caller that uses the types of any one revision. `connect` makes it.

    That revision is the native revision. To call methods with its types, pass the client to the generated
    ``ClientMethods`` of the revision: ``ClientMethods(client).call_tool(...)``.
    """

    def __init__(self, engine: ClientEngine) -> None:
        self._engine = engine

    @property
    def native_revision(self) -> str:
        """The revision whose types the params and results have. It can differ from `revision`."""
        return self._engine.native_revision

    @property
    def revision(self) -> str:
        """The revision that client and server have agreed on."""
        return self._engine.server.revision

    @property
    def era(self) -> Literal["handshake", "stateless"]:
        """How a connection of `revision` starts: with `initialize` (``handshake``) or without (``stateless``)."""
        return self._engine.server.era

    @property
    def server(self) -> models.Implementation | None:
        """The name and version of the server; None if it did not send them. Show them, but do not rely on them."""
        return self._engine.server.info

    @property
    def capabilities(self) -> models.ServerCapabilities:
        """The capabilities that the server has declared."""
        return self._engine.server.capabilities

    @property
    def extensions(self) -> Mapping[str, Mapping[str, Any]]:
        """The extensions that the server has declared, with their settings."""
        return self._engine.server.extensions

    @property
    def instructions(self) -> str | None:
        """The server's instructions for a model that uses the server; None if there are none."""
        return self._engine.server.instructions

    @property
    def stderr(self) -> str:
        """The last text that the server's process wrote to standard error; empty if the client started no process."""
        return self._engine.connection.channel.stderr

    @property
    def meta(self) -> dict[str, object]:
        """The `_meta` that the native revision requires in the params of each request; empty if it requires none."""
        return dict(self._engine.native_meta)

    if not TYPE_CHECKING:  # type checkers must report other attributes as errors

        def __getattr__(self, name: str) -> object:
            if type(self) is BaseClient and not name.startswith("_"):
                raise AttributeError(f"a client with `native_revision` has no `{name}`; use ClientMethods(client)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        named = "unnamed server" if self.server is None else f"{self.server.name} {self.server.version}"
        state = "open" if self._engine.session.failure is None else "closed"
        target = self._engine.task.description
        library = getattr(self._engine.connection.channel, "library", None)  # of `HttpChannel`
        over = "" if library is None else f" over {library}"
        return f"<{type(self).__name__} to {target!r}{over}: {printable(named)}, revision {self.revision}, {state}>"

    async def __aenter__(self) -> Self:
        """Return the client, which is connected already. It is closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """End the connection, and the server's process. Any task may call it, any number of times."""
        await self._engine.task.close()

    async def request(self, method: Any, params: Any = UNSET, /) -> Any:
        """Send a request, and return its result. ``ClientMethods(client)`` calls this.

        *method* is a constant of the native revision's generated module ``methods``, such as ``methods.CALL_TOOL``.

        Raises:
            RequestRefused: The server answered with an error.
            RequestTimedOut: The server did not answer in time.
            TransportClosed: The connection is closed.
            UnsupportedByPeer: The server's revision has no such request, or the server has not declared the capability
                for the request. Nothing was sent.
            InvalidPayload: The result is invalid.
        """
        check_method(method, "LIST_TOOLS")
        return await self._engine.request(method, params)

    async def notify(self, method: Any, params: Any = UNSET, /) -> None:
        """Send a notification.

        *method* is a constant of the native revision's generated module ``methods``. A notification that the roots have
        changed is not sent to a server of a stateless revision: such a server requests the roots when it needs them.

        Raises:
            UsageError: The client sends this notification itself, or has not declared the capability for it.
            UnsupportedByPeer: The server's revision has no such notification.
            RequestTimedOut: The server does not read its input.
            TransportClosed: The connection is closed.
        """
        check_method(method, "")  # 2026-07-28 has none that a caller may send
        await self._engine.notifications.send(method, params)

    async def request_json(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request in the agreed revision, and return the result as the server sent it, with all its keys.

        Nothing is adapted or checked. A result that requires input is returned, too. The client adds the `_meta` that
        the agreed revision requires.

        Raises:
            RequestRefused: The server answered with an error.
            RequestTimedOut: The server did not answer in time.
            TransportClosed: The connection is closed.
            UsageError: *method* is not the name of a method, or *params* is not a mapping.
        """
        if not isinstance(cast("object", method), str) or not method:
            raise UsageError(f"`method` must be the name of a method, such as 'tools/list', not {method!r}")
        if params is not None and not isinstance(cast("object", params), Mapping):
            raise UsageError(f"`params` must be a mapping, such as {{'name': 'value'}}, not {params!r}")
        return await self._engine.request_json(method, params)

    def listen(
        self,
        *filters: Any,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
    ) -> Changes:
        """Listen for changes of lists and resources, within an ``async with`` block.

        Write ``async with client.listen(tools=True) as changes:``, and inside of it ``async for change in changes:``.

        Args:
            filters: Filters of extensions: each is a ``SubscriptionFilter`` of the extension's package. The handlers of
                the extension take the notifications.
            tools: Whether to listen for changes of the list of tools.
            prompts: Whether to listen for changes of the list of prompts.
            resources: Whether to listen for changes of the list of resources.
            uris: The resources to listen to.
        """
        check_flags(tools=tools, prompts=prompts, resources=resources)
        if isinstance(uris, str):
            raise UsageError(f"`uris` must be a list, such as [{uris!r}], not a string")
        check_lists(uris=uris)
        wanted = SubscriptionFilter(
            tools_list_changed=tools,
            prompts_list_changed=prompts,
            resources_list_changed=resources,
            resource_subscriptions=list(dict.fromkeys(uris)),
        )
        if wanted == SubscriptionFilter() and not filters:
            raise UsageError("listen() has nothing to listen for; write, for example, listen(tools=True)")
        return self._engine.listen(wanted, filters)

    async def ping(self) -> None:
        """Send a request that has no effect, and return when the server has answered it."""
        await self._engine.translated.ping()

    async def set_log_level(self, level: Level) -> None:
        """Set the lowest level of the log entries that the server sends from now on.

        Raises:
            UsageError: There is no such level.
            UnsupportedByPeer: The server has not declared the capability `logging`.
        """
        if level not in LEVELS:
            raise UsageError(f"`level` is {level!r}; it must be one of {', '.join(LEVELS)}")
        await self._engine.translated.set_log_level(level)

    async def roots_changed(self) -> None:
        """Notify the server that the roots have changed.

        Nothing is sent to a server of a stateless revision: such a server requests the roots when it needs them.

        Raises:
            UsageError: The client has declared that the roots do not change: `roots` is a list, or the handlers have no
                capability `roots.listChanged`.
        """
        await self._engine.notifications.roots_changed()
