"""Servers that print what is no message, or no answer: it costs a client nothing but a line in its log."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest

from mcpgen.runtime.errors import InvalidPayload, MalformedFrame, RequestRefused, RequestTimedOut
from mcpgen.runtime.transports.errors import ServerExited
from tests.faults.hostile_server_clients import LIMITS, NEW, OLD, attacked, words

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]

BANNERS = {
    "lines": b"Welcome!\n\n  Listening on stdio\r\n",
    "an unfinished line": b"loading... ",
    "JSON that is no message": b'"ready"\n17\nnull\n[]\n{}\n',
    "log entries in JSON": b'{"level":"info","msg":"started"}\n',
    "colours": b"\x1b[32mready\x1b[0m\x07\n",
    "5 MB": b"x" * 5_000_000 + b"\n",
    "5 MB of white space": b" " * 5_000_000 + b"\n",
    "5 MB of lines": b"x\n" * 2_500_000,
    "zeros": bytes(1000) + b"\n",
    "a BOM": b"\xef\xbb\xbf\n",
    "no UTF-8": b"\xff\xfe\xc3\x28\n",
}


@pytest.mark.parametrize("revision", [OLD, NEW, None])
@pytest.mark.parametrize("banner", BANNERS)
async def test_what_is_printed_before_the_first_message_is_ignored(banner: str, revision: str | None) -> None:
    line = BANNERS[banner] if BANNERS[banner].endswith(b"\n") else BANNERS[banner] + b"\n"
    size = len(line)
    code = f"put({line!r})" if size < 10_000 else f"put({line[:1]!r} * {size - 1} + b'\\n')"
    async with attacked(f"{code}\ngreet()\nserve()", revision) as client:
        assert "ok" == words(await client.call_tool("x"))


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("banner", [each for each in BANNERS if len(BANNERS[each]) < 10_000])
async def test_what_is_printed_between_messages_and_after_the_last_is_ignored(banner: str, revision: str) -> None:
    noise = BANNERS[banner] + b"\n"
    code = f"""
    greet()
    for _ in range(3):
        put({noise!r})
        text(asked(), "ok")
        put({noise!r})
    put({BANNERS[banner]!r})
    ignore_all()
    """
    async with attacked(code, revision) as client:
        assert ["ok"] * 3 == [words(await client.call_tool("x")) for _ in range(3)]


async def test_a_prompt_without_a_newline_costs_the_message_behind_it_and_nothing_else() -> None:
    code = """
    greet()
    first = asked()
    put(b"> ")
    text(first, "lost")
    serve()
    """
    async with attacked(code) as client:
        with pytest.raises(RequestTimedOut):
            await client.call_tool("x", timeout_seconds=0.2)

        assert "ok" == words(await client.call_tool("x"))


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.slow
async def test_a_flood_of_noise_is_logged_in_a_few_lines(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with attacked("greet()\nput(b'noise\\n' * 20_000)\nserve()", revision) as client:
        assert "ok" == words(await client.call_tool("x"))

    assert 0 < len(caplog.records) <= 20


# What a server may answer a call with that is no answer; ID is that of the call.
NO_ANSWERS: dict[str, tuple[bytes, type[Exception]]] = {
    "neither result nor error": (b'{"jsonrpc":"2.0","id":ID}', MalformedFrame),
    "both": (b'{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}', MalformedFrame),
    "null": (b'{"jsonrpc":"2.0","id":ID,"result":null}', MalformedFrame),
    "a list": (b'{"jsonrpc":"2.0","id":ID,"result":[]}', MalformedFrame),
    "a number": (b'{"jsonrpc":"2.0","id":ID,"result":3}', MalformedFrame),
    "an empty object": (b'{"jsonrpc":"2.0","id":ID,"result":{}}', InvalidPayload),
    "no version": (b'{"id":ID,"result":{"content":[]}}', MalformedFrame),
    "another version": (b'{"jsonrpc":"1.0","id":ID,"result":{"content":[]}}', MalformedFrame),
    "an id that is a string": (b'{"jsonrpc":"2.0","id":"ID","result":{"content":[]}}', MalformedFrame),
    "an id that is a list": (b'{"jsonrpc":"2.0","id":[ID],"result":{"content":[]}}', RequestTimedOut),
    "an id that is true": (b'{"jsonrpc":"2.0","id":true,"result":{"content":[]}}', RequestTimedOut),
    "an id that is null": (b'{"jsonrpc":"2.0","id":null,"result":{"content":[]}}', RequestTimedOut),
    "an id of somebody else": (b'{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}', RequestTimedOut),
    "a huge id": (b'{"jsonrpc":"2.0","id":1' + b"0" * 400 + b',"result":{"content":[]}}', RequestTimedOut),
    "an error that is text": (b'{"jsonrpc":"2.0","id":ID,"error":"no"}', MalformedFrame),
    "an error that is null": (b'{"jsonrpc":"2.0","id":ID,"error":null}', MalformedFrame),
    "an error without a code": (b'{"jsonrpc":"2.0","id":ID,"error":{"message":"no"}}', MalformedFrame),
    "an error without a message": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":-1}}', MalformedFrame),
    "a code that is text": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":"-1","message":"no"}}', MalformedFrame),
    "a code that is a fraction": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":1.5,"message":"no"}}', MalformedFrame),
    "a code that is huge": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":1e400,"message":"no"}}', MalformedFrame),
    "a message that is null": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":null}}', MalformedFrame),
    "odd data": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"no","data":[{"a":[]}]}}', RequestRefused),
    "null as data": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"no","data":null}}', RequestRefused),
    "a code that is whole": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":-1.0,"message":"no"}}', RequestRefused),
    "a long code": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":-1' + b"0" * 30 + b',"message":"no"}}', RequestRefused),
    "an empty message": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":0,"message":""}}', RequestRefused),
    "an error of 3 MB": (
        b'{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"' + b"x" * 3_000_000 + b'"}}',
        RequestRefused,
    ),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":"\xff"}}', MalformedFrame),
    "a BOM": (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}', RequestTimedOut),
    "NaN": (b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":NaN}}', MalformedFrame),
    "a comma too many": (b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],}}', MalformedFrame),
    "half of it": (b'{"jsonrpc":"2.0","id":ID,"result":{"content":[', MalformedFrame),
    "10,000 levels": (
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}}",
        MalformedFrame,
    ),
    "a million levels": (
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}",
        MalformedFrame,
    ),
    "5 MB": (b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":"' + b"x" * 5_000_000 + b'"}}', MalformedFrame),
    "a batch": (b'[{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]', RequestTimedOut),
    "half a pair": (
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\\ud800"}]}}',
        MalformedFrame,
    ),
    "half a pair in what is ignored": (
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"x":"\\ud800"}}}',
        MalformedFrame,
    ),
}


# Of these, what other SDKs read: the result's first text, None for no content, or what is raised all the same.
READ: dict[str, str | type[Exception] | None] = {
    "an empty object": None,
    "an id that is a string": None,
    "a code that is text": RequestRefused,
    "NaN": None,
    "half a pair": "\ufffd",
    "half a pair in what is ignored": None,
}


def shortened(line: bytes) -> str:
    """Return an expression that makes *line*, which may be long."""
    for piece in (b"x", b"[", b"]"):
        for size in (3_000_000, 5_000_000, 10_000, 1_000_000):
            line = line.replace(piece * size, b"@%s*%d@" % (piece, size)) if piece * size in line else line
    parts = line.split(b"@")
    return " + ".join(
        repr(each) if not number % 2 else f"{each[:1]!r} * {each[2:].decode()}" for number, each in enumerate(parts)
    )


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("case", NO_ANSWERS)
@pytest.mark.slow
async def test_what_is_no_answer_costs_its_own_call_and_no_other(case: str, revision: str) -> None:
    line, kind = NO_ANSWERS[case]
    code = f"""
    greet()
    first = asked()
    put(({shortened(line)}).replace(b"ID", str(first["id"]).encode()) + b"\\n")
    serve()
    """
    async with attacked(code, revision, strict=case in READ) as client:
        async with anyio.create_task_group() as group:
            with pytest.raises(kind) as caught:
                await client.call_tool("x", timeout_seconds=0.15 if kind is RequestTimedOut else 15)
            group.cancel_scope.cancel()

        assert len(str(caught.value)) < (4_000_000 if case == "an error of 3 MB" else 3000)
        assert "ok" == words(await client.call_tool("x"))


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("case", READ)
async def test_what_others_read_is_read(case: str, revision: str) -> None:
    line, expected = NO_ANSWERS[case][0], READ[case]
    code = f"""
    greet()
    put({line!r}.replace(b"ID", str(asked()["id"]).encode()) + b"\\n")
    serve()
    """
    async with attacked(code, revision) as client:
        if isinstance(expected, type):
            with pytest.raises(expected):
                await client.call_tool("x")
        else:
            found = await client.call_tool("x")
            assert ([] if expected is None else [expected]) == [each.text for each in found.content]  # type: ignore[union-attr]
        assert "ok" == words(await client.call_tool("x"))


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_request_json_says_what_is_wrong_in_our_own_errors(revision: str) -> None:
    code = r"""
    greet()
    while True:
        put(b'{"jsonrpc":"2.0","id":%d,"result":{"x":"\\ud800"}}\n' % asked()["id"])
    """
    async with attacked(code, revision, strict=True) as client:
        with pytest.raises(MalformedFrame):
            await client.request_json("tools/call", {"name": "x"})
    async with attacked(code, revision) as client:
        assert {"x": "\ufffd"} == await client.request_json("tools/call", {"name": "x"})


async def test_an_invalid_result_with_a_number_that_python_does_not_read_is_an_error_of_ours() -> None:
    code = r"""
    greet()
    put(b'{"jsonrpc":"2.0","id":%d,"result":{"content":5,"x":1e999}}\n' % asked()["id"])
    serve()
    """
    async with attacked(code, NEW) as client:
        with pytest.raises(InvalidPayload):
            await client.call_tool("x")


async def test_the_first_of_two_answers_counts() -> None:
    code = """
    greet()
    first = asked()
    text(first, "first")
    text(first, "second")
    refuse(first)
    serve()
    """
    async with attacked(code) as client:
        assert ["first", "ok"] == [words(await client.call_tool("x")) for _ in range(2)]


async def test_answers_to_what_was_never_asked_are_ignored() -> None:
    code = """
    greet()
    for identity in [0, -1, 2**70, "", "1", 99]:
        say({"jsonrpc": "2.0", "id": identity, "result": TEXT})
        say({"jsonrpc": "2.0", "id": identity, "error": {"code": 1, "message": "x"}})
    serve()
    """
    async with attacked(code) as client:
        assert "ok" == words(await client.call_tool("x"))


async def test_answers_in_any_order_find_their_calls() -> None:
    code = """
    greet()
    calls = [asked() for _ in range(100)]
    for call in reversed(calls):
        text(call, call["params"]["name"])
    ignore_all()
    """
    found: dict[int, str] = {}
    async with attacked(code) as client, anyio.create_task_group() as group:

        async def call(number: int) -> None:
            found[number] = words(await client.call_tool(str(number)))

        for number in range(100):
            group.start_soon(call, number)

    assert {number: str(number) for number in range(100)} == found


async def test_of_a_key_that_comes_twice_the_last_counts() -> None:
    code = r"""
    greet()
    put(b'{"jsonrpc":"2.0","id":0,"id":%d,"result":{},"result":{"content":[]}}\n' % asked()["id"])
    serve()
    """
    async with attacked(code) as client:
        assert [] == (await client.call_tool("x")).content


BATCHES: list[Any] = [
    [],
    [[]],
    [1, None, "x"],
    [{}] * 2000,
    [{"jsonrpc": "2.0", "method": "ping", "id": number} for number in range(1001)],
]


@pytest.mark.parametrize("number", range(len(BATCHES)))
@pytest.mark.parametrize("revision", ["2025-03-26", OLD, NEW])
async def test_odd_batches_are_ignored(number: int, revision: str) -> None:
    code = f"greet()\nput({json.dumps(BATCHES[number]).encode()!r} + b'\\n')\nserve()"
    async with attacked(code, revision) as client:
        assert "ok" == words(await client.call_tool("x"))


async def test_a_batch_is_answered_with_a_batch_where_there_are_any() -> None:
    code = """
    greet()
    call = asked()
    ping = {"jsonrpc": "2.0", "method": "ping", "id": "a"}
    say([ping, result(TEXT)(call), {"jsonrpc": "2.0", "method": "x", "id": 3}])
    found = hear()
    text(asked(), [type(found).__name__, sorted(str(each["id"]) for each in found)])
    ignore_all()
    """
    async with attacked(code, "2025-03-26") as client:
        assert "ok" == words(await client.call_tool("x"))
        assert "['list', ['3', 'a']]" == words(await client.call_tool("x"))


@pytest.mark.parametrize("revision", [OLD, NEW, None])
@pytest.mark.slow
async def test_a_server_that_prints_nothing_but_garbage_is_not_waited_for_for_ever(revision: str | None) -> None:
    limits = type(LIMITS)(probe_seconds=0.1, connect_seconds=0.4, stdin_seconds=0.3, term_seconds=0.3)
    code = "while True:\n    hear()\n    put(b'{{{{\\n')"
    with pytest.raises((RequestTimedOut, ServerExited)):
        async with attacked(code, revision, limits=limits):
            pass
