"""The short way of tool calls says what the long way says, byte for byte, whatever is called and with whatever."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import anyio
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from mcpgen import Context, Limits, RequestError, Server, ToolError
from mcpgen.generated import registry
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server import fast_path
from tests.harness.server_wire import connected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REVISIONS = [each.label for each in registry.REVISIONS]
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LEVEL = "io.modelcontextprotocol/logLevel"


class Point(Struct):
    x: int
    label: str = ""


@dataclass
class Answer:
    point: Point
    texts: list[str]


def functions(server: Server) -> None:  # noqa: C901 (a list)
    """Give *server* tools of every kind."""

    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    async def many(  # noqa: PLR0913, PLR0917 (one of each kind)
        number: int,
        ratio: float = 0.5,
        flag: bool = False,  # noqa: FBT001, FBT002 (as above)
        maybe: str | None = None,
        texts: list[str] | None = None,
        more: dict[str, object] | None = None,
        kind: Literal["a", "b"] = "a",
        point: Point | None = None,
        anything: object = None,
    ) -> str:
        return repr((number, ratio, flag, maybe, texts, more, kind, point, anything))

    @server.tool
    async def structured(point: Point) -> Answer:
        return Answer(point, [point.label])

    @server.tool
    async def written(text: str) -> dict[str, Any]:
        return {"json": Raw(text.encode())}

    @server.tool
    async def number(number: int) -> int:
        return number

    @server.tool
    async def nothing() -> None: ...

    @server.tool
    async def blocks(text: str) -> list[models.TextContent | str]:
        return [models.TextContent(text=text), text]

    @server.tool
    async def whole(text: str) -> models.CallToolResult:
        return models.CallToolResult(content=[models.TextContent(text=text)], is_error=True, meta={"a/b": text})

    @server.tool
    async def result(text: str) -> models.CallToolResult:
        unpaired: Any = {"surrogate": "\ud800", "number": 1}.get(text, text)
        block = models.TextContent(text=unpaired)
        audience = models.TextContent(text=text, annotations=models.Annotations(audience=["user"]))
        return {
            "tool": models.CallToolResult(content=[audience]),
            "other": models.CallToolResult(content=[block, block]),
            "bytes": models.CallToolResult(content=[block], structured_content={"a": 1}),
            '"\\/': models.CallToolResult(content=[models.TextContent(text=text, meta={"a/b": 1})]),
            "": models.CallToolResult(content=[block], is_error=False),
            "</script>": models.CallToolResult(content=[block], meta={"a/b": 1}),
            "%s {} \\u0000": models.CallToolResult(content={0: block}),  # type: ignore[arg-type]
            '"_meta"': models.CallToolResult(content=[models.TextContent(type="x", text=text)]),  # type: ignore[call-arg]
        }.get(text, models.CallToolResult(content=[block]))

    @server.tool(structured=True)
    async def framed(text: str) -> str:
        return text

    @server.tool
    async def wide(text: str) -> str | None:
        return text or None

    @server.tool
    async def demand(text: str) -> str | models.InputRequiredResult:
        if text:
            return text
        return models.InputRequiredResult(input_requests={"a": models.ListRootsRequest()})

    @server.tool
    async def chatty(text: str, ctx: Context) -> str:
        await ctx.progress(1, total=2, message=text)
        await ctx.log("debug", text)
        await ctx.log("error", {"said": text})
        await ctx.progress(2)
        return f"{ctx.method} {ctx.request_id} {ctx.peer.revision} {ctx.request_state} {dict(ctx.input_responses)}"

    @server.tool
    async def fail(text: str) -> str:
        raise {"tool": ToolError, "other": ValueError}.get(text, RuntimeError)(text)

    @server.tool
    async def refuse(text: str, code: int = -32602) -> str:
        raise RequestError(code, text, {"said": text})

    @server.tool
    async def liar(text: str) -> str:
        return {"bytes": b"x", "number": 1, "surrogate": "\ud800"}.get(text, text)  # type: ignore[return-value]


TEXT_TOOLS = ("echo", "blocks", "whole", "result", "framed", "wide", "demand", "chatty", "fail", "refuse", "liar")
TOOLS = (*TEXT_TOOLS, "many", "structured", "number", "nothing")


@cache
def server(*, is_short: bool) -> Server:
    """Return a server that takes the short way where it can, or one that never does."""
    made = Server("two ways", version="1", limits=Limits(max_frame_bytes=1 << 20))
    functions(made)
    if not is_short:

        @made.middleware
        async def nothing(params: Any, context: Any, call_next: Callable[[Any, Any], Awaitable[Any]]) -> Any:
            return await call_next(params, context)

    return made


async def said(made: Server, revision: str, frames: list[bytes]) -> list[bytes]:
    """Return all that *made* says to a client of *revision* that sends *frames* one after the other."""
    offer = {"protocolVersion": revision, "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": offer}
    async with connected(made) as wire:
        if registry.revision(revision).era == "handshake":
            await wire.say(json.dumps(hello).encode())
            await wire.say(INITIALIZED)
        for each in frames:
            await wire.say(each)
        return wire.raw


def both_ways(revision: str, frames: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return what is said on the short way, and on the long way."""
    short = anyio.run(said, server(is_short=True), revision, frames)
    long = anyio.run(said, server(is_short=False), revision, frames)
    return short, long


