"""Frames that are no messages, or are nested without end: each is refused, and costs nobody else anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.faults.event_loop_turns import unjudged
from tests.faults.faulty_handlers import Guest
from tests.specification.server.revision_client import Client, client

pytestmark = pytest.mark.anyio

STATE = "io.modelcontextprotocol/clientCapabilities"

NONSENSE = (
    b"",
    b" ",
    b"\x00",
    b"\xff\xfe{\x00}\x00",
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":9,"method":"ping"}',
    b"{",
    b"}",
    b"[",
    b'"',
    b"nul",
    b"null",
    b"true",
    b"1e999999999",
    b"-",
    b'"a"',
    b"{}",
    b"[]",
    b"[[]]",
    b"[1,[2],{}]",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"1.0","method":"x"}',
    b'{"jsonrpc":2.0,"method":"x"}',
    b'{"jsonrpc":"2.0","method":"x"',
    b'{"jsonrpc":"2.0","method":"x"}}',
    b'{"jsonrpc":"2.0","method":"x"}{"jsonrpc":"2.0","method":"x"}',
    b'{"jsonrpc":"2.0","method":"x","params":"\xff"}',
    b'{"jsonrpc":"2.0","method":"x","params":{"a":"\xed\xa0\x80"}}',
    b'{"jsonrpc":"2.0","method":"x","params":{"a":"\\ud800"}}',
    b'{"jsonrpc":"2.0","method":"x","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","method":"x","params":{"a":Infinity}}',
    b'{"jsonrpc":"2.0","method":"x","params":{"a":01}}',
    b'{"jsonrpc":"2.0","method":"x","params":[]}',
    b'{"jsonrpc":"2.0","method":null}',
    b'{"jsonrpc":"2.0","method":"x","result":{}}',
    b"{'jsonrpc':'2.0','method':'x'}",
    b'{"jsonrpc":"2.0","method":"x",}',
    b'{"jsonrpc":"2.0","method":"x"}//',
    b'{"jsonrpc":"2.0","id":null,"result":{}}',
    b'{"jsonrpc":"2.0","id":77,"result":{}}',
    b'{"jsonrpc":"2.0","id":77,"error":{"code":"x","message":1}}',
    b'{"jsonrpc":"2.0","id":77,"result":{},"error":{}}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
)

# Where values may be nested, @ is. What the interpreter still follows is near 1000 levels in Python 3.11.
CALL = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo",%s}}'
REQUESTS: dict[str, bytes] = {
    "an argument": CALL % b'"arguments":{"text":@},META',
    "an argument that is not there": CALL % b'"arguments":{"other":@},META',
    "the arguments": CALL % b'"arguments":@,META',
    "the params": CALL % b'"other":@,META',
    "the metadata": CALL % b'"arguments":{},META_OPEN,"other":@}',
    "the progress token": CALL % b'"arguments":{},META_OPEN,"progressToken":@}',
    "the answers": CALL % b'"arguments":{},"inputResponses":@,META',
    "an answer": CALL % b'"arguments":{},"requestState":"x","inputResponses":{"a":@},META',
    "the state": CALL % b'"arguments":{},"requestState":@,META',
    "what a state is for": CALL % b'"arguments":{"text":@},"requestState":"x",META',
    "a stash": CALL % b'"arguments":{},META_OPEN,"io.github.mcpgen/stash":{"2025-06-18":@}}',
    "a cursor": b'{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{"cursor":@,META}}',
    "a reference": b'{"jsonrpc":"2.0","id":9,"method":"prompts/get","params":{"name":"x","arguments":@,META}}',
    "the envelope": b'{"jsonrpc":"2.0","id":9,"method":"tools/list","other":@,"params":{META}}',
}
OTHERS: dict[str, bytes] = {
    "an id": b'{"jsonrpc":"2.0","id":@,"method":"ping"}',
    "a method": b'{"jsonrpc":"2.0","method":@}',
    "a result": b'{"jsonrpc":"2.0","id":7,"result":{"a":@}}',
    "an error": b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x","data":@}}',
    "the code of an error": b'{"jsonrpc":"2.0","id":7,"error":{"code":@,"message":"x"}}',
    "a cancellation": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":@}}',
    "a notification": b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"a":@}}',
    "an unknown notification": b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":@}}',
    "a batch": b"[@]",
    "an item of a batch": b'[{"jsonrpc":"2.0","method":"notifications/x","params":{"a":@}}]',
}


def nested(depth: int, kind: str) -> bytes:
    return b"[" * depth + b"]" * depth if kind == "arrays" else b'{"a":' * depth + b"1" + b"}" * depth


def written(template: bytes, peer: Client, value: bytes) -> bytes:
    """Return a frame of *template*, in the terms of *peer*."""
    meta = b'"_meta":{"k":1'
    if peer.is_stateless:
        revision, declared = peer.revision.encode(), peer.capabilities.encode()
        meta = b'"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","%s":%s' % (revision, STATE.encode(), declared)
    return template.replace(b"META_OPEN", meta).replace(b"META", meta + b"}").replace(b"@", value)


async def goes_on(peer: Client) -> None:
    """Fail if the server does not answer any more, or still serves something."""
    assert {"type": "text", "text": "still here"} == (
        (await peer.result("tools/call", '"name":"echo","arguments":{"text":"still here"}'))["content"][0]
    )
    assert {} == dict(peer.wire.connection.session.exchanges)


@pytest.mark.parametrize("frame", NONSENSE, ids=repr)
@pytest.mark.slow
async def test_nonsense_costs_no_other_frame_that_came_with_it(frame: bytes, revision: str) -> None:
    async with unjudged(Guest().server, revision) as peer:
        before, after = (
            peer.request(each, "tools/call", '"name":"echo","arguments":{"text":"x"}') for each in (91, 92)
        )
        said = await peer.wire.say(before, frame, after)

        assert [91, 92] == [each["id"] for each in said if "result" in each]
        assert not [each for each in said if "error" in each and each.get("id", 9) not in (9, "x")]
        await goes_on(peer)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["arrays", "objects"])
@pytest.mark.parametrize("place", REQUESTS)
async def test_a_request_that_is_nested_10000_levels_deep_is_refused(place: str, kind: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        said = await peer.wire.say(written(REQUESTS[place], peer, nested(10_000, kind)))

        # What cannot be followed hides the id, unless that stands before it or behind it.
        assert [-32700] == [each["error"]["code"] for each in said] or [9] == [each["id"] for each in said]
        await goes_on(peer)


@pytest.mark.parametrize("place", OTHERS)
async def test_whatever_else_is_nested_10000_levels_deep_is_no_harm(place: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        await peer.wire.say(written(OTHERS[place], peer, nested(10_000, "arrays")))

        await goes_on(peer)


def about_the_limit() -> range:
    """Return the depths at which the interpreter begins to refuse, in the frames of a test."""
    deepest = 1
    while deepest < 20_000:
        try:
            json.loads(nested(deepest * 2, "arrays"))
        except RecursionError:
            break
        deepest *= 2
    return range(800, 1000) if deepest < 1000 else range(0)


@pytest.mark.parametrize("revision", ["2025-03-26", "2026-07-28"])
@pytest.mark.parametrize("place", REQUESTS)
@pytest.mark.slow
async def test_a_request_that_is_nested_about_as_deep_as_can_be_followed_is_answered(place: str, revision: str) -> None:
    async with unjudged(Guest().server, revision) as peer:
        for depth in about_the_limit():
            frame = written(REQUESTS[place], peer, nested(depth, "arrays"))
            said: list[Any] = await peer.wire.say(frame)

            assert len(said) == 1, depth
        await goes_on(peer)


@pytest.mark.parametrize("revision", ["2025-03-26", "2026-07-28"])
@pytest.mark.parametrize("place", OTHERS)
@pytest.mark.slow
async def test_whatever_else_is_nested_about_as_deep_as_can_be_followed_is_no_harm(place: str, revision: str) -> None:
    async with unjudged(Guest().server, revision) as peer:
        for depth in about_the_limit():
            await peer.wire.say(written(OTHERS[place], peer, nested(depth, "arrays")))

        await goes_on(peer)
