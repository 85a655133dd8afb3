"""`subscriptions/listen`: streams of notifications for stateless clients."""

from __future__ import annotations

from typing import Any

import pytest

from tests.specification.citation import LABELS, everywhere, from_every_home, spec, with_handshakes, without_handshakes
from tests.specification.server.revision_client import Client, client
from tests.specification.server.revision_server import CAPABILITIES, server

pytestmark = pytest.mark.anyio

ID = "io.modelcontextprotocol/subscriptionId"


def listen(peer: Client, identity: int | str, wanted: str) -> bytes:
    return peer.request(identity, "subscriptions/listen", f'"notifications":{{{wanted}}}')


@spec("2026-07-28", "schema#subscriptionsacknowledgednotification", "3b7a5aa2", "351125a6")
@spec("2026-07-28", "basic/patterns/subscriptions#acknowledgment", "08432294")
@without_handshakes
@from_every_home
async def test_a_stream_is_acknowledged_first_with_what_will_be_told(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        said = await peer.wire.say(
            listen(peer, 1, '"toolsListChanged":true,"resourceSubscriptions":["file:///project/config.json"]')
        )

    assert [
        {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {ID: 1},
                "notifications": {
                    "toolsListChanged": True,
                    "resourceSubscriptions": ["file:///project/config.json"],
                },
            },
        }
    ] == said


@spec("2026-07-28", "server/prompts#list-changed-notification", "e4a73c7a")
@spec("2026-07-28", "server/resources#list-changed-notification", "d16e4acc")
@spec("2026-07-28", "server/tools#list-changed-notification", "7973f85f")
@spec("2026-07-28", "basic/index#meta", "85fd0c79")
@spec("2026-07-28", "schema#notificationmetaobject", "2d344309")
@spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications")
@without_handshakes
@from_every_home
async def test_every_notification_on_a_stream_names_it(native_revision: str, revision: str) -> None:
    made = server(native_revision)
    async with client(made, revision) as peer:
        await peer.wire.say(
            listen(
                peer,
                "s",
                '"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,'
                '"resourceSubscriptions":["note://a"]',
            )
        )
        await made.tools_changed()
        await made.prompts_changed()
        await made.resources_changed()
        await made.resource_updated("note://a")
        said = await peer.wire.rest()

    assert [
        ("notifications/tools/list_changed", {"_meta": {ID: "s"}}),
        ("notifications/prompts/list_changed", {"_meta": {ID: "s"}}),
        ("notifications/resources/list_changed", {"_meta": {ID: "s"}}),
        ("notifications/resources/updated", {"_meta": {ID: "s"}, "uri": "note://a"}),
    ] == [(each["method"], each["params"]) for each in said]


