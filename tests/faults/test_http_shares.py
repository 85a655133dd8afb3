"""One client takes all that there is; another one gets its share of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mcpgen.runtime.limits import HttpLimits
from tests.faults.event_loop_turns import until
from tests.faults.http_applications import attacked_site, held
from tests.faults.http_faulty_handlers import Guest
from tests.specification.http_server.http_clients import (
    BOTH,
    JSON,
    STATELESS,
    STREAM,
    Caller,
    initialize,
    joined,
    old_joined,
)
from tests.specification.http_server.revision_sets import on_both_loops, with_sessions

if TYPE_CHECKING:
    from tests.specification.http_server.http_site import Site

pytestmark = pytest.mark.anyio

OLD = "2025-11-25"
OTHER = "192.0.2.7"


async def is_served(web: Site, address: str = OTHER) -> list[str]:
    """Return what another client gets of each kind."""
    web.address = address
    peer, old = await joined(web, OLD), await old_joined(web)
    await peer.listen().begun()
    found = [
        await each.ask("tools/call", '"name":"echo","arguments":{"text":"hi"}')
        for each in (peer, Caller(web, STATELESS), old)
    ]
    return [each["result"]["content"][0]["text"] for each in found]


@on_both_loops
async def test_a_stateless_call_makes_room_and_gets_an_error() -> None:
    guest = Guest()
    async with attacked_site(guest.server, fails=True, limits=HttpLimits(max_open=8)) as web:
        taker = Caller(web, STATELESS)
        calls = [taker.call("wait", identity=each) for each in range(8)]
        await until(lambda: guest.waiting == 8)
        assert 503 == (await taker.call("wait").complete()).status

        assert ["hi"] * 3 == await is_served(web)
        ended = [await each.complete() for each in calls if each.has_returned]
        assert ended
        for each in ended:
            assert (503, "1") == (each.status, each.header("retry-after"))
            assert "max_open" in each.json["error"]["message"]
        await until(lambda: guest.given_up == len(ended))
        guest.gate.set()
        for each in calls:
            await each.complete()
        assert 200 in {each.status for each in calls}


@with_sessions
@on_both_loops
async def test_calls_in_sessions_count_though_their_clients_have_hung_up(revision: str) -> None:
    guest = Guest()
    async with attacked_site(guest.server, fails=True, limits=HttpLimits(max_open=8)) as web:
        taker = await joined(web, revision)
        for each in range(20):
            call = taker.call("wait", identity=each)
            await until(lambda n=each, call=call: guest.waiting == min(8, n + 1) or call.has_returned)
            call.leave()
            await web.quiet()
        assert 8 == guest.waiting == held(web.app)["tickets"]

        assert ["hi"] * 3 == await is_served(web)
        await until(lambda: guest.waiting < 8)
        guest.gate.set()
        await until(lambda: guest.waiting == 0)
        web.exchanges[-1].leave()


async def test_each_request_of_a_batch_counts() -> None:
    guest = Guest()
    async with attacked_site(guest.server, fails=True, limits=HttpLimits(max_open=8)) as web:
        taker = await joined(web, "2025-03-26")

        def batch(count: int) -> bytes:
            return b"[" + b",".join(taker.request(n, "tools/call", '"name":"wait"') for n in range(count)) + b"]"

        assert 503 == (await taker.post(batch(9)).complete()).status
        large = taker.post(batch(8))
        await until(lambda: guest.waiting == 8)

        assert ["hi"] * 3 == await is_served(web)
        (said,) = await large.messages()
        assert 8 == len(said)
        assert all("max_open" in each["error"]["message"] for each in said)


async def test_calls_over_http_and_sse_count_until_they_end() -> None:
    guest = Guest()
    async with attacked_site(guest.server, fails=True, limits=HttpLimits(max_open=8)) as web:
        taker = await old_joined(web)
        statuses = [(await taker.call("wait", identity=each).complete()).status for each in range(9)]
        await until(lambda: guest.waiting == 7)  # beside the stream
        assert [202] * 7 + [503] * 2 == statuses

        assert ["hi"] * 3 == await is_served(web)
        error = (await taker.stream.message())["error"]
        assert "max_open" in error["message"]
        guest.gate.set()


@pytest.mark.parametrize("kind", ["GET", "/sse", "listen"])
async def test_streams_make_room(kind: str) -> None:
    async with attacked_site(Guest().server, fails=True, limits=HttpLimits(max_open=6)) as web:
        for _ in range(6):
            if kind == "GET":
                await (await joined(web, OLD)).listen().begun()
            elif kind == "/sse":
                await web.open("GET", "/sse", [STREAM]).begun()
            else:
                peer = Caller(web, STATELESS)
                await peer.post(
                    peer.request(1, "subscriptions/listen", '"notifications":{"toolsListChanged":true}')
                ).begun()
        assert 6 == held(web.app)["tickets"]

        assert ["hi"] * 3 == await is_served(web)


@on_both_loops
async def test_an_upload_that_stalls_makes_room() -> None:
    async with attacked_site(Guest().server, fails=True, limits=HttpLimits(max_open_bytes=200_000)) as web:
        peer = Caller(web, STATELESS)
        body = peer.request(1, "tools/call", '"name":"echo","arguments":{"text":"' + "x" * 100_000 + '"}')
        stalled = [
            web.open("POST", "/mcp", peer.lines(body), [body[:10], body[10 : 30_000 + each]], is_whole=False)
            for each in range(4)
        ]
        await web.quiet()
        web.address = OTHER
        small = json.loads((await peer.call("echo", '{"text":"' + "y" * 20_000 + '"}').complete()).body)
        await web.quiet()
        ended = [each for each in stalled if each.has_returned]

        assert small["result"]
        assert ended
        for each in ended:
            assert (503, "close") == (each.status, each.header("connection"))
            assert "max_open_bytes" in each.json["error"]["message"]


async def ended(peers: list[Caller]) -> list[bool]:
    return [404 == (await each.post(each.request(9, "ping")).complete()).status for each in peers]


async def test_the_session_that_was_idle_longest_makes_room_for_another_client() -> None:
    async with attacked_site(Guest().server, fails=True, limits=HttpLimits(max_sessions=4)) as web:
        peers = [await joined(web, OLD) for _ in range(4)]
        await peers[1].listen().begun()
        await peers[0].result("ping")
        web.address = OTHER
        others = [await joined(web, OLD) for _ in range(2)]
        refused = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))
        assert 200 == refused.status, "an idle session of the same client makes room for it"

        assert [False, False, True, True] == await ended(peers)
        assert [True, False] == await ended(others)


async def test_a_session_in_use_makes_room_only_for_a_client_that_has_less() -> None:
    async with attacked_site(Guest().server, fails=True, limits=HttpLimits(max_sessions=3)) as web:
        peers = [await joined(web, OLD) for _ in range(3)]
        for each in peers:
            await each.listen().begun()
        refused = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))
        assert 503 == refused.status
        assert "max_sessions" in refused.json["error"]["message"]
        web.address = OTHER
        await joined(web, OLD)

        assert [True, False, False] == await ended(peers)


async def test_half_open_sessions_of_a_flood_do_not_displace_those_of_another_client() -> None:
    async with attacked_site(Guest().server, fails=True, limits=HttpLimits(max_sessions=4)) as web:
        web.address = OTHER
        begun = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))
        web.address = "192.0.2.8"
        for _ in range(10):
            assert 200 == (await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD))).status
        web.address = OTHER
        own = ("Mcp-Session-Id", begun.header("mcp-session-id") or "")

        assert (
            200
            == (await web.ask("POST", "/mcp", [JSON, BOTH, own], b'{"jsonrpc":"2.0","id":1,"method":"ping"}')).status
        )


async def test_sessions_are_bounded_in_bytes() -> None:
    large = '{"experimental":{"x":{"y":"' + "z" * 20_000 + '"}}}'
    async with attacked_site(Guest().server, fails=True, limits=HttpLimits(max_sessions_bytes=200_000)) as web:
        for _ in range(10):
            assert 200 == (await web.ask("POST", "/mcp", [JSON, BOTH], initialize(OLD, large))).status
        table = web.app._state.sessions
        assert 0 < len(table) < 10
        assert table.quota.kept_bytes <= 200_000


async def test_answers_that_are_not_read_are_bounded_in_all() -> None:
    guest = Guest()
    limits = HttpLimits(max_unread_bytes=200_000)
    async with attacked_site(guest.server, fails=True, limits=limits) as web:
        taker = Caller(web, STATELESS)
        unread = []
        for each in range(3):
            call = taker.call("big", '{"size":60000}', identity=each)
            call.is_held = True
            unread.append(call)
            await web.quiet()
        assert 180_000 < web.app.kept_bytes["messages"] <= 200_000
        refused = await taker.call("big", '{"size":60000}').complete()
        assert 503 == refused.status
        assert "max_unread_bytes" in refused.json["error"]["message"]
        assert 200 == (await taker.call("echo", '{"text":"small"}').complete()).status

        web.address = OTHER
        large = await Caller(web, STATELESS).call("big", '{"size":60000}').complete()
        assert 200 == large.status
        web.overseer.violations.clear()  # the responses that made room are cut off
        for each in unread:
            each.leave()
            await each.returned()
        assert 0 == web.app.kept_bytes["messages"]


async def test_messages_that_wait_for_a_stream_are_bounded_in_bytes() -> None:
    limits = HttpLimits(max_kept_bytes=3000)
    async with attacked_site(Guest().server, limits=limits) as web:
        peer = await joined(web, OLD)
        before = sum(web.app.kept_bytes.values())
        uris = [f"note://{each}{'u' * 800}" for each in range(5)]
        for each in uris:
            await peer.result("resources/subscribe", f'"uri":"{each}"')
        between = web.app.kept_bytes["messages"]
        for each in uris:
            await web.server.resource_updated(each)
        assert 1000 < web.app.kept_bytes["messages"] - between <= 3000
        assert web.app._state.sessions.quota.kept_bytes > before
        stream = await peer.listen().begun()
        await web.quiet()

        assert uris[-2:] == [json.loads(each.data)["params"]["uri"] for each in stream.pending if each.data]
        assert between == web.app.kept_bytes["messages"]


async def test_what_is_kept_is_nothing_when_all_clients_are_gone() -> None:
    guest = Guest()
    async with attacked_site(guest.server, fails=True) as web:
        peer, old = await joined(web, OLD), await old_joined(web)
        lost = peer.call("wait", identity="lost")
        upload = web.open("POST", "/mcp", peer.lines(b"{}"), [b"{" * 10, b" " * 5000], is_whole=False)
        await old.call("wait").complete()
        await until(lambda: guest.waiting == 2)
        kept = web.app.kept_bytes
        assert 5010 == kept["uploads"]
        assert min(kept["sessions"], kept["open requests"]) > 0
        for each in (lost, upload, old.stream):
            each.leave()
        guest.gate.set()
        await until(lambda: guest.waiting == 0)
        await web.quiet()
        await peer.delete()
        await web.quiet()

        assert {0} == set(web.app.kept_bytes.values())
