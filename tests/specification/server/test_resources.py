"""Resources: what is listed and read, and how sessions watch them."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.errors import RequestError
from tests.specification.citation import (
    HANDSHAKES,
    LABELS,
    everywhere,
    from_every_home,
    spec,
    with_handshakes,
    without_handshakes,
)
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import CAPABILITIES, server

pytestmark = pytest.mark.anyio

UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "note://a"}}


@spec("2026-07-28", "server/resources#capabilities", "1e2e6d22")
@spec("2024-11-05", "server/resources#listing-resources")
@spec("2025-11-25", "server/resources#listing-resources")
@spec("2026-07-28", "server/resources#listing-resources")
@everywhere
@from_every_home
async def test_resources_and_templates_are_listed(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        resources = await peer.result("resources/list")
        templates = await peer.result("resources/templates/list")

    assert [{"uri": "note://a", "name": "a"}] == resources["resources"]
    assert [{"uriTemplate": "n://{x}", "name": "n"}] == templates["resourceTemplates"]


@spec("2026-07-28", "server/resources#security-considerations", "dd2528aa")
@spec("2024-11-05", "server/resources#reading-resources")
@spec("2025-11-25", "server/resources#reading-resources")
@spec("2026-07-28", "server/resources#reading-resources")
@everywhere
@from_every_home
async def test_a_resource_is_read_as_text_or_as_base64(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        text = await peer.result("resources/read", '"uri":"note://a"')
        blob = await peer.result("resources/read", '"uri":"note://binary"')

    assert [{"uri": "note://a", "mimeType": "text/plain", "text": "A"}] == text["contents"]
    assert [{"uri": "note://binary", "blob": "AAEC"}] == blob["contents"]


@spec("2024-11-05", "server/resources#error-handling")
@spec("2025-03-26", "server/resources#error-handling")
@spec("2025-06-18", "server/resources#error-handling")
@spec("2025-11-25", "server/resources#error-handling", "22f87063")
@with_handshakes
@from_every_home
async def test_a_resource_that_there_is_not_has_a_code_of_its_own(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        error = await peer.error("resources/read", '"uri":"file:///nonexistent.txt"')

    assert (-32002, {"uri": "file:///nonexistent.txt"}) == (error["code"], error["data"])


@spec("2026-07-28", "basic/index#error-codes", "a6fb9829")
@spec("2026-07-28", "server/resources#error-handling", "c4e50c0a", "dfd1091d")
@without_handshakes
@from_every_home
async def test_a_resource_that_there_is_not_has_invalid_params_in_the_stateless_era(
    native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        error = await peer.error("resources/read", '"uri":"file:///nonexistent.txt"')

    assert (-32602, {"uri": "file:///nonexistent.txt"}) == (error["code"], error["data"])


@spec("2024-11-05", "server/resources#subscriptions")
@spec("2025-03-26", "server/resources#subscriptions")
@spec("2025-06-18", "server/resources#subscriptions")
@spec("2025-11-25", "server/resources#subscriptions")
@with_handshakes
@from_every_home
async def test_a_session_is_told_of_the_resources_that_it_watches_until_it_does_not(
    native_revision: str, revision: str
) -> None:
    made = server(native_revision)
    async with client(made, revision) as peer:
        assert {} == await peer.result("resources/subscribe", '"uri":"note://a"')

        await made.resource_updated("note://a")
        await made.resource_updated("note://b")

        assert [UPDATED] == await peer.wire.rest()
        assert {} == await peer.result("resources/unsubscribe", '"uri":"note://a"')

        await made.resource_updated("note://a")

        assert [] == await peer.wire.rest()


@spec("2025-11-25", "server/resources#subscriptions")
@with_handshakes
async def test_watching_twice_is_watching_once(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as peer:
        await peer.result("resources/subscribe", '"uri":"note://a"')
        await peer.result("resources/subscribe", '"uri":"note://a"')
        await made.resource_updated("note://a")

        assert [UPDATED] == await peer.wire.rest()


@spec("2025-11-25", "server/resources#subscriptions")
@with_handshakes
async def test_each_session_watches_for_itself(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as watching, client(made, HANDSHAKES[-1]) as other:
        await watching.result("resources/subscribe", '"uri":"note://a"')
        await made.resource_updated("note://a")

        assert [UPDATED] == await watching.wire.rest()
        assert [] == await other.wire.rest()


@spec("2025-11-25", "server/resources#subscriptions")
@with_handshakes
async def test_a_handler_that_hears_of_subscriptions_may_refuse_one(revision: str) -> None:
    async def subscribe(own: Any, params: Any, context: Any) -> Any:
        del own, context
        if params.uri != "note://a":
            raise RequestError(-32002, "Resource not found", {"uri": params.uri})
        return {}

    made = server(HANDSHAKES[-1], subscribe=subscribe)
    async with client(made, revision) as peer:
        error = await peer.error("resources/subscribe", '"uri":"note://b"')
        assert {} == await peer.result("resources/subscribe", '"uri":"note://a"')

        await made.resource_updated("note://a")
        await made.resource_updated("note://b")

        assert -32002 == error["code"]
        assert [UPDATED] == await peer.wire.rest()


@spec("2024-11-05", "server/resources#capabilities")
@spec("2025-11-25", "server/resources#capabilities")
@with_handshakes
async def test_a_server_that_has_not_declared_so_cannot_be_watched(revision: str) -> None:
    made = server(LABELS[-1], capabilities={**CAPABILITIES, "resources": {"listChanged": True}})
    async with client(made, revision) as peer:
        assert -32601 == (await peer.error("resources/subscribe", '"uri":"note://a"'))["code"]

        await made.resource_updated("note://a")

        assert [] == await peer.wire.rest()


@spec("2024-11-05", "server/resources#list-changed-notification")
@spec("2025-11-25", "server/resources#list-changed-notification", "d16e4acc")
@with_handshakes
@from_every_home
async def test_a_session_is_told_that_the_resources_have_changed(native_revision: str, revision: str) -> None:
    made = server(native_revision)
    async with client(made, revision) as peer:
        await made.resources_changed()

        assert [{"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}] == await peer.wire.rest()


KNOWN = {
    "2024-11-05": {"uri", "name", "description", "mimeType", "annotations"},
    "2025-03-26": {"uri", "name", "description", "mimeType", "annotations", "size"},
    "2025-06-18": {"uri", "name", "description", "mimeType", "annotations", "size", "title", "_meta"},
    "2025-11-25": {"uri", "name", "description", "mimeType", "annotations", "size", "title", "_meta", "icons"},
    "2026-07-28": {"uri", "name", "description", "mimeType", "annotations", "size", "title", "_meta", "icons"},
}


@spec("2024-11-05", "server/resources#resource")
@spec("2025-11-25", "server/resources#resource")
@spec("2026-07-28", "server/resources#resource")
@everywhere
async def test_a_client_sees_of_a_resource_what_its_revision_knows(revision: str) -> None:
    full = {
        "uri": "note://a",
        "name": "a",
        "title": "A",
        "description": "A note.",
        "mimeType": "text/plain",
        "size": 1,
        "annotations": {"audience": ["user"], "priority": 1},
        "icons": [{"src": "https://example.com/i.png"}],
        "_meta": {"example.com/key": 1},
    }

    async def list_resources(own: Any, params: Any, context: Any) -> Any:
        del params, context
        return own.made("ListResourcesResult", {"resources": [full]})

    async with client(server(LABELS[-1], list_resources=list_resources), revision) as peer:
        (resource,) = (await peer.result("resources/list"))["resources"]

    # The document of 2024-11-05 has a size already, whatever its page says.
    assert KNOWN[revision] <= set(resource) <= KNOWN[revision] | {"size"}


@spec("2026-07-28", "server/resources#capabilities", "acca0c94")
@everywhere
async def test_the_resources_are_the_same_for_every_connection_and_after_any_request(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as first, client(made, LABELS[0]) as other:
        before = await first.result("resources/list")
        await other.result("resources/read", '"uri":"note://a"')
        await first.call("echo")

        assert before == await first.result("resources/list")
