"""Which requests may become tasks: what a server declares, and what a tool allows.

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
    """Return whether a ``tools/call`` is to be run as a task.

    Args:
        support: ``execution.taskSupport`` of the tool.
        is_asked: Whether the request carries ``task``.
        is_offered: Whether the server declares ``tasks.requests.tools.call`` to this client, in a revision that has it.
            If not, ``task`` is ignored, and a tool that requires it is called like any other.

    Raises:
        RequestError: The tool cannot be a task, or nothing else.
    """
    if not is_offered:
        return False
    if is_asked and (support is UNSET or support == "forbidden"):
        raise RequestError(ErrorCode.METHOD_NOT_FOUND, "This tool cannot be called as a task")
    if support == "required" and not is_asked:
        raise RequestError(ErrorCode.METHOD_NOT_FOUND, "This tool can only be called as a task")
    return is_asked


def task_capabilities(*, is_identified: bool) -> models.ServerCapabilitiesTasks:
    """Return what a server that runs tools as tasks declares.

    Args:
        is_identified: Whether each requestor has a principal of its own. If not, tasks are not listed, since everybody
            would see everybody's ("Task Isolation and Access Control").
    """
    return models.ServerCapabilitiesTasks(
        cancel={},
        list_={} if is_identified else UNSET,
        requests=models.ServerCapabilitiesTasksRequests(tools=models.ServerCapabilitiesTasksRequestsTools(call={})),
    )
