"""The page that shows what a server has, as it was looked at and found good."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from mcpgen.runtime.cli.client.inventory import Inventory
from mcpgen.runtime.cli.client.overview import overview_lines, write_overview
from mcpgen.runtime.cli.client.terminal import Screen
from tests.runtime.cli.terminals import COMMAND, run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


class Page(SingleFileSnapshotExtension):
    file_extension = "txt"
    _write_mode = WriteMode.TEXT


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    status, out, _ = run("inspect", COMMAND, "--json")
    assert 0 == status
    made: dict[str, Any] = json.loads(out)
    return made


def page(found: dict[str, Any], width: int | None) -> str:
    inventory = Inventory(
        server="python boats.py",
        kind="command",
        revision=found["revision"],
        era=found["era"],
        hello=found["results"]["initialize"],
        lists={key: found[key] for key in ("tools", "resources", "resourceTemplates", "prompts")},
    )
    screen = Screen(io.TextIOWrapper(io.BytesIO()), is_terminal=width is not None, width=width, is_coloured=False)
    return "".join(f"{line}\n" for line in overview_lines(inventory, screen))


@pytest.mark.parametrize("width", [80, 120, None], ids=["80", "120", "pipe"])
def test_a_server_with_everything_is_shown_so(
    found: dict[str, Any], width: int | None, snapshot: SnapshotAssertion
) -> None:
    assert snapshot(extension_class=Page) == page(found, width)


@pytest.mark.parametrize(
    "lists",
    [
        {"tools": [1, {}, {"name": 5, "inputSchema": 7, "annotations": 8, "execution": 9, "outputSchema": 10}]},
        {"tools": [{"name": "x", "inputSchema": {"properties": {"a": 5, "b": {"type": {}}}, "required": 5}}]},
        {"prompts": [{"arguments": 5}, {"name": "x", "arguments": [1, {}]}]},
        {"resources": [{"uri": 5, "size": 1e400}, {"size": -1}, {}]},
        {"tools": [{"name": "", "description": "", "title": ""}], "resources": [], "prompts": []},
    ],
)
@pytest.mark.parametrize("width", [20, None])
def test_nonsense_is_shown_as_well_as_it_can_be(lists: dict[str, Any], width: int | None) -> None:
    hello = {"serverInfo": {"name": 5}, "capabilities": {"tools": 1, "tasks": {"requests": 3}}, "instructions": 4}
    found = {"revision": "2025-11-25", "era": "handshake", "results": {"initialize": hello}}

    assert page({**found, "tools": [], "resources": [], "resourceTemplates": [], "prompts": [], **lists}, width)


def test_facts_without_text_are_shown_empty(found: dict[str, Any]) -> None:
    hello = {"serverInfo": {"name": "x", "websiteUrl": " "}, "supportedVersions": ["2026-07-28"] * 2}
    shown = page({**found, "revision": "2026-07-28", "results": {"initialize": hello}}, None)

    assert "  website        \n" in shown
    assert "  also supports  \n" in shown


def test_ctrl_c_ends_the_page_of_a_server_with_many_tools() -> None:
    tools = [{"name": f"tool{number}", "inputSchema": {}} for number in range(1000)]
    found = Inventory(server="x", kind="url", revision="2025-11-25", era="handshake", hello={}, lists={"tools": tools})
    stream = io.TextIOWrapper(io.BytesIO())

    async def cancelled() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await write_overview(found, Screen(stream))

    anyio.run(cancelled)
    stream.seek(0)
    assert 0 < len(stream.readlines()) < 100
