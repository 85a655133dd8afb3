"""Callers who write in the types of one revision, and servers of another: what is sent, and what is done instead."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpgen import UnsupportedByPeer, UsageError, connect
from mcpgen.generated import registry
from mcpgen.runtime.transports.memory import Memory
from tests.specification.citation import HANDSHAKES, LABELS, STATELESS, everywhere, spec, with_handshakes
from tests.specification.client.recorded_client import heard
from tests.specification.client.scripted_server import META, PATIENCE_SECONDS, complete, on_both_loops, opened
from tests.specification.server.revision_server import server

pytestmark = pytest.mark.anyio

NEWEST = STATELESS[-1]
homes = pytest.mark.parametrize("native_revision", LABELS)
old_homes = pytest.mark.parametrize("native_revision", HANDSHAKES)
SUBSCRIPTION = META + "subscriptionId"


class Typed:
    """The stub of a home, with params from JSON."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._bindings = registry.revision(client.native_revision).bindings()
        self._methods = self._bindings.client.ClientMethods(client)

    def params(self, definition: str, /, **members: Any) -> Any:
        """Return params, with what home wants said in each request."""
        if self._client.meta:
            members["_meta"] = self._client.meta
        models = self._bindings.models
        return models.decode(json.dumps(members).encode(), getattr(models, definition))

    async def call(self, name: str, definition: str = "", /, **members: Any) -> Any:
        """Call the method *name* of the stub."""
        if not definition and not self._client.meta:
            return await getattr(self._methods, name)()
        return await getattr(self._methods, name)(self.params(definition or "RequestParams", **members))


TYPED = {
    "call_tool": ("CallToolRequestParams", {"name": "echo", "arguments": {"text": "hi"}}, "content"),
    "get_prompt": ("GetPromptRequestParams", {"name": "review", "arguments": {"code": "x"}}, "messages"),
    "read_resource": ("ReadResourceRequestParams", {"uri": "note://a"}, "contents"),
    "list_tools": ("PaginatedRequestParams", {}, "tools"),
    "list_prompts": ("PaginatedRequestParams", {}, "prompts"),
    "list_resources": ("PaginatedRequestParams", {}, "resources"),
    "list_resource_templates": ("PaginatedRequestParams", {}, "resource_templates"),
    "complete": (
        "CompleteRequestParams",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "language", "value": "py"}},
        "completion",
    ),
}


