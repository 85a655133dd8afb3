"""What an application asks of its cluster, where there is one: `mcpgen.runtime.http.server.cluster.http_cluster`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.http.server.open_requests import Ticket
    from mcpgen.runtime.protocol.messages import Batch, Malformed, Message
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["RelayedPost", "SharedState"]

# As in `responses`, which needs this module's users.
_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class RelayedPost(NamedTuple):
    """A POST that another worker may have to answer, with `receive`, `send` and `scope` of ASGI."""

    headers: Mapping[str, str]
    client: Client
    body: bytes
    ticket: Ticket
    receive: _Receive
    send: _Send
    scope: _Scope


class SharedState(Protocol):
    """What the workers of one server share, for one application.

    Every async method may raise `ClusterUnavailable`; then no response has been started.
    """

    async def open(self, spawner: Spawner) -> None:
        """Join the cluster, once; do not wait for longer than its time limit."""
        ...

    async def close(self) -> None:
        """Leave the cluster."""
        ...

    @property
    def is_reachable(self) -> bool:
        """Whether the cluster can be reached."""
        ...

    async def start_leaving(self) -> None:
        """Note that this worker is about to leave, so that others take over the streams of sessions."""
        ...

    def new_session(self, client: Client, spawner: Spawner) -> HttpSession:
        """Return a session that *client* starts here."""
        ...

    async def store(self, session: HttpSession) -> None:
        """Let other workers know a session that a client has started here."""
        ...

    async def prepare(self, headers: Mapping[str, str], client: Client) -> None:
        """Read the session that the *headers* of *client* name, unless this worker has a copy that can be trusted."""
        ...

    async def relay_retry(self, request_state: str, post: RelayedPost) -> bool:
        """Have the retry of a stateless client answered by the worker whose handler waits for it.

        Return False if that is this worker, or has ended.
        """
        ...

    async def relay_result(self, post: RelayedPost) -> bool:
        """Have a ``tasks/result`` answered by the home of its session, which gets the messages of the task.

        Return False if that is this worker, or has ended.
        """
        ...

    async def relay_stream(
        self,
        headers: Mapping[str, str],
        client: Client,
        receive: _Receive,
        send: _Send,
        on_abort: Callable[[], object] | None,
    ) -> bool:
        """Have a GET answered by the worker that has the stream; return False if that is this worker."""
        ...

    async def relay_message(
        self, scope: _Scope, headers: Mapping[str, str], client: Client, body: bytes, send: _Send
    ) -> bool:
        """Have a message of HTTP+SSE answered by the worker that has the stream; return False if that is this one."""
        ...

    async def settle(self, session: HttpSession, message: Message | Batch | Malformed, body: bytes) -> bool:
        """Tell the other workers what *message* changed in *session*, or meant for them.

        Return False if the session has ended.
        """
        ...

    async def end(self, session: HttpSession) -> None:
        """End a session in all workers."""
        ...

    def new_stream_id(self) -> str:
        """Return the id of a session of HTTP+SSE, which names this worker."""
        ...
