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
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated import registry
from mcpgen.generated.extensions import tasks as bindings
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestError, UnsupportedByPeer
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.extension_codec import ExtensionNotification
from mcpgen.runtime.protocol.missing_capabilities import missing_for_all
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.functions.worker_threads import CALLER
from mcpgen.runtime.server.tasks.extension_task import ExtensionTask
from mcpgen.runtime.server.tasks.record_edit import timestamp
from mcpgen.runtime.server.tasks.task_access import answering, may_use, no_such_task
from mcpgen.runtime.server.tasks.task_contents import CONTENTS, contents_of, input_requests_of
from mcpgen.runtime.server.tasks.task_store import MAX_READ_BYTES, briefs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.extensions import ServerExtension
    from mcpgen.runtime.server.functions.signatures import BaseContext
    from mcpgen.runtime.server.tasks.lifecycle import TaskLifecycle
    from mcpgen.runtime.server.tasks.task_store import TaskRecord

    _SendNotification: TypeAlias = Callable[[ExtensionNotification, object, str], None]

__all__ = ["EXTENSION", "MAX_LOOKS", "MAX_TASK_IDS", "ExtensionTasks", "principal_of_user"]

EXTENSION: Final = bindings.EXTENSION

# How soon the subscribers hear of a change in another process.
_WATCH_SECONDS: Final = 0.5

# How many tasks are looked at each time, because nothing else runs meanwhile.
MAX_LOOKS: Final = 100

# How many tasks one stream can be about: each is looked up.
MAX_TASK_IDS: Final = 100

