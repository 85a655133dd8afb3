"""Lists in pages."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers
from mcpgen.runtime.server.functions.pagination import PaginatedList
from tests.runtime.server.functions.callers import Caller

if TYPE_CHECKING:
    from collections.abc import Iterable


def listing(keys: Iterable[str], page_size: int = 2) -> PaginatedList[str]:
    made: PaginatedList[str] = PaginatedList("letter", page_size)
    for each in keys:
        made.add(each, each.upper())
    return made


def walk(listing: PaginatedList[str]) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor: Any = UNSET
    while cursor is not UNSET or not pages:
        shown, cursor = listing.page(cursor)
        pages.append(shown)
    return pages


@pytest.mark.spec("2024-11-05", "server/utilities/pagination#pagination-model")
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", [[]]),
        ("a", [["A"]]),
        ("ba", [["B", "A"]]),
        ("cba", [["C", "B"], ["A"]]),
        ("abcd", [["A", "B"], ["C", "D"]]),
    ],
)
def test_pages_hold_everything_once_in_order_of_registration(keys: str, expected: list[list[str]]) -> None:
    assert expected == walk(listing(keys))


@pytest.mark.spec("2025-03-26", "server/utilities/pagination#implementation-guidelines", "77a38892")
@pytest.mark.spec("2025-06-18", "server/utilities/pagination#implementation-guidelines", "77a38892")
@pytest.mark.spec("2025-11-25", "server/utilities/pagination#implementation-guidelines", "77a38892")
@pytest.mark.spec("2024-11-05", "server/utilities/pagination#implementation-guidelines", "77a38892")
@pytest.mark.spec("2026-07-28", "server/utilities/pagination#implementation-guidelines", "77a38892")
def test_a_cursor_outlives_what_comes_and_goes() -> None:
    letters = listing("abcdef")
    _, cursor = letters.page(UNSET)
    for gone in "abc":
        letters.remove(gone)
    letters.add("a", "A")

    assert (["D", "E"], ["F", "A"]) == (letters.page(cursor)[0], letters.page(letters.page(cursor)[1])[0])


def test_a_cursor_is_understood_by_another_process() -> None:
    _, cursor = listing("abc").page(UNSET)

    assert (["C"], UNSET) == listing("abc").page(cursor)


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.spec("2024-11-05", "server/utilities/pagination#error-handling")
@pytest.mark.spec("2025-11-25", "server/utilities/pagination#error-handling")
@pytest.mark.spec("2026-07-28", "server/utilities/pagination#error-handling")
@pytest.mark.parametrize(
    "cursor",
    [
        "2",
        "!",
        "é",
        "\ud800",
        encoded("letter 0"),
        encoded("letter -1"),
        encoded("letter 4"),
        encoded("letter 02"),
        encoded("letter ٢"),
        encoded("digit 2"),
        encoded("letter 2") + "\n",
        encoded("letter 2").rstrip("="),
        encoded("letter " + "9" * 100_000),
        base64.urlsafe_b64encode(b"letter \xff").decode(),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_a_cursor_that_is_not_ours_is_invalid_params(cursor: str) -> None:
    with pytest.raises(RequestError) as caught:
        listing("abc").page(cursor)

    assert (-32602, "Invalid cursor") == (caught.value.code, caught.value.message)


def test_a_page_holds_something() -> None:
    with pytest.raises(UsageError, match="`page_size` is 0"):
        FunctionHandlers(page_size=0)


@pytest.mark.anyio
@pytest.mark.spec("2025-11-25", "server/utilities/pagination#operations-supporting-pagination")
async def test_every_list_of_a_server_has_pages() -> None:
    catalogue = FunctionHandlers(page_size=2)
    for index in range(3):

        async def fixed() -> str: ...  # type: ignore[empty-body]
        async def template(a: str) -> str: ...  # type: ignore[empty-body]

        catalogue.tool(name=f"t{index}")(fixed)
        catalogue.prompt(name=f"p{index}")(fixed)
        catalogue.resource(f"x:{index}")(fixed)
        catalogue.resource(f"x:{index}/{{a}}")(template)
    caller = Caller(catalogue)
    lists = {"tools": caller.tools, "prompts": caller.prompts, "resources": caller.resources}

    for field, each in (lists | {"resource_templates": caller.templates}).items():
        first = await each()
        second = await each(cursor=first.next_cursor)
        assert [2, 1] == [len(getattr(page, field)) for page in (first, second)]
        assert UNSET is second.next_cursor
        with pytest.raises(RequestError, match="Invalid cursor"):
            await (caller.prompts if field == "tools" else caller.tools)(cursor=first.next_cursor)


@pytest.mark.spec("2026-07-28", "server/tools#capabilities")
def test_what_is_not_registered_is_not_declared() -> None:
    catalogue = FunctionHandlers()
    assert models.ServerCapabilities(logging={}) == catalogue.capabilities()

    @catalogue.tool
    async def it() -> None: ...

    @catalogue.resource("x:a")
    async def at() -> str: ...  # type: ignore[empty-body]

    assert catalogue.capabilities() == models.ServerCapabilities(
        logging={},
        tools=models.ServerCapabilitiesTools(list_changed=True),
        resources=models.ServerCapabilitiesResources(list_changed=True, subscribe=True),
    )


def test_an_empty_cursor_is_the_first_page_unless_the_server_is_strict() -> None:
    tolerant: PaginatedList[str] = PaginatedList("letter", 2)
    strict: PaginatedList[str] = PaginatedList("letter", 2, is_strict=True)
    for each in ("a", "b", "c"):
        tolerant.add(each, each)
        strict.add(each, each)

    assert tolerant.page(UNSET) == tolerant.page("")
    with pytest.raises(RequestError):
        strict.page("")
