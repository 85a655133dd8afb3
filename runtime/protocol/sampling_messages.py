"""The balance of tool calls and their results in the messages of a sampling request.

Spec:
    2025-11-25 and 2026-07-28, client/sampling, "Tool Result Messages" and "Tool Use and Result Balance"; schema,
    ToolResultContent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["find_imbalance"]


def find_imbalance(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return what is wrong with the tool calls and results of valid *messages*, as JSON; None if nothing is.

    An assistant message with tool calls is followed by a user message that has a result for each call, and nothing but
    results. Each result names an earlier call.
    """
    known: set[str] = set()
    unanswered: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        content: Any = message["content"]
        blocks = cast("list[Mapping[str, Any]]", content if isinstance(content, list) else [content])
        results: set[str] = {each["toolUseId"] for each in blocks if each.get("type") == "tool_result"}
        if results and any(each.get("type") != "tool_result" for each in blocks):
            return f"{where} has tool results and other content; put the other content into a message of its own"
        missing = sorted(unanswered - results)
        if missing or (unanswered and message["role"] != "user"):
            return f"{where} must be a user message with a result of each tool call before it{_named(missing)}"
        unknown = sorted(results - known)
        if unknown:
            return f"{where} has a result without an earlier tool call{_named(unknown)}"
        calls: list[str] = [each["id"] for each in blocks if each.get("type") == "tool_use"]
        unanswered = set(calls)
        if len(unanswered) != len(calls):
            return f"{where} has two tool calls with the same `id`; give each its own"
        known |= unanswered
    if unanswered:
        return f"no message with tool results follows the last tool calls{_named(sorted(unanswered))}"
    return None


def _named(ids: Sequence[str]) -> str:
    return f" (`toolUseId` {ids[0][:100]!r})" if ids else ""