# --- what is sent

characters = st.characters(exclude_categories=("Cs",))
texts = st.text(characters, max_size=12) | st.sampled_from(
    [
        "where the text goes",  # what the short way looks for in a result of the long one
        *("tool", "other", "bytes", "number", "surrogate"),  # what the tools below act on
        *("", '"_meta"', "</script>", "%s {} \\u0000", "\x00\x1f\x7f", '"\\/', "\u2028\u2029\ufeff", "\U0001f9ea"),
    ]
)
numbers = (
    st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -0.0, 1.0, 1e2, 2**53, 2.0**53, 2.0**54, 2**63, 2**64])
)
leaves = st.none() | st.booleans() | numbers | texts
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
points = st.fixed_dictionaries({"x": numbers}, optional={"label": texts}) | anything
filled_in = {
    "text": texts | leaves,
    "number": numbers | leaves,
    "point": points,
    "ratio": numbers,
    "flag": leaves,
    "maybe": leaves,
    "texts": st.lists(texts, max_size=3) | leaves,
    "more": st.dictionaries(texts, anything, max_size=3) | leaves,
    "kind": st.sampled_from(["a", "b", "c", None]),
    "anything": anything,
    "code": st.sampled_from([-32602, -32603, -32002, -32042, 1, 1.0, 2.5, "x"]),
}
NEEDS = {
    "many": ({"number"}, {"ratio", "flag", "maybe", "texts", "more", "kind", "point", "anything"}),
    "structured": ({"point"}, set[str]()),
    "number": ({"number"}, set[str]()),
    "nothing": (set[str](), set[str]()),
    "refuse": ({"text"}, {"code"}),
    "chatty": ({"text"}, set[str]()),
}


@st.composite
def fitting(draw: st.DrawFn) -> dict[str, Any]:
    """Return the params of a call that has the arguments which its tool knows, if not always of their types."""
    name = draw(st.sampled_from(TOOLS))
    required, optional = NEEDS.get(name, ({"text"}, set[str]()))
    arguments = draw(
        st.fixed_dictionaries(
            {each: filled_in[each] for each in sorted(required)},
            optional={each: filled_in[each] for each in sorted(optional)},
        )
    )
    if not arguments and draw(st.booleans()):
        return {"name": name}
    return {"name": name, "arguments": arguments}


