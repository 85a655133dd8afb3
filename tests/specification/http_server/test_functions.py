"""Decorated functions over HTTP: whatever way a call takes, it is refused, cancelled and answered like any other."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import anyio
import pytest

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.limits import HttpLimits
from tests.specification.http_server.asgi_exchange import PATIENCE_SECONDS
from tests.specification.http_server.http_clients import (
    BOTH,
    JSON,
    META,
    STATELESS,
    Caller,
    caller,
    cancellation,
    initialize,
    joined,
    replaced,
    without,
)
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import STREAMABLE, everywhere, on_both_loops, spec, with_sessions

pytestmark = pytest.mark.anyio

HELLO = '"name":"hello","arguments":{"name":"Ann"}'


class Functions:
    """A server of functions.

    Attributes:
        called: Which were, with what.
        gate: Opened to let `wait` go on.
        waiting: Opened by it.
        given_up: How often it was cancelled.
        task: What `stay` runs in.
    """

    def __init__(self) -> None:
        self.called: list[str] = []
        self.gate = anyio.Event()
        self.waiting = anyio.Event()
        self.given_up = 0
        self.task: asyncio.Task[Any] | None = None
        self.server = Server("demo", version="1")
        for each in (self.hello, self.plain, self.wait, self.stay, self.turn, self.crash, self.refuse, self.number):
            self.server.tool(each)

    async def hello(self, name: str) -> str:
        """Greet."""
        self.called.append(name)
        return f"Hello, {name}!"

    def plain(self, name: str) -> str:
        """Greet without waiting."""
        self.called.append(name)
        return f"Hello, {name}!"

    async def wait(self) -> str:
        """Wait."""
        self.called.append("wait")
        self.waiting.set()
        try:
            await self.gate.wait()
        except BaseException:
            self.given_up += 1
            raise
        return "waited"

    async def stay(self) -> str:
        """Wait, and heed no cancellation."""
        self.task = asyncio.current_task()
        self.waiting.set()
        with suppress(asyncio.CancelledError):
            await self.gate.wait()
        self.given_up += 1
        return "stayed"

    async def turn(self) -> str:
        """Let others run, several times."""
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(0.001)
        return "turned"

    async def crash(self) -> str:
        """Fail."""
        raise ValueError("the password is hunter2")

    async def refuse(self) -> str:
        """Refuse."""
        raise RequestError(4711, "not today")

    async def number(self) -> int:
        """Count."""
        return 7


def text(said: Any) -> str:
    found: str = said["result"]["content"][0]["text"]
    return found


@spec("2026-07-28", "basic/transports/index#messages", "d251136a")
@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "server/tools#calling-tools")
@spec("2026-07-28", "server/tools#calling-tools")
@everywhere
@on_both_loops
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("hello", '{"name":"Ann"}', "Hello, Ann!"),
        ("hello", '{"name":"\\u00dc\\ud83d\\ude00"}', "Hello, Ü😀!"),
        ("plain", '{"name":"Ann"}', "Hello, Ann!"),
        ("turn", "{}", "turned"),
        ("number", "{}", '{"result":7}'),
    ],
)
async def test_a_function_is_called_and_answers(tool: str, arguments: str, said: str, revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision) as peer:
        answer = await peer.call(tool, arguments, identity="c").complete()

    assert (200, "application/json", "c", said) == (
        answer.status,
        answer.header("content-type"),
        answer.json["id"],
        text(answer.json),
    )


@spec("2025-11-25", "server/tools#error-handling")
@spec("2026-07-28", "server/tools#error-handling")
@everywhere
@on_both_loops
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("crash", "{}"),
        ("refuse", "{}"),
        ("hello", "{}"),
        ("hello", '{"name":7}'),
        ("hello", '{"name":"a","x":1}'),
        ("no", "{}"),
    ],
)
async def test_a_function_that_fails_is_answered_with_that(tool: str, arguments: str, revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision) as peer:
        answer = await peer.call(tool, arguments, identity="c").complete()
        again = await peer.call("hello", '{"name":"Ann"}').complete()

    assert (200, "c") == (answer.status, answer.json["id"])
    assert "error" in answer.json or answer.json["result"]["isError"]
    assert b"hunter2" not in answer.body
    assert "Hello, Ann!" == text(again.json)
    assert ["Ann"] == own.called


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
@on_both_loops
async def test_functions_that_wait_are_served_beside_each_other(revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision, limits=HttpLimits(stream_after_seconds=0.01)) as peer:
        waiting = [peer.call("wait", identity=each) for each in ("a", "b")]
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        between = await peer.call("hello", '{"name":"Ann"}').complete()
        own.gate.set()
        said = [(await each.messages())[-1] for each in waiting]

    assert "Hello, Ann!" == text(between.json)
    assert [("a", "waited"), ("b", "waited")] == [(each["id"], text(each)) for each in said]


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_sessions
@on_both_loops
async def test_a_function_is_cancelled_by_notification(revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision) as peer:
        waiting = peer.call("wait", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        await peer.tell(cancellation(5))
        await waiting.complete()

        assert 1 == own.given_up
        assert [] == await waiting.messages()
        assert "Hello, Ann!" == text(await peer.ask("tools/call", HELLO))


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_sessions
async def test_a_function_that_heeds_no_cancellation_leaves_nothing_cancelled(revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision) as peer:
        waiting = peer.call("stay", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        await peer.tell(cancellation(5))
        await waiting.complete()

        assert [] == await waiting.messages()
        assert "Hello, Ann!" == text(await peer.ask("tools/call", HELLO))

    assert own.task is not None
    assert (1, 0) == (own.given_up, own.task.cancelling())


@spec("2026-07-28", "basic/transports/streamable-http#cancellation")
@on_both_loops
async def test_a_function_is_cancelled_when_its_stateless_client_leaves() -> None:
    own = Functions()
    async with caller(own.server, STATELESS) as peer:
        waiting = peer.call("wait", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        waiting.leave()
        await waiting.returned()
        await peer.web.quiet()

        assert 1 == own.given_up
        assert "Hello, Ann!" == text(await peer.ask("tools/call", HELLO))


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@with_sessions
@on_both_loops
async def test_a_function_is_not_cancelled_when_the_client_of_a_session_leaves(revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision) as peer:
        waiting = peer.call("wait", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        waiting.leave()
        await peer.web.quiet()

        assert 0 == own.given_up
        own.gate.set()
        await peer.web.quiet()

        assert 0 == own.given_up


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
@on_both_loops
async def test_a_function_ends_with_its_session(revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision) as peer:
        waiting = peer.call("wait", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        await peer.delete()
        await waiting.returned()
        await peer.web.quiet()

        assert 1 == own.given_up


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
@on_both_loops
async def test_the_answer_of_a_function_can_be_come_back_for(revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision, limits=HttpLimits(stream_after_seconds=0.01)) as peer:
        waiting = await peer.call("wait", identity=5).begun()
        await peer.web.quiet()
        primed = waiting.pending
        waiting.leave()
        await peer.web.quiet()
        own.gate.set()
        await peer.web.quiet()
        if primed:  # before 2025-11-25, there was nothing yet to come back with
            (said,) = await peer.listen(primed[-1].event_id).messages()
            assert (5, "waited") == (said["id"], text(said))

    assert bool(primed) is (revision == "2025-11-25")


@spec("2025-11-25", "basic/index#requests")
@with_sessions
async def test_the_id_of_an_open_call_cannot_be_used_again(revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision) as peer:
        waiting = peer.call("wait", identity=5)
        with anyio.fail_after(PATIENCE_SECONDS):
            await own.waiting.wait()
        again = await peer.call("hello", '{"name":"Ann"}', identity=5).complete()
        own.gate.set()
        (said,) = await waiting.messages()

    assert (-32600, []) == (again.json["error"]["code"], own.called[1:])
    assert "waited" == text(said)


# --- what is refused is not begun


def changed(name: str, value: str) -> Any:
    return lambda peer, body: (body, replaced(peer.lines(body), name, value))


def dropped(name: str) -> Any:
    return lambda peer, body: (body, without(peer.lines(body), name))


def twice(name: str) -> Any:
    def change(peer: Caller, body: bytes) -> Any:
        lines = peer.lines(body)
        return body, [*lines, next(each for each in lines if each[0] == name)]

    return change


def written(old: str, new: str) -> Any:
    return lambda peer, body: (body.replace(old.encode(), new.encode()), peer.lines(body))


ANYWHERE = {
    "foreign page": changed("Origin", "http://evil.example"),
    "no json": changed("Content-Type", "text/plain"),
    "no stream": changed("Accept", "application/json"),
    "unknown version": changed("MCP-Protocol-Version", "1900-01-01"),
    "id null": written('"id":"c"', '"id":null'),
    "no id": written('"id":"c",', ""),
    "jsonrpc 1.0": written('"jsonrpc":"2.0"', '"jsonrpc":"1.0"'),
    "cut off": lambda peer, body: (body[:-1], peer.lines(body)),
    "more behind": lambda peer, body: (body + b"x", peer.lines(body)),
    "in a list": lambda peer, body: (b"[" + body + b"]", peer.lines(body)),
    "no text": lambda peer, body: (body.replace(b"Ann", b"\xed\xa0\x80"), peer.lines(body)),
    "no object": written('{"name":"Ann"}', '["Ann"]'),
}
IN_SESSIONS = {
    "no session": dropped("Mcp-Session-Id"),
    "unknown session": changed("Mcp-Session-Id", "nobody"),
    "session twice": twice("Mcp-Session-Id"),
}
STATELESSLY = {
    **{f"no {name}": dropped(name) for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")},
    **{f"{name} twice": twice(name) for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")},
    "other name": changed("Mcp-Name", "wait"),
    "other method": changed("Mcp-Method", "tools/list"),
    "no capabilities": written(f',"{META}clientCapabilities":{{}}', ""),
    "capabilities null": written('clientCapabilities":{}', 'clientCapabilities":null'),
    "odd capabilities": written('clientCapabilities":{}', 'clientCapabilities":{"roots":7}'),
    "odd name of the client": written('"name":"client"', '"name":7'),
    "unknown level": written('"_meta":{', f'"_meta":{{"{META}logLevel":"loud",'),
    "odd token": written('"_meta":{', '"_meta":{"progressToken":true,'),
    "version in the body": written(STATELESS, "2025-11-25"),
}


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#session-management")
@on_both_loops
@pytest.mark.parametrize("name", [*ANYWHERE, *IN_SESSIONS])
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_in_a_session_a_function_is_not_called_by_what_is_refused(name: str, revision: str) -> None:
    own = Functions()
    async with caller(own.server, revision) as peer:
        body, lines = {**ANYWHERE, **IN_SESSIONS}[name](
            peer, peer.request("c", "tools/call", HELLO).replace(b'"id": ', b'"id":')
        )
        answer = await peer.web.open("POST", "/mcp", lines, body).complete()

    assert answer.status >= 400 or name == "no id" or "error" in json.loads(answer.body), answer
    assert [] == own.called


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@spec("2026-07-28", "basic/index#meta")
@on_both_loops
@pytest.mark.parametrize("name", [*ANYWHERE, *STATELESSLY])
@pytest.mark.parametrize("revisions", [None, [STATELESS]])
async def test_statelessly_a_function_is_not_called_by_what_is_refused(name: str, revisions: list[str] | None) -> None:
    own = Functions()
    server = own.server if revisions is None else Server("demo", version="1", revisions=revisions)
    if revisions is not None:
        server.tool(own.hello)
    async with site(server) as web:
        peer = Caller(web, STATELESS)
        body, lines = {**ANYWHERE, **STATELESSLY}[name](peer, peer.request("c", "tools/call", HELLO))
        answer = await web.open("POST", "/mcp", lines, body).complete()

    assert answer.status >= 400 or name == "no id" or "error" in json.loads(answer.body), answer
    assert [] == own.called


@spec("2025-11-25", "basic/lifecycle#initialization")
@with_sessions
async def test_before_the_session_is_ready_a_function_may_be_called_or_not_but_is_answered(revision: str) -> None:
    """A server need not insist on `initialized`; what it may not do is to leave the request without an answer."""
    own = Functions()
    async with site(own.server) as web:
        begun = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(revision))
        peer = Caller(web, revision)
        peer.session = begun.header("mcp-session-id")
        answer = await peer.call("hello", '{"name":"Ann"}', identity="c").complete()

    assert "c" == answer.json["id"]
    assert bool(own.called) is ("result" in answer.json)


@spec("2026-07-28", "basic/index#statelessness", "2722ec4d")
@on_both_loops
async def test_many_clients_of_all_revisions_call_at_once_and_each_gets_its_own_answer() -> None:
    own = Functions()
    async with site(own.server) as web:
        peers = [await joined(web, each) for each in STREAMABLE for _ in range(5)]
        calls = [
            each.call(("hello", "plain")[index % 2], f'{{"name":"{index}"}}', identity=1)
            for index, each in enumerate(peers)
        ]
        found = [text((await each.messages())[-1]) for each in calls]

    assert [f"Hello, {index}!" for index in range(20)] == found
