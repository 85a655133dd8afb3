"""The tasks of the extension ``io.modelcontextprotocol/tasks``.

The server decides which calls become tasks. The client polls with ``tasks/get``, whose result holds the requests that
the function has for the client, or at the end the result or the error of the call. It answers the requests with
``tasks/update``. A client that subscribes to a task gets each change as ``notifications/tasks``, too.

Spec:
    ext-tasks, specification/draft/tasks.
"""

from __future__ import annotations

from copy import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated import registry
from mcpgen.generated.extensions import tasks as bindings
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestError
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.extension_codec import ExtensionNotification
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.tasks.extension_task import ExtensionTask
from mcpgen.runtime.server.tasks.lifecycle import answering
from mcpgen.runtime.server.tasks.record_edit import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcpgen.runtime.server.extensions import ServerExtension
    from mcpgen.runtime.server.functions.signatures import BaseContext
    from mcpgen.runtime.server.tasks.lifecycle import TaskLifecycle
    from mcpgen.runtime.server.tasks.task_store import TaskRecord

__all__ = ["EXTENSION", "ExtensionTasks", "principal_of_user"]

EXTENSION: Final = bindings.EXTENSION

# How soon the subscribers hear of a change in another process.
_WATCH_SECONDS: Final = 0.5

_UPDATE: Final = bindings.methods.UPDATE_TASK.name

_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode


class _Update(Struct, rename="camel"):
    """The params of ``tasks/update``, with undecoded responses.

    A response to a request that is not open is ignored, also if it is not valid.
    """

    task_id: str
    input_responses: dict[str, Raw]


_decode_update: Final = msgspec.json.Decoder(_Update).decode


def principal_of_user(user: str) -> str:
    """Return the name of a stateless client for the store.

    Without users, the id of a task is the secret.

    Spec:
        ext-tasks, "Security Considerations": "Task ID unguessability", "Auth binding".
    """
    return f"user {user}" if user else "anyone"


