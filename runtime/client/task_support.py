"""Which tools of a server of 2025-11-25 run as tasks, as its lists of tools say.

Spec:
    2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation".
"""

from __future__ import annotations

import sys
from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

__all__ = ["TaskSupport"]

# Of the names that are kept: 100,000 tools take less. A tool that is not kept is called without a task.
_MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
_ENTRY_BYTES: Final = 70  # of a dict entry, without the name


class _Execution(Struct, frozen=True, rename="camel"):
    task_support: Literal["forbidden", "optional", "required"] = "forbidden"


class _Tool(Struct, frozen=True):
    name: str
    execution: _Execution = _Execution()


class _Page(Struct, frozen=True, rename="camel"):
    tools: list[Raw] = []
    next_cursor: str | None = None


_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_decode_page: Final = msgspec.json.Decoder(_Page).decode
_decode_tool: Final = msgspec.json.Decoder(_Tool).decode


class TaskSupport:
    """The ``execution.taskSupport`` of the tools that a server has listed.

    Attributes:
        is_current: Whether the tools were listed, and have not changed since then.
        has_all: Whether all pages of the list were read, as far as the limits of the client allow.
        cursor: The cursor of the page after the last one that was learned; None if there is none.
        count: The tools that were listed, each as often as it was.
    """

    def __init__(self) -> None:
        self.is_current: bool = False
        self.has_all: bool = False
        self.cursor: str | None = None
        self.count: int = 0
        self._found: dict[str, str] = {}
        self._kept_bytes = 0

    def knows(self, tool: str) -> bool:
        """Whether it is known whether *tool* runs as a task."""
        return self.is_current and (self.has_all or tool in self._found)

    def of(self, tool: str) -> str:
        """Return the support of *tool*; a tool that was not listed does not run as a task."""
        return self._found.get(tool, "forbidden")

    def learn(self, page: Raw) -> None:
        """Store the tools of one page, without those that are invalid."""
        self.cursor = None
        try:
            found = _decode_page(page)
        except _UNREADABLE:
            return
        self.cursor = found.next_cursor
        self.count += len(found.tools)
        for each in found.tools:
            try:
                tool = _decode_tool(each)
            except _UNREADABLE:
                continue
            size = _ENTRY_BYTES + sys.getsizeof(tool.name)
            if tool.name not in self._found:
                if self._kept_bytes + size > _MAX_KEPT_BYTES:
                    continue
                self._kept_bytes += size
            self._found[tool.name] = tool.execution.task_support

    def forget(self) -> None:
        """Forget all tools."""
        self._found.clear()
        self._kept_bytes = self.count = 0
        self.is_current = self.has_all = False