wrong = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from([*TOOLS, "unknown", "", "\ud7ff"]) | leaves,
        "arguments": st.dictionaries(st.sampled_from(sorted(filled_in)) | texts, anything, max_size=3) | anything,
    },
)
plain_texts = texts.map(lambda text: {"name": "echo", "arguments": {"text": text}})
EXTRAS = {
    "task": st.sampled_from([None, {}, {"ttl": 1}, 1]),
    "requestState": st.sampled_from([None, "", "nonsense", 1]),
    "inputResponses": st.sampled_from([None, {}, {"a": {"roots": []}}, [], {"a": 1}]),
    "strange": anything,
}
extras = st.sampled_from(sorted(EXTRAS)).flatmap(lambda key: st.fixed_dictionaries({key: EXTRAS[key]}))
META = {
    VERSION: st.sampled_from([*REVISIONS, "2030-01-01", "", None, 1]),
    "progressToken": st.sampled_from(["", "p", 1, 1.0, 1.5, None, True, [], 2**70]),
    LEVEL: st.sampled_from(["debug", "error", "loud", "", None, 3]),
    CLIENT: st.sampled_from([{"name": "c", "version": "1"}, {"name": "c"}, {}, None, "c"]),
    CAPABILITIES: st.sampled_from([{}, {"roots": {}}, {"roots": 1}, None, [], {"elicitation": {"form": {}}}]),
    "io.modelcontextprotocol/related-task": st.sampled_from([{}, {"taskId": "t"}, None, 1]),
    "traceparent": leaves,
    "a/b": anything,
}
# Of both eras and all that may be wrong, most of what is drawn is wrong in one place only.
one_of_meta = st.sampled_from([*META, LEVEL, LEVEL]).flatmap(lambda key: st.fixed_dictionaries({key: META[key]}))
metas = st.just({}) | one_of_meta | one_of_meta | st.fixed_dictionaries({}, optional=META)
at_times = st.integers(0, 5).map(lambda number: number == 0)


@st.composite
def calls(draw: st.DrawFn, revision: str) -> dict[str, Any]:
    """Return the params of a call that a client of *revision* sends, or should not."""
    params = dict(draw(plain_texts | plain_texts | fitting() | wrong))
    meta = dict(draw(metas))
    if registry.revision(revision).era == "stateless" and not draw(at_times):
        meta = {VERSION: revision, CAPABILITIES: {}, **meta}
    if draw(at_times):
        params |= draw(extras)
    if meta or draw(at_times):
        params["_meta"] = draw(leaves) if draw(at_times) and draw(at_times) else meta
    return params


@st.composite
def conversations(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """Return a revision, and the frames of some calls that a client of it sends."""
    revision = draw(st.sampled_from([*REVISIONS, REVISIONS[-1], REVISIONS[-1]]))
    frames: list[bytes] = []
    for number, params in enumerate(draw(st.lists(calls(revision), min_size=1, max_size=3)), 1):
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        frames.append(json.dumps(request, ensure_ascii=draw(st.booleans())).encode())
    return revision, frames


@pytest.mark.slow
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(conversation=conversations())
def test_both_ways_say_the_same(conversation: tuple[str, list[bytes]]) -> None:
    check(conversation)


def check(conversation: tuple[str, list[bytes]]) -> None:
    revision, frames = conversation
    taken: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_path.FastPath, "__call__", watched(fast_path.FastPath.__call__, taken))
        short, long = both_ways(revision, frames)
    event(f"{revision}, {'short' if any(taken) else 'long'}")

    assert long == short


def watched(way: Callable[..., Any], taken: list[bool]) -> Callable[..., Any]:
    """Return *way*, which notes whether it was taken."""

    def note(self: Any, meta: Any) -> Any:
        found = way(self, meta)
        taken.append(found is not None)
        return found

    return note


# --- what no strategy would find soon, written as it goes over the wire

