"""A server and a client with an extension: what type checkers see of both sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, assert_type

from mcpgen import Client, Context, Extension, Server, ServerExtension, connect, tool_ui
from mcpgen.generated.extensions import apps, tasks

if TYPE_CHECKING:
    from mcpgen.generated.v2026_07_28 import Tool

server: Server = Server("typed")


class Tasks(tasks.ServerHandlers[Context]):
    """One method of the extension."""

    async def cancel_task(self, params: tasks.CancelTaskRequestParams, context: Context, /) -> tasks.CancelTaskResult:
        """Cancel nothing."""
        assert_type(params.task_id, str)
        assert_type(context.peer.extensions, Mapping[str, Mapping[str, Any]])
        assert_type(context.meta, Mapping[str, Any])
        return tasks.CancelTaskResult()


extended = server.extend(tasks, Tasks(), settings={})
assert_type(extended, ServerExtension)


@server.ui_resource("ui://clock", ui=apps.McpUiResourceMeta(prefers_border=True))
def page() -> str:
    """Show a clock."""
    return "<!DOCTYPE html><title>Clock</title>"


@server.tool(ui="ui://clock")
def time() -> str:
    """Tell the time."""
    return "12:00"


async def cancel(task_id: str) -> object:
    """Call a method of the extension."""
    settings = apps.McpUiClientCapabilities(mime_types=["text/html"])
    async with connect(server, extensions=[tasks, "com.example/a", Extension(apps, settings=settings)]) as client:
        assert_type(client, Client)
        result = await tasks.ClientMethods(client).cancel_task(
            tasks.CancelTaskRequestParams(meta=client.meta, task_id=task_id)
        )
        assert_type(result, tasks.CancelTaskResult)
        async with client.listen(tasks.SubscriptionFilter(task_ids=[task_id])) as changes:
            assert_type(changes.accepted, Mapping[str, Any])
        return result


def interface(tool: Tool) -> object:
    """Read the interface of a tool."""
    found = tool_ui(tool)
    assert_type(found, apps.McpUiToolMeta | None)
    return found
