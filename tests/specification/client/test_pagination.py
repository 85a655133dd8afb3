"""Lists that come in pages."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen import ClientLimits, InvalidPayload, RequestRefused
from tests.specification.citation import everywhere, spec
from tests.specification.client.scripted_server import complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

LISTS = pytest.mark.parametrize(
    ("call", "method", "key", "item"),
    [
        ("tools", "tools/list", "tools", {"name": "x", "inputSchema": {"type": "object"}}),
        ("prompts", "prompts/list", "prompts", {"name": "x"}),
        ("resources", "resources/list", "resources", {"name": "x", "uri": "a:b"}),
        (
            "resource_templates",
            "resources/templates/list",
            "resourceTemplates",
            {"name": "x", "uriTemplate": "a:{b}"},
        ),
    ],
    ids=["tools", "prompts", "resources", "templates"],
)


async def names(items: Any) -> list[str]:
    return [each.name async for each in items]


@spec("2026-07-28", "server/prompts#implementation-considerations", "b2c06134")
@spec("2026-07-28", "server/utilities/pagination#pagination-model", "5b273c26")
@spec("2024-11-05", "server/utilities/pagination#operations-supporting-pagination")
@spec("2025-11-25", "server/utilities/pagination#operations-supporting-pagination")
@spec("2026-07-28", "server/utilities/pagination#operations-supporting-pagination")
@spec(
    "2026-07-28",
    "server/utilities/pagination#implementation-guidelines",
    "a86e415e",
    "a2bec059",
    "f206c5bc",
    "32089280",
)
@everywhere
@LISTS
@on_both_loops
async def test_all_pages_are_asked_for_with_the_cursors_as_they_came(
    call: str, method: str, key: str, item: Any, revision: str
) -> None:
    cursors = ["second", "", " \u00e4=\n", "null", "0"]
    async with opened(revision) as own:
        errand, asked = await own.asked(names(getattr(own.client, call)()))
        assert "cursor" not in asked.get("params", {})

        for number, cursor in enumerate(cursors):
            page = {key: [{**item, "name": f"n{number}"}], "nextCursor": cursor}
            own.wire.result(asked, complete(revision, is_list=True, **page))
            asked = await own.wire.hear(method)
            assert cursor == asked["params"]["cursor"]

        own.wire.result(asked, complete(revision, is_list=True, **{key: [{**item, "name": "last"}]}))

        assert [*(f"n{number}" for number in range(len(cursors))), "last"] == await errand.outcome()
        assert [] == await own.wire.rest()


@spec("2024-11-05", "server/utilities/pagination#implementation-guidelines")
@spec("2025-11-25", "server/utilities/pagination#implementation-guidelines")
@spec("2026-07-28", "server/utilities/pagination#implementation-guidelines", "32089280", "fc9031b6")
@everywhere
@LISTS
async def test_a_list_without_pages_is_one_page(call: str, method: str, key: str, item: Any, revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(names(getattr(own.client, call)()))
        own.wire.result(asked, complete(revision, is_list=True, **{key: [item, item]}))

        assert ["x", "x"] == await errand.outcome()
        assert method == asked["method"]


@spec("2024-11-05", "server/utilities/pagination#pagination-flow")
@spec("2025-11-25", "server/utilities/pagination#pagination-flow")
@spec("2026-07-28", "server/utilities/pagination#pagination-flow")
@everywhere
async def test_pages_are_asked_for_as_far_as_they_are_looked_at(revision: str) -> None:
    async def first(own: Any) -> str:
        async for each in own.client.prompts():
            return str(each.name)
        raise AssertionError

    async with opened(revision) as own:
        errand, asked = await own.asked(first(own))
        page = {"prompts": [{"name": "x"}, {"name": "y"}], "nextCursor": "more"}
        own.wire.result(asked, complete(revision, is_list=True, **page))

        assert "x" == await errand.outcome()
        assert [] == await own.wire.rest()


@spec("2024-11-05", "server/utilities/pagination#request-format")
@spec("2025-11-25", "server/utilities/pagination#request-format")
@spec("2026-07-28", "server/utilities/pagination#request-format")
@everywhere
@pytest.mark.parametrize("cursor", ["", "c"])
async def test_one_page_can_be_had_with_its_cursor(cursor: str, revision: str) -> None:
    async with opened(revision) as own:
        page = {"prompts": [], "nextCursor": cursor}
        found = await own.answered(own.client.list_prompts(), complete(revision, is_list=True, **page))
        errand, asked = await own.asked(own.client.list_prompts(found.next_cursor))
        own.wire.result(asked, complete(revision, is_list=True, prompts=[]))
        await errand.outcome()

    assert cursor == asked["params"]["cursor"]


@spec("2026-07-28", "server/utilities/pagination#implementation-guidelines", "f206c5bc")
@spec("2025-11-25", "server/utilities/pagination#pagination-model")
@spec("2026-07-28", "server/utilities/pagination#pagination-model")
@everywhere
@pytest.mark.parametrize("strict", [False, True])
async def test_a_cursor_that_comes_back_does_not_end_a_list(strict: bool, revision: str) -> None:  # noqa: FBT001
    async with opened(revision, strict=strict) as own:
        errand = own.start(names(own.client.prompts()))
        for cursor in ("a", "", "a", "a", ""):
            page = {"prompts": [{"name": "x"}], "nextCursor": cursor}
            own.wire.result(await own.wire.hear(), complete(revision, is_list=True, **page))
        own.wire.result(await own.wire.hear(), complete(revision, is_list=True, prompts=[{"name": "y"}]))

        assert [*"xxxxxy"] == await errand.outcome()


@spec("2025-11-25", "server/utilities/pagination#pagination-model")
@spec("2026-07-28", "server/utilities/pagination#pagination-model")
@everywhere
@on_both_loops
async def test_a_list_without_end_is_cut_and_the_log_says_so(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    limits = ClientLimits(max_pages=5, max_items=7)
    for count, sent, shown in ((1, 5, 5), (3, 3, 7), (7, 1, 7)):
        async with opened(revision, limits=limits) as own:
            errand = own.start(names(own.client.prompts()))
            for number in range(sent):
                page = {"prompts": [{"name": "x"}] * count, "nextCursor": str(number)}
                own.wire.result(await own.wire.hear(), complete(revision, is_list=True, **page))

            assert ["x"] * shown == await errand.outcome()
            assert [] == await own.wire.rest()
            assert "the list of prompts is cut: it has more than 5 pages" in caplog.messages[-1]


@spec("2025-11-25", "server/utilities/pagination#pagination-model")
@spec("2026-07-28", "server/utilities/pagination#pagination-model")
@everywhere
@on_both_loops
async def test_a_list_without_end_ends_with_an_error_if_the_client_is_strict(revision: str) -> None:
    async with opened(revision, limits=ClientLimits(max_pages=5), strict=True) as own:
        errand = own.start(names(own.client.prompts()))
        for number in range(5):
            page = {"prompts": [], "nextCursor": str(number)}
            own.wire.result(await own.wire.hear(), complete(revision, is_list=True, **page))
        with pytest.raises(InvalidPayload, match="more than"):
            await errand.outcome()

        assert [] == await own.wire.rest()


@spec("2025-11-25", "server/utilities/pagination#operations-supporting-pagination")
@everywhere
async def test_a_list_whose_pages_are_too_large_together_ends_with_an_error(revision: str) -> None:
    async with opened(revision, limits=ClientLimits(max_list_bytes=10_000)) as own:
        errand = own.start(names(own.client.prompts()))
        for number in range(3):
            page = {"prompts": [{"name": "x" * 4000}], "nextCursor": str(number)}
            own.wire.result(await own.wire.hear(), complete(revision, is_list=True, **page))
        with pytest.raises(InvalidPayload, match=r"more than 10000 bytes of memory \(max_list_bytes\)"):
            await errand.outcome()

        assert [] == await own.wire.rest()


@spec("2024-11-05", "server/utilities/pagination#error-handling")
@spec("2025-11-25", "server/utilities/pagination#error-handling")
@spec("2026-07-28", "server/utilities/pagination#error-handling")
@everywhere
async def test_a_cursor_that_the_server_refuses_is_the_callers_error(revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(names(own.client.prompts()))
        own.wire.result(asked, complete(revision, is_list=True, prompts=[], nextCursor="c"))
        own.wire.error(await own.wire.hear(), -32602, "Invalid cursor")
        with pytest.raises(RequestRefused, match="Invalid cursor"):
            await errand.outcome()