@pytest.mark.slow
@spec("2024-11-05", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/lifecycle#operation")
@spec("2026-07-28", "basic/versioning#compatibility-matrix")
@everywhere
@homes
@pytest.mark.parametrize("name", TYPED)
async def test_every_typed_request_is_answered_in_the_types_of_home(
    name: str, native_revision: str, revision: str
) -> None:
    definition, members, holder = TYPED[name]
    models = registry.revision(native_revision).bindings().models
    async with heard(Memory(server(NEWEST)), [revision]) as transport:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(transport, native_revision=native_revision, revisions=[revision]) as client:
                result = await Typed(client).call(name, definition, **members)

        assert (native_revision, revision) == (client.native_revision, client.revision)
    assert models.__name__ == type(result).__module__
    assert getattr(result, holder)


@spec("2024-11-05", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/lifecycle#operation")
@spec("2026-07-28", "changelog#major-changes")
@everywhere
@old_homes
async def test_what_only_older_homes_ask_is_answered_by_every_server(native_revision: str, revision: str) -> None:
    async with heard(Memory(server(NEWEST)), [revision]) as transport:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(transport, native_revision=native_revision, revisions=[revision]) as client:
                typed = Typed(client)
                found = [
                    await typed.call("ping"),
                    await typed.call("set_level", "SetLevelRequestParams", level="info"),
                    await typed.call("subscribe", "SubscribeRequestParams", uri="note://a"),
                    await typed.call("unsubscribe", "UnsubscribeRequestParams", uri="note://a"),
                ]

    assert [{}] * 4 == found


@spec("2026-07-28", "server/discover#response")
@everywhere
async def test_the_newest_home_discovers_every_server(revision: str) -> None:
    async with heard(Memory(server(NEWEST)), [revision]) as transport:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(transport, native_revision=NEWEST, revisions=[revision]) as client:
                found = await Typed(client).call("discover")

    assert revision in found.supported_versions
    assert found.capabilities.tools.list_changed


@spec("2025-11-25", "basic/utilities/tasks#creating-tasks")
@pytest.mark.parametrize("revision", [each for each in LABELS if each != "2025-11-25"])
@pytest.mark.parametrize(
    ("name", "definition", "members"),
    [
        ("call_tool_as_task", "CallToolRequestParams", {"name": "echo", "task": {}}),
        ("get_task", "GetTaskRequestParams", {"taskId": "t"}),
        ("get_task_payload", "GetTaskPayloadRequestParams", {"taskId": "t"}),
        ("list_tasks", "PaginatedRequestParams", {}),
        ("cancel_task", "CancelTaskRequestParams", {"taskId": "t"}),
    ],
)
async def test_tasks_are_asked_of_no_server_that_has_none(
    name: str, definition: str, members: Any, revision: str
) -> None:
    async with opened(revision, native_revision="2025-11-25") as own:
        with pytest.raises(UnsupportedByPeer):
            await Typed(own.client).call(name, definition, **members)

        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/utilities/tasks#capability-negotiation", "68578acc", "8384ff54")
@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "95ed1590")
@spec("2025-11-25", "basic/utilities/tasks#capabilities")
async def test_tasks_are_not_asked_of_a_server_that_has_not_declared_them() -> None:
    async with opened("2025-11-25", native_revision="2025-11-25") as own:
        typed = Typed(own.client)
        with pytest.raises(UnsupportedByPeer):
            await typed.call("call_tool_as_task", "CallToolRequestParams", name="x", task={})
        with pytest.raises(UnsupportedByPeer):
            await typed.call("get_task", "GetTaskRequestParams", taskId="t")

        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/utilities/tasks#creating-tasks")
async def test_a_task_is_made_where_that_is_declared() -> None:
    can = {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
    task = {
        "taskId": "t",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttl": 60000,
    }
    async with opened("2025-11-25", native_revision="2025-11-25", can=can) as own:
        typed = Typed(own.client)
        errand, asked = await own.asked(
            typed.call("call_tool_as_task", "CallToolRequestParams", name="x", task={"ttl": 60000})
        )
        tool = {"name": "x", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}
        own.wire.result(asked, {"tools": [tool]})
        asked = await own.wire.hear("tools/call")
        own.wire.result(asked, {"task": task})

        assert "t" == (await errand.outcome()).task.task_id
        assert {"ttl": 60000} == asked["params"]["task"]


# --- what is done instead


@spec("2026-07-28", "changelog#major-changes")
@old_homes
@on_both_loops
async def test_a_ping_of_a_server_without_sessions_discovers_it(native_revision: str) -> None:
    async with opened(NEWEST, native_revision=native_revision) as own:
        errand, asked = await own.asked(Typed(own.client).call("ping"))
        own.wire.result(asked, complete(NEWEST, is_list=True, supportedVersions=[NEWEST], capabilities={}))
        await errand.outcome()

    assert "server/discover" == asked["method"]


@spec("2026-07-28", "server/utilities/logging#per-request-log-level")
@old_homes
async def test_a_level_set_at_a_server_without_sessions_goes_with_each_request(native_revision: str) -> None:
    async with opened(NEWEST, native_revision=native_revision) as own:
        typed = Typed(own.client)
        await typed.call("set_level", "SetLevelRequestParams", level="error")
        assert [] == await own.wire.rest()

        _, asked = await own.asked(typed.call("list_tools", "PaginatedRequestParams"))

    assert "error" == asked["params"]["_meta"][META + "logLevel"]


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
@old_homes
@on_both_loops
async def test_a_subscription_at_a_server_without_sessions_is_a_stream(native_revision: str) -> None:
    told: list[str] = []

    async def resource_updated(own: Any, params: Any, context: Any) -> None:
        del own, context
        told.append(params.uri)

    base = registry.revision(native_revision).bindings().client.ClientHandlers
    handlers = type("Handlers", (base,), {"resource_updated": resource_updated})()
    async with opened(NEWEST, native_revision=native_revision, handlers=handlers) as own:
        typed = Typed(own.client)
        errand, asked = await own.asked(typed.call("subscribe", "SubscribeRequestParams", uri="a:b"))
        assert not errand.is_over

        meta = {"_meta": {SUBSCRIPTION: asked["id"]}}
        filtered = asked["params"]["notifications"]
        own.wire.tell("notifications/subscriptions/acknowledged", **meta, notifications=filtered)
        await errand.outcome()
        own.wire.tell("notifications/resources/updated", **meta, uri="a:b")
        assert [] == await own.wire.rest()

        await typed.call("subscribe", "SubscribeRequestParams", uri="a:b")  # it is watched already
        await typed.call("unsubscribe", "UnsubscribeRequestParams", uri="a:b")
        (said,) = await own.wire.rest()
        await typed.call("unsubscribe", "UnsubscribeRequestParams", uri="a:b")

        assert [] == await own.wire.rest()

    assert {"resourceSubscriptions": ["a:b"]} == filtered
    assert ["a:b"] == told
    assert ("notifications/cancelled", asked["id"]) == (said["method"], said["params"]["requestId"])


@spec("2025-11-25", "basic/lifecycle#initialization")
@with_handshakes
async def test_a_server_with_sessions_is_discovered_from_what_it_has_said(revision: str) -> None:
    async with opened(revision, native_revision=NEWEST, more={"instructions": "Be kind."}) as own:
        found = await Typed(own.client).call("discover")

        assert [] == await own.wire.rest()

    assert ([revision], "Be kind.") == (found.supported_versions, found.instructions)
    assert found.capabilities.resources.subscribe is True


@spec("2025-11-25", "basic/lifecycle#initialization")
@everywhere
@old_homes
async def test_a_caller_does_not_shake_hands(native_revision: str, revision: str) -> None:
    async with opened(revision, native_revision=native_revision) as own:
        info = {"name": "x", "version": "1"}
        with pytest.raises(UsageError, match="connect"):
            await Typed(own.client).call(
                "initialize",
                "InitializeRequestParams",
                protocolVersion=native_revision,
                capabilities={},
                clientInfo=info,
            )

        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
@everywhere
async def test_a_caller_listens_within_a_block(revision: str) -> None:
    async with opened(revision, native_revision=NEWEST) as own:
        with pytest.raises(UsageError, match="listen"):
            await Typed(own.client).call(
                "subscriptions_listen", "SubscriptionsListenRequestParams", notifications={"toolsListChanged": True}
            )

        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@everywhere
@homes
async def test_a_caller_cancels_by_cancelling(native_revision: str, revision: str) -> None:
    async with opened(revision, native_revision=native_revision) as own:
        methods = registry.revision(native_revision).bindings().client.ClientMethods(own.client)
        models = registry.revision(native_revision).bindings().models
        with pytest.raises(UsageError, match="cancel"):
            await methods.cancelled(models.CancelledNotificationParams(request_id=1))

        assert [] == await own.wire.rest()


@spec("2024-11-05", "client/roots#root-list-changes")
@spec("2025-11-25", "client/roots#root-list-changes")
@spec("2026-07-28", "client/roots#listing-roots")
@everywhere
@old_homes
async def test_changed_roots_are_told_to_who_has_a_session_and_nobody_else(native_revision: str, revision: str) -> None:
    async def list_roots(own: Any, params: Any, context: Any) -> Any:
        raise NotImplementedError

    base = registry.revision(native_revision).bindings().client.ClientHandlers
    handlers = type("Handlers", (base,), {"list_roots": list_roots})()
    declared = {"roots": {"listChanged": True}}
    async with opened(revision, native_revision=native_revision, handlers=handlers, capabilities=declared) as own:
        await registry.revision(native_revision).bindings().client.ClientMethods(own.client).roots_list_changed()
        said = [each["method"] for each in await own.wire.rest()]

    assert ([] if revision == NEWEST else ["notifications/roots/list_changed"]) == said


@spec("2025-11-25", "basic/utilities/tasks#task-listing", "def624cc")
@pytest.mark.parametrize("cursor", ["", " \u00e4=\n", "null", "0"])
async def test_the_cursor_of_a_list_of_tasks_goes_back_as_it_came(cursor: str) -> None:
    async with opened("2025-11-25", can={"tasks": {"list": {}}}, native_revision="2025-11-25") as own:
        typed = Typed(own.client)
        await own.answered(typed.call("list_tasks"), {"tasks": [], "nextCursor": cursor})
        _, asked = await own.asked(typed.call("list_tasks", "PaginatedRequestParams", cursor=cursor))

    assert ("tasks/list", {"cursor": cursor}) == (asked["method"], asked["params"])
