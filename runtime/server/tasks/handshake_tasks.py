"""The tasks of 2025-11-25: the results of ``tasks/get``, ``tasks/list``, ``tasks/result`` and ``tasks/cancel``.

Spec:
    2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.generated.v2025_11_25 import models
from mcpgen.generated.v2025_11_25.methods import REVISION, ErrorCode
from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.server.tasks.lifecycle import TaskLifecycle
from mcpgen.runtime.server.tasks.record_edit import timestamp
from mcpgen.runtime.server.tasks.running_task import RunningTask, related
from mcpgen.runtime.server.tasks.task_access import answering, may_use
from mcpgen.runtime.server.tasks.task_store import NewTask, StoreFailed, cursor_behind, position_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.tasks.task_store import Outcome, TaskCall, TaskRecord

__all__ = ["Tasks"]

_logger = logging.getLogger("mcpgen.tasks")


class Tasks(TaskLifecycle):
    """The tasks of one server, as clients of 2025-11-25 see them."""

    def create(  # noqa: PLR0913 (what a task is made of)
        self,
        params: models.CallToolRequestParams,
        run: Callable[[RunningTask], Callable[[], None]],
        *,
        principal: str,
        owner: str = "",
        size: int = 0,
        changed: Callable[[models.TaskStatusNotificationParams], None],
        call: TaskCall | None = None,
        scopes: tuple[str, ...] = (),
        may_leave: Callable[[], bool] | None = None,
    ) -> models.CreateTaskResult:
        """Accept a request as a task, and start it.

        Args:
            params: The params of the request.
            run: Starts the handler; see `begin`.
            principal: The owner of the task.
            owner: The user or address that limits are shared among.
            size: The bytes of memory that the request takes while it runs.
            changed: Called with the params of ``notifications/tasks/status`` whenever the task has changed.
            call: The request, if its function may run again.
            scopes: The scopes that an access token needs to use the task.
            may_leave: Returns whether the handler, which is stopped, will run again elsewhere.

        Raises:
            RequestError: There is no room for another task.

        Spec:
            2025-11-25, basic/utilities/tasks, "Creating Tasks", "Task ID Requirements", "TTL and Resource Management".
        """

        def notify(record: TaskRecord) -> None:
            changed(models.TaskStatusNotificationParams(**msgspec.structs.asdict(self._task(record))))

        ttl_ms = UNSET if params.task is UNSET else params.task.ttl
        task = NewTask(
            principal=principal, revision=REVISION, owner=owner, ttl_ms=ttl_ms, size=size, call=call, scopes=scopes
        )
        record = self.begin(task, partial(RunningTask, changed=notify, may_leave=may_leave), run)
        return models.CreateTaskResult(task=self._task(record), meta=related(record.task_id))

    def get(self, task_id: str, *, principal: str, access: Access | None = None) -> dict[str, object]:
        """Return the result of ``tasks/get``.

        Raises:
            RequestError: The task does not exist, has expired, or belongs to another principal.
        """
        return self._members(self._own(task_id, principal, access))

    def list(
        self, cursor: str | UnsetType = UNSET, *, principal: str, access: Access | None = None
    ) -> models.ListTasksResult:
        """Return the result of ``tasks/list``: a page of the principal's tasks that *access* allows, oldest first.

        Raises:
            RequestError: The cursor is not one of ours.

        Spec:
            2025-11-25, basic/utilities/tasks, "Task Listing"; server/utilities/pagination.
        """
        after = None if isinstance(cursor, UnsetType) else position_at(cursor)
        if cursor is not UNSET and after is None:
            raise RequestError(ErrorCode.INVALID_PARAMS, "The cursor is not valid")
        size = self.limits.page_size
        with answering():
            self.expire()
            records = self.store.page(principal, after=after, limit=size + 1)
        following = cursor_behind(records[size - 1].position) if len(records) > size else UNSET
        tasks = [self._task(each) for each in records[:size] if each.revision == REVISION and may_use(each, access)]
        return models.ListTasksResult(tasks=tasks, next_cursor=following)

    def result(
        self, task_id: str, *, principal: str, deliver: Callable[[Outcome], None], access: Access | None = None
    ) -> Callable[[], object]:
        """Answer a ``tasks/result``: at once if the task has ended, otherwise when it does.

        Args:
            task_id: The task.
            principal: The principal of the request.
            deliver: Called once with the answer, unless the request is dropped before.
            access: What the access token of the request allows.

        Returns:
            A function that drops the request; see `wait`.

        Raises:
            RequestError: The task does not exist for this principal, or too many requests wait for it.

        Spec:
            2025-11-25, basic/utilities/tasks, "Result Retrieval".
        """
        record = self._own(task_id, principal, access)
        _logger.info("result of task %s requested by %r, %s", task_id[:8], principal, record.status)
        return self.wait(record, deliver)

    def cancel(self, task_id: str, *, principal: str, access: Access | None = None) -> dict[str, object]:
        """Cancel a task, and return the result of ``tasks/cancel``.

        Raises:
            RequestError: The task has ended, or does not exist for this principal.

        Spec:
            2025-11-25, basic/utilities/tasks, "Task Cancellation".
        """
        record = self._own(task_id, principal, access)
        cancelled = self.cancel_record(record, "Cancelled by the requestor")
        if cancelled is None:
            with answering():
                if self.is_unsaved(task_id):
                    raise StoreFailed("the cancellation of a task cannot be stored yet; the server tries again")
            record = self._own(task_id, principal, access)  # again: another worker may have ended it meanwhile
            raise RequestError(ErrorCode.INVALID_PARAMS, f"The task has ended already: it is {record.status}")
        return self._members(cancelled)

    def _own(self, task_id: str, principal: str, access: Access | None) -> TaskRecord:
        return self.own(task_id, principal=principal, revision=REVISION, access=access)

    def _task(self, record: TaskRecord) -> models.Task:
        return models.Task(
            task_id=record.task_id,
            status=record.status,
            status_message=record.status_message or UNSET,
            created_at=timestamp(record.created_ms),
            last_updated_at=timestamp(record.updated_ms),
            ttl=record.ttl_ms,
            poll_interval=self.limits.poll_interval_ms,
        )

    def _members(self, record: TaskRecord) -> dict[str, object]:
        members: dict[str, object] = msgspec.to_builtins(self._task(record))
        return members