_GET: Final = bindings.methods.GET_TASK.name
_STATUS: Final = bindings.methods.TASK_STATUS.name
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
        self._send: _SendNotification | None = None
        self.on_watch: Callable[[], None] | None = None
        self._seen: dict[str, int] = {}  # when the tasks of other processes that clients watch have changed; next first

    def attach(self, extension: ServerExtension, send: _SendNotification) -> None:
        """Notify the clients that have subscribed to tasks through *extension*.

        Args:
            extension: The extension.
            send: Sends a notification; it gets what the notification is about, and whose it is.
        """
        self._extension = extension
        self._send = send
        self._tasks.on_change = self._notify
        codec, get_task = extension.requests[_GET]
        late = copy(codec)
        late.result = partial(self._write_task, codec.result)
        extension.requests[_GET] = late, get_task
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
        """Return a task; `_write_task` adds what its status brings.

        That may have megabytes, and the responses to many polls may wait for their turn.

        Raises:
            RequestError: The task does not exist, has expired, or belongs to another client.
            UnsupportedByPeer: It waits for input, and this request does not declare the capabilities for it.

        Spec:
            ext-tasks, "Task Polling"; 2026-07-28, basic/index, "Per-request protocol fields".
        """
        record = self._own(params.task_id, context)
        _require_capabilities(context.peer, record)
        contents = [CONTENTS[name] + (name,) for name in contents_of(record)]
        members = {"resultType": "complete", **self._task(record), **{name: empty for _, empty, name in contents}}
        result: bindings.GetTaskResult = bindings.decode(msgspec.json.encode(members), bindings.GetTaskResult)
        return msgspec.structs.replace(result, **{field: empty for field, empty, _ in contents})

    def _write_task(self, write: Callable[[Any], bytes], result: Any) -> bytes:
        """Return the JSON of a *result* of `get_task`; *write* checks and writes what middleware has made.

        Raises:
            RequestError: The task has been removed in the meantime.
        """
        awaited = [field for field, empty in CONTENTS.values() if getattr(result, field, None) is empty]
        if not awaited:
            return write(result)
        with answering():
            record = self._tasks.store.get(result.task_id)
        if record is None:
            raise no_such_task()
        contents = contents_of(record)
        late = {CONTENTS[name][0]: each for name, each in contents.items()}
        if awaited == [*late] and timestamp(record.updated_ms) == result.last_updated_at:
            return msgspec.json.encode(msgspec.structs.replace(result, **late))
        # The task has changed. For new requests, this client may lack a capability: it finds out when it polls again.
        changed = {"status": "working"} if "inputRequests" in contents else contents
        return msgspec.json.encode({"resultType": "complete", **self._task(record), **changed})

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
            results, size = ({}, 0) if running is None else running.read(responses)
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
            running.answer(results, size)
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

        Raises:
            RequestError: It has too many tasks.

        Spec:
            ext-tasks, "Task Status Notifications".
        """
        task_ids = () if wanted.task_ids is UNSET else wanted.task_ids
        if len(task_ids) > MAX_TASK_IDS:
            raise RequestError(
                ErrorCode.INTERNAL_ERROR,
                f"the filter has more than {MAX_TASK_IDS} entries in `taskIds`; open several streams instead",
            )
        principal = self._principal(context)
        accepted: list[str] = []
        with answering():
            records = briefs_of(self._tasks.store, list(dict.fromkeys(task_ids)))
        caller = CALLER.get()
        if caller is not None and self._tasks.store.is_shared:  # a store without `briefs` has read their results, too
            caller.turns.spend(sum(each.content_bytes for each in records.values()))
        for task_id, record in records.items():
            if (record.principal, record.revision) == (principal, context.peer.revision) and may_use(
                record, _access(context)
            ):
                accepted.append(task_id)
                if self._tasks.store.is_shared and not record.has_ended:
                    if not self._seen and self.on_watch is not None:
                        self.on_watch()
                    self._seen.setdefault(task_id, record.updated_ms)
        return bindings.SubscriptionFilter(task_ids=accepted)

    def watch(self) -> float | None:
        """Notify the subscribers of tasks that other processes run and have changed; return when to look again.

        It looks at some of the tasks, and next time at the others. A task is looked at until it ends, also if its
        subscribers have gone: it costs less than to look for them.
        """
        running, store, read = self._tasks.running, self._tasks.store, 0
        looked_at = list(islice(self._seen, MAX_LOOKS))
        briefs = briefs_of(store, [each for each in looked_at if each not in running])
        for task_id in looked_at:
            if read >= MAX_READ_BYTES:
                return 0.0  # in the next turn of the loop, with the tasks that are left, which come first
            is_here, record = task_id in running, briefs.get(task_id)
            if record is not None and record.updated_ms != self._seen[task_id]:
                record = store.get(task_id)
                if record is not None:
                    read += record.content_bytes
                    self._notify(record)
            seen_ms = self._seen.pop(task_id)
            if is_here or (record is not None and not record.has_ended):
                self._seen[task_id] = seen_ms if record is None else record.updated_ms
        return _WATCH_SECONDS if self._seen else None

    def _notify(self, record: TaskRecord) -> None:
        if record.task_id in self._seen:
            self._seen[record.task_id] = record.updated_ms
        if self._extension is None or self._send is None or registry.revision(record.revision).era == "handshake":
            return

        # The notification waits until all streams have it, and a result in a shared store is in no other memory.
        store = self._tasks.store
        is_left = store.is_shared and record.content_bytes > MAX_READ_BYTES
        if is_left:
            record = record.brief()

        @cache
        def whole() -> TaskRecord:
            return (store.get(record.task_id) or record) if is_left else record

        @cache  # a result may be large, and have many subscribers
        def parts() -> tuple[bytes, bytes]:
            """Return the message up to the first member of its params, and from there on."""
            params = msgspec.json.encode({**self._task(whole()), **contents_of(whole())})
            message = envelope.encode_notification(_STATUS, params)
            start = message.index(params) + 1
            return message[:start], message[start:]

        def encode(meta: Mapping[str, object] | None) -> bytes:
            head, tail = parts()
            return head + tail if meta is None else b'%b"_meta":%b,%b' % (head, msgspec.json.encode(meta), tail)

        def selects(accepted: bindings.SubscriptionFilter) -> bool:
            return accepted.task_ids is not UNSET and record.task_id in accepted.task_ids

        @cache
        def requests() -> list[tuple[str, dict[str, Any]]]:
            return input_requests_of(whole())

        def suits(peer: Peer) -> bool:
            """Whether a stream may have the open requests of the task; if not, a poll names what is missing."""
            return missing_for_all(peer, requests()) is None

        notification = ExtensionNotification(extension=EXTENSION, encode=encode, to=selects, suits=suits)
        self._send(notification, ("task", record.task_id), record.owner)

    def _own(self, task_id: str, context: BaseContext) -> TaskRecord:
        principal, revision = self._principal(context), context.peer.revision
        return self._tasks.own(task_id, principal=principal, revision=revision, access=_access(context))

    def _principal(self, context: BaseContext) -> str:
        return self._tasks.principal(principal_of_user(_user(context)))

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


def _require_capabilities(peer: Peer, record: TaskRecord) -> None:
    missing = missing_for_all(peer, input_requests_of(record))
    if missing is not None:
        reason = "the task needs input, and the client has not declared the capabilities for it in this request"
        what = "the requests for input of this task"
        raise UnsupportedByPeer(revision=peer.revision, what=what, reason=reason, required=missing)


def _read_update(read: Callable[..., Any], raw: Raw | UnsetType, meta: Mapping[str, object] | None = None) -> _Update:
    """Return the params of ``tasks/update``; *read* explains why they are not valid."""
    try:
        return _decode_update(b"{}" if isinstance(raw, UnsetType) else raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_update(msgspec.json.encode(read(raw, meta)))


def _access(context: BaseContext) -> Access | None:
    found: Access | None = getattr(context, "access", None)
    return found


def _user(context: BaseContext) -> str:
    return str(getattr(context, "user", ""))
