"""Asking a client for its roots."""

from __future__ import annotations

import pytest

from mcpgen.runtime.errors import RequestError
from tests.specification.citation import LABELS, from_every_home, spec, with_handshakes, without_handshakes
from tests.specification.server.revision_client import client, lack
from tests.specification.server.revision_server import handlers, server

pytestmark = pytest.mark.anyio

ROOTS = '{"roots":[{"uri":"file:///home/user/a","name":"A"},{"uri":"file:///home/user/b"}]}'


@spec("2024-11-05", "client/roots#listing-roots")
@spec("2025-03-26", "client/roots#listing-roots")
@spec("2025-06-18", "client/roots#listing-roots")
@spec("2025-11-25", "client/roots#listing-roots")
@with_handshakes
@from_every_home
async def test_a_session_is_asked_for_its_roots_by_a_request(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"roots":{"listChanged":true}}') as peer:
        (asked,) = await peer.call("roots")
        assert {"jsonrpc": "2.0", "id": asked["id"], "method": "roots/list"} == asked

        (said,) = await peer.answer(asked, ROOTS)

    assert [{"type": "text", "text": "file:///home/user/a file:///home/user/b"}] == said["result"]["content"]


@spec("2026-07-28", "client/roots#listing-roots")
@without_handshakes
@from_every_home
async def test_a_stateless_client_is_asked_for_its_roots_by_a_demand(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"roots":{}}') as peer:
        (demand,) = await peer.call("roots")
        ((key, asked),) = demand["result"]["inputRequests"].items()
        assert {"method": "roots/list"} == {**asked, "method": asked["method"]}

        state = demand["result"]["requestState"]
        (said,) = await peer.ask(
            "tools/call",
            f'"name":"roots","arguments":{{}},"requestState":"{state}","inputResponses":{{"{key}":{ROOTS}}}',
        )

    assert [{"type": "text", "text": "file:///home/user/a file:///home/user/b"}] == said["result"]["content"]


@spec("2024-11-05", "client/roots#capabilities")
@spec("2025-11-25", "client/roots#capabilities")
@with_handshakes
@from_every_home
async def test_a_session_without_roots_is_not_asked(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"sampling":{}}') as peer:
        (said,) = await peer.call("roots")

    assert lack(said) is True


@spec("2026-07-28", "basic/index#meta", "af558e3c")
@without_handshakes
@from_every_home
async def test_a_stateless_client_without_roots_is_told_what_it_lacks(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"sampling":{}}') as peer:
        (said,) = await peer.call("roots")

    assert (-32021, {"requiredCapabilities": {"roots": {}}}) == (said["error"]["code"], said["error"]["data"])


@spec("2024-11-05", "client/roots#error-handling")
@spec("2025-11-25", "client/roots#error-handling")
@with_handshakes
@from_every_home
async def test_the_error_of_a_client_reaches_the_handler(native_revision: str, revision: str) -> None:
    caught: list[RequestError] = []

    async def roots(own: object, _arguments: object, context: object) -> object:
        try:
            await context.roots()  # type: ignore[attr-defined]
        except RequestError as error:
            caught.append(error)
        return own.text("none")  # type: ignore[attr-defined]

    async with client(server(native_revision, tools={"roots": roots}), revision, '{"roots":{}}') as peer:
        (asked,) = await peer.call("roots")
        (said,) = await peer.wire.say(
            b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"Roots not supported",'
            b'"data":{"reason":"Client does not have roots capability"}}}' % asked["id"]
        )

    assert "result" in said
    assert [(-32601, "Roots not supported", {"reason": "Client does not have roots capability"})] == [
        (each.code, each.message, each.data) for each in caught
    ]


@spec("2025-11-25", "client/roots#listing-roots")
@with_handshakes
@pytest.mark.parametrize("result", ['{"roots":[{"name":"no uri"}]}', "{}", '{"roots":{}}'])
async def test_an_answer_that_the_revision_does_not_allow_is_not_taken(result: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision, '{"roots":{}}') as peer:
        (asked,) = await peer.call("roots")
        (said,) = await peer.answer(asked, result)

    assert "error" in said


@spec("2024-11-05", "client/roots#root-list-changes")
@spec("2025-11-25", "client/roots#root-list-changes")
@with_handshakes
@pytest.mark.parametrize("native_revision", LABELS[:4])
async def test_a_handler_hears_that_the_roots_have_changed(native_revision: str, revision: str) -> None:
    heard: list[object] = []

    async def roots_list_changed(own: object, params: object, context: object) -> None:
        del own, context
        heard.append(params)

    own = handlers(native_revision, roots_list_changed=roots_list_changed)
    async with client(server(native_revision, own=own), revision, '{"roots":{"listChanged":true}}') as peer:
        said = await peer.wire.say(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}')

    assert [] == said
    assert 1 == len(heard)
