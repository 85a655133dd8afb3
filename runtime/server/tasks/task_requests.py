"""The tasks of a server's sessions: the tool calls that become tasks, and the methods ``tasks/*``.

There are two kinds of tasks. A client of 2025-11-25 asks for a task with ``task`` in the params. A client of 2026-07-28
declares the extension ``io.modelcontextprotocol/tasks``, and the server decides. Other clients have none.

Spec:
    2025-11-25, basic/utilities/tasks, "Capabilities", "Tool-Level Negotiation", "Task Support and Handling"; ext-tasks,
    specification/draft/tasks, "Capability Negotiation", "Task Creation".
"""

from __future__ import annotations

import secrets
import time
from copy import copy
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UnsetType

from mcpgen.generated.v2025_11_25 import models
from mcpgen.generated.v2025_11_25.methods import REVISION
from mcpgen.runtime.errors import UnsupportedByPeer, UsageError
from mcpgen.runtime.protocol.capabilities import has_capability
from mcpgen.runtime.server import notifications
from mcpgen.runtime.server.exchange import ResponseBody
from mcpgen.runtime.server.extensions import missing_extension
from mcpgen.runtime.server.functions.tools import TaskSupport
from mcpgen.runtime.server.interfaces import NOT_DEFERRED
from mcpgen.runtime.server.ledger import request_bytes
from mcpgen.runtime.server.tasks.extension_tasks import EXTENSION, ExtensionTasks, principal_of_user
from mcpgen.runtime.server.tasks.handshake_tasks import Tasks
from mcpgen.runtime.server.tasks.task_access import body_of
from mcpgen.runtime.server.tasks.task_augmentation import asks_for_task, requested_task, runs_as_task
from mcpgen.runtime.server.tasks.task_store import NewTask, StoreFailed, TaskCall, briefs_of, forget_all
from mcpgen.runtime.server.tasks.task_worker import TaskWorker, new_worker, stop_detached

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.limits import TaskLimits
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.codec import IncomingRequestCodec
    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Exchange, OpenRequest
    from mcpgen.runtime.server.server_session import ServerSession
    from mcpgen.runtime.server.tasks.running_task import RunningTask
    from mcpgen.runtime.server.tasks.task_store import Outcome, TaskStore

__all__ = ["TaskRequests", "TaskSupport", "serve_tasks"]

_TOOL_CALLS: Final = ("tasks", "requests", "tools", "call")


