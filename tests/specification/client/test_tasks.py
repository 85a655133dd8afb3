"""Tools that a server of 2025-11-25 runs as tasks: what a client asks, and when."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen import ClientLimits, RequestTimedOut, UnsupportedByPeer, UsageError
from mcpgen.generated import registry
from tests.specification.citation import spec
from tests.specification.client.scripted_server import on_both_loops, opened

pytestmark = pytest.mark.anyio

REVISION = "2025-11-25"
CAN = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}}
TASK = {
    "taskId": "t1",
    "status": "working",
    "ttl": 60000,
    "createdAt": "2025-11-25T10:30:00Z",
    "lastUpdatedAt": "2025-11-25T10:30:00Z",
}
DONE = {
    "content": [{"type": "text", "text": "done"}],
    "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}},
}


def listed(support: str | None) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": "x", "inputSchema": {"type": "object"}}
    return {"tools": [tool if support is None else {**tool, "execution": {"taskSupport": support}}]}


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "44899c5e")
@spec("2025-11-25", "basic/utilities/tasks#task-status-notification", "b1994032")
@spec("2025-11-25", "basic/utilities/tasks#task-notifications", "45e2e95e")
async def test_a_tool_that_requires_it_is_called_as_a_task_and_no_notification_is_needed() -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, listed("required"))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"task": TASK})
        result = await own.wire.hear("tasks/result")
        own.wire.result(result, DONE)

        assert "done" == (await errand.outcome()).text

    assert {} == call["params"]["task"]
    assert "t1" == result["params"]["taskId"]


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation")
@pytest.mark.parametrize("support", [None, "forbidden"])
async def test_a_tool_that_cannot_be_a_task_is_not_started_as_one(support: str | None) -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.start_tool("x"))
        own.wire.result(asked, listed(support))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"content": []})
        await errand.outcome()

    assert "task" not in call["params"]


@spec("2025-11-25", "basic/utilities/progress#progress-flow", "1a3be013")
async def test_a_token_that_the_caller_has_chosen_for_a_task_is_not_given_to_a_call() -> None:
    told: list[Any] = []
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.start_tool("x", meta={"progressToken": 6}))
        own.wire.result(asked, listed("optional"))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"task": TASK})
        await errand.outcome()

        tokens: list[Any] = []
        for _ in range(3):
            errand, asked = await own.asked(own.client.call_tool("x", on_progress=lambda *given: told.append(given)))
            tokens.append(asked["params"]["_meta"]["progressToken"])
            own.wire.tell("notifications/progress", progressToken=6, progress=1)
            own.wire.result(asked, {"content": []})
            await errand.outcome()

    assert 6 == call["params"]["_meta"]["progressToken"]
    assert 6 not in tokens
    assert [] == told


@spec("2025-11-25", "basic/utilities/progress#progress-flow", "ab68d903")
@spec("2025-11-25", "basic/index#meta", "186c45da", "25ec8ba5")
@pytest.mark.parametrize("meta", [{"progressToken": 1.5}, {"-a": 1}, {"a-/b": 1}])
@pytest.mark.parametrize("support", ["optional", "required"])
async def test_the_metadata_of_a_task_is_checked_before_it_is_sent(support: str, meta: dict[str, Any]) -> None:
    async with opened(REVISION, can=CAN) as own:
        start = own.client.start_tool if support == "optional" else own.client.call_tool
        errand, asked = await own.asked(start("x", meta=meta))
        own.wire.result(asked, listed(support))

        with pytest.raises(UsageError, match="the params of tools/call are not valid"):
            await errand.outcome()


@spec("2025-11-25", "basic/lifecycle#timeouts")
async def test_the_time_limit_of_a_call_holds_for_the_start_of_its_task() -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.call_tool("x", timeout_seconds=1))
        own.wire.result(asked, listed("required"))
        await own.wire.hear("tools/call")

        with pytest.raises(RequestTimedOut, match="1 second"):
            await errand.outcome()


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation")
@pytest.mark.parametrize("how", ["tools", "request_json"])
async def test_a_client_that_has_listed_the_tools_does_not_list_them_again(how: str) -> None:
    async with opened(REVISION, can=CAN) as own:
        listing = own.client.list_tools() if how == "tools" else own.client.request_json("tools/list")
        errand, asked = await own.asked(listing)
        own.wire.result(asked, listed("required"))
        await errand.outcome()
        errand, call = await own.asked(own.client.call_tool("x"))
        own.wire.result(call, {"task": TASK})
        own.wire.result(await own.wire.hear("tasks/result"), DONE)
        await errand.outcome()

    assert ("tools/call", {}) == (call["method"], call["params"]["task"])


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation")
async def test_a_changed_list_of_tools_is_read_again_before_the_next_call() -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.list_tools())
        own.wire.result(asked, listed("required"))
        await errand.outcome()
        own.wire.tell("notifications/tools/list_changed")
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, listed(None))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"content": []})
        await errand.outcome()

    assert "tools/list" == asked["method"]
    assert "task" not in call["params"]


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "e715fcef")
@on_both_loops
async def test_a_list_of_tools_that_changes_as_soon_as_it_is_sent_is_read_again_before_the_next_call() -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.list_tools())
        own.wire.result(asked, listed("required"))
        own.wire.tell("notifications/tools/list_changed")  # read together with the list
        await errand.outcome()
        errand, asked = await own.asked(own.client.start_tool("x"))
        own.wire.result(asked, listed(None))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"content": []})
        await errand.outcome()

    assert "tools/list" == asked["method"]
    assert "task" not in call["params"]


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "44899c5e")
async def test_a_list_of_tools_that_changes_between_two_pages_is_read_from_its_start() -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, {**listed("required"), "nextCursor": "2"})
        rest = await own.wire.hear("tools/list")
        own.wire.tell("notifications/tools/list_changed")
        own.wire.result(rest, {"tools": []})
        again = await own.wire.hear("tools/list")
        own.wire.result(again, listed("required"))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"task": TASK})
        own.wire.result(await own.wire.hear("tasks/result"), DONE)

        assert "done" == (await errand.outcome()).text

    assert "cursor" not in again.get("params", {})
    assert {} == call["params"]["task"]


async def raw_call(own: Any, **more: Any) -> Any:
    """Call the tool ``x`` with the methods of the native revision 2025-11-25."""
    methods = registry.revision(REVISION).bindings().methods
    return await own.client.request(methods.CALL_TOOL, methods.CALL_TOOL.params(name="x", **more))


def as_task() -> dict[str, Any]:
    return {"task": registry.revision(REVISION).bindings().models.TaskMetadata()}


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "e715fcef")
@pytest.mark.parametrize("support", [None, "forbidden"])
async def test_a_raw_call_of_a_tool_that_cannot_be_a_task_is_not_sent_as_one(support: str | None) -> None:
    async with opened(REVISION, can=CAN, native_revision=REVISION) as own:
        errand, asked = await own.asked(raw_call(own, **as_task()))
        own.wire.result(asked, listed(support))
        with pytest.raises(UnsupportedByPeer, match="call it without `task`"):
            await errand.outcome()

        assert "tools/list" == asked["method"]
        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "44899c5e")
@pytest.mark.parametrize("support", ["optional", "required"])
async def test_a_raw_call_of_a_tool_is_a_task_where_the_caller_or_the_tool_wants_it(support: str) -> None:
    async with opened(REVISION, can=CAN, native_revision=REVISION) as own:
        errand, asked = await own.asked(raw_call(own, **(as_task() if support == "optional" else {})))
        own.wire.result(asked, listed(support))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"task": TASK})
        if support == "required":  # the caller does not expect a task, so the client waits for its result
            own.wire.result(await own.wire.hear("tasks/result"), DONE)
        result = await errand.outcome()

    assert {} == call["params"]["task"]
    assert ("done" == result.content[0].text) if support == "required" else ("t1" == result.task.task_id)


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "fbd6da83")
@spec("2025-11-25", "schema#cancellednotificationparams", "253c8c6a")
@on_both_loops
@pytest.mark.parametrize("is_raw", [False, True])
@pytest.mark.parametrize("is_timeout", [False, True])
async def test_a_call_is_cancelled_by_tasks_cancel_once_the_server_has_named_its_task(
    *, is_raw: bool, is_timeout: bool
) -> None:
    limits = ClientLimits(call_seconds=0.1 if is_timeout else 60)
    async with opened(REVISION, can=CAN, native_revision=REVISION if is_raw else None, limits=limits) as own:
        errand, asked = await own.asked(raw_call(own, **as_task()) if is_raw else own.client.start_tool("x"))
        own.wire.result(asked, listed("optional"))
        call = await own.wire.hear("tools/call")
        if is_timeout:
            with pytest.raises(RequestTimedOut):
                await errand.outcome()
        else:
            await errand.cancel()
        assert [] == await own.wire.rest()

        own.wire.result(call, {"task": TASK})
        (said,) = await own.wire.rest()
        own.wire.result(said, {**TASK, "status": "cancelled"})

        assert ("tasks/cancel", {"taskId": "t1"}) == (said["method"], said["params"])
        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "fbd6da83")
async def test_a_cancelled_call_that_becomes_no_task_leaves_nothing_to_cancel() -> None:
    async with opened(REVISION, can=CAN, limits=ClientLimits(max_in_flight=1)) as own:
        calls = []
        for number in range(3):
            errand, asked = await own.asked(own.client.start_tool("x"))
            if number == 0:
                own.wire.result(asked, listed("optional"))
                asked = await own.wire.hear("tools/call")
            calls.append(asked)
            await errand.cancel()
        own.wire.result(calls[0], {"task": TASK})  # forgotten, since two later calls are cancelled, too
        own.wire.error(calls[1], -32603)
        own.wire.result(calls[2], {"content": []})

        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/lifecycle#operation", "fd7099db")
async def test_a_server_that_cancels_no_tasks_is_not_asked_to() -> None:
    can = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    async with opened(REVISION, can=can, limits=ClientLimits(call_seconds=0.1)) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, listed("required"))
        own.wire.result(await own.wire.hear("tools/call"), {"task": TASK})
        await own.wire.hear("tasks/result")
        with pytest.raises(RequestTimedOut):
            await errand.outcome()
        with pytest.raises(UnsupportedByPeer, match=r"has not declared the capability tasks\.cancel"):
            await own.client.task("t1").cancel()

        assert ["notifications/cancelled"] == [each["method"] for each in await own.wire.rest()]


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "4690f9ed")
@spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5")
async def test_the_cancellation_of_a_request_for_the_result_names_the_task() -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, listed("required"))
        own.wire.result(await own.wire.hear("tools/call"), {"task": TASK})
        result = await own.wire.hear("tasks/result")
        await errand.cancel()
        cancelled = await own.wire.hear("notifications/cancelled")

    assert result["id"] == cancelled["params"]["requestId"]
    assert "_meta" not in result["params"]
    assert DONE["_meta"] == cancelled["params"]["_meta"]


@spec("2025-11-25", "basic/lifecycle#operation", "fd7099db")
async def test_a_task_that_is_named_too_late_goes_on_if_the_server_cancels_none() -> None:
    can = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    async with opened(REVISION, can=can) as own:
        errand, asked = await own.asked(own.client.start_tool("x"))
        own.wire.result(asked, listed("optional"))
        call = await own.wire.hear("tools/call")
        await errand.cancel()
        own.wire.result(call, {"task": TASK})

        assert [] == await own.wire.rest()
