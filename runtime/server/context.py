"""What a handler knows of the request that it serves, and what it can do about it; the same in every era."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.server import notifications, server_requests
from mcpgen.runtime.server.elicitation_forms import Elicited, form_schema, form_value
from mcpgen.runtime.server.functions.signatures import BaseContext

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.log_levels import Level
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.server_requests import ServerRequest
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["Context", "gather"]

T = TypeVar("T")


class Context(BaseContext):
    """What a handler knows of the request that it serves, and what it can do about it.

    It may be asked anything whatever revision the client speaks. What a client cannot do, or has not declared, raises
    `UnsupportedByPeer` before anything is sent. It is also the ``Sender`` of the home revision's ``ServerMethods``.

    Methods that begin with a verb for the client wait for its answer. They have to be awaited where the handler runs;
    from a function that runs in a worker thread, by ``anyio.from_thread.run(context.log, "info", "...")``.
    """

    __slots__ = ("_engine", "_exchange", "_peer", "_session")

    def __init__(self, engine: Engine, session: ServerSession, exchange: Exchange | None, peer: Peer) -> None:
        self._engine = engine
        self._session = session
        self._exchange = exchange
        self._peer = peer

    @property
    def peer(self) -> Peer:
        """The client: its revision, era, name and capabilities."""
        return self._peer if self._exchange is None else self._exchange.peer

    @property
    def method(self) -> str | None:
        """The method that is served; None where nobody waits for an answer."""
        return None if self._exchange is None else self._exchange.entry.method

    @property
    def request_id(self) -> RequestId | None:
        """The id of the open request; None for a notification, and while a stateless client gathers answers."""
        exchange = self._exchange
        return None if exchange is None or exchange.origin is None else exchange.origin.id

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """The answers to what the handler demanded when it last returned an ``InputRequiredResult``; empty before.

        Spec:
            2026-07-28, basic/patterns/mrtr, "InputResponses".
        """
        found = self._brought("input_responses")
        return {} if found is UNSET else found

    @property
    def request_state(self) -> str | None:
        """The state that it demanded to have back then, unchanged; None if there was none.

        Spec:
            2026-07-28, basic/patterns/mrtr, "InputRequiredResult".
        """
        found = self._brought("request_state")
        return None if found is UNSET else found

    @property
    def user(self) -> str:
        """Who asks, where the transport knows: what ``server.asgi(user=…)`` has said; empty otherwise."""
        origin = None if self._exchange is None else self._exchange.origin
        return (self._session if origin is None else origin.session).user

    @property
    def state(self) -> Any:
        """What the server's lifespan yielded."""
        return self._engine.state

    @property
    def is_cancelled(self) -> bool:
        """Whether the client does not want the answer any more; functions in worker threads have to look."""
        return self._exchange is not None and self._exchange.has_ended

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far its request has come, if it asked for that; what does not grow is left out.

        Spec:
            2025-11-25, basic/utilities/progress.
        """
        if self._exchange is not None:
            notifications.progress(self._exchange, progress, total, message)
            await self._drain()

    async def log(self, level: Level, data: object, *, logger: str | None = None) -> None:
        """Tell the client of a log entry, if it wants entries of this *level*; *data* is any JSON.

        Spec:
            2025-11-25, server/utilities/logging; 2026-07-28, the same.
        """
        if self._exchange is not None:
            notifications.log(self._exchange, level, data, logger)
            await self._drain()

    @overload
    async def elicit(self, message: str, requested: type[T]) -> Elicited[T]: ...
    @overload
    async def elicit(self, message: str, requested: Mapping[str, Any]) -> Elicited[dict[str, Any]]: ...
    async def elicit(self, message: str, requested: type[Any] | Mapping[str, Any]) -> Elicited[Any]:
        """Let the user fill in a form.

        Args:
            message: What for.
            requested: A Struct, dataclass or TypedDict of plain fields, or the schema of one.

        Raises:
            UnsupportedByPeer: The client has no forms.
            InvalidPayload: What came back does not fit.
            UsageError: No form can ask for this.

        Spec:
            2025-06-18 and later, client/elicitation.
        """
        params = models.ElicitRequestFormParams(message=message, requested_schema=form_schema(requested))
        result = await self._ask("elicitation/create", params, NEWEST)
        return form_value(result, requested, self.peer)

    async def elicit_url(self, message: str, url: str) -> Literal["accept", "decline", "cancel"]:
        """Send the user to a page, and return whether they agreed to go there.

        Raises:
            UnsupportedByPeer: The client cannot do that.

        Spec:
            2025-11-25, client/elicitation, "URL Mode".
        """
        params = models.ElicitRequestURLParams(message=message, url=url)
        result = await self._ask("elicitation/create", params, NEWEST)
        action: Literal["accept", "decline", "cancel"] = result.action
        return action

    async def sample(
        self,
        messages: str | Sequence[models.SamplingMessage],
        *,
        max_tokens: int,
        **more: Any,
    ) -> models.CreateMessageResult:
        """Let the client's model continue a conversation.

        Args:
            messages: The conversation; a text is the user's.
            max_tokens: How much it may write.
            more: Other fields of ``CreateMessageRequestParams``: ``system_prompt``, ``temperature``, ``tools`` …

        Raises:
            UnsupportedByPeer: The client has no model for us, or none with tools.
            RequestError: The user or the client refused.

        Spec:
            2025-11-25, client/sampling; 2026-07-28, the same.
        """
        if isinstance(messages, str):
            messages = [models.SamplingMessage(role="user", content=models.TextContent(text=messages))]
        params = models.CreateMessageRequestParams(messages=list(messages), max_tokens=max_tokens, **more)
        result: models.CreateMessageResult = await self._ask("sampling/createMessage", params, NEWEST)
        return result

    async def roots(self) -> list[models.Root]:
        """Return the folders and files that the client lets the server work on.

        Raises:
            UnsupportedByPeer: The client has none to tell.

        Spec:
            2025-11-25, client/roots; 2026-07-28, the same.
        """
        result = await self._ask("roots/list", UNSET, NEWEST)
        found: list[models.Root] = result.roots
        return found

    async def disconnect(self, *, retry_seconds: float | None = None) -> bool:
        """Close the connection that the client waits on, if it can come back for the rest; return whether.

        Work that takes long need not hold a connection. Over HTTP, a client of 2025-11-25 comes back for what it missed
        and for the answer; elsewhere nothing happens, and nothing has to: whatever is sent next arrives all the same.

        Args:
            retry_seconds: When it is to come back; otherwise it decides.

        Spec:
            2025-11-25, basic/transports, "Sending Messages to the Server": the server MAY close the connection.
        """
        origin = None if self._exchange is None else self._exchange.origin
        if self._exchange is None or origin is None:
            return False
        retry_ms = None if retry_seconds is None else round(retry_seconds * 1000)
        return origin.session.sink.disconnect(self._exchange, retry_ms)

    async def resource_updated(self, uri: str) -> None:
        """Tell every client that watches the resource *uri* that it has changed."""
        await self._engine.resource_updated(uri)

    async def tools_changed(self) -> None:
        """Tell every client that wants to know that there are other tools now."""
        await self._engine.tools_changed()

    async def prompts_changed(self) -> None:
        """Tell every client that wants to know that there are other prompts now."""
        await self._engine.prompts_changed()

    async def resources_changed(self) -> None:
        """Tell every client that wants to know that there are other resources now."""
        await self._engine.resources_changed()

    async def request(self, method: Any, params: Any = UNSET, /) -> Any:
        """Send a request of the home revision: what ``ServerMethods(context)`` calls.

        Raises:
            UnsupportedByPeer: The client's revision has no such request, or it has not declared that it can answer.
            RequestError: The client answered with an error.
            InvalidPayload: It answered with something else than its revision allows.
            TransportClosed: It has gone.
        """
        return await self._ask(method.name, params, self._engine.native_revision)

    async def notify(self, method: Any, params: Any = UNSET, /) -> None:
        """Send a notification of the home revision.

        Raises:
            UnsupportedByPeer: The client's revision has no such notification, or this server has not declared it.
        """
        notifications.notify(self._session, self._exchange, method.name, params, terms=self._engine.native_revision)
        await self._drain()

    async def _drain(self) -> None:
        """Wait until the peer has read most of what it was sent, on the connection that its open request came by."""
        origin = None if self._exchange is None else self._exchange.origin
        await (self._session if origin is None else origin.session).sink.drain(self._exchange)

    def _brought(self, name: str) -> Any:
        """Return what a retry brought; the short way, whose params are a function's arguments, takes none."""
        exchange = self._exchange
        return UNSET if exchange is None or exchange.entry.long is not None else getattr(exchange.params, name, UNSET)

    async def _ask(self, method: str, params: Any, terms: str) -> Any:
        task = None if self._exchange is None else self._exchange.task
        with nullcontext() if task is None else task.awaiting_input():
            return await self.answer(
                server_requests.send_request(self._session, self._exchange, method, params, terms=terms)
            )

    async def answer(self, question: ServerRequest) -> Any:
        """Wait for the answer to *question*; whoever stops waiting takes it back."""
        if not question.is_settled:
            settled = anyio.Event()
            question.on_settled = settled.set
            try:
                # A stateless client has as long as its exchange waits; the store of those counts that.
                seconds = self._engine.limits.answer_seconds if self.peer.era == "handshake" else math.inf
                with anyio.move_on_after(seconds):
                    await settled.wait()
            finally:
                if not question.is_settled:
                    server_requests.abandon_request(self._session, self._exchange, question)
            if not question.is_settled:
                raise RequestError(Code.INTERNAL_ERROR, "the client did not answer in time")
        return question.outcome()


async def gather(context: Context, exchange: Exchange, session: ServerSession, demand: Any) -> Any:
    """Ask a handshake peer for what a handler demands, and return the params of the retry that would bring it.

    Raises:
        UnsupportedByPeer: The client cannot answer all of it.
        RequestError: It refuses.
    """
    wanted: Mapping[str, Any] = {} if isinstance(demand.input_requests, UnsetType) else demand.input_requests
    questions: dict[str, ServerRequest] = {}
    try:
        for key, each in wanted.items():
            asked = getattr(each, "params", UNSET)
            questions[key] = server_requests.send_request(
                session, exchange, each.method, asked, terms=session.service.native_revision
            )
        answers = {key: await context.answer(question) for key, question in questions.items()}
    finally:
        for question in questions.values():
            server_requests.abandon_request(session, exchange, question)
    return msgspec.structs.replace(exchange.params, input_responses=answers, request_state=demand.request_state)
