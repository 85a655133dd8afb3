"""Many requests, sessions and streams of all kinds, and what is left behind by them: nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpgen import Context, Limits
from mcpgen.runtime.http.server import direct_calls
from mcpgen.runtime.http.server.direct_calls import DirectCall
from mcpgen.runtime.http.server.event_streams import EventStream
from mcpgen.runtime.http.server.http_session import HttpSession
from mcpgen.runtime.http.server.legacy_sse import LegacySse
from mcpgen.runtime.http.server.post_request import PostRequest
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.server.stateless_request import StatelessConnection
from mcpgen.runtime.server.connection import Connection
from mcpgen.runtime.server.exchange import Exchange, InputRound, OpenRequest
from mcpgen.runtime.server.server_session import ServerSession
from mcpgen.runtime.server.subscription_state import SubscriptionStream
from mcpgen.runtime.transports import spawner
from tests.faults.event_loop_turns import until
from tests.faults.http_applications import attacked_site, held
from tests.faults.http_faulty_handlers import Guest
from tests.faults.http_raw_client import (
    Line,
    called,
    calling,
    head,
    joined,
    listened,
    message,
    posted,
)
from tests.faults.http_server_process import MEGABYTE, House
from tests.faults.shared_http_servers import opened
from tests.specification.http_server.http_clients import (
    BOTH,
    INITIALIZED,
    JSON,
    STATELESS,
    Caller,
    initialize,
    old_joined,
)
from tests.specification.http_server.http_clients import joined as shaken

if TYPE_CHECKING:
    from tests.specification.http_server.http_site import Site

pytestmark = pytest.mark.slow

KEPT = (
    DirectCall,
    Connection,
    Context,
    Exchange,
    HttpSession,
    direct_calls._RequestTask,
    LegacySse,
    OpenRequest,
    ResponseBuffer,
    PostRequest,
    InputRound,
    ServerSession,
    StatelessConnection,
    EventStream,
    SubscriptionStream,
    spawner._Task,
)


def kept() -> dict[str, int]:
    """Return how many objects of the runtime are alive, by their type."""
    gc.collect()
    found: dict[str, int] = {}
    for each in gc.get_objects():
        if type(each) in KEPT:
            name = type(each).__name__
            found[name] = found.get(name, 0) + 1
    return found


async def a_bit_of_everything(web: Site) -> None:
    """Do each thing once that a client can do, and end it."""
    for revision in ("2025-03-26", "2025-11-25"):
        peer = await shaken(web, revision)
        own = peer.listen()
        await own.event() if revision == "2025-11-25" else await own.begun()
        for tool in ("echo", "nothing", "grow"):
            await peer.call(tool).complete()
        await peer.call("hang_up", '{"mark":"m"}', '"progressToken":"p"').complete()
        lost = peer.call("step", meta='"progressToken":"p"')
        await lost.begun()
        lost.leave()
        await peer.ask("tools/list")
        await peer.tell(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}')
        assert 400 == (await peer.listen("forged.0:1").returned()).status
        await peer.delete()
        await own.returned()
    stateless = Caller(web, STATELESS, '{"elicitation":{}}')
    listening = stateless.send("subscriptions/listen", '"notifications":{"toolsListChanged":true}')
    await listening.message()
    for tool in ("echo", "grow", "ask", "nothing"):
        await stateless.call(tool).complete()
    gone = stateless.call("wait")
    await web.quiet()
    for each in (listening, gone):
        each.leave()
        await each.returned()
    old = await old_joined(web)
    await old.ask("tools/list")
    old.stream.leave()
    await old.stream.returned()
    await web.ask("POST", "/mcp", [JSON, BOTH], b"{")
    await web.ask("GET", "/nowhere")


@pytest.mark.anyio
async def test_whatever_was_done_leaves_no_task_and_no_object_behind() -> None:
    guest = Guest(limits=Limits(max_waiting=5))
    async with attacked_site(guest.server, fails=True) as web:
        for _ in range(6):  # demands wait for their answers, as many as may
            await a_bit_of_everything(web)
        web.exchanges.clear()
        web.overseer._heard.clear()
        before, tasks = kept(), len(asyncio.all_tasks())
        tracemalloc.start()
        for _ in range(2):
            await a_bit_of_everything(web)
        web.exchanges.clear()
        gc.collect()
        first = tracemalloc.get_traced_memory()[0]
        for _ in range(8):
            await a_bit_of_everything(web)
            web.exchanges.clear()
            web.overseer._heard.clear()
            web.overseer._sessions.clear()
            web.overseer._old.clear()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - first
        tracemalloc.stop()
        web.overseer.violations.clear()

        assert before == kept()
        assert tasks == len(asyncio.all_tasks())
        assert {} == held(web.app)
        assert grown < 2 * MEGABYTE  # the store of events is allowed to grow, to its own bound


@pytest.mark.anyio
async def test_a_change_reaches_thousands_of_streams_and_their_end_leaves_nothing() -> None:
    guest = Guest()
    async with attacked_site(guest.server) as web:
        stateless = Caller(web, STATELESS)
        streams = [
            stateless.send("subscriptions/listen", '"notifications":{"toolsListChanged":true}', identity=each)
            for each in range(2000)
        ]
        await until(lambda: held(web.app).get("responses") == 2000)
        for each in streams:
            await each.message()
        await guest.server.tools_changed()
        for each in streams:
            assert "notifications/tools/list_changed" == (await each.message())["method"]
        for each in streams[::2]:
            each.leave()
        await until(lambda: held(web.app).get("responses") == 1000)
        await web.shutdown()
        for each in streams[1::2]:
            (said,) = [one for one in await each.messages() if "id" in one]
            assert said["id"] % 2


@pytest.mark.anyio
async def test_hundreds_of_sessions_with_a_stream_each_are_ended_by_a_shutdown() -> None:
    async with attacked_site(Guest().server) as web:
        peers = []
        for _ in range(300):
            begun = await web.ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"))
            peer = Caller(web, "2025-11-25")
            peer.session = begun.header("mcp-session-id")
            peers.append(peer)
            await peer.tell(INITIALIZED)
        streams = [each.listen() for each in peers]
        for each in streams:
            await each.event()
        await web.shutdown()
        for each in streams:
            await each.complete()


# --- on sockets


@pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what a process holds")
def test_thousands_of_requests_of_all_kinds_leave_a_process_as_it_was() -> None:
    with opened() as house:
        bustle(house, 100)
        house.until(lambda: not tasks_of_handlers(house))
        files, memory = house.descriptors(), house.held()
        bustle(house, 1000)
        house.until(lambda: house.descriptors() <= files)

        assert house.held() - memory < 16 * MEGABYTE
        assert 0 == tasks_of_handlers(house)
        assert "Traceback" not in house.said


def tasks_of_handlers(house: House) -> int:
    """Return how many handlers wait."""
    line = house.line()
    line.send(called("standing"))
    found = line.reply().json["result"]["content"][0]["text"]
    house.close_lines()
    return int(found.split(",")[0].removeprefix("waiting "))


def bustle(house: House, times: int) -> None:
    """Ask for this and that, three times as often as is said, and in part without waiting for the answer."""
    line, other = Line(house.port), Line(house.port)
    own = joined(line)
    for each in range(times):
        line.send(posted(calling("echo", each), *own))
        assert 200 == line.reply().status
        other.send(called("echo", each) if each % 3 else posted(b"{"))
        assert other.reply().status in (200, 400)
        if each % 10 == 0:
            for data in (
                called("wait"),
                called("step", meta={"progressToken": 1}),
                listened(),
                head("GET", "/mcp", "Accept: text/event-stream", *own),
                head("GET", "/sse", "Accept: text/event-stream"),
                posted(calling("step", "s", "p"), *own)[:-9],
                posted(message("ping", each), "Mcp-Session-Id: forged"),
                b"GET /mcp HT",
                b"\0",
            ):
                gone = Line(house.port)
                gone.send(data)
                gone.close()
    line.send(head("DELETE", "/mcp", *own))
    assert 204 == line.reply().status
    line.close()
    other.close()
