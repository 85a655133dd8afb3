"""Progress of a request: under which token it is told, and when its caller hears of it."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from mcpgen.generated import registry
from mcpgen.runtime.errors import RequestRefused, UsageError
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import STATELESS, everywhere, since, spec
from tests.specification.client.scripted_server import complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

CALLS = pytest.mark.parametrize(
    ("call", "result"),
    [
        (lambda client, told: client.call_tool("x", on_progress=told), {"content": []}),
        (lambda client, told: client.read_resource("a:b", on_progress=told), {"contents": []}),
        (lambda client, told: client.get_prompt("p", on_progress=told), {"messages": []}),
        (lambda client, told: client.list_tools(on_progress=told), {"tools": []}),
    ],
    ids=["tool", "resource", "prompt", "list"],
)


def token_of(request: Any) -> Any:
    return request["params"]["_meta"]["progressToken"]


@spec("2024-11-05", "basic/utilities/progress#progress-flow")
@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@spec("2026-07-28", "basic/patterns/progress#progress-flow")
@everywhere
@CALLS
@on_both_loops
async def test_progress_is_told_in_order_and_before_the_result(call: Any, result: Any, revision: str) -> None:
    told: list[Any] = []
    async with opened(revision) as own:
        errand, asked = await own.asked(call(own.client, lambda *given: told.append(given)))
        token = token_of(asked)
        own.wire.tell("notifications/progress", progressToken=token, progress=1, total=4)
        own.wire.tell("notifications/progress", progressToken=token, progress=2.5)
        own.wire.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 4, "total": 4.0},
            },
            {"jsonrpc": "2.0", "id": asked["id"], "result": complete(revision, is_list=True, **result)},
        )
        await errand.outcome()

    assert [(1, 4, None), (2.5, None, None), (4, 4, None)] == told


@spec("2025-11-25", "basic/utilities/progress#progress-flow", "1a3be013")
@spec("2026-07-28", "basic/patterns/progress#progress-flow", "0a8a4373")
@everywhere
@on_both_loops
async def test_a_token_of_the_callers_own_is_of_one_open_request(revision: str) -> None:
    told: list[Any] = []
    async with opened(revision) as own:
        first, one = await own.asked(own.client.call_tool("x", meta={"progressToken": "mine"}))
        with pytest.raises(UsageError, match="`_meta` has the progressToken 'mine', which another open request has"):
            await own.client.call_tool("x", meta={"progressToken": "mine"})
        number = one["id"] + 2  # the next request has the number before it
        second, two = await own.asked(own.client.call_tool("x", meta={"progressToken": number}))
        third, three = await own.asked(own.client.call_tool("x", on_progress=lambda *given: told.append(given)))
        own.wire.tell("notifications/progress", progressToken=number, progress=1)
        for asked, errand in ((one, first), (two, second), (three, third)):
            own.wire.result(asked, complete(revision, content=[]))
            await errand.outcome()

    assert number != token_of(three)
    assert [] == told


@spec("2025-11-25", "basic/utilities/progress#progress-flow", "1a3be013")
@spec("2026-07-28", "basic/patterns/progress#progress-flow", "0a8a4373")
@everywhere
@pytest.mark.parametrize("api", ["request_json", "ClientMethods"])
async def test_a_token_in_params_is_of_one_open_request(api: str, revision: str) -> None:
    async with opened(revision, native_revision=revision) as own:
        bindings = registry.revision(revision).bindings()

        def call() -> Any:
            meta = {**own.client.meta, "progressToken": "mine"} if revision in STATELESS else {"progressToken": "mine"}
            if api == "request_json":
                return own.client.request_json("tools/call", {"name": "x", "_meta": meta})
            params = msgspec.convert({"name": "x", "_meta": meta}, bindings.models.CallToolRequestParams)
            return bindings.client.ClientMethods(own.client).call_tool(params)

        errand, asked = await own.asked(call())
        refused = "`_meta` has the progressToken 'mine', which another open request has"
        with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(UsageError, match=refused):
            await call()
        own.wire.result(asked, complete(revision, content=[]))
        await errand.outcome()
        _, again = await own.asked(call())

    assert "mine" == token_of(asked) == token_of(again)


@spec("2025-03-26", "basic/utilities/progress#progress-flow")
@spec("2026-07-28", "basic/patterns/progress#progress-flow")
@pytest.mark.parametrize("revision", since("2025-03-26"))
async def test_what_is_being_done_is_told_where_servers_say_it(revision: str) -> None:
    told: list[Any] = []
    async with opened(revision) as own:
        _, asked = await own.asked(own.client.call_tool("x", on_progress=lambda *given: told.append(given)))
        own.wire.tell("notifications/progress", progressToken=token_of(asked), progress=1, message="Reticulating…")
        await own.wire.rest()

    assert [(1, None, "Reticulating…")] == told


@spec("2024-11-05", "basic/utilities/progress#progress-flow")
@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@spec("2026-07-28", "basic/patterns/progress#progress-flow")
@everywhere
@on_both_loops
async def test_a_callback_that_waits_is_waited_for_before_the_result(revision: str) -> None:
    gate, seen = anyio.Event(), []

    async def told(progress: float, *_: Any) -> None:
        await gate.wait()
        seen.append(progress)

    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x", on_progress=told))
        for number in (1, 2):
            own.wire.tell("notifications/progress", progressToken=token_of(asked), progress=number)
        own.wire.result(asked, complete(revision, content=[]))
        await own.wire.rest()
        assert not errand.is_over

        gate.set()
        await errand.outcome()

    assert [1, 2] == seen


@spec("2024-11-05", "basic/utilities/progress#progress-flow")
@spec("2025-11-25", "basic/utilities/progress#progress-flow", "ab68d903", "1a3be013")
@spec("2026-07-28", "basic/patterns/progress#progress-flow", "d4a86662", "0a8a4373")
@everywhere
async def test_each_request_has_a_token_of_its_own_and_only_who_wants_progress_has_any(revision: str) -> None:
    told: dict[str, list[float]] = {"a": [], "b": []}
    async with opened(revision) as own:
        _, without = await own.asked(own.client.call_tool("x"))
        _, a = await own.asked(own.client.call_tool("a", on_progress=lambda value, *_: told["a"].append(value)))
        _, b = await own.asked(own.client.call_tool("b", on_progress=lambda value, *_: told["b"].append(value)))
        own.wire.tell("notifications/progress", progressToken=token_of(b), progress=2)
        own.wire.tell("notifications/progress", progressToken=token_of(a), progress=1)
        await own.wire.rest()

    assert token_of(a) != token_of(b)
    assert "progressToken" not in without["params"].get("_meta", {})
    assert {"a": [1], "b": [2]} == told


@spec("2024-11-05", "basic/utilities/progress#progress-flow")
@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@spec("2026-07-28", "basic/patterns/progress#progress-flow")
@everywhere
@on_both_loops
async def test_a_callback_that_fails_cancels_its_request_and_its_error_is_the_callers(revision: str) -> None:
    failure = ValueError("enough")

    def told(*_: Any) -> None:
        raise failure

    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x", on_progress=told))
        own.wire.tell("notifications/progress", progressToken=token_of(asked), progress=1)
        with pytest.raises(ValueError, match="enough") as raised:
            await errand.outcome()
        (said,) = await own.wire.rest()

    assert failure is raised.value
    assert ("notifications/cancelled", asked["id"]) == (said["method"], said["params"]["requestId"])


@spec("2024-11-05", "basic/utilities/progress#behavior-requirements")
@spec("2025-11-25", "basic/utilities/progress#implementation-notes")
@spec("2026-07-28", "basic/patterns/progress#implementation-notes")
@everywhere
async def test_progress_that_comes_after_the_result_is_told_nobody(revision: str) -> None:
    told: list[Any] = []
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x", on_progress=lambda *given: told.append(given)))
        own.wire.result(asked, complete(revision, content=[]))
        own.wire.tell("notifications/progress", progressToken=token_of(asked), progress=1)
        await errand.outcome()
        own.wire.tell("notifications/progress", progressToken=token_of(asked), progress=2)
        await own.wire.rest()

    assert [] == told


@spec("2024-11-05", "basic/utilities/progress#behavior-requirements")
@spec("2025-11-25", "basic/utilities/progress#behavior-requirements")
@spec("2026-07-28", "basic/patterns/progress#behavior-requirements")
@everywhere
@pytest.mark.parametrize(
    "params",
    [
        {"progressToken": 999, "progress": 1},
        {"progressToken": "2", "progress": 1},
        {"progressToken": None, "progress": 1},
        {"progress": 1},
        {"progressToken": "TOKEN"},
        {"progressToken": "TOKEN", "progress": "half"},
        {"progressToken": "TOKEN", "progress": None},
        {"progressToken": "TOKEN", "progress": 1, "total": "all"},
        {},
    ],
    ids=str,
)
async def test_progress_that_cannot_be_read_or_that_nobody_asked_for_is_ignored(params: Any, revision: str) -> None:
    told: list[Any] = []
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x", on_progress=lambda *given: told.append(given)))
        given = {key: token_of(asked) if each == "TOKEN" else each for key, each in params.items()}
        own.wire.tell("notifications/progress", **given)
        own.wire.result(asked, complete(revision, content=[]))
        await errand.outcome()

    assert [] == told


@pytest.mark.slow
@spec("2025-11-25", "basic/utilities/progress#implementation-notes")
@spec("2026-07-28", "basic/patterns/progress#implementation-notes")
@everywhere
async def test_of_a_flood_of_progress_a_slow_callback_sees_the_newest(revision: str) -> None:
    seen: list[float] = []
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x", on_progress=lambda value, *_: seen.append(value)))
        for number in range(10_000):
            own.wire.tell("notifications/progress", progressToken=token_of(asked), progress=number)
        own.wire.result(asked, complete(revision, content=[]))
        await errand.outcome()

    assert 9_999 == seen[-1]
    assert sorted(seen) == seen
    assert len(seen) < 1000


@spec("2024-11-05", "basic/utilities/progress#progress-flow")
@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@everywhere
async def test_progress_comes_before_an_error_too(revision: str) -> None:
    told: list[Any] = []
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x", on_progress=lambda *given: told.append(given)))
        own.wire.tell("notifications/progress", progressToken=token_of(asked), progress=1)
        own.wire.error(asked, -32603)
        with pytest.raises(RequestRefused):
            await errand.outcome()

    assert [(1, None, None)] == told


@spec("2026-07-28", "basic/patterns/mrtr#client-requirements-basic-workflow")
@pytest.mark.parametrize("revision", STATELESS)
async def test_progress_goes_on_when_a_request_is_put_again(revision: str) -> None:
    told: list[Any] = []
    async with opened(revision) as own:
        errand, first = await own.asked(own.client.call_tool("x", on_progress=lambda value, *_: told.append(value)))
        own.wire.tell("notifications/progress", progressToken=token_of(first), progress=1)
        own.wire.result(first, {"resultType": "input_required", "requestState": "s"})
        second = await own.wire.hear()
        own.wire.tell("notifications/progress", progressToken=token_of(second), progress=2)
        own.wire.result(second, complete(revision, content=[]))
        await errand.outcome()

    assert [1, 2] == told
