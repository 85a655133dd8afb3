"""The results of requests that belong to a task which the client runs.

Spec:
    2025-11-25, basic/utilities/tasks, "Associating Task-Related Messages".
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct

from mcpgen.runtime.protocol.negotiation import RELATED_TASK

__all__ = ["named_result", "related_task"]

_REVISION: Final = "2025-11-25"

# The params of these name a task of the server, so such metadata is ignored.
_NAMES_TASK: Final = frozenset({"tasks/get", "tasks/list", "tasks/result", "tasks/cancel"})


class _Related(Struct, rename="camel"):
    task_id: str


def related_task(meta: Raw, revision: str, method: str) -> str:
    """Return the id of the task that the metadata of a request names; "" if its result has to name none."""
    if revision != _REVISION or method in _NAMES_TASK:
        return ""
    try:
        return msgspec.json.decode(meta, type=_Related).task_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def named_result(result: bytes, task_id: str) -> bytes:
    """Return the JSON of a result with the id of a task in its metadata, unless that names another one already."""
    members = msgspec.json.decode(result, type=dict[str, Raw])
    meta = msgspec.json.decode(members.get("_meta", b"{}"), type=dict[str, Raw])
    meta.setdefault(RELATED_TASK, Raw(msgspec.json.encode(_Related(task_id))))
    return msgspec.json.encode({**members, "_meta": meta})
