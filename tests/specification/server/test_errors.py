"""Messages that are none, and requests that cannot be served."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.harness.server_wire import connected
from tests.specification.citation import (
    LABELS,
    everywhere,
    from_every_home,
    since,
    spec,
    with_handshakes,
)
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import handlers, server

pytestmark = pytest.mark.anyio

PING = b'{"jsonrpc":"2.0","id":"alive","method":"ping"}'


@spec("2025-06-18", "basic/index#responses", "840aaa5a", "81341afd")
@spec("2024-11-05", "basic/messages#responses", "d9538929")
@spec("2025-11-25", "basic/index#error-responses", "73250b01", "1c51deab", "420ef085")
@spec("2026-07-28", "basic/index#error-codes")
@everywhere
@from_every_home
@pytest.mark.parametrize("method", ["no/such", "tools", "tools/List", "", "notifications/initialized", "rpc.discover"])
async def test_an_unknown_method_is_not_found(method: str, native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        assert -32601 == (await peer.error(method))["code"]


@spec("2024-11-05", "basic/messages#responses")
@spec("2026-07-28", "basic/index#error-codes")
@everywhere
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", ""),
        ("tools/call", '"name":7'),
        ("tools/call", '"name":"echo","arguments":[]'),
        ("tools/list", '"cursor":7'),
        ("resources/read", ""),
        ("resources/read", '"uri":null'),
        ("prompts/get", '"name":"review","arguments":{"code":7}'),
        ("completion/complete", '"ref":{"type":"ref/nothing"},"argument":{"name":"code","value":""}'),
        ("completion/complete", '"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"code"}'),
    ],
)
async def test_params_that_the_revision_does_not_allow_are_invalid(method: str, params: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        assert -32602 == (await peer.error(method, params))["code"]


@spec("2025-11-25", "server/resources#error-handling", "264c51df")
@spec("2026-07-28", "server/resources#error-handling", "bbb8e6fc")
@spec("2024-11-05", "basic/messages#responses")
@spec("2026-07-28", "basic/index#error-codes")
@everywhere
@from_every_home
async def test_a_handler_that_fails_is_an_internal_error_that_tells_nothing(
    native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        error = await peer.error("tools/call", '"name":"crash"')

    assert -32603 == error["code"]
    assert "hunter2" not in str(error)


@spec("2025-11-25", "basic/index#error-responses")
@spec("2026-07-28", "basic/index#error-codes")
@everywhere
@from_every_home
async def test_an_error_of_the_application_comes_through_as_it_is(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        error = await peer.error("tools/call", '"name":"refuse"')

    assert {"code": 4711, "message": "not today", "data": {"why": "closed"}} == error


@spec("2024-11-05", "basic/messages#responses", "71c9eb41")
@spec("2025-06-18", "basic/index#responses", "d2bdc721")
@spec("2026-07-28", "basic/index#result-responses", "d44fffda", "c68f318e")
@spec("2024-11-05", "basic/messages#requests")
@spec("2025-11-25", "basic/index#requests")
@everywhere
@pytest.mark.parametrize("identity", ["0", "-1", '""', '"1"', '"a b"', "9007199254740993"])
async def test_the_answer_bears_the_id_of_the_request_as_it_was(identity: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        request = peer.request(1, "tools/list").replace(b'"id":1,', f'"id":{identity},'.encode())
        await peer.wire.say(request)

    assert f'"id":{identity},'.encode() in peer.wire.raw[-1]
    assert b'"result"' in peer.wire.raw[-1]


@spec("2026-07-28", "basic/index#result-responses", "d44fffda", "c68f318e")
@pytest.mark.parametrize("revision", since("2025-11-25"))
async def test_an_id_that_the_answer_cannot_bear_is_refused(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        request = peer.request(1, "tools/list").replace(b'"id":1,', b'"id":"half a pair: \\ud83d",')
        (said,) = await peer.wire.say(request)

    assert (False, -32700) == ("id" in said, said["error"]["code"])


@spec("2024-11-05", "basic/messages#requests")
@spec("2026-07-28", "basic/index#requests", "8a599d52")
@everywhere
async def test_an_id_that_is_open_cannot_be_used_again(revision: str) -> None:
    own = handlers(LABELS[-1])
    async with client(server(LABELS[-1], own=own), revision) as peer:
        await peer.wire.say(peer.request(1, "tools/call", '"name":"wait"'))
        (refused,) = await peer.wire.say(peer.request(1, "tools/list"))
        own.gate.set()
        (said,) = await peer.wire.rest()

    assert (1, -32600) == (refused["id"], refused["error"]["code"])
    assert [{"type": "text", "text": "waited"}] == said["result"]["content"]


@spec("2024-11-05", "basic/messages#notifications")
@spec("2025-11-25", "basic/index#notifications")
@spec("2026-07-28", "basic/index#notifications", "a01ffb96")
@everywhere
@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","method":"notifications/no/such"}',
        b'{"jsonrpc":"2.0","method":"no/such","params":{}}',
        b'{"jsonrpc":"2.0","method":"tools/list"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[]}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress"}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
        b'{"jsonrpc":"1.0","method":"notifications/initialized"}',
    ],
)
async def test_a_notification_is_never_answered(frame: bytes, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        assert [] == await peer.wire.say(frame)
        assert "tools" in await peer.result("tools/list")


@spec("2025-11-25", "basic/index#responses")
@everywhere
@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":"99","error":{"code":-32603,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
        b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":99,"result":[]}',
        b'{"jsonrpc":"2.0","id":99,"result":{},"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":99,"error":"no"}',
    ],
)
async def test_a_response_to_nothing_is_never_answered(frame: bytes, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        assert [] == await peer.wire.say(frame)
        assert "tools" in await peer.result("tools/list")


@spec("2025-06-18", "basic/index#responses", "dcd34d18", "f10035f4")
@with_handshakes
@pytest.mark.parametrize("members", ["", ',"result":{"roots":[]},"error":{"code":1,"message":"x"}', ',"result":5'])
async def test_a_response_that_is_none_fails_the_request_to_the_client(members: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision, '{"roots":{}}') as peer:
        (asked,) = await peer.call("roots")
        (said,) = await peer.wire.say(f'{{"jsonrpc":"2.0","id":{asked["id"]}{members}}}'.encode())

    assert (1, -32603) == (said["id"], said["error"]["code"])


@spec("2026-07-28", "basic/index#error-responses", "73250b01")
@spec("2024-11-05", "basic/messages#requests")
@spec("2025-11-25", "basic/index#requests")
@everywhere
@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":7}', -32600),
    ],
)
async def test_what_is_no_request_is_refused_under_its_id(frame: bytes, code: int, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        (said,) = await peer.wire.say(frame)

    assert (1, code) == (said["id"], said["error"]["code"])


UNNAMED = [
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    (b"nonsense", -32700),
    (b'"ping"', -32600),
    (b"7", -32600),
    (b"null", -32600),
    (b"{}", -32600),
    (b'{"\xff":1}', -32700),
    (b'{"jsonrpc":"2.0","method":"ping"', -32700),
    (b'{"jsonrpc":"2.0","method":"ping",}', -32700),
]


@spec("2026-07-28", "basic/index#requests", "2ee24bb9", "2386d35d")
@spec("2025-11-25", "basic/index#error-responses")
@spec("2026-07-28", "basic/index#error-responses")
@pytest.mark.parametrize("revision", since("2025-11-25"))
@pytest.mark.parametrize(("frame", "code"), UNNAMED)
async def test_what_bears_no_id_is_refused_without_one(frame: bytes, code: int, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        (said,) = await peer.wire.say(frame)

    assert code == said["error"]["code"]
    assert "id" not in said


@spec("2024-11-05", "basic/messages#requests", "af80c64e")
@spec("2025-06-18", "basic/index#requests", "2ee24bb9", "2386d35d")
@spec("2024-11-05", "basic/messages#responses")
@spec("2025-03-26", "basic/index#responses")
@spec("2025-06-18", "basic/index#responses")
@pytest.mark.parametrize("revision", since("2024-11-05", "2025-11-25"))
@pytest.mark.parametrize(("frame", "code"), UNNAMED)
async def test_where_an_error_needs_an_id_what_bears_none_is_not_answered(
    frame: bytes, code: int, revision: str
) -> None:
    del code
    async with client(server(LABELS[-1]), revision) as peer:
        assert [] == await peer.wire.say(frame)
        assert [{"jsonrpc": "2.0", "id": "alive", "result": {}}] == await peer.wire.say(PING)


@spec("2025-11-25", "basic/index#error-responses")
@everywhere
async def test_the_server_goes_on_after_nonsense(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        await peer.wire.say(b"\x00", b"{" * 10_000, b"[" * 100_000, b'{"jsonrpc":"2.0"}', b"[1,2,3]", b"[[]]", b"")

        assert "tools" in await peer.result("tools/list")


@spec("2025-11-25", "basic/lifecycle#initialization")
@pytest.mark.parametrize(("frame", "code"), UNNAMED)
async def test_nonsense_before_the_handshake_is_no_harm(frame: bytes, code: int) -> None:
    async with connected(server(LABELS[-1])) as wire:
        said = await wire.say(frame)
        (alive,) = await wire.say(PING)

    assert [code] == [each["error"]["code"] for each in said]
    assert "alive" == alive["id"]


@spec("2025-11-25", "basic/index#requests")
@with_handshakes
async def test_an_integral_number_is_an_integer_however_it_is_written(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        (said,) = await peer.wire.say(b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}')

    assert {"jsonrpc": "2.0", "id": 1, "result": {}} == said


@spec("2026-07-28", "basic/index#error-codes", "bfe8afec")
@pytest.mark.slow
def test_no_code_of_this_package_is_one_of_those_that_are_left_to_earlier_implementations() -> None:
    from mcpgen.generated.v2026_07_28.methods import ErrorCode

    root = Path(__file__).parents[3] / "runtime"
    trees = [ast.parse(each.read_text(encoding="utf-8")) for each in root.rglob("*.py")]
    numbers = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    numbers = {each for each in numbers if type(each) is int}

    assert 429 in numbers  # a code of our own; otherwise the search finds nothing
    assert not [each for each in (*numbers, *map(abs, ErrorCode)) if 32000 <= each <= 32019]
