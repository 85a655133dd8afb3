"""The member `task` of the params of 2025-11-25, by which a client asks that a request runs as a task.

Spec:
    2025-11-25, basic/utilities/tasks, "Creating Tasks", "Tool-Level Negotiation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated.v2025_11_25 import models
from mcpgen.generated.v2025_11_25.methods import ErrorCode
from mcpgen.runtime.errors import RequestError

if TYPE_CHECKING:
    from mcpgen.runtime.server.functions.tools import TaskSupport

__all__ = ["asks_for_task", "requested_task", "runs_as_task"]


class _TaskParam(Struct):
    task: Raw | UnsetType = UNSET


_decode: Final = msgspec.json.Decoder(_TaskParam).decode


def asks_for_task(params: Raw) -> bool:
    """Whether *params*, the JSON of a request, have the member."""
    return not isinstance(_decode(params).task, UnsetType)


def requested_task(params: Raw | bytes) -> models.TaskMetadata:
    """Return the member of *params*, the JSON of a request."""
    task = _decode(params).task
    return models.TaskMetadata() if isinstance(task, UnsetType) else msgspec.json.decode(task, type=models.TaskMetadata)


def runs_as_task(support: TaskSupport, *, is_asked: bool, is_offered: bool) -> bool:
    """Return whether a ``tools/call`` runs as a task.

    Args:
        support: ``execution.taskSupport`` of the tool.
        is_asked: Whether the request has ``task``.
        is_offered: Whether the server declares ``tasks.requests.tools.call`` to this client. If not, ``task`` is
            ignored, and a tool that requires it is called like any other.

    Raises:
        RequestError: The tool does not support tasks, or requires one.
    """
    if not is_offered:
        return False
    if is_asked and support == "forbidden":
        raise RequestError(
            ErrorCode.METHOD_NOT_FOUND, "This tool cannot run as a task; call it without the `task` parameter"
        )
    if support == "required" and not is_asked:
        raise RequestError(
            ErrorCode.METHOD_NOT_FOUND, "This tool runs only as a task; add the `task` parameter to the call"
        )
    return is_asked