@spec("2026-07-28", "schema#subscriptionslistenrequestparams", "2404353b")
@spec("2026-07-28", "schema#subscriptionfilter", "2e5dfa1b")
@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream", "34969945")
@without_handshakes
@pytest.mark.parametrize(
    "wanted",
    ["", '"toolsListChanged":false', '"resourceSubscriptions":[]', '"promptsListChanged":true'],
)
async def test_what_was_not_asked_for_is_not_told(wanted: str, revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as peer:
        await peer.wire.say(listen(peer, 1, wanted))
        await made.tools_changed()
        await made.resources_changed()
        await made.resource_updated("note://a")

        assert [] == await peer.wire.rest()


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
@without_handshakes
async def test_a_stateless_client_without_a_stream_is_told_nothing(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as peer:
        await peer.result("tools/list")
        await made.tools_changed()
        await made.resource_updated("note://a")

        assert [] == await peer.wire.rest()


@spec("2026-07-28", "basic/patterns/subscriptions#acknowledgment")
@without_handshakes
@pytest.mark.parametrize(
    ("declared", "agreed"),
    [
        ({"tools": {}, "prompts": {}, "resources": {}}, {}),
        ({"tools": {"listChanged": True}}, {"toolsListChanged": True}),
        ({"resources": {"subscribe": True}}, {"resourceSubscriptions": ["note://a"]}),
        ({"tools": {"listChanged": False}, "resources": {"listChanged": True}}, {"resourcesListChanged": True}),
    ],
)
async def test_what_the_server_cannot_tell_is_left_out_of_the_acknowledgement(
    declared: Any, agreed: Any, revision: str
) -> None:
    made = server(LABELS[-1], capabilities=declared)
    async with client(made, revision) as peer:
        (said,) = await peer.wire.say(
            listen(
                peer,
                1,
                '"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,'
                '"resourceSubscriptions":["note://a"]',
            )
        )
        await made.prompts_changed()

        assert agreed == said["params"]["notifications"]
        assert [] == await peer.wire.rest()


@spec("2026-07-28", "basic/patterns/subscriptions#multiple-concurrent-subscriptions")
@without_handshakes
async def test_streams_of_one_client_are_told_apart_by_their_ids(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as peer:
        await peer.wire.say(
            listen(peer, 1, '"toolsListChanged":true'),
            listen(peer, "1", '"toolsListChanged":true,"promptsListChanged":true'),
            listen(peer, 2, '"resourceSubscriptions":["note://a"]'),
        )
        await made.tools_changed()
        await made.prompts_changed()
        await made.resource_updated("note://a")
        said = await peer.wire.rest()

    assert [1, "1", "1", 2] == [each["params"]["_meta"][ID] for each in said]


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
@without_handshakes
async def test_a_cancelled_stream_is_told_nothing_more_and_not_answered(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as peer:
        await peer.wire.say(listen(peer, 1, '"toolsListChanged":true'), listen(peer, 2, '"toolsListChanged":true'))
        cancelled = await peer.wire.say(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
        )
        await made.tools_changed()
        said = await peer.wire.rest()

    assert [] == cancelled
    assert [2] == [each["params"]["_meta"][ID] for each in said]


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation", "eeb00a43")
@spec("2026-07-28", "basic/patterns/cancellation", "6f10bbf7")
@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure", "8a3e54e0")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements", "34240352")
@spec("2026-07-28", "schema#notificationmetaobject", "2d344309")
@without_handshakes
async def test_a_server_that_ends_a_stream_answers_and_cancels_it(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        await peer.wire.say(listen(peer, 1, '"toolsListChanged":true'))
        peer.wire.connection.end_of_input()
        cancelled, answered = await peer.wire.rest()

    assert {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "resultType": "complete",
            "_meta": {ID: 1, "io.modelcontextprotocol/serverInfo": {"name": "demo", "version": "1"}},
        },
    } == answered
    assert {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"_meta": {ID: 1}, "requestId": 1, "reason": "the server has ended the stream"},
    } == cancelled


@spec("2026-07-28", "basic/patterns/subscriptions#notification-filter")
@without_handshakes
@pytest.mark.parametrize(
    "params",
    [
        "",
        '"notifications":null',
        '"notifications":[]',
        '"notifications":{"toolsListChanged":"yes"}',
        '"notifications":{"resourceSubscriptions":"note://a"}',
        '"notifications":{"resourceSubscriptions":[1]}',
    ],
)
async def test_a_filter_that_is_none_is_refused(params: str, revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as peer:
        assert -32602 == (await peer.error("subscriptions/listen", params))["code"]

        await made.tools_changed()

        assert [] == await peer.wire.rest()


@spec("2026-07-28", "basic/patterns/subscriptions#notification-filter")
@without_handshakes
async def test_a_filter_of_things_that_nobody_knows_is_not_agreed_to(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        (said,) = await peer.wire.say(listen(peer, 1, '"weatherChanged":true,"example.com/x":{"y":1}'))

    assert {} == said["params"]["notifications"]


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
@without_handshakes
async def test_the_id_of_an_open_stream_cannot_be_used_again(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as peer:
        await peer.wire.say(listen(peer, 1, '"toolsListChanged":true'))
        (refused,) = await peer.wire.say(peer.request(1, "tools/list"))
        await made.tools_changed()
        (told,) = await peer.wire.rest()

    assert (1, -32600) == (refused["id"], refused["error"]["code"])
    assert 1 == told["params"]["_meta"][ID]


@spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications")
@with_handshakes
async def test_a_session_and_a_stream_on_one_connection_are_told_separately(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as session:
        stateless = Client(session.wire, "2026-07-28", "{}")
        await session.wire.say(listen(stateless, "s", '"toolsListChanged":true'))
        await made.tools_changed()
        said = await session.wire.rest()

    assert [None, {"_meta": {ID: "s"}}] == sorted((each.get("params") for each in said), key=bool)


@spec("2026-07-28", "basic/patterns/subscriptions#acknowledgment")
@without_handshakes
async def test_a_stream_that_a_handler_changes_things_for_hears_of_it_too(revision: str) -> None:
    async def grow(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        await context.tools_changed()
        return own.text("grown")

    made = server(LABELS[-1], capabilities=CAPABILITIES, tools={"grow": grow})
    async with client(made, revision) as peer:
        await peer.wire.say(listen(peer, "s", '"toolsListChanged":true'))
        told, said = await peer.call("grow")

    assert {ID: "s"} == told["params"]["_meta"]
    assert "result" in said


@spec("2026-07-28", "server/resources#security-considerations", "babc5a75")
@everywhere
@pytest.mark.parametrize("uri", ["", "notes", "../notes", "file:///my notes", "note:\u00e9"])
async def test_only_a_uri_can_be_subscribed_to(uri: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        if peer.is_stateless:
            error = await peer.error("subscriptions/listen", f'"notifications":{{"resourceSubscriptions":["{uri}"]}}')
        else:
            error = await peer.error("resources/subscribe", f'"uri":"{uri}"')

    assert -32602 == error["code"]
    assert "it is not a URI" in error["message"]
