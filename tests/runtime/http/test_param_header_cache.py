"""What a client keeps of the param headers of a server's tools."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from mcpgen.runtime.http.client.param_header_cache import ParamHeaderCache
from mcpgen.runtime.protocol.messages import Response

MANY = {f"key{number}": {"type": "string", "x-mcp-header": f"h{number}"} for number in range(16_000)}
ONE = {"key": {"type": "string", "x-mcp-header": "Region"}}


def learn(cache: ParamHeaderCache, name: str, properties: dict[str, dict[str, str]]) -> None:
    tool = {"name": name, "inputSchema": {"type": "object", "properties": properties}}
    cache.learn(b"", Response(1, Raw(msgspec.json.encode({"tools": [tool]}))))


def test_param_headers_are_kept_up_to_a_total_size() -> None:
    cache = ParamHeaderCache()
    for number in range(5):
        learn(cache, f"tool{number}", MANY)
    learn(cache, "usual", ONE)
    assert cache.of("tool0") is None
    assert cache.of("tool4") is not None
    assert cache.of("usual") is not None


def test_long_names_of_tools_with_param_headers_count() -> None:
    cache = ParamHeaderCache()
    names = [f"{number}{'x' * 2_000_000}" for number in range(5)]
    for each in names:
        learn(cache, each, ONE)
    assert [cache.of(each) is not None for each in names] == [False, False, False, True, True]


def test_param_headers_of_a_tool_that_is_no_longer_annotated_do_not_count() -> None:
    cache = ParamHeaderCache()
    learn(cache, "tool", ONE)
    learn(cache, "tool", ONE)
    once = cache.kept_bytes
    learn(cache, "tool", {})
    learn(cache, "tool", ONE)
    assert cache.kept_bytes == once > 0


def test_a_tool_with_too_many_param_headers_to_keep_is_listed() -> None:
    cache = ParamHeaderCache()
    deep: dict[str, object] = {"properties": MANY}
    for _ in range(400):
        deep = {"properties": {"key": deep}}
    frame = b"the page"
    tool = {"name": "deep", "inputSchema": {"type": "object", **deep}}
    assert cache.learn(frame, Response(1, Raw(msgspec.json.encode({"tools": [tool]})))) is frame
    assert cache.of("deep") is None
    assert cache.kept_bytes == 0


def test_a_tool_is_left_out_of_an_answer_that_is_almost_json() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}
    tools = [{"name": "good", "inputSchema": {"type": "object"}}, {"name": "bad", "inputSchema": schema}]
    meant = Response(1, Raw(msgspec.json.encode({"tools": tools})))
    learnt = ParamHeaderCache().learn(b'{"jsonrpc": "2.0", "id": 1, "result": {"x": NaN, "tools": []}}', meant)
    assert msgspec.json.decode(learnt) == {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools[:1]}}
