"""The requests that may become tasks: the capability of a server, and the support of a tool.

Spec:
    2025-11-25, basic/utilities/tasks, "Capabilities", "Tool-Level Negotiation", "Task Support and Handling".
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from mcpgen.generated.v2025_11_25 import models
from mcpgen.generated.v2025_11_25.methods import ErrorCode
from mcpgen.runtime.errors import RequestError

__all__ = ["TaskSupport", "runs_as_task", "task_capabilities"]

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]


def runs_as_task(support: TaskSupport | UnsetType, *, is_asked: bool, is_offered: bool) -> bool:
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
    if is_asked and (support is UNSET or support == "forbidden"):
        raise RequestError(
            ErrorCode.METHOD_NOT_FOUND, "This tool cannot run as a task; call it without the `task` parameter"
        )
    if support == "required" and not is_asked:
        raise RequestError(
            ErrorCode.METHOD_NOT_FOUND, "This tool runs only as a task; add the `task` parameter to the call"
        )
    return is_asked


def task_capabilities(*, is_identified: bool) -> models.ServerCapabilitiesTasks:
    """Return the capability of a server that runs tools as tasks.

    Args:
        is_identified: Whether each requestor has its own principal. If not, tasks are not listed, because each client
            would see the tasks of all ("Task Isolation and Access Control").
    """
    return models.ServerCapabilitiesTasks(
        cancel={},
        list_={} if is_identified else UNSET,
        requests=models.ServerCapabilitiesTasksRequests(tools=models.ServerCapabilitiesTasksRequestsTools(call={})),
    )
