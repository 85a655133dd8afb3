"""One worker's part of its cluster over HTTP: what it shares, and which requests it relays."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server import get_delete_request
from mcpgen.runtime.http.server.auth.token_verifier import access_bytes
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.cluster.request_relay import RelayClient, RelayLost, RequestRelay
from mcpgen.runtime.http.server.cluster.session_copies import SessionCopies
from mcpgen.runtime.http.server.cluster.shared_events import SharedEvents
from mcpgen.runtime.http.server.cluster.shared_rates import SharedRates
from mcpgen.runtime.http.server.cluster.shared_session import SharedHttpSession, is_of_get_stream, worker_of_event
from mcpgen.runtime.http.server.cluster.shared_shares import SharedShares
from mcpgen.runtime.http.server.cluster.state_keys import StateKeys
from mcpgen.runtime.http.server.post_request import PostRequest
from mcpgen.runtime.http.server.responses import abort_of
from mcpgen.runtime.http.server.session_table import random_id
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Malformed, Notification, Response
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.fair_gate import requester
from mcpgen.runtime.server.cluster.worker import ClusterWorker, parse_number, worker_of_id
from mcpgen.runtime.server.cluster.worker_messages import (
    ChangeMade,
    ForSession,
    RelayedRequest,
    decode_access,
    encode_access,
)
from mcpgen.runtime.server.input_required import process_of_state
from mcpgen.runtime.server.notifications import CANCELLED, brief_cancellation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.http.server.legacy_sse import LegacySse
    from mcpgen.runtime.http.server.responses import Receive, Scope, Send
    from mcpgen.runtime.http.server.shared_state import RelayedPost
    from mcpgen.runtime.protocol.messages import Message
    from mcpgen.runtime.server.cluster.cluster import Cluster
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["HttpCluster"]

# All workers get them, whether they can read them fast enough or not. Ids are short, and a client may only ask for a
# cancellation.
_MAX_CANCELLATIONS_BYTES: Final = 8 * 1024

# The home of a session may move while a request looks for it.
_MAX_MOVES: Final = 3

# The other worker gets what a token allows instead.
_CREDENTIALS: Final = frozenset(("authorization", "cookie", "proxy-authorization"))

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
        self._events = SharedEvents(self._worker, state.store, is_closing=lambda: state.is_shutting_down)
        self._rates = None if state.rates is None else SharedRates(self._worker, state.rates, engine.clock)
        quotas = {
            "open": state.open_quota,
            "parked": engine.parked.quota,
            "sessions": state.sessions.quota,
            "unread": state.unread,
        }
        self._shares = SharedShares(self._worker, quotas, engine.clock)
        self._copies = SessionCopies(state, self._worker, self._events)
        self._relay = RequestRelay(state, self._worker, self._serve)
        self._keys = StateKeys(self._worker, engine.sealer) if engine.sealer.is_keyless else None
        self._legacy_sse: LegacySse | None = None
        self._is_open = False
        self._worker.on(ChangeMade, self._change_arrived)
        self._worker.on(ForSession, self._copies.message_arrived)
        self._worker.on_chore = self._start_chore
        self._worker.on_distrust = self._distrust
        self._worker.on_break = self._broke
        engine.on_change = self._tell_change
        engine.elicitation_ids.share_with(self._worker)

    def serve_messages_with(self, legacy_sse: LegacySse) -> None:
        """Let *legacy_sse* serve the messages of HTTP+SSE that other workers relay."""
        self._legacy_sse = legacy_sse

    def _refuse_tasks(self) -> None:
        tasks = self._state.engine.tasks
        if tasks is not None and not tasks.is_shared:
            raise UsageError(
                "with `cluster` or `--redis`, a server with tasks needs a task store that its workers share: pass "
                "`tasks=RedisTaskStore(url, name=…)` to the server, or SqliteTaskStore(path) on one machine"
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
        requester.set("")  # a request may have opened it
        spawner.start(self._worker.run)
        spawner.start(self._copies.keep_used)
        spawner.start(self._events.run)
        spawner.start(self._shares.run)
        if self._rates is not None:
            spawner.start(self._rates.run)
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
            try:
                await self._events.flush()
            except ClusterUnavailable as error:
                _LOG.warning("the last events of streams are lost: %s", error)
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

    def _broke(self) -> None:
        """Act on the loss of messages of other workers: responses, and changes that clients are subscribed to."""
        self._relay.end_all()
        if self._worker.generation and self._state.spawner is not None:
            self._state.spawner.start(self._state.engine.notify_all_changes)

    def _distrust(self) -> None:
        if self._worker.epoch:
            self._state.share_tags(self._worker.epoch)
        self._copies.read_again_soon()

    @property
    def is_reachable(self) -> bool:
        """Whether the cluster can be reached."""
        return self._worker.is_trusted

    async def start_leaving(self) -> None:
        """Note that this worker is about to leave, so that others take over the streams of sessions."""
        await self._worker.start_leaving()

    def new_session(self, client: Client, spawner: Spawner) -> HttpSession:
        """Return a session that *client* starts here."""
        return self._copies.new(random_id(), client, spawner)

    async def store(self, session: HttpSession) -> None:
        """Let other workers know a session that a client has started here."""
        await self._copies.store(_shared(session))

    async def prepare(self, headers: Mapping[str, str], client: Client) -> None:
        """Read the session that the *headers* of *client* name, unless this worker has a copy that can be trusted."""
        session_id = headers.get(http.SESSION)
        if session_id is not None and not self._copies.is_current(session_id):
            await self._join()
            requester.set(client.owner)
            await self._copies.read(session_id)

    async def settle(self, session: HttpSession, message: Message | Batch | Malformed, body: bytes) -> bool:
        """Tell the other workers what *message* changed in *session*, or meant for them."""
        messages = message.items if isinstance(message, Batch) else (message,)
        for each in messages:
            if isinstance(each, Response | ErrorResponse) or (isinstance(each, Malformed) and each.is_answer):
                await self._pass_on_answer(session, each, body if each is message else None)
        await self._pass_on_cancellations(session, messages)
        return await self._copies.settle(_shared(session))

    async def _pass_on_answer(
        self, session: HttpSession, answer: Response | ErrorResponse | Malformed, body: bytes | None
    ) -> None:
        """Send the answer to a request of another worker there; *body* is its bytes, if it came alone."""
        receiver = None if answer.id is None else worker_of_id(answer.id)
        if receiver is None or receiver == self._worker.number:
            return
        requester.set(session.client.owner)
        body = envelope.encode_answer(answer) if body is None else body
        copied = ForSession(session.id, session.client.user, body, self._worker.number)
        if not await self._worker.send(receiver, copied) and await self._worker.is_alive(receiver):
            raise ClusterUnavailable("the worker that waits for this answer cannot be reached now")

    async def _pass_on_cancellations(self, session: HttpSession, messages: Iterable[Message | Malformed]) -> None:
        """Tell all workers which requests *messages* cancel."""
        found: list[bytes] = []
        for each in messages:
            brief = brief_cancellation(each.params) if _is_cancellation(each) else None
            if brief is not None and sum(map(len, found)) + len(brief) <= _MAX_CANCELLATIONS_BYTES:
                found.append(brief)
        if found:
            requester.set(session.client.owner)
            body = found[0] if len(found) == 1 else envelope.encode_batch(found)
            await self._worker.send_to_all(ForSession(session.id, session.client.user, body, self._worker.number))

    async def end(self, session: HttpSession) -> None:
        """End a session in all workers."""
        await self._copies.end(session.id)

    async def relay_stream(
        self,
        headers: Mapping[str, str],
        client: Client,
        receive: Receive,
        send: Send,
        on_abort: Callable[[], object] | None,
    ) -> bool:
        """Have a GET answered by the worker that has the stream; return False if that is this worker."""
        session_id, last_event_id = headers.get(http.SESSION), headers.get("last-event-id")
        if session_id is None or self._state.unsupported_revision(headers) is not None:
            return False
        requester.set(client.owner)
        for _ in range(_MAX_MOVES):
            await self.prepare(headers, client)
            copy = self._state.sessions.find(session_id, client.user)
            if copy is None:
                return False
            target = _shared(copy).home if last_event_id is None else worker_of_event(last_event_id)
            if target is None or target == self._worker.number:
                return False
            request = self._relayed("get", headers, client)
            if last_event_id is None and await self._worker.is_leaving(target):
                await self._copies.move_home(_shared(copy), target)
                continue
            if await self._forward_stream(target, request, RelayClient(receive, send, on_abort)):
                return True
            if await self._worker.is_alive(target):
                raise ClusterUnavailable("the worker that has the stream cannot be reached now")
            if last_event_id is not None:  # the events of its streams are in the cluster
                if not is_of_get_stream(last_event_id):
                    return False
                last_event_id = None  # but the stream of the session goes on at the home
                continue
            await self._copies.move_home(_shared(copy), target)
        raise ClusterUnavailable("the stream of the session is being moved to another worker")

    async def _forward_stream(self, target: int, request: RelayedRequest, client: RelayClient) -> bool:
        """Relay a request for a stream, which counts as open here, too; return False if *target* does not listen."""
        ticket = self._state.open_ticket(_client(request), request.headers, is_stream=True)
        if ticket is None:
            raise ClusterUnavailable(self._state.refusal)
        try:
            ticket.on_give_way = partial(self._relay.end, request.relay)
            return await self._relay.forward(target, request, client)
        except RelayLost:
            raise ClusterUnavailable("the worker that has the stream has ended") from None
        finally:
            ticket.release()

    async def relay_retry(self, request_state: str, post: RelayedPost) -> bool:
        """Have the retry of a stateless client answered by the worker whose handler waits for it.

        Return False if that is this worker, or has ended.
        """
        process = process_of_state(self._state.engine.sealer, request_state) or ""
        number, _, token = process.partition(".")
        target = parse_number(number)
        if not token or target is None or process == self._state.engine.process:
            return False
        await self._join()
        return target != self._worker.number and await self._forward_post(target, post)

    async def relay_result(self, post: RelayedPost) -> bool:
        """Have a ``tasks/result`` answered by the home of its session, which gets the messages of the task.

        Return False if that is this worker, or has ended.
        """
        copy = self._state.sessions.find(post.headers.get(http.SESSION, ""), post.client.user)
        return copy is not None and not _shared(copy).is_home and await self._forward_post(_shared(copy).home, post)

    async def _forward_post(self, target: int, post: RelayedPost) -> bool:
        request = self._relayed("post", post.headers, post.client, post.body)
        post.ticket.on_give_way = partial(self._relay.end, request.relay)
        return await self._forward(target, request, RelayClient(post.receive, post.send, abort_of(post.scope)))

    async def _forward(self, target: int, request: RelayedRequest, client: RelayClient) -> bool:
        """Relay a request that only *target* can answer; return False if that worker has ended."""
        try:
            if await self._relay.forward(target, request, client):
                return True
        except RelayLost as lost:  # with its worker, or with the connection for messages
            _LOG.debug("a relayed request got no response: %r", lost)
        if await self._worker.is_alive(target):
            raise ClusterUnavailable("the worker that has to answer cannot be reached now")
        return False

    async def relay_message(
        self, scope: Scope, headers: Mapping[str, str], client: Client, body: bytes, send: Send
    ) -> bool:
        """Have a message of HTTP+SSE answered by the worker that has the stream; return False if that is this one."""
        query: bytes = scope.get("query_string", b"")
        number = parse_number(query.partition(b"session=")[2].partition(b".")[0].decode("latin-1"))
        if number is None or number == self._worker.number:
            return False
        await self._join()
        request = self._relayed("message", headers, client, body, query)
        return await self._forward(number, request, RelayClient(None, send, abort_of(scope)))

    def new_stream_id(self) -> str:
        """Return the id of a session of HTTP+SSE, which names this worker."""
        return f"{self._worker.number}.{random_id()}"

    def _relayed(
        self, kind: str, headers: Mapping[str, str], client: Client, body: bytes = b"", query: bytes = b""
    ) -> RelayedRequest:
        requester.set(client.owner)
        relay, worker = self._relay.new_number(), self._worker.number
        access = b"" if client.access is None else encode_access(client.access)
        sent = {name: value for name, value in headers.items() if name not in _CREDENTIALS}
        parts = client.user, client.owner, client.is_known
        return RelayedRequest(worker, relay, kind, sent, parts, body, query, access, client.hides)

    async def _serve(self, request: RelayedRequest, receive: Receive, send: Send) -> None:
        """Serve a request that another worker has relayed."""
        client, headers, state = _client(request), request.headers, self._state
        requester.set(client.owner)
        scope: dict[str, Any] = {"type": "http", "query_string": request.query}
        try:
            if request.kind == "get":
                await get_delete_request.get(state, headers, client, receive, send, None)
            elif request.kind == "post":
                await PostRequest(state, headers, client, receive, send, scope, request.body).serve()
            elif request.kind == "message" and self._legacy_sse is not None:
                await self._legacy_sse.post(scope, headers, client, request.body, send)
        except ClusterUnavailable as error:
            _LOG.warning("%s", error)

    def _tell_change(self, method: str, uri: str | None, owner: str) -> None:
        self._worker.send_later(None, ChangeMade(method, uri, self._worker.number, owner), owner=owner)

    def _change_arrived(self, change: ChangeMade) -> None:
        if change.worker == self._worker.number:
            self._copies.change_returned(change.method, change.uri)
        else:
            self._state.engine.deliver_change(change.method, change.uri, change.owner)


def _client(request: RelayedRequest) -> Client:
    access = decode_access(request.access) if request.access else None
    return Client(*request.client, access, request.hides, 0 if access is None else access_bytes(access))


def _shared(session: HttpSession) -> SharedHttpSession:
    if not isinstance(session, SharedHttpSession):  # unreachable: `new_session` makes all sessions
        raise UsageError("a session of this server is not one of its cluster")
    return session


def _is_cancellation(message: Message | Malformed) -> TypeGuard[Notification]:
    return isinstance(message, Notification) and message.method == CANCELLED
