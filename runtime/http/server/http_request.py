"""One POST: what ASGI gives of it, the ticket that counts it, and how it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.app_state import AppState
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.open_requests import Ticket
from mcpgen.runtime.http.server.rate_limit import rate_limit_error
from mcpgen.runtime.http.server.responses import Receive, Scope, Send
from mcpgen.runtime.protocol.messages import Fault, Malformed, Request

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.direct_calls import DirectCall
    from mcpgen.runtime.protocol.messages import Batch, Message

__all__ = ["HttpRequest"]


class HttpRequest(Struct, eq=False):
    """One POST.

    Attributes:
        state: The state of the application.
        headers: The request's headers, as `headers_by_name` returns them.
        client: Who sends it.
        receive: Of ASGI.
        send: Of ASGI.
        scope: Of ASGI.
        body: Its body.
        ticket: Counts it; None if there is no need yet.
    """

    state: AppState
    headers: Mapping[str, str]
    client: Client
    receive: Receive
    send: Send
    scope: Scope
    body: bytes = b""
    ticket: Ticket | None = None

    def forget_body(self) -> None:
        """Keep the body no longer."""
        self.body = b""

    def open_ticket(self, count: int = 1, session: str = "") -> Ticket | None:
        """Return the ticket of this request; None if there is no room for it."""
        if self.ticket is None or count > 1:
            self.release_ticket()
            self.ticket = self.state.open_ticket(self.client, self.headers, self.body, session=session, count=count)
        return self.ticket

    def release_ticket(self) -> None:
        """Note that the response is sent."""
        if self.ticket is not None:
            self.ticket.release()

    async def refuse(self, malformed: Malformed) -> None:
        """Answer an invalid message."""
        has_answer = malformed.kind not in ("notification", "response")
        request_id = malformed.id if has_answer and malformed.id is not None else UNSET
        status = 413 if malformed.fault is Fault.TOO_MANY_VALUES else 400
        await responses.send_error(
            self.send, status, malformed.reason, code=malformed.fault.code, request_id=request_id
        )

    async def refuse_overload(self) -> None:
        """Answer that there is no room."""
        headers = (responses.RETRY_AFTER,)
        await responses.send_error(self.send, 503, self.state.refusal, headers=headers, body=self.body)

    async def refuse_rate(self, message: Message | Batch | Malformed, seconds: float) -> None:
        """Answer that the client has to wait for *seconds*."""
        error = rate_limit_error(seconds)
        await responses.send_error(
            self.send,
            429,
            error.message,
            code=error.code,
            request_id=message.id if isinstance(message, Request) else UNSET,
            data=error.data,
            headers=(responses.retry_after(seconds),),
        )

    async def abandon(self, call: DirectCall | None) -> None:
        """Refuse a request for which there is no room, although its function may have begun."""
        if call is not None:
            call.close()
        await self.refuse_overload()
