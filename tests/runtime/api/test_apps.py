"""MCP Apps: tools with an interface, and the page of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import Context, Extension, Server, UsageError, connect, tool_ui
from mcpgen.generated.extensions import apps
from mcpgen.generated.v2026_07_28 import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

UI = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
PAGE = "<!DOCTYPE html><title>Clock</title>"


def clock() -> Server[Any]:
    server = Server("clock")
    csp = apps.McpUiResourceCsp(connect_domains=["https://time.example"])

    @server.ui_resource("ui://clock", ui=apps.McpUiResourceMeta(csp=csp))
    def page() -> str:
        return PAGE

    @server.tool(ui="ui://clock")
    def time(context: Context[Any]) -> str:
        return "12:00" if UI in context.peer.extensions else "12:00, as text"

    @server.tool(ui=apps.McpUiToolMeta(resource_uri="ui://clock", visibility=["app"]), meta={"com.example/a": 1})
    def refresh() -> str:
        return "12:01"

    @server.tool
    def plain() -> str:
        return "no interface"

    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_sees_which_tools_have_an_interface(revision: str) -> None:
    host = Extension(apps, settings=apps.McpUiClientCapabilities(mime_types=[MIME_TYPE]))
    async with connect(clock(), revisions=[revision], extensions=[host]) as client:
        found = {each.name: tool_ui(each) async for each in client.tools()}
        called = await client.call_tool("time")

        assert {UI: {}} == client.extensions
    expected = {
        "time": apps.McpUiToolMeta(resource_uri="ui://clock"),
        "refresh": apps.McpUiToolMeta(resource_uri="ui://clock", visibility=["app"]),
        "plain": None,
    }
    # 2024-11-05 and 2025-03-26 have no `_meta` of a tool, so nothing can name the interface.
    has_meta = revision not in ("2024-11-05", "2025-03-26")
    assert (expected if has_meta else dict.fromkeys(expected)) == found
    assert "12:00" == called.text


async def test_an_interface_is_a_page_with_what_it_needs() -> None:
    async with connect(clock()) as client:
        (listed,) = [each async for each in client.resources()]
        (read,) = (await client.read_resource("ui://clock")).contents
        called = await client.call_tool("time")

    needs = {"ui": {"csp": {"connectDomains": ["https://time.example"]}}}
    assert ("ui://clock", MIME_TYPE, needs) == (listed.uri, listed.mime_type, listed.meta)
    assert (PAGE, MIME_TYPE, needs) == (read.text, read.mime_type, read.meta)
    assert "12:00, as text" == called.text


async def test_metadata_of_the_author_is_kept_beside_that_of_the_interface() -> None:
    async with connect(clock()) as client:
        metas = {each.name: each.meta async for each in client.tools()}

    assert {"com.example/a": 1, "ui": {"resourceUri": "ui://clock", "visibility": ["app"]}} == metas["refresh"]


async def test_a_server_without_interfaces_does_not_declare_the_extension() -> None:
    async with connect(Server("plain")) as client:
        assert {} == client.extensions


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"ui/resourceUri": "ui://old"}, apps.McpUiToolMeta(resource_uri="ui://old")),
        ({"ui": {"visibility": ["app"]}}, apps.McpUiToolMeta(visibility=["app"])),
        ({"ui": {"resourceUri": "ui://a", "new": 1}}, apps.McpUiToolMeta(resource_uri="ui://a")),
        ({"ui": {"resourceUri": "https://a"}}, None),
        ({"ui": {"resourceUri": 1}}, None),
        ({"ui": {}}, None),
        ({"ui": "ui://a"}, None),
        ({}, None),
    ],
)
def test_the_interface_of_a_tool_is_read_from_its_metadata(meta: dict[str, Any], expected: object) -> None:
    assert expected == tool_ui(Tool(name="a", input_schema={"type": "object"}, meta=meta))


def test_wrong_arguments_are_explained() -> None:
    def page() -> str:
        return PAGE

    server = Server("wrong")
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("with the scheme ui", lambda: server.ui_resource("https://clock")),
        ("with the scheme ui", lambda: server.tool(ui="clock")),
        ("with the scheme ui", lambda: server.tool(ui=apps.McpUiToolMeta(resource_uri="ui://"))),
        ("`ui` must be the URI", lambda: server.tool(ui=1)),  # type: ignore[call-overload]  # that is the point
        ("must be an McpUiResourceMeta", lambda: server.ui_resource("ui://a", ui={})),  # type: ignore[arg-type]
        ("has the key `ui`", lambda: server.tool(ui="ui://a", meta={"ui": {}})),
        (
            "is not valid",
            lambda: server.ui_resource("ui://a", ui=apps.McpUiResourceMeta(domain=1)),  # type: ignore[arg-type]
        ),
    ]
    for text, call in wrong:
        with pytest.raises(UsageError, match=text):
            call()
