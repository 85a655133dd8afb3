"""Hearing of changes, in sessions and on streams."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestRefused, RequestTimedOut, TransportClosed, UnsupportedByPeer
from mcpgen.generated import registry
from mcpgen.runtime.protocol.newest import ClientHandlers, models
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import HANDSHAKES, STATELESS, everywhere, spec, with_handshakes, without_handshakes
from tests.specification.client.scripted_server import ALL, META, complete, on_both_loops, opened, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.specification.client.scripted_server import Wire

pytestmark = pytest.mark.anyio

SUBSCRIPTION = META + "subscriptionId"
TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"


class Listener:
    """A user who listens, in a task of their own, until told to leave."""

    def __init__(self, own: Any, **wanted: Any) -> None:
        self.heard: list[tuple[str, str | None]] = []
        self.changes: Any = None
        self.ended = False
        self._leave = anyio.Event()
        self._entered = anyio.Event()
        self.errand = own.start(self._listen(own.client.listen(**wanted)))

    async def _listen(self, listening: Any) -> None:
        async with listening as changes:
            self.changes = changes
            self._entered.set()
            async with anyio.create_task_group() as group:
                group.start_soon(self._iterate, group)
                await self._leave.wait()
                group.cancel_scope.cancel()

    async def _iterate(self, group: Any) -> None:
        try:
            async for each in self.changes:
                self.heard.append((each.kind, each.uri))
            self.ended = True
        except Exception as error:  # noqa: BLE001 (kept for the test, which asks for it)
            self.heard.append((type(error).__name__, None))
        group.cancel_scope.cancel()

    async def entered(self) -> Any:
        with anyio.fail_after(PATIENCE_SECONDS):
            await self._entered.wait()
        return self.changes

    async def leave(self) -> None:
        self._leave.set()
        await self.errand.outcome()


async def acknowledged(own: Any, asked: Any, **honoured: Any) -> None:
    """Say what is honoured of the listening that was *asked* for; all of it, unless said otherwise."""
    own.wire.tell(
        "notifications/subscriptions/acknowledged",
        _meta={SUBSCRIPTION: asked["id"]},
        notifications=honoured or asked["params"]["notifications"],
    )


async def stream(own: Any, **wanted: Any) -> tuple[Listener, Any]:
    """Let a user listen without a session, and return them with the request."""
    listener = Listener(own, **wanted)
    asked = await own.wire.hear("subscriptions/listen")
    await acknowledged(own, asked)
    await listener.entered()
    return listener, asked


# --- without a session


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
@spec("2026-07-28", "basic/patterns/subscriptions#notification-filter")
@without_handshakes
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"tools": True}, {"toolsListChanged": True}),
        ({"prompts": True}, {"promptsListChanged": True}),
        ({"resources": True}, {"resourcesListChanged": True}),
        ({"uris": ["a:b", "a:c", "a:b"]}, {"resourceSubscriptions": ["a:b", "a:c"]}),
        ({"tools": True, "uris": ["a:b"]}, {"toolsListChanged": True, "resourceSubscriptions": ["a:b"]}),
    ],
    ids=str,
)
async def test_a_stream_asks_for_what_is_wanted_and_nothing_else(wanted: Any, expected: Any, revision: str) -> None:
    async with opened(revision) as own:
        Listener(own, **wanted)
        asked = await own.wire.hear("subscriptions/listen")

    assert expected == asked["params"]["notifications"]


@spec("2026-07-28", "basic/patterns/subscriptions#acknowledgment", "cd997a8b")
@without_handshakes
@on_both_loops
async def test_who_listens_waits_until_it_is_acknowledged_and_sees_what_is_honoured(revision: str) -> None:
    async with opened(revision) as own:
        listener = Listener(own, tools=True, prompts=True, uris=["a:b", "a:c"])
        asked = await own.wire.hear("subscriptions/listen")
        await own.wire.rest()
        assert listener.changes is None

        await acknowledged(own, asked, toolsListChanged=True, resourceSubscriptions=["a:c"])
        honoured = (await listener.entered()).acknowledged

    assert (True, False, ["a:c"]) == (
        honoured.tools_list_changed,
        honoured.prompts_list_changed,
        honoured.resource_subscriptions,
    )


@spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications", "cd236f9d")
@spec("2026-07-28", "basic/patterns/subscriptions#multiple-concurrent-subscriptions")
@spec("2026-07-28", "basic/transports/stdio#receiving-messages", "7cd83d99")
@without_handshakes
@on_both_loops
async def test_each_stream_hears_what_is_told_under_its_id(revision: str) -> None:
    async with opened(revision) as own:
        one, first = await stream(own, tools=True, uris=["a:b"])
        other, second = await stream(own, tools=True, uris=["a:b"])
        own.wire.tell(TOOLS, _meta={SUBSCRIPTION: second["id"]})
        own.wire.tell(UPDATED, _meta={SUBSCRIPTION: first["id"]}, uri="a:b")
        own.wire.tell(UPDATED, _meta={SUBSCRIPTION: second["id"]}, uri="a:b")
        await own.wire.rest()

        assert [("resource", "a:b")] == one.heard
        assert [("tools", None), ("resource", "a:b")] == other.heard


@spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications", "cd236f9d")
@without_handshakes
@pytest.mark.parametrize("meta", [None, {}, {SUBSCRIPTION: 99}, {SUBSCRIPTION: "2"}, {SUBSCRIPTION: None}], ids=str)
async def test_what_is_told_on_no_stream_is_ignored(meta: Any, revision: str) -> None:
    async with opened(revision) as own:
        listener, asked = await stream(own, tools=True)
        assert 2 == asked["id"]
        own.wire.tell(TOOLS, **({} if meta is None else {"_meta": meta}))
        await own.wire.rest()

        assert [] == listener.heard


@spec("2026-07-28", "basic/patterns/subscriptions#acknowledgment")
@without_handshakes
async def test_a_stream_may_be_acknowledged_after_others_are_told_something(revision: str) -> None:
    async with opened(revision) as own:
        first, one = await stream(own, tools=True)
        second = Listener(own, prompts=True)
        two = await own.wire.hear("subscriptions/listen")
        own.wire.tell(TOOLS, _meta={SUBSCRIPTION: one["id"]})
        await acknowledged(own, two)
        await second.entered()
        own.wire.tell(PROMPTS, _meta={SUBSCRIPTION: two["id"]})
        await own.wire.rest()

        assert ([("tools", None)], [("prompts", None)]) == (first.heard, second.heard)


@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure")
@without_handshakes
@on_both_loops
async def test_a_stream_that_its_server_ends_is_over_after_what_was_told(revision: str) -> None:
    async with opened(revision) as own:
        listener, asked = await stream(own, tools=True)
        own.wire.say(
            {"jsonrpc": "2.0", "method": TOOLS, "params": {"_meta": {SUBSCRIPTION: asked["id"]}}},
            {"jsonrpc": "2.0", "id": asked["id"], "result": complete(revision, _meta={SUBSCRIPTION: asked["id"]})},
        )
        await listener.errand.outcome()

        assert listener.ended
        assert [("tools", None)] == listener.heard
        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/index#resulttype", "31476f83")
@pytest.mark.parametrize("kind", ["final", "input_required", None])
@without_handshakes
async def test_a_stream_that_its_server_ends_with_a_result_of_an_unknown_type_has_failed(
    kind: str | None, revision: str
) -> None:
    async with opened(revision) as own:
        listener, asked = await stream(own, tools=True)
        own.wire.result(asked, {"resultType": kind, "_meta": {SUBSCRIPTION: asked["id"]}})
        await listener.errand.outcome()
        own.wire.recorder.violations.clear()  # the type is wrong on purpose

    assert [("InvalidPayload", None)] == listener.heard


@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
@without_handshakes
@on_both_loops
async def test_a_stream_that_its_server_cancels_is_over_and_the_others_are_not(revision: str) -> None:
    async with opened(revision) as own:
        first, one = await stream(own, tools=True)
        second, two = await stream(own, tools=True)
        own.wire.tell("notifications/cancelled", requestId=one["id"], reason="enough")
        await first.errand.outcome()
        own.wire.tell(TOOLS, _meta={SUBSCRIPTION: float(two["id"])})  # 2.0 is the integer 2

        assert [] == await own.wire.rest()
        assert first.ended
        assert ([], [("tools", None)]) == (first.heard, second.heard)


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation")
@without_handshakes
@on_both_loops
async def test_who_leaves_cancels_the_stream_and_hears_no_more(revision: str) -> None:
    async with opened(revision) as own:
        listener, asked = await stream(own, tools=True)
        await listener.leave()
        (said,) = await own.wire.rest()
        own.wire.tell(TOOLS, _meta={SUBSCRIPTION: asked["id"]})
        own.wire.result(asked, complete(revision, _meta={SUBSCRIPTION: asked["id"]}))

        assert ("notifications/cancelled", asked["id"]) == (said["method"], said["params"]["requestId"])
        assert [] == await own.wire.rest()
        assert [] == listener.heard


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
@without_handshakes
@on_both_loops
async def test_who_is_cancelled_before_it_is_acknowledged_cancels_the_stream(revision: str) -> None:
    async with opened(revision) as own:
        listener = Listener(own, tools=True)
        asked = await own.wire.hear("subscriptions/listen")
        await listener.errand.cancel()
        (said,) = await own.wire.rest()

    assert ("notifications/cancelled", asked["id"]) == (said["method"], said["params"]["requestId"])


@spec("2026-07-28", "basic/patterns/cancellation#timeouts")
@without_handshakes
@on_both_loops
async def test_a_stream_that_nobody_acknowledges_is_cancelled(revision: str) -> None:
    async with opened(revision, limits=ClientLimits(call_seconds=0.05)) as own:
        listener = Listener(own, tools=True)
        asked = await own.wire.hear("subscriptions/listen")
        with pytest.raises(RequestTimedOut):
            await listener.errand.outcome()
        (said,) = await own.wire.rest()

    assert ("notifications/cancelled", asked["id"]) == (said["method"], said["params"]["requestId"])


@spec("2026-07-28", "basic/patterns/cancellation#timeouts")
@without_handshakes
async def test_an_open_stream_has_no_time_limit(revision: str) -> None:
    async with opened(revision, limits=ClientLimits(call_seconds=0.05)) as own:
        listener, asked = await stream(own, tools=True)
        with pytest.raises(RequestTimedOut):
            await own.client.call_tool("x")
        own.wire.tell(TOOLS, _meta={SUBSCRIPTION: asked["id"]})
        await own.wire.rest()

        assert [("tools", None)] == listener.heard


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
@without_handshakes
@on_both_loops
async def test_a_server_that_refuses_a_stream_is_the_listeners_error(revision: str) -> None:
    async with opened(revision) as own:
        listener = Listener(own, tools=True)
        own.wire.error(await own.wire.hear("subscriptions/listen"), -32603, "not today")
        with pytest.raises(RequestRefused, match="not today"):
            await listener.errand.outcome()

        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
@spec("2026-07-28", "basic/transports/stdio#unexpected-termination")
@spec("2025-11-25", "basic/lifecycle#shutdown")
@everywhere
@on_both_loops
async def test_a_connection_that_is_lost_ends_listening_with_an_error(revision: str) -> None:
    async with opened(revision) as own:
        if revision in STATELESS:
            listener, _ = await stream(own, tools=True)
        else:
            listener = Listener(own, tools=True)
            await listener.entered()
        own.wire.hang_up()
        await listener.errand.outcome()

        assert [("TransportClosed", None)] == listener.heard
        with pytest.raises(TransportClosed):
            await own.client.listen(tools=True).__aenter__()
        assert [] == await own.wire.rest()


# --- in a session


@spec("2024-11-05", "server/tools#list-changed-notification")
@spec("2025-11-25", "server/tools#list-changed-notification")
@spec("2025-11-25", "server/prompts#list-changed-notification")
@spec("2025-11-25", "server/resources#list-changed-notification")
@with_handshakes
@on_both_loops
async def test_in_a_session_each_listener_hears_what_it_wants(revision: str) -> None:
    async with opened(revision) as own:
        one, other = Listener(own, tools=True, prompts=True), Listener(own, tools=True, resources=True)
        await one.entered()
        await other.entered()
        assert [] == await own.wire.rest()

        for method in (TOOLS, PROMPTS, RESOURCES):
            own.wire.tell(method)
        await own.wire.rest()

        assert [("tools", None), ("prompts", None)] == one.heard
        assert [("tools", None), ("resources", None)] == other.heard


@spec("2024-11-05", "server/resources#subscriptions")
@spec("2025-11-25", "server/resources#subscriptions")
@with_handshakes
@on_both_loops
async def test_in_a_session_a_resource_is_subscribed_to_while_somebody_listens(revision: str) -> None:
    async with opened(revision) as own:
        listener = Listener(own, uris=["a:b"])
        asked = await own.wire.hear("resources/subscribe")
        await own.wire.rest()
        assert listener.changes is None

        own.wire.result(asked, {})
        await listener.entered()
        own.wire.tell(UPDATED, uri="a:b")
        own.wire.tell(UPDATED, uri="a:c")
        await own.wire.rest()
        await listener.leave()
        (said,) = await own.wire.rest()
        own.wire.result(said, {})

    assert {"uri": "a:b"} == asked["params"]
    assert [("resource", "a:b")] == listener.heard
    assert ("resources/unsubscribe", {"uri": "a:b"}) == (said["method"], said["params"])


@spec("2025-11-25", "schema#resourceupdatednotificationparams")
@with_handshakes
async def test_a_part_of_a_resource_that_is_watched_is_heard_of(revision: str) -> None:
    async with opened(revision) as own:
        listener = Listener(own, uris=["file:///a"])
        own.wire.result(await own.wire.hear("resources/subscribe"), {})
        await listener.entered()
        for uri in ("file:///a/b", "file:///ab", "file:///"):
            own.wire.tell(UPDATED, uri=uri)
        await own.wire.rest()

        assert [("resource", "file:///a/b")] == listener.heard


@spec("2025-11-25", "server/resources#subscriptions")
@with_handshakes
@on_both_loops
async def test_a_resource_that_two_listen_to_is_unsubscribed_from_when_both_have_left(revision: str) -> None:
    async with opened(revision) as own:
        listeners = []
        for _ in range(2):
            listeners.append(Listener(own, uris=["a:b"]))
            for asked in await own.wire.rest():
                own.wire.result(asked, {})
            await listeners[-1].entered()
        own.wire.tell(UPDATED, uri="a:b")
        await own.wire.rest()
        assert [[("resource", "a:b")]] * 2 == [each.heard for each in listeners]

        await listeners[0].leave()
        assert [] == await own.wire.rest()

        own.wire.tell(UPDATED, uri="a:b")
        await own.wire.rest()
        await listeners[1].leave()

        assert ["resources/unsubscribe"] == [each["method"] for each in await own.wire.rest()]
        assert 2 == len(listeners[1].heard)


@spec("2025-11-25", "server/resources#subscriptions")
@spec("2025-11-25", "schema#unsubscriberequest")
@with_handshakes
@on_both_loops
async def test_what_the_server_does_not_let_be_watched_is_not_unsubscribed_from(revision: str) -> None:
    async with opened(revision) as own:
        listener = Listener(own, uris=["a:b", "a:c"])
        own.wire.result(await own.wire.hear("resources/subscribe"), {})
        own.wire.error(await own.wire.hear("resources/subscribe"), -32602, "no such resource")
        with pytest.raises(RequestRefused, match="no such resource"):
            await listener.errand.outcome()

        said = [(each["method"], each["params"]["uri"]) for each in await own.wire.rest()]
        assert [("resources/unsubscribe", "a:b")] == said


@spec("2025-11-25", "basic/lifecycle#operation")
@spec("2026-07-28", "server/discover#discoverresult")
@everywhere
async def test_resources_are_not_watched_where_that_is_not_declared(revision: str) -> None:
    async with opened(revision, can={**ALL, "resources": {"listChanged": True}}) as own:
        with pytest.raises(UnsupportedByPeer):
            await own.client.listen(uris=["a:b"]).__aenter__()

        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/lifecycle#operation")
@spec("2026-07-28", "server/discover#discoverresult")
@everywhere
async def test_of_what_is_wanted_that_is_honoured_which_is_declared(revision: str) -> None:
    async with opened(revision, can={"tools": {"listChanged": True}, "prompts": {}}) as own:
        listener = Listener(own, tools=True, prompts=True, resources=True)
        if revision in STATELESS:
            asked = await own.wire.hear("subscriptions/listen")
            await acknowledged(own, asked, toolsListChanged=True)
        honoured = (await listener.entered()).acknowledged

        assert (True, False, False) == (
            honoured.tools_list_changed,
            honoured.prompts_list_changed,
            honoured.resources_list_changed,
        )


@spec("2025-11-25", "basic/index#notifications")
@everywhere
async def test_changes_that_nobody_has_looked_at_yet_and_that_are_equal_are_one(revision: str) -> None:
    async with opened(revision) as own:
        listening = own.client.listen(tools=True, prompts=True)
        errand = own.start(listening.__aenter__())
        meta = {}
        if revision in STATELESS:
            asked = await own.wire.hear("subscriptions/listen")
            await acknowledged(own, asked)
            meta = {"_meta": {SUBSCRIPTION: asked["id"]}}
        changes = await errand.outcome()
        for method in (TOOLS, TOOLS, PROMPTS, TOOLS):
            own.wire.tell(method, **meta)

        assert ["tools", "prompts"] == [(await anext(changes)).kind for _ in range(2)]

        own.wire.tell(TOOLS, **meta)

        assert "tools" == (await anext(changes)).kind


# --- handlers


@asynccontextmanager
async def opened_with_stream(revision: str, **options: Any) -> AsyncGenerator[tuple[Wire, Any]]:
    """Connect a client that opens a stream before it is ready."""
    async with scripted(revisions=[revision], **options) as (connecting, wire):
        await wire.discovered()
        asked = await wire.hear("subscriptions/listen")
        wire.tell(
            "notifications/subscriptions/acknowledged",
            _meta={SUBSCRIPTION: asked["id"]},
            notifications=asked["params"]["notifications"],
        )
        await connecting.outcome()
        yield wire, asked


class Told(ClientHandlers[Any]):
    def __init__(self) -> None:
        self.told: list[str] = []

    async def tool_list_changed(self, params: models.NotificationParams, context: Any, /) -> None:
        del params
        self.told.append(context.method)

    async def resource_list_changed(self, params: models.NotificationParams, context: Any, /) -> None:
        del params
        self.told.append(context.method)


@spec("2025-11-25", "server/tools#list-changed-notification")
@with_handshakes
@on_both_loops
async def test_handlers_are_told_of_changes_in_a_session(revision: str) -> None:
    handlers = Told()
    async with opened(revision, handlers=handlers) as own:
        for method in (TOOLS, PROMPTS, RESOURCES):
            own.wire.tell(method)
        await own.wire.rest()

    assert [TOOLS, RESOURCES] == handlers.told


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
@without_handshakes
@pytest.mark.parametrize("native_revision", [*HANDSHAKES, *STATELESS])
async def test_handlers_that_want_to_be_told_of_changes_have_a_stream_opened(
    native_revision: str, revision: str
) -> None:
    told: list[str] = []

    async def changed(own: Any, params: Any, context: Any) -> None:
        del own, params
        told.append(context.method)

    base = registry.revision(native_revision).bindings().client.ClientHandlers
    handlers = type("Handlers", (base,), {"tool_list_changed": changed, "resource_list_changed": changed})()
    async with opened_with_stream(revision, native_revision=native_revision, handlers=handlers) as (own, asked):
        wanted = {"toolsListChanged": True, "resourcesListChanged": True}
        assert wanted == asked["params"]["notifications"]

        own.tell(TOOLS, _meta={SUBSCRIPTION: asked["id"]})
        own.tell(RESOURCES, _meta={SUBSCRIPTION: asked["id"]})
        await own.rest()

    assert [TOOLS, RESOURCES] == told


@spec("2026-07-28", "server/discover#discoverresult")
@without_handshakes
async def test_no_stream_is_opened_for_what_the_server_does_not_tell(revision: str) -> None:
    async with opened(revision, can={"tools": {}}, handlers=Told()) as own:
        assert [] == await own.wire.rest()
