"""The fast path of a client gives the result of the regular path, which every call with an option takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from mcpgen import Server, TransportClosed, UsageError, connect
from mcpgen.generated import registry
from mcpgen.runtime.client import fast_path
from mcpgen.runtime.client.tool_results import ToolResult
from mcpgen.runtime.protocol.finite_numbers import check_finite
from mcpgen.runtime.protocol.newest import models

TEXTS = ("", "hello", 'a "quote", a \\ and a \x00', "ä€\U0001f600", "x" * 100_000)


def text(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": each} for each in texts]}


@pytest.mark.anyio
@pytest.mark.parametrize("revision", [each.label for each in registry.REVISIONS])
async def test_both_paths_have_equal_results(revision: str) -> None:
    server = Server("texts")

    @server.tool
    def many(texts: list[str]) -> models.CallToolResult:
        content: list[Any] = [models.TextContent(text=each) for each in texts]
        return models.CallToolResult(content=content, is_error=True if len(texts) == 1 else msgspec.UNSET)

    async with connect(server, revisions=[revision]) as client:
        for texts in ([], ["failed"], list(TEXTS)):
            fast = await client.call_tool("many", {"texts": texts})
            regular = await client.call_tool("many", {"texts": texts}, meta={"com.example/key": 1})

            assert fast == regular
            assert type(fast) is type(regular) is ToolResult
            assert ("\n".join(texts), fast.result_type) == (fast.text, "complete")


@pytest.mark.anyio
async def test_a_number_that_json_cannot_express_is_refused_and_null_is_sent() -> None:
    server = Server("numbers")

    @server.tool
    def count(values: list[float | None]) -> int:
        return len(values)

    async with connect(server) as client:
        told = "`arguments` has nan at /values/1, which JSON cannot express"
        for options in ({}, {"meta": {"com.example/key": 1}}):
            with pytest.raises(UsageError, match=told):
                await client.call_tool("count", {"values": [None, float("nan")]}, **options)
        assert await client.call_tool("count", {"values": [None, 1e300, 2**63]}, returns=int) == 3


def test_a_number_that_is_a_member_itself_has_no_further_place() -> None:
    params = models.ProgressNotificationParams(progress_token=1, progress=float("nan"))

    with pytest.raises(UsageError, match=r"^`progress` has nan, which JSON cannot express"):
        check_finite(params, msgspec.json.encode(params))


@pytest.mark.anyio
async def test_what_sends_nothing_fails_after_close_too() -> None:
    async with connect(Server("closed"), roots=[]) as client:
        pass
    with pytest.raises(TransportClosed):
        await client.set_log_level("info")
    with pytest.raises(TransportClosed):
        await client.roots_changed()


@pytest.mark.parametrize(
    ("written", "is_taken"),
    [
        (text("a", "b"), True),
        ({**text("a"), "isError": True}, True),
        ({"content": []}, True),
        ({**text("a"), "structuredContent": {}}, False),
        ({**text("a"), "_meta": {}}, False),
        ({**text("a"), "resultType": "input_required"}, False),
        ({"content": [{"type": "text", "text": "a", "annotations": {}}]}, False),
        ({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]}, False),
        ({"isError": True}, False),
        ({}, False),
    ],
)
def test_only_text_of_a_handshake_server_takes_the_fast_path(written: dict[str, Any], is_taken: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    message = msgspec.json.format(msgspec.json.encode({"result": written, "id": 1}))
    found = fast_path._decode_handshake(msgspec.json.decode(message, type=dict[str, Raw])["result"])

    assert is_taken == (found is not None)
    assert found is None or [each["text"] for each in written["content"]] == [each.text for each in found.content]  # type: ignore[union-attr] # only text is taken
    assert found is None or (found.is_error is True) == ("isError" in written)
