"""One worker's part of its cluster over HTTP: what it shares, and which requests it relays."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server import session_endpoint
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.cluster.request_relay import RelayLost, RequestRelay
from mcpgen.runtime.http.server.cluster.session_copies import SessionCopies
from mcpgen.runtime.http.server.cluster.shared_session import SharedHttpSession
from mcpgen.runtime.http.server.cluster.state_keys import StateKeys
from mcpgen.runtime.http.server.event_store import parse_event_id
from mcpgen.runtime.http.server.post_request import PostRequest
from mcpgen.runtime.http.server.session_table import random_id
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Notification, Response
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.worker import ClusterWorker, worker_of_id
from mcpgen.runtime.server.cluster.worker_messages import ChangeMade, ForSession, RelayedRequest
from mcpgen.runtime.server.input_required import process_of_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.http.server.legacy_sse import LegacySse
    from mcpgen.runtime.http.server.responses import Receive, Scope, Send
    from mcpgen.runtime.protocol.messages import Malformed, Message, Request
    from mcpgen.runtime.server.cluster.cluster import Cluster
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["HttpCluster"]

# The home of a session may move while a request looks for it.
_MAX_MOVES: Final = 3

_LOG = logging.getLogger("mcpgen.cluster")


class HttpCluster:
    """One worker's part of its cluster; a `SharedState`.

    Args:
        state: The state of the application.
        cluster: What the workers share.

    Raises:
        UsageError: The server has something that workers cannot share yet.
    """

    def __init__(self, state: AppState, cluster: Cluster) -> None:
        engine = state.engine
        self._state = state
        self._refuse_tasks()
        self._worker = ClusterWorker(cluster, f"{engine.name}{engine.view_name}", clock=engine.clock)
        self._copies = SessionCopies(state, self._worker)
        self._relay = RequestRelay(state, self._worker, self._serve)
        self._keys = StateKeys(self._worker, engine.sealer) if engine.sealer.is_keyless else None
        self._legacy_sse: LegacySse | None = None
        self._is_open = False
        self._worker.on(ChangeMade, self._change_arrived)
        self._worker.on(ForSession, self._copies.message_arrived)
        self._worker.on_chore = self._start_chore
        self._worker.on_distrust = self._distrust
        engine.on_change = self._tell_change

    def serve_messages_with(self, legacy_sse: LegacySse) -> None:
        """Let *legacy_sse* serve the messages of HTTP+SSE that other workers relay."""
        self._legacy_sse = legacy_sse

    def _refuse_tasks(self) -> None:
        if self._state.engine.tasks is not None:
            raise UsageError(
                "`cluster` is not possible for a server with tasks yet: workers would not find each other's tasks; "
                "remove `task=` and `tasks=`, or serve it with one worker"
            )

    async def open(self, spawner: Spawner) -> None:
        """Join the cluster, once; do not wait for longer than its time limit.

        Raises:
            UsageError: A tool that runs as a task was registered meanwhile.
        """
        if self._is_open:
            return
        self._refuse_tasks()
        self._is_open = True
        spawner.start(self._worker.run)
        spawner.start(self._copies.keep_used)
        try:
            await self._worker.wait_joined()
            await self._refresh_keys()
        except ClusterUnavailable as error:
            _LOG.warning("%s", error)
        self._state.engine.process = f"{self._worker.number}.{self._state.engine.process}"

    async def _join(self) -> None:
        """Return when this worker has joined.

        Raises:
            ClusterUnavailable: It cannot join now.
        """
        await self._state.open()
        await self._worker.wait_joined()

    async def close(self) -> None:
        """Leave the cluster."""
        self._state.engine.on_change = None
        if self._is_open:
            self._is_open = False
            self._relay.end_all()
            await self._worker.leave()

    def _start_chore(self) -> None:
        if self._state.spawner is not None and self._worker.generation:
            self._state.spawner.start(self._refresh_keys_later)

    async def _refresh_keys_later(self) -> None:
        try:
            await self._refresh_keys()
        except ClusterUnavailable as error:
            _LOG.debug("%s", error)  # the worker has logged it, and this is tried again

    async def _refresh_keys(self) -> None:
        if self._keys is not None:
            await self._keys.refresh()

    def _distrust(self) -> None:
        self._relay.end_all()
        self._copies.read_again_soon()

    def new_session(self, client: Client, spawner: Spawner) -> HttpSession:
        """Return a session that *client* starts here."""
        return self._copies.new(random_id(), client, spawner)

    async def store(self, session: HttpSession, request: Request) -> None:
        """Let other workers know a session that *request*, an `initialize`, has started."""
        await self._copies.store(_shared(session), request)

    async def prepare(self, headers: Mapping[str, str]) -> None:
        """Read the session that *headers* name, unless this worker has a copy that can be trusted."""
        session_id = headers.get(http.SESSION)
        if session_id is not None and not self._copies.is_current(session_id):
            await self._join()
            await self._copies.read(session_id)

    async def settle(self, session: HttpSession, message: Message | Batch | Malformed, body: bytes) -> bool:
        """Tell the other workers what *message* changed in *session*, or meant for them."""
        receivers = {_receiver(each) for each in (message.items if isinstance(message, Batch) else (message,))}
        copied = ForSession(session.id, session.client.user, body, self._worker.number)
        if 0 in receivers:
            await self._worker.send_to_all(copied)
        else:
            for each in receivers - {None, self._worker.number}:
                if each is not None and not await self._worker.send(each, copied) and await self._worker.is_alive(each):
                    raise ClusterUnavailable("the worker that waits for this answer does not listen now")
        return await self._copies.settle(_shared(session), message)

    async def end(self, session: HttpSession) -> None:
        """End a session in all workers."""
        await self._copies.end(session.id)

    async def relay_stream(self, headers: Mapping[str, str], client: Client, receive: Receive, send: Send) -> bool:
        """Have a GET answered by the worker that has the stream; return False if that is this worker."""
        session_id, last_event_id = headers.get(http.SESSION), headers.get("last-event-id")
        if session_id is None or self._state.unsupported_revision(headers) is not None:
            return False
        for _ in range(_MAX_MOVES):
            await self.prepare(headers)
            copy = self._state.sessions.find(session_id, client.user)
            if copy is None:
                return False
            target = _shared(copy).home if last_event_id is None else _worker_of_event(last_event_id)
            if target is None or target == self._worker.number:
                return False
            request = self._relayed("get", headers, client)
            if await self._forward_stream(target, request, receive, send):
                return True
            if await self._worker.is_alive(target):
                raise ClusterUnavailable("the worker that has the stream does not listen now")
            if last_event_id is not None:
                return False  # its events have ended with it
            await self._copies.move_home(_shared(copy), target)
        raise ClusterUnavailable("the stream of the session moves between workers")

    async def _forward_stream(self, target: int, request: RelayedRequest, receive: Receive, send: Send) -> bool:
        """Relay a request for a stream, which counts as open here, too; return False if *target* does not listen."""
        ticket = self._state.open_ticket(Client(*request.client), request.headers, is_stream=True)
        if ticket is None:
            raise ClusterUnavailable(self._state.refusal)
        try:
            ticket.on_give_way = partial(self._relay.end, request.relay)
            return await self._relay.forward(target, request, receive, send)
        except RelayLost:
            raise ClusterUnavailable("the worker that has the stream has ended") from None
        finally:
            ticket.release()

    async def relay_retry(  # noqa: PLR0913 (the parts of a request)
        self,
        request_state: str,
        headers: Mapping[str, str],
        client: Client,
        body: bytes,
        *,
        receive: Receive,
        send: Send,
    ) -> bool:
        """Have the retry of a stateless client answered by the worker whose handler waits for it.

        Return False if that is this worker, or has ended.
        """
        process = process_of_state(self._state.engine.sealer, request_state) or ""
        number, _, token = process.partition(".")
        if not token or not number.isdecimal() or process == self._state.engine.process:
            return False
        await self._join()
        target = int(number)
        if target == self._worker.number:
            return False
        request = self._relayed("post", headers, client, body)
        try:
            if await self._relay.forward(target, request, receive, send):
                return True
        except RelayLost:
            return False  # the handler has ended with its worker
        if await self._worker.is_alive(target):
            raise ClusterUnavailable("the worker whose handler waits does not listen now")
        return False

    async def relay_message(
        self, scope: Scope, headers: Mapping[str, str], client: Client, body: bytes, send: Send
    ) -> bool:
        """Have a message of HTTP+SSE answered by the worker that has the stream; return False if that is this one."""
        query: bytes = scope.get("query_string", b"")
        number = query.partition(b"session=")[2].partition(b".")[0]
        if not number.isdigit() or int(number) == self._worker.number:
            return False
        await self._join()
        request = self._relayed("message", headers, client, body, query)
        try:
            return await self._relay.forward(int(number), request, None, send)
        except RelayLost:
            return False

    def new_stream_id(self) -> str:
        """Return the id of a session of HTTP+SSE, which names this worker."""
        return f"{self._worker.number}.{random_id()}"

    def _relayed(
        self, kind: str, headers: Mapping[str, str], client: Client, body: bytes = b"", query: bytes = b""
    ) -> RelayedRequest:
        relay, worker = self._relay.new_number(), self._worker.number
        return RelayedRequest(worker, relay, kind, dict(headers), _parts(client), body, query)

    async def _serve(self, request: RelayedRequest, receive: Receive, send: Send) -> None:
        """Serve a request that another worker has relayed."""
        client, headers, state = Client(*request.client), request.headers, self._state
        scope: dict[str, Any] = {"type": "http", "query_string": request.query}
        try:
            if request.kind == "get":
                await session_endpoint.get(state, headers, client, receive, send, None)
            elif request.kind == "post":
                await PostRequest(state, headers, client, receive, send, scope).serve(request.body)
            elif request.kind == "message" and self._legacy_sse is not None:
                await self._legacy_sse.post(scope, headers, client, request.body, send)
        except ClusterUnavailable as error:
            _LOG.warning("%s", error)

    def _tell_change(self, method: str, uri: str | None) -> None:
        self._worker.send_later(None, ChangeMade(method, uri, self._worker.number))

    def _change_arrived(self, change: ChangeMade) -> None:
        if change.worker != self._worker.number:
            self._state.engine.deliver_change(change.method, change.uri)


def _parts(client: Client) -> tuple[str, str, bool]:
    return client.user, client.owner, client.is_known


def _shared(session: HttpSession) -> SharedHttpSession:
    if not isinstance(session, SharedHttpSession):  # unreachable: `new_session` makes all sessions
        raise UsageError("this session is not shared")
    return session


def _worker_of_event(last_event_id: str) -> int | None:
    """Return the number of the worker that has the stream of an event; None if it is no event of ours."""
    found = parse_event_id(last_event_id.strip())
    parts = [] if found is None else found[0].split(".")
    number = parts[1].partition("-")[0] if len(parts) == 3 else ""  # noqa: PLR2004 (of `SessionCopies.new`)
    return int(number) if number.isdecimal() and number.isascii() else None


def _receiver(message: object) -> int | None:
    """Return the number of the worker for which a message of a client is; 0 for all, None for no other."""
    if isinstance(message, Response | ErrorResponse):
        return worker_of_id(message.id)
    return 0 if isinstance(message, Notification) and message.method == "notifications/cancelled" else None
