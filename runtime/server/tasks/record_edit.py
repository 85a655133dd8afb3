"""Changes of a task's record, and its times as clients read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, UnsetType

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.tasks.task_store import Outcome, Status, TaskRecord

__all__ = ["record_edit", "timestamp"]


def record_edit(
    status: Status | None,
    message: str | None,
    outcome: Outcome | None,
    input_requests: bytes | UnsetType | None = UNSET,
    worker: str | None = None,
) -> Callable[[TaskRecord], TaskRecord | None]:
    """Return the function that makes the given changes to a record, and returns None if there are none.

    Args:
        status: The new status; None to keep it.
        message: The new status message; None to keep it. The end of a task removes an old one.
        outcome: The answer, at the end of the task.
        input_requests: The open requests to the client; UNSET to keep them. Those that have a response are left out.
        worker: Change nothing if another worker has taken the task.
    """

    def edit(record: TaskRecord) -> TaskRecord | None:
        if worker is not None and record.worker != worker:
            return None
        requests, new_status = record.input_requests, status
        if not isinstance(input_requests, UnsetType):
            requests = _unanswered(input_requests, record.input_responses)
            if status == "input_required" and requests is None:
                new_status = "working"
        same_status = new_status in {None, record.status}
        if outcome is None and requests == record.input_requests and same_status and not message:
            return None
        return msgspec.structs.replace(
            record,
            status=new_status or record.status,
            status_message=record.status_message if outcome is None and message is None else message,
            outcome=outcome,
            input_requests=None if outcome is not None else requests,
            input_responses=None if outcome is not None else record.input_responses,
            call=None if outcome is not None else record.call,
        )

    return edit


def _unanswered(requests: bytes | None, responses: bytes | None) -> bytes | None:
    """Return the *requests* without *responses*: another process may have got one that the function does not know yet.

    Spec:
        ext-tasks, "Task Update Requests": a key is not used again after its response.
    """
    if requests is None or responses is None:
        return requests
    answered = msgspec.json.decode(responses, type=dict[str, Raw])
    found = msgspec.json.decode(requests, type=dict[str, Raw])
    left = {key: each for key, each in found.items() if key not in answered}
    return msgspec.json.encode(left) if left else None


def timestamp(ms: int) -> str:
    """Return *ms* milliseconds of Unix time in ISO 8601."""
    at = datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