class TaskRequests:
    """The tasks of one server, for its sessions.

    Args:
        tasks: The tasks.
        support: Returns whether the tool of a name may, must or must not be a task.
        defers: Returns whether the function of a tool decides by itself, with `Context.defer`, when it becomes a task.

    Attributes:
        methods: What answers each method of 2025-11-25: called with session, request and params.
        extension: The handlers of the extension.
    """

    def __init__(
        self,
        tasks: Tasks,
        support: Callable[[str], TaskSupport],
        *,
        defers: Callable[[str], bool] | None = None,
    ) -> None:
        self._tasks = tasks
        self._support = support
        self._defers = defers
        self._principals: set[str] = set()  # of sessions and pipes that have created tasks
        self._worker: TaskWorker | None = None
        self.extension: ExtensionTasks = ExtensionTasks(tasks)
        self.methods: Mapping[str, Callable[[ServerSession, OpenRequest, Any], None]] = {
            "tasks/cancel": self._cancel,
            "tasks/get": self._get,
            "tasks/list": self._list,
            "tasks/result": self._result,
        }

    @property
    def capabilities(self) -> dict[str, object]:
        """What the server declares to clients of 2025-11-25.

        Each user or connection is a principal of its own, so tasks can be listed.
        """
        tools = models.ServerCapabilitiesTasksRequestsTools(call={})
        requests = models.ServerCapabilitiesTasksRequests(tools=tools)
        return {"tasks": msgspec.to_builtins(models.ServerCapabilitiesTasks(cancel={}, list_={}, requests=requests))}

    @property
    def is_shared(self) -> bool:
        """Whether several processes use the store."""
        return self._tasks.store.is_shared

    def scopes(self, task_id: str, access: Access | None) -> tuple[str, ...]:
        """Return the scopes that an access token needs to use a task; none if the user of *access* has no such task."""
        try:
            found = briefs_of(self._tasks.store, [task_id]).get(task_id)
        except StoreFailed:
            return ()  # the handler reports it
        if found is None:
            return ()
        # Another user must not learn from the scopes that the task exists.
        is_own = access is None or found.principal == self._tasks.principal(principal_of_user(access.user))
        return found.scopes if is_own else ()

    async def open(self, engine: Engine) -> None:
        """Start the worker of *engine*, which runs the functions of tasks that outlive their connection."""
        await self._worker_of(engine).open()

    async def close(self) -> None:
        """Stop the worker."""
        if self._worker is not None:
            await self._worker.close()

    def list_support(self, codec: IncomingRequestCodec) -> IncomingRequestCodec:
        """Return *codec*, which writes the tools of the list for 2025-11-25, with ``execution.taskSupport`` of each."""
        listing = copy(codec)
        listing.result = partial(self._with_support, codec.result)
        return listing

    def _with_support(self, write: Callable[..., bytes], result: Any) -> bytes:
        members: dict[str, Any] = msgspec.json.decode(write(result))
        for each in members["tools"]:
            support = self._support(each["name"])
            if support != "forbidden":
                each.setdefault("execution", {"taskSupport": support})
        return msgspec.json.encode(members)

    def becomes_task(self, session: ServerSession, exchange: Exchange) -> bool:
        """Whether a request is to be run as a task.

        Raises:
            RequestError: The tool cannot be a task, or must be one.
        """
        if exchange.handler.method != "tools/call":
            return False
        name, peer = exchange.params.name, exchange.peer
        support = self._support(name)
        if support not in ("forbidden", "optional", "required"):
            raise UsageError(
                f"task_support({name!r}) returned {support!r}; it must return forbidden, optional or required"
            )
        if peer.era == "handshake":
            # Every other revision has no tasks. A tool that was registered later declares nothing to this session.
            is_offered = peer.revision == REVISION and has_capability(session.declared, _TOOL_CALLS)
            is_asked = is_offered and not isinstance(exchange.raw, UnsetType) and asks_for_task(exchange.raw)
            return runs_as_task(support, is_asked=is_asked, is_offered=is_offered)
        if support == "forbidden":
            return False
        if EXTENSION in peer.extensions:
            return self._defers is None or not self._defers(name)
        if support == "required":
            raise missing_extension(peer, EXTENSION, f"the tool {name!r}")
        return False

    def create(self, session: ServerSession, exchange: Exchange, request: OpenRequest) -> None:
        """Run a request as a task, and answer it with the task.

        Raises:
            RequestError: There is no room for another task.
        """
        if request.peer.era == "handshake":
            self._create_in_session(session, exchange, request)
        else:
            self._create_detached(session, exchange, request)

    def defer(self, session: ServerSession, exchange: Exchange) -> bool:
        """Make a task of a call whose function runs already; return whether the call is a task.

        Raises:
            RequestError: There is no room for another task.
            UsageError: The call is not of a tool that may be a task.
        """
        request = exchange.request
        if exchange.task is not None:
            return True
        is_fast = exchange.handler.slow_path is not None  # those tools are no tasks, and `params` are their arguments
        if is_fast or exchange.handler.method != "tools/call" or self._support(exchange.params.name) == "forbidden":
            raise UsageError(NOT_DEFERRED)
        if request is None or request.peer.era == "handshake" or EXTENSION not in request.peer.extensions:
            return False

        def run(running: RunningTask) -> Callable[[], None]:
            exchange.task = running
            return partial(session.stop, exchange)

        self._answer(session, exchange, request, run)
        return True

    def seconds_to_expiry(self) -> float | None:
        """Drop the expired tasks; return in how many seconds the next one expires."""
        return self._tasks.seconds_to_expiry()

    def forget(self, principal: str, *, is_over: bool = True) -> None:
        """Drop the tasks of a session that has ended here; keep them unless it *is_over*: it goes on elsewhere."""
        own = self._tasks.principal(principal)
        if own in self._principals:
            self._principals.discard(own)
            if not is_over:
                return
            self._tasks.stop_all(own)
            if self._worker is None or not self._worker.forget(own):
                forget_all(self._tasks.store, [own])

    def _create_in_session(self, session: ServerSession, exchange: Exchange, request: OpenRequest) -> None:
        def run(running: RunningTask) -> Callable[[], None]:
            exchange.task = running
            return lambda: session.stop(exchange)

        def changed(status: models.TaskStatusNotificationParams) -> None:
            if not session.is_closed:
                try:
                    notifications.send_notification(session, None, "notifications/tasks/status", status, terms=REVISION)
                except UnsupportedByPeer:
                    return  # a requestor must not rely on this notification

        raw = b"{}" if isinstance(exchange.raw, UnsetType) else exchange.raw
        params = models.CallToolRequestParams(name=exchange.params.name, task=requested_task(raw))
        principal = self._principal(session, request.peer)
        if not session.user:
            self._principals.add(principal)
        call, may_leave = self._replay(session, exchange, request.peer)
        result = self._tasks.create(
            params,
            run,
            principal=principal,
            owner=session.owner,
            size=request.size or request_bytes(exchange.raw, 0, session.handlers.json_costs),
            changed=changed,
            call=call,
            scopes=_scopes(session.engine, exchange),
            may_leave=may_leave,
        )
        session.reply(request, ResponseBody(msgspec.json.encode(result)))
        session.output.expire_later()
        if result.task.ttl is not None:
            session.engine.expire_within(result.task.ttl / 1000)
        session.output.start(exchange)  # last, so that the client gets the task before any message about it

    def _replay(
        self, session: ServerSession, exchange: Exchange, peer: Peer
    ) -> tuple[TaskCall | None, Callable[[], bool] | None]:
        """Return how the handler of a task of a session may run again after the session, if it may.

        Without a user, no other session can use the task, so nothing is gained by running its handler again, unless the
        session goes on at another worker.
        """
        is_kept = session.user or session.keeps_tasks
        if not is_kept or not self._tasks.store.is_shared or not session.engine.handlers.may_replay(exchange):
            return None, None
        worker = self._worker_of(session.engine)
        return _call(exchange, peer, session.user), lambda: session.is_closed and worker.take_back()

    def _create_detached(self, session: ServerSession, exchange: Exchange, request: OpenRequest) -> None:
        worker = self._worker_of(session.engine)

        def run(running: RunningTask) -> Callable[[], None]:
            exchange.task = running
            return partial(stop_detached, exchange)

        user, owner = session.user, session.owner
        self._answer(session, exchange, request, run)
        exchange.size = request.size  # or it would be measured again, which takes long for a large message
        worker.start(exchange, user=user, owner=owner)

    def _answer(
        self,
        session: ServerSession,
        exchange: Exchange,
        request: OpenRequest,
        run: Callable[[RunningTask], Callable[[], None]],
    ) -> None:
        """Create a task for a client of the extension, and answer its request."""
        engine, peer = session.engine, request.peer
        worker = self._worker_of(engine)
        may_replay, earlier = engine.handlers.may_replay(exchange), exchange.earlier_responses
        task = NewTask(
            principal=self._principal(request.session, peer),
            revision=peer.revision,
            owner=request.session.owner,
            size=max(exchange.size, request.size) or request_bytes(exchange.raw, 0, session.handlers.json_costs),
            input_responses=msgspec.json.encode(earlier) if may_replay and earlier else None,
            call=_call(exchange, peer, request.session.user) if may_replay else None,
            scopes=_scopes(engine, exchange),
        )
        record = self._tasks.begin(task, worker.make_task(exchange), run)
        result = engine.handlers.sign(self.extension.created(record), peer.revision)
        session.respond(exchange, ResponseBody(result))
        exchange.last_peer, exchange.last_access = peer, request.access
        exchange.request, exchange.input_round = None, None
        worker.wake()

    def _worker_of(self, engine: Engine) -> TaskWorker:
        if self._worker is None:
            self._worker = TaskWorker(engine, self._tasks, monotonic=time.monotonic)
            if self._tasks.store.is_shared:
                self._worker.on_tick = self.extension.watch
                self.extension.on_watch = self._worker.wake
        return self._worker

    def _principal(self, session: Any, peer: Peer) -> str:
        """Return the name of the client for the store.

        Without users, the id of a task is the secret of stateless clients, and other clients are their connection.

        Spec:
            2025-11-25, basic/utilities/tasks, "Task Isolation and Access Control"; ext-tasks, "Security
            Considerations".
        """
        is_user = session.user or peer.era == "stateless"
        return self._tasks.principal(principal_of_user(session.user) if is_user else str(session.principal))

    def _get(self, session: ServerSession, request: OpenRequest, params: Any) -> None:
        principal = self._principal(session, request.peer)
        found = self._tasks.get(params.task_id, principal=principal, access=request.access)
        session.reply(request, ResponseBody(msgspec.json.encode(found)))

    def _list(self, session: ServerSession, request: OpenRequest, params: Any) -> None:
        principal = self._principal(session, request.peer)
        found = self._tasks.list(params.cursor, principal=principal, access=request.access)
        session.reply(request, ResponseBody(msgspec.json.encode(found)))

    def _cancel(self, session: ServerSession, request: OpenRequest, params: Any) -> None:
        principal = self._principal(session, request.peer)
        found = self._tasks.cancel(params.task_id, principal=principal, access=request.access)
        session.reply(request, ResponseBody(msgspec.json.encode(found)))

    def _result(self, session: ServerSession, request: OpenRequest, params: Any) -> None:
        def deliver(outcome: Outcome) -> None:
            session.output.reply_in_turn(request, body_of(self._tasks.store, params.task_id, outcome))

        session.hold(request)
        principal = self._principal(session, request.peer)
        try:
            request.on_cancel = self._tasks.result(
                params.task_id, principal=principal, deliver=deliver, access=request.access
            )
            self._worker_of(session.engine).wake()  # another worker may end the task
            if session.exchanges.get(request.id) is request:
                session.output.follow_task(request, params.task_id)
        except BaseException:
            session.exchanges.pop(request.id, None)
            session.release(request)
            raise


