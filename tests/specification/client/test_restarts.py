"""A server process that exits unexpectedly, and is started again."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientContext, RequestLost, ServerExited, TransportClosed, UsageError, connect
from mcpgen.generated.v2025_11_25 import ClientHandlers, NotificationParams
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import HANDSHAKES, LABELS, spec, with_handshakes
from tests.specification.client.scripted_server import on_both_loops

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

# A server of every revision, whose tools are `crash`, `pid`, which returns the id of the process, and `listens`, which
# returns when the process has opened two streams of changes.
SERVER = """
import json, os, sys

listens, waiting = 0, []

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked["method"], asked.get("params", {})
    if method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
        result |= {"ttlMs": 0, "cacheScope": "private"}
    elif method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        result |= {"serverInfo": {"name": "s", "version": "1"}}
    elif method == "subscriptions/listen":
        listens += 1
        meta = {"io.modelcontextprotocol/subscriptionId": asked["id"]}
        params = {"_meta": meta, "notifications": params["notifications"]}
        say({"method": "notifications/subscriptions/acknowledged", "params": params})
        if os.path.exists(sys.argv[-1]):
            say({"method": "notifications/tools/list_changed", "params": {"_meta": meta}})
        if listens != 2 or not waiting:
            continue
        asked, result = waiting.pop(), {"content": []}
    elif method == "tools/call" and params["name"] == "crash":
        sys.exit(3)
    elif method == "tools/call" and params["name"] == "pid":
        result = {"content": [{"type": "text", "text": str(os.getpid())}]}
    elif method == "tools/call" and params["name"] == "listens":
        if listens < 2:
            waiting.append(asked)
            continue
        result = {"content": []}
    else:
        continue
    say({"id": asked["id"], "result": {"resultType": "complete", **result}})
"""
COMMAND = [sys.executable, "-c", SERVER]


async def pid(client: Any) -> str:
    return str((await client.call_tool("pid")).text)


@spec("2026-07-28", "basic/transports/stdio#unexpected-termination", "a796e16a")
@on_both_loops
async def test_a_server_that_exits_is_started_again_as_often_as_the_option_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "mcpgen.client")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(COMMAND, revisions=[LABELS[-1]], max_restarts=2) as client:
            seen = {await pid(client)}
            for _ in range(2):
                with pytest.raises(RequestLost, match=r"(?s)the server is started again: .* has exited with status 3"):
                    await client.call_tool("crash")
                seen.add(await pid(client))
            with pytest.raises(ServerExited):
                await client.call_tool("crash")
            with pytest.raises(ServerExited):
                await pid(client)

    assert 3 == len(seen)
    assert 2 == len([each for each in caplog.messages if each.startswith("the server is started again")])


@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure", "52051228")
@spec("2026-07-28", "basic/transports/stdio#unexpected-termination", "a796e16a")
@on_both_loops
async def test_all_open_calls_are_lost_and_a_stream_of_changes_is_opened_again() -> None:
    changes: list[str] = []
    heard, ended = anyio.Event(), anyio.Event()
    lost: list[object] = []

    with anyio.fail_after(PATIENCE_SECONDS):
        async with (
            connect(COMMAND, revisions=[LABELS[-1]], max_restarts=1) as client,
            anyio.create_task_group() as group,
        ):

            async def call() -> None:
                with pytest.raises(RequestLost) as caught:
                    await client.call_tool("never")
                lost.append(caught.value)
                ended.set()

            async def listen() -> None:
                async with client.listen(tools=True) as stream:
                    heard.set()
                    async for each in stream:
                        changes.append(each.kind)
                        return

            group.start_soon(call)
            group.start_soon(listen)
            await heard.wait()
            with pytest.raises(RequestLost) as caught:
                await client.call_tool("crash")
            await ended.wait()

    assert lost != [caught.value]  # each caller has an error of its own
    assert ["tools"] == changes


@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure", "52051228")
@on_both_loops
async def test_a_stream_that_the_program_does_not_read_now_is_opened_again() -> None:
    """The client uses its changes, too: they remove kept results."""
    with anyio.fail_after(PATIENCE_SECONDS):
        async with (
            connect(COMMAND, revisions=[LABELS[-1]], max_restarts=2) as client,
            client.listen(tools=True) as one,
            client.listen(tools=True) as other,
        ):
            for _ in range(2):
                with pytest.raises(RequestLost):
                    await client.call_tool("crash")
                await client.call_tool("listens")
            changes = [(await anext(each)).kind for each in (one, other)]

    assert ["tools", "tools"] == changes


@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure", "52051228")
@on_both_loops
async def test_the_stream_of_a_handler_is_opened_again(tmp_path: Path) -> None:
    """Such a stream has no iteration that notices its end."""
    told, mark = anyio.Event(), tmp_path / "changed"

    class Handlers(ClientHandlers[ClientContext]):
        async def tool_list_changed(self, params: NotificationParams, context: ClientContext, /) -> None:
            del params, context
            told.set()

    command = [*COMMAND, str(mark)]
    made = connect(command, revisions=[LABELS[-1]], max_restarts=1, native_revision="2025-11-25", handlers=Handlers())
    with anyio.fail_after(PATIENCE_SECONDS):
        async with made as client:
            mark.touch()
            with pytest.raises(RequestLost):
                await client.request_json("tools/call", {"name": "crash"})
            await told.wait()


@spec("2026-07-28", "basic/transports/stdio#unexpected-termination")
@on_both_loops
async def test_a_server_that_cannot_be_started_again_ends_the_connection(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text(f"#!{sys.executable}\n{SERVER}", encoding="utf-8")
    program.chmod(0o700)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect([program], revisions=[LABELS[-1]], max_restarts=5) as client:
            program.unlink()
            with pytest.raises(RequestLost):
                await client.call_tool("crash")
            with pytest.raises(TransportClosed, match="could not be started again"):
                await pid(client)


@spec("2026-07-28", "basic/transports/stdio#unexpected-termination")
async def test_a_server_is_not_started_again_without_the_option() -> None:
    async with connect(COMMAND, revisions=[LABELS[-1]]) as client:
        with pytest.raises(ServerExited):
            await client.call_tool("crash")


@spec("2025-11-25", "basic/lifecycle#shutdown")
@with_handshakes
async def test_the_session_of_a_handshake_revision_ends_with_its_server(revision: str) -> None:
    assert revision in HANDSHAKES
    async with connect(COMMAND, revisions=[revision], max_restarts=1) as client:
        with pytest.raises(ServerExited):
            await client.call_tool("crash")


@spec("2026-07-28", "basic/transports/stdio#unexpected-termination")
@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None])
def test_the_number_of_restarts_is_a_whole_number(value: Any) -> None:
    with pytest.raises(UsageError, match="`max_restarts`"):
        connect(COMMAND, max_restarts=value)
