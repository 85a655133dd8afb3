"""Lists in pages."""

from __future__ import annotations

import pytest

from tests.specification.citation import everywhere, from_every_home, spec
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import server

pytestmark = pytest.mark.anyio


@spec("2024-11-05", "server/utilities/pagination#response-format")
@spec("2025-11-25", "server/utilities/pagination#response-format")
@spec("2026-07-28", "server/utilities/pagination#response-format")
@everywhere
@from_every_home
async def test_a_page_that_is_not_the_last_names_the_next_one(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        first = await peer.result("tools/list")
        second = await peer.result("tools/list", f'"cursor":"{first["nextCursor"]}"')

    assert [["echo"], ["wait"]] == [[each["name"] for each in page["tools"]] for page in (first, second)]
    assert "nextCursor" not in second


@spec("2024-11-05", "server/utilities/pagination#error-handling")
@spec("2025-03-26", "server/utilities/pagination#error-handling")
@spec("2025-06-18", "server/utilities/pagination#error-handling")
@spec("2025-11-25", "server/utilities/pagination#error-handling")
@spec("2026-07-28", "server/utilities/pagination#error-handling")
@everywhere
@from_every_home
@pytest.mark.parametrize("cursor", ['"no such page"', "7", "true", "{}"])
async def test_a_cursor_that_leads_nowhere_has_invalid_params(cursor: str, native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        assert -32602 == (await peer.error("tools/list", f'"cursor":{cursor}'))["code"]


@spec("2024-11-05", "server/utilities/pagination#operations-supporting-pagination")
@spec("2025-11-25", "server/utilities/pagination#operations-supporting-pagination")
@spec("2026-07-28", "server/utilities/pagination#operations-supporting-pagination")
@everywhere
@from_every_home
@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list", "prompts/list", "tools/list"])
async def test_a_list_begins_where_no_cursor_says_otherwise(method: str, native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        said = await peer.ask(method)
        if not peer.is_stateless:  # whose requests need no params
            for params in (b"", b',"params":{}', b',"params":{"_meta":{}}'):
                said += await peer.wire.say(b'{"jsonrpc":"2.0","id":1,"method":"%s"%s}' % (method.encode(), params))

    assert said
    for answer in said:
        assert 1 == len(next(each for each in answer["result"].values() if isinstance(each, list)))