def serve_tasks(
    store: TaskStore,
    support: Callable[[str], TaskSupport],
    defers: Callable[[str], bool] | None,
    limits: TaskLimits | None,
    *,
    view_name: str = "",
) -> TaskRequests:
    """Return the tasks of a server.

    Args:
        store: Keeps their records.
        support: Returns whether the tool of a name may, must or must not be a task.
        defers: Returns whether its function decides when it becomes a task; None if no function does.
        limits: Bounds on the tasks.
        view_name: The name of the view of a server; empty for the server itself.
    """
    clock = steady_clock(time.time, time.monotonic)
    worker = new_worker(f"view {sha256(view_name.encode()).hexdigest()}" if view_name else "")
    tasks = Tasks(store, clock=clock, random_bytes=secrets.token_bytes, limits=limits, worker=worker)
    return TaskRequests(tasks, support, defers=defers)


def steady_clock(wall: Callable[[], float], monotonic: Callable[[], float]) -> Callable[[], float]:
    """Return a clock of Unix time that does not jump when the system's clock is set.

    Otherwise all tasks would expire at once when the clock is set forward.
    """
    offset = wall() - monotonic()
    return lambda: monotonic() + offset


def _call(exchange: Exchange, peer: Peer, user: str) -> TaskCall:
    raw = b"{}" if isinstance(exchange.raw, UnsetType) else bytes(exchange.raw)
    info = None if peer.info is None else msgspec.json.encode(peer.info)
    return TaskCall(params=raw, capabilities=msgspec.json.encode(dict(peer.declared)), info=info, user=user)


def _scopes(engine: Engine, exchange: Exchange) -> tuple[str, ...]:
    find = engine.handlers.scopes
    return () if find is None else tuple(sorted(find("tools/call", exchange.params.name) or ()))