ARGUMENTS = [
    b"null",
    b"[]",
    b'"text"',
    b'{"text":"\\ud83e\\uddea"}',
    b'{"text":"\\/ \\b\\f\\n\\r\\t"}',
    '{"text":"🧪\u2028\ufeff"}'.encode(),
    b'{"text":"a","text":"b"}',
    b'{"text":1,"text":"b"}',
    b'{"text":"a","text":1}',
    b'{ "text" : "blank" }',
    b'{"te\\u0078t":"a"}',
    b'{"text":"a","more":1}',
    b'{"text":1e400}',
    b'{"text":' + b"[" * 2000 + b"]" * 2000 + b"}",
    b'{"text":"' + b"x" * 100_000 + b'"}',
]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=lambda each: each[:24].decode())
@pytest.mark.parametrize("tool", ["echo", "chatty", "unknown"])
def test_both_ways_say_the_same_of_what_is_written_strangely(revision: str, tool: str, arguments: bytes) -> None:
    short, long = both_ways(revision, [call(revision, tool, arguments)])

    assert long == short


def call(revision: str, tool: str, arguments: bytes) -> bytes:
    meta = ""
    if registry.revision(revision).era == "stateless":
        meta = f',"_meta":{{"{VERSION}":"{revision}","{CAPABILITIES}":{{}}}}'
    head = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":'
    return head.encode() + arguments + f"{meta}}}}}".encode()


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "text",
    ["plain", "tool", "other", "bytes", '"\\/', "", "</script>", "%s {} \\u0000", '"_meta"', "surrogate", "number"],
)
def test_both_ways_say_the_same_of_full_results(revision: str, text: str) -> None:
    short, long = both_ways(revision, [call(revision, "result", json.dumps({"text": text}).encode())])

    assert long == short


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "text", ["{}", '{"a":1}', '{\n"a": 1\r\n}', "[1,\r2]", "1e400", "{", "[1]\n{}", '"\\ud800"', ""]
)
def test_both_ways_say_the_same_of_json_that_a_function_has_written(revision: str, text: str) -> None:
    short, long = both_ways(revision, [call(revision, "written", json.dumps({"text": text}).encode())])

    assert long == short
    assert b"\n" not in short[-1].strip()


# --- that all this bites


@pytest.mark.parametrize("revision", REVISIONS)
def test_plain_calls_take_the_short_way_and_middleware_the_long_one(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    monkeypatch.setattr(fast_path.FastPath, "__call__", watched(fast_path.FastPath.__call__, taken))
    frames = [call(revision, "echo", b'{"text":"a"}')]

    anyio.run(said, server(is_short=True), revision, frames)
    assert [True] == taken
    anyio.run(said, server(is_short=False), revision, frames)
    assert [True] == taken


def spoil(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    """Let the short way make a mistake."""
    way = fast_path.FastPath.__call__

    def eager(self: Any, meta: Any) -> Any:
        if mistake == "takes a level that there is not":
            meta = type(meta)(**{**_fields(meta), "log_level": "info"})
        if mistake == "takes a retry for a call":
            meta = type(meta)(**{**_fields(meta), "is_plain": True})
        if mistake == "leaves arguments out":
            meta = type(meta)(**{**_fields(meta), "arguments": b'{"text":""}'})
        return way(self, meta)

    def write(text: str) -> bytes:
        return json.dumps(text).encode()

    if mistake == "writes text in another way":
        monkeypatch.setattr(fast_path, "_encode", write)
    else:
        monkeypatch.setattr(fast_path.FastPath, "__call__", eager)


def _fields(meta: Any) -> dict[str, Any]:
    return {name: getattr(meta, name) for name in meta.__struct_fields__}


@pytest.mark.parametrize(
    "mistake",
    [
        "takes a level that there is not",
        "takes a retry for a call",
        "leaves arguments out",
        "writes text in another way",
    ],
)
def test_a_mistake_of_the_short_way_is_found(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    spoil(monkeypatch, mistake)

    with pytest.raises(AssertionError):
        try_the_same_conversations_as_ever()


@settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=1000,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(conversation=conversations())
def try_the_same_conversations_as_ever(conversation: tuple[str, list[bytes]]) -> None:
    check(conversation)