class ExtensionTasks(bindings.ServerHandlers["BaseContext"]):
    """The handlers of the extension.

    Args:
        tasks: The tasks of the server.

    Attributes:
        on_watch: Called when a client has subscribed to tasks.
    """

    def __init__(self, tasks: TaskLifecycle) -> None:
        self._tasks = tasks
        self._extension: ServerExtension | None = None
        self._send: Callable[[ExtensionNotification], None] | None = None
        self.on_watch: Callable[[], None] | None = None
        self._seen: dict[str, int] = {}  # when the tasks of other processes that clients watch have changed

    def attach(self, extension: ServerExtension, send: Callable[[ExtensionNotification], None]) -> None:
        """Notify the clients that have subscribed to tasks through *extension*; *send* sends a notification."""
        self._extension = extension
        self._send = send
        self._tasks.on_change = self._notify
        codec, _ = extension.requests[_UPDATE]
        lenient = copy(codec)
        lenient.params = partial(_read_update, codec.params)
        extension.requests[_UPDATE] = lenient, self._update

    def created(self, record: TaskRecord) -> bytes:
        """Return the JSON of the result that a client gets in place of the tool's.

        Spec:
            ext-tasks, "Polymorphic Results", "Task Creation".
        """
        return msgspec.json.encode({"resultType": "task", **self._task(record)})

    async def get_task(self, params: bindings.GetTaskRequestParams, context: BaseContext, /) -> bindings.GetTaskResult:
        """Return a task.

        Raises:
            RequestError: The task does not exist, has expired, or belongs to another client.

        Spec:
            ext-tasks, "Task Polling".
        """
        record = self._own(params.task_id, context)
        members = {"resultType": "complete", **self._detailed(record)}
        result: bindings.GetTaskResult = bindings.decode(msgspec.json.encode(members), bindings.GetTaskResult)
        return result

    async def update_task(
        self, params: bindings.UpdateTaskRequestParams, context: BaseContext, /
    ) -> bindings.UpdateTaskResult:
        """Pass the client's responses to the function of a task; see `_update`."""
        return await self._update(_decode_update(msgspec.json.encode(params)), context)

    async def _update(self, params: _Update, context: BaseContext) -> bindings.UpdateTaskResult:
        """Pass the client's responses to the function of a task; ignore those to requests that are not open.

        Raises:
            RequestError: The task does not exist, has expired, or belongs to another client; or a response is invalid.

        Spec:
            ext-tasks, "Task Update Requests".
        """
        tasks, task_id, responses = self._tasks, params.task_id, params.input_responses
        self._own(task_id, context)
        found = tasks.running.get(task_id)
        running = found if isinstance(found, ExtensionTask) else None
        try:
            results = {} if running is None else running.read(responses)
        except (InvalidPayload, AdaptationError) as error:
            raise RequestError(ErrorCode.INVALID_PARAMS, str(error)) from None

        def edit(record: TaskRecord) -> TaskRecord | None:
            requests = {} if record.input_requests is None else _decode_members(record.input_requests)
            answered = {key: each for key, each in responses.items() if key in requests}
            if not answered:
                return None
            left = {key: each for key, each in requests.items() if key not in answered}
            kept = {} if record.input_responses is None else _decode_members(record.input_responses)
            # The function needs them later, if it is run again or if another process runs it.
            is_kept = record.call is not None or running is None
            return msgspec.structs.replace(
                record,
                status="input_required" if left else "working",
                input_requests=msgspec.json.encode(left) if left else None,
                input_responses=msgspec.json.encode({**kept, **answered}) if is_kept else record.input_responses,
            )

        with answering():
            tasks.replace(task_id, edit)
        if running is not None:
            running.answer(results)
        return bindings.UpdateTaskResult()

    async def cancel_task(
        self, params: bindings.CancelTaskRequestParams, context: BaseContext, /
    ) -> bindings.CancelTaskResult:
        """Cancel a task, unless it has ended.

        Raises:
            RequestError: The task does not exist, has expired, or belongs to another client.

        Spec:
            ext-tasks, "Task Cancellation".
        """
        self._tasks.cancel_record(self._own(params.task_id, context), "Cancelled by the client")
        return bindings.CancelTaskResult()

    def accept_subscription(
        self, wanted: bindings.SubscriptionFilter, context: BaseContext, /
    ) -> bindings.SubscriptionFilter:
        """Return the tasks of *wanted* that exist and belong to the client.

        Spec:
            ext-tasks, "Task Status Notifications".
        """
        principal = self._principal(context)
        accepted: list[str] = []
        for task_id in dict.fromkeys(() if wanted.task_ids is UNSET else wanted.task_ids):
            with answering():
                record = self._tasks.store.get(task_id)
            if record is not None and (record.principal, record.revision) == (principal, context.peer.revision):
                accepted.append(task_id)
                self._seen.setdefault(task_id, record.updated_ms)
        if accepted and self.on_watch is not None:
            self.on_watch()
        return bindings.SubscriptionFilter(task_ids=accepted)

    def watch(self, connections: Iterable[object]) -> float | None:
        """Notify the subscribers of tasks that other processes run and have changed; return when to look again."""
        watched = {task_id for each in connections for task_id in _watched(each)}
        seen: dict[str, int] = {}
        for task_id in watched - self._tasks.running.keys():
            record = self._tasks.store.get(task_id)
            if record is not None:
                seen[task_id] = record.updated_ms
                if self._seen.get(task_id, record.updated_ms) != record.updated_ms:
                    self._notify(record)
        self._seen = seen
        return _WATCH_SECONDS if seen else None

    def _notify(self, record: TaskRecord) -> None:
        if self._extension is None or self._send is None or registry.revision(record.revision).era == "handshake":
            return

        codec: Any = self._extension.outgoing(bindings.methods.TASK_STATUS)

        @cache  # a result may be large, and have many subscribers
        def parts() -> tuple[bytes, bytes]:
            """Return the message up to the first member of its params, and from there on."""
            members = msgspec.json.encode(self._detailed(record))
            params: Any = codec.params(bindings.decode(members, bindings.TaskStatusNotificationParams))
            message = envelope.encode_notification(codec.method, params)
            start = message.index(params) + 1
            return message[:start], message[start:]

        def encode(meta: Mapping[str, object] | None) -> bytes:
            head, tail = parts()
            return head + tail if meta is None else b'%b"_meta":%b,%b' % (head, msgspec.json.encode(meta), tail)

        def selects(accepted: bindings.SubscriptionFilter) -> bool:
            return accepted.task_ids is not UNSET and record.task_id in accepted.task_ids

        self._send(ExtensionNotification(extension=EXTENSION, encode=encode, to=selects))

    def _own(self, task_id: str, context: BaseContext) -> TaskRecord:
        return self._tasks.own(task_id, principal=self._principal(context), revision=context.peer.revision)

    def _principal(self, context: BaseContext) -> str:
        return self._tasks.principal(principal_of_user(_user(context)))

    def _detailed(self, record: TaskRecord) -> Mapping[str, object]:
        """Return a task with what its status brings.

        Spec:
            ext-tasks, "Task Status", "Task Execution Errors".
        """
        members = self._task(record)
        if record.status == "input_required" and record.input_requests is not None:
            members["inputRequests"] = Raw(record.input_requests)
        elif record.status in {"completed", "failed"} and record.outcome is not None:
            members["error" if record.outcome.is_error else "result"] = Raw(record.outcome.json)
        return members

    def _task(self, record: TaskRecord) -> dict[str, object]:
        members: dict[str, object] = {
            "taskId": record.task_id,
            "status": record.status,
            "createdAt": timestamp(record.created_ms),
            "lastUpdatedAt": timestamp(record.updated_ms),
            "ttlMs": record.ttl_ms,
            "pollIntervalMs": self._tasks.limits.poll_interval_ms,
        }
        if record.status_message:
            members["statusMessage"] = record.status_message
        return members


def _read_update(read: Callable[..., Any], raw: Raw | UnsetType, meta: Mapping[str, object] | None = None) -> _Update:
    """Return the params of ``tasks/update``; *read* explains why they are not valid."""
    try:
        return _decode_update(b"{}" if isinstance(raw, UnsetType) else raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_update(msgspec.json.encode(read(raw, meta)))


def _watched(connection: object) -> Iterator[str]:
    """Yield the tasks whose changes the client of *connection* listens for."""
    session: Any = getattr(connection, "session", None)
    for stream in () if session is None else session.subscriptions.streams.values():
        accepted = stream.extensions.get(EXTENSION)
        if accepted is not None and accepted.task_ids is not UNSET:
            yield from accepted.task_ids


def _user(context: BaseContext) -> str:
    return str(getattr(context, "user", ""))
