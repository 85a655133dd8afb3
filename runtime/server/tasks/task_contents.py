"""What the status of a task brings in messages of the extension: its result, its error or its requests for input.

These may have megabytes, so they are written as they are stored.

Spec:
    ext-tasks, specification/draft/tasks, "Task Status", "Task Execution Errors".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

if TYPE_CHECKING:
    from mcpgen.runtime.server.tasks.task_store import TaskRecord

__all__ = ["CONTENTS", "contents_of", "input_requests_of"]

CONTENTS: Final = {
    "inputRequests": ("input_requests", Raw(b"{}")),
    "result": ("result", Raw(b"{}")),
    "error": ("error", Raw(b'{"code":0,"message":""}')),
}
"""By the member of a message: the field of the types, and what stands in for the content until it is written."""


class _InputRequest(Struct):
    method: str
    params: dict[str, Any] = {}


def contents_of(record: TaskRecord) -> dict[str, Raw]:
    """Return what the status of a task brings, at most one member."""
    if record.status == "input_required" and record.input_requests is not None:
        return {"inputRequests": Raw(record.input_requests)}
    if record.status in {"completed", "failed"} and record.outcome is not None:
        return {"error" if record.outcome.is_error else "result": Raw(record.outcome.json)}
    return {}


def input_requests_of(record: TaskRecord) -> list[tuple[str, dict[str, Any]]]:
    """Return the method and the params of each request that the task has for the client."""
    if record.input_requests is None:
        return []
    requests = msgspec.json.decode(record.input_requests, type=dict[str, _InputRequest])
    return [(each.method, each.params) for each in requests.values()]
