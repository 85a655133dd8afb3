"""The context of a request, which handlers get beside its params."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from msgspec import UNSET

from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.protocol.argument_checks import check_lists, check_method, check_numbers, check_option_names
from mcpgen.runtime.protocol.negotiation import read_meta_object
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.server import notifications
from mcpgen.runtime.server.access_context import AccessContext
from mcpgen.runtime.server.elicitation_forms import Elicited, form_schema, form_value
from mcpgen.runtime.server.engine import ChangeNotifier
from mcpgen.runtime.server.request_results import request_result
from mcpgen.runtime.server.server_requests import check_may_ask
from mcpgen.runtime.server.sync_context import SyncContext, awaited

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.log_levels import Level
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.notification_run import NotificationRun
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["Context"]

# The only revision in which elicitations by URL have ids.
_ELICITATION_IDS = "2025-11-25"

T = TypeVar("T")
if TYPE_CHECKING:
    import typing_extensions

    # A plain `Context` is a `Context[Any]`.
    StateT_co = typing_extensions.TypeVar("StateT_co", default=Any, covariant=True)
else:  # type variables have defaults from Python 3.13 on
    StateT_co = TypeVar("StateT_co", covariant=True)


class Context(AccessContext, ChangeNotifier, Generic[StateT_co]):
    """The request that a handler serves, and its client.

    ``Context[Database]`` says that the server's lifespan yields a ``Database``.

    The methods are the same for clients of every revision. A method that sends a request to the client raises
    `UnsupportedByPeer`, and sends nothing, if the client's revision does not have the request or if the client has not
    declared the capability for it. It raises `RequestError` if the client does not answer in time.

    To send requests with the types of the native revision, pass the context to the generated ``ServerMethods`` of that
    revision: ``ServerMethods(context).create_message(...)``.

    An ``async def`` function awaits the methods in its own task. A plain function, which runs in a worker thread, calls
    those of `sync`: ``context.sync.log("info", "...")``.
    """

    __slots__ = ("_engine", "_exchange", "_peer", "_run", "_session")

    def __init__(
        self, engine: Engine, session: ServerSession, exchange: Exchange | None, peer: Peer, run: NotificationRun | None
    ) -> None:
        self._engine = engine
        self._session = session
        self._exchange = exchange
        self._peer = peer
        self._run = run

    def __repr__(self) -> str:
        about = "notification" if self.method is None else f"{self.method}, request {self.request_id!r}"
        return f"<Context: {about}, of a client of {self.peer.revision}>"

    @property
    def peer(self) -> Peer:
        """The client: its revision, era, name and capabilities."""
        return self._peer if self._exchange is None else self._exchange.peer

    @property
    def debug(self) -> bool:
        """Whether errors tell the client which exception a function raised: ``Server(debug=True)``."""
        return self._engine.debug

    @property
    def method(self) -> str | None:
        """The method of the request; None for a notification."""
        return None if self._exchange is None else self._exchange.handler.method

    @property
    def request_id(self) -> RequestId | None:
        """The id of the client's open request; None for a notification.

        It is also None while the handler waits for input from a client of 2026-07-28. The client sends the input with a
        new request, which has another id.
        """
        exchange = self._exchange
        return None if exchange is None or exchange.request is None else exchange.request.id

    @property
    def meta(self) -> Mapping[str, Any]:
        """The ``_meta`` of the client's request, as the client wrote it; empty for a notification.

        It has keys of the protocol, of extensions and of applications. Do not rely on values that you have not checked.

        Spec:
            2026-07-28, basic/index, "_meta".
        """
        return {} if self._exchange is None else read_meta_object(self._exchange.raw)

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """The client's responses to the ``InputRequiredResult`` of the handler, by key; empty in the first call.

        A handler that returns an ``InputRequiredResult`` is called again when the client has responded.

        Spec:
            2026-07-28, basic/patterns/mrtr, "InputResponses".
        """
        return {} if self._exchange is None else self._exchange.retry_param("input_responses", default={})

    @property
    def request_state(self) -> str | None:
        """The ``request_state`` of the handler's ``InputRequiredResult``; None in the first call, or if it has none.

        A handler that returns an ``InputRequiredResult`` is called again when the client has responded.

        Spec:
            2026-07-28, basic/patterns/mrtr, "InputRequiredResult".
        """
        return None if self._exchange is None else self._exchange.retry_param("request_state", default=None)

    @property
    def user(self) -> str:
        """The user, from the access token or the function in ``server.asgi(user=…)``; empty for an unknown user."""
        request = None if self._exchange is None else self._exchange.request
        return self._session.user if request is None else request.session.user

    @property
    def state(self) -> StateT_co:
        """The value that the server's lifespan yielded; None without a lifespan."""
        state: StateT_co = self._engine.state
        return state

    @property
    def sync(self) -> SyncContext:
        """The methods for plain functions, without ``await``: ``ctx.sync.log("info", "...")``."""
        return SyncContext(self)

    @property
    def is_cancelled(self) -> bool:
        """Whether the client has cancelled the request. A function in a worker thread has to check this itself."""
        return self._exchange is not None and self._exchange.has_ended

    @awaited
    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send the progress of the request, if the client asked for progress. Only values that grow are sent.

        In a task, *message* becomes the status message. Only a client of 2025-11-25 then also gets the progress itself.

        Spec:
            2025-11-25, basic/utilities/progress; ext-tasks, "Task Status Notifications".
        """
        if self._exchange is not None:
            notifications.send_progress(self._exchange, progress, total, message)
            if self._exchange.task is not None and not self._exchange.has_ended:
                self._exchange.task.report_progress(progress, total, message)
            await self._drain()

    @awaited
    async def defer(self) -> bool:
        """Continue this call as a task: the client gets it now, the result later. Return whether the call is a task.

        For a tool with ``task="deferred"``; others get a `UsageError`. With a client without tasks, the call goes on.

        Raises:
            RequestError: There is no room for another task.

        Spec:
            ext-tasks, "Task Creation": a server first asks for the input that it needs, and then creates the task.
        """
        return self._exchange is not None and self._engine.defer(self._session, self._exchange)

    @awaited
    async def log(self, level: Level, data: object, *, logger: str | None = None) -> None:
        """Send a log entry, if the client asked for entries of this *level*. *data* is any JSON value.

        Spec:
            2025-11-25, server/utilities/logging; 2026-07-28, the same.
        """
        if self._exchange is not None:
            self._engine.warn_deprecated("notifications/message")
            notifications.send_log(self._session.handlers, self._exchange, level, data, logger)
            await self._drain()

    @overload
    async def elicit(self, message: str, requested: type[T]) -> Elicited[T]: ...
    @overload
    async def elicit(self, message: str, requested: Mapping[str, Any]) -> Elicited[dict[str, Any]]: ...
    @awaited
    async def elicit(self, message: str, requested: type[Any] | Mapping[str, Any]) -> Elicited[Any]:
        """Ask the user to fill in a form.

        Args:
            message: The text above the form.
            requested: The fields of the form: a Struct, dataclass or TypedDict of plain fields, or its JSON Schema. A
                plain type such as bool makes a form with the one field ``value``.

        Raises:
            UnsupportedByPeer: The client does not support forms.
            InvalidPayload: The filled-in form does not match the schema.
            UsageError: A form cannot have such fields.

        Spec:
            2025-06-18 and later, client/elicitation.
        """
        params = models.ElicitRequestFormParams(message=message, requested_schema=form_schema(requested))
        result = await self._request("elicitation/create", params, NEWEST)
        return form_value(result, requested, self.peer)

    @awaited
    async def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None
    ) -> Literal["accept", "decline", "cancel"]:
        """Ask the user to open a web page. Return the user's answer, which does not say whether the page was opened.

        Args:
            message: The text that the user reads.
            url: The address of the page: https, or http for the user's own machine.
            elicitation_id: A new id, for `elicitation_completed`.

        Raises:
            UnsupportedByPeer: The client does not support elicitation by URL.
            UsageError: *url* is not a URL, or its scheme is not allowed.

        Spec:
            2025-11-25, client/elicitation, "URL Mode".
        """
        if elicitation_id is None:
            result = await self._request(
                "elicitation/create", models.ElicitRequestURLParams(message=message, url=url), NEWEST
            )
        else:  # the newest revision has no ids
            own = bindings(_ELICITATION_IDS).models
            params = own.ElicitRequestURLParams(message=message, url=url, elicitation_id=elicitation_id)
            result = await self._request("elicitation/create", params, _ELICITATION_IDS)
        action: Literal["accept", "decline", "cancel"] = result.action
        return action

    @awaited
    async def elicitation_completed(self, elicitation_id: str) -> None:
        """Tell a client of 2025-11-25 that the user has finished on the page of `elicit_url`; do nothing for others.

        Spec:
            2025-11-25, client/elicitation, "Completion Notifications for URL Mode Elicitation".
        """
        params = bindings(_ELICITATION_IDS).models.ElicitationCompleteNotificationParams(elicitation_id=elicitation_id)
        method = "notifications/elicitation/complete"
        notifications.send_notification(self._session, self._exchange, method, params, terms=_ELICITATION_IDS)
        await self._drain()

    @awaited
    async def sample(
        self,
        messages: str | Sequence[models.SamplingMessage],
        *,
        max_tokens: int,
        **more: Any,
    ) -> models.CreateMessageResult:
        """Ask the client's model for the next message of a conversation.

        Args:
            messages: The conversation; a string is one message of the user.
            max_tokens: The largest number of tokens that the model may write.
            more: Other fields of ``CreateMessageRequestParams``: ``system_prompt``, ``temperature``, ``tools`` …

        Raises:
            UnsupportedByPeer: The client does not support sampling, or does not support sampling with tools.
            RequestError: The user or the client refused.

        Spec:
            2025-11-25, client/sampling; 2026-07-28, the same.
        """
        if isinstance(messages, str):
            messages = [models.SamplingMessage(role="user", content=models.TextContent(text=messages))]
        check_lists(messages=messages)
        check_option_names("sample", more, models.CreateMessageRequestParams.__struct_fields__)
        params = models.CreateMessageRequestParams(messages=list(messages), max_tokens=max_tokens, **more)
        result: models.CreateMessageResult = await self._request("sampling/createMessage", params, NEWEST)
        return result

    @awaited
    async def roots(self) -> list[models.Root]:
        """Return the folders and files that the client lets the server work on.

        Raises:
            UnsupportedByPeer: The client does not support roots.

        Spec:
            2025-11-25, client/roots; 2026-07-28, the same.
        """
        found: list[models.Root] = (await self._request("roots/list", UNSET, NEWEST)).roots
        return found

    @awaited
    async def disconnect(self, *, retry_seconds: float | None = None) -> bool:
        """Close the connection, if the client can reconnect later to get the response; return whether it was closed.

        Use it before long work, so that no connection stays open. Over HTTP, a client of 2025-11-25 reconnects for the
        messages that it missed and for the response. For all other clients and transports, this does nothing and
        returns False.

        Args:
            retry_seconds: The time after which the client should reconnect; by default `HttpLimits.retry_seconds`.

        Spec:
            2025-11-25, basic/transports, "Sending Messages to the Server": the server MAY close the connection.
        """
        request = None if self._exchange is None else self._exchange.request
        if self._exchange is None or request is None:
            return False
        check_numbers(retry_seconds=0 if retry_seconds is None else retry_seconds)
        retry_ms = None if retry_seconds is None else round(retry_seconds * 1000)
        return request.session.output.disconnect(self._exchange, retry_ms)

    @awaited
    async def request(self, method: Any, params: Any = UNSET, /) -> Any:
        """Send a request to the client, and return the result. ``ServerMethods(context)`` calls this.

        *method* is a constant of the native revision's generated module ``methods``, such as ``methods.LIST_ROOTS``.

        Raises:
            UnsupportedByPeer: The client's revision has no such request, or the client has not declared the capability
                for the request. Nothing was sent.
            RequestRefused: The client answered with an error.
            RequestError: The client did not answer in time, or was asked too often (`Limits.max_rounds`).
            InvalidPayload: The result is not valid in the client's revision.
            TransportClosed: The client has disconnected.
        """
        check_method(method, "LIST_ROOTS")
        return await self._request(method.name, params, self._session.handlers.native_revision)

    @awaited
    async def notify(self, method: Any, params: Any = UNSET, /) -> None:
        """Send a notification to the client.

        *method* is a constant of the native revision's generated module ``methods``, or of an extension's.

        Raises:
            UnsupportedByPeer: The client's revision has no such notification, this server has not declared the
                capability for it, or the client has not declared the extension.
        """
        check_method(method, "LOGGING_MESSAGE")
        handlers = self._session.handlers
        if any(each.outgoing(method) for each in handlers.extensions):
            notifications.send_extension_notification(self._session, self._exchange, method, params)
        else:
            terms = handlers.native_revision
            notifications.send_notification(self._session, self._exchange, method.name, params, terms=terms)
        await self._drain()

    # A server has these, too. It may be called where no event loop runs, as in `anyio.run(server.tools_changed)`.

    @awaited
    async def resource_updated(self, uri: str) -> None:
        """Report a change of the resource *uri* to every client that is subscribed to the resource."""
        await super().resource_updated(uri)
        await self._drain()

    @awaited
    async def tools_changed(self) -> None:
        """Report a change of the list of tools to every client that is subscribed to the list."""
        await super().tools_changed()
        await self._drain()

    @awaited
    async def prompts_changed(self) -> None:
        """Report a change of the list of prompts to every client that is subscribed to the list."""
        await super().prompts_changed()
        await self._drain()

    @awaited
    async def resources_changed(self) -> None:
        """Report a change of the list of resources to every client that is subscribed to the list."""
        await super().resources_changed()
        await self._drain()

    async def _drain(self) -> None:
        """Wait until the peer has read most of what was sent on the connection of the open request."""
        request = None if self._exchange is None else self._exchange.request
        await (self._session if request is None else request.session).output.drain(self._exchange)

    async def _request(self, method: str, params: Any, terms: str) -> Any:
        check_may_ask(self._exchange, self._peer, method)
        self._engine.warn_deprecated(method)
        return await request_result(self._session, self._exchange, method, params, terms=terms, run=self._run)
