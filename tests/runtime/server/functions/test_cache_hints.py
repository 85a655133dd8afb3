"""Cache hints: where they are set, what clients get, and that a result for one user is not public by accident."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from mcpgen import CacheHint, Context, Depends, Server, UsageError
from mcpgen.generated import registry
from mcpgen.runtime.protocol.newest import NEWEST, ServerHandlers, models
from tests.specification.server.revision_client import client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.server.cache_hints import CacheHints

pytestmark = pytest.mark.anyio

HOUR = CacheHint(ttl_ms=3_600_000, scope="public")
SHARED = ("public", 3_600_000)
DEFAULT = ("private", 0)
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
ALL = cast("CacheHints", dict.fromkeys(("server/discover", *LISTS, "resources/read"), HOUR))


async def user() -> str:
    return "alice"


def library(cache_hints: CacheHints | None = None) -> Server:
    server = Server("library", version="1", cache_hints=cache_hints)

    @server.tool(tags={"desk"})
    async def lend() -> str:
        return "lent"

    @server.prompt
    async def order(title: str) -> str:
        return title

    @server.resource("library:rules")
    async def rules() -> str:
        return "Be quiet."

    @server.resource("library:mine")
    async def mine(ctx: Context) -> str:
        return ctx.user

    @server.resource("library:yours/{title}")
    async def yours(title: str, name: str = Depends(user)) -> str:
        return title + name

    @server.resource("library:hours", cache_hint=CacheHint(ttl_ms=5))
    async def hours() -> str:
        return "nine to five"

    @server.resource("library:greeting", cache_hint=HOUR)
    async def greeting(ctx: Context) -> str:
        return f"Hello, client of {ctx.peer.revision}"

    @server.resource("library:full")
    async def full() -> models.ReadResourceResult:
        return models.ReadResourceResult(contents=[], ttl_ms=7)

    return server


async def hint(server: Server, method: str, params: str = "") -> tuple[str, int]:
    async with client(server, NEWEST) as peer:
        result = await peer.result(method, params)
    return result["cacheScope"], result["ttlMs"]


async def read_hint(server: Server, uri: str) -> tuple[str, int]:
    return await hint(server, "resources/read", f'"uri":"library:{uri}"')


@pytest.mark.spec("2026-07-28", "server/utilities/caching#cacheable-results")
@pytest.mark.parametrize("method", [*LISTS, "server/discover"])
async def test_a_hint_is_set_by_method_and_private_and_stale_by_default(method: str) -> None:
    assert SHARED == await hint(library(cast("CacheHints", {method: HOUR})), method)
    assert DEFAULT == await hint(library(cast("CacheHints", {"resources/read": HOUR})), method)


@pytest.mark.spec("2026-07-28", "server/utilities/caching#interaction-with-pagination", "2431cf09", "16063e79")
async def test_all_pages_have_the_hint() -> None:
    server = Server("pages", page_size=1, cache_hints={"tools/list": HOUR})
    for name in ("one", "two"):
        server.tool(name=name)(user)
    async with client(server, NEWEST) as peer:
        first = await peer.result("tools/list")
        second = await peer.result("tools/list", f'"cursor":"{first["nextCursor"]}"')

    assert ["public", "public"] == [first["cacheScope"], second["cacheScope"]]


@pytest.mark.spec("2026-07-28", "server/utilities/caching#choosing-a-cache-scope")
async def test_a_resource_has_its_own_hint_or_that_of_the_server() -> None:
    server = library(ALL)

    assert SHARED == await read_hint(server, "rules")
    assert ("private", 5) == await read_hint(server, "hours")
    assert SHARED == await read_hint(server, "greeting")
    assert ("private", 7) == await read_hint(server, "full")


@pytest.mark.parametrize("uri", ["mine", "yours/tea"])
async def test_a_resource_with_a_context_or_a_dependency_is_private_unless_it_says_otherwise(uri: str) -> None:
    assert ("private", HOUR.ttl_ms) == await read_hint(library(ALL), uri)


@pytest.mark.spec("2026-07-28", "server/utilities/caching#choosing-a-cache-scope")
async def test_a_resource_that_needs_scopes_is_private_unless_it_says_otherwise() -> None:
    server = library(ALL)

    @server.resource("library:members", scopes=["members"])
    async def members() -> str:
        return "alice and bob"

    @server.resource("library:loans/{title}", scopes=["members"])
    async def loans(title: str) -> str:
        return title

    @server.resource("library:board", scopes=["members"], cache_hint=HOUR)
    async def board() -> str:
        return "alice"

    private = ("private", HOUR.ttl_ms)

    assert [private, private] == [await read_hint(server, each) for each in ("members", "loans/tea")]
    assert SHARED == await read_hint(server, "board")
    assert SHARED == await read_hint(server, "rules")


@pytest.mark.spec("2026-07-28", "server/utilities/caching#interaction-with-pagination", "2431cf09", "16063e79")
async def test_all_pages_have_the_same_scope_if_middleware_changes_one_of_them() -> None:
    server = Server("pages", page_size=1, cache_hints={"tools/list": HOUR})
    for name in ("one", "two"):
        server.tool(name=name)(user)

    @server.middleware
    async def hide_two(params: Any, context: Any, call_next: Any) -> Any:
        result = await call_next(params, context)
        return msgspec.structs.replace(result, tools=[each for each in result.tools if each.name != "two"])

    async with client(server, NEWEST) as peer:
        first = await peer.result("tools/list")
        second = await peer.result("tools/list", f'"cursor":"{first["nextCursor"]}"')

    assert ["private", "private"] == [first["cacheScope"], second["cacheScope"]]


@pytest.mark.spec("2026-07-28", "server/utilities/caching#interaction-with-pagination", "2431cf09", "16063e79")
async def test_a_page_that_middleware_adds_has_the_scope_of_the_other_pages() -> None:
    server = library(ALL)

    @server.middleware
    async def add_a_page(params: Any, context: Any, call_next: Any) -> Any:
        if params.cursor == "more":
            return models.ListToolsResult(tools=[], ttl_ms=0, cache_scope="public")
        return msgspec.structs.replace(await call_next(params, context), next_cursor="more")

    async with client(server, NEWEST) as peer:
        first = await peer.result("tools/list")
        second = await peer.result("tools/list", f'"cursor":"{first["nextCursor"]}"')

    assert ["private", "private"] == [first["cacheScope"], second["cacheScope"]]


async def drop_all(params: Any, context: Any, call_next: Any) -> Any:
    result = await call_next(params, context)
    return msgspec.structs.replace(result, **({"tools": []} if context.method == "tools/list" else {"contents": []}))


async def drop_in_place(params: Any, context: Any, call_next: Any) -> Any:
    result = await call_next(params, context)
    (result.tools if context.method == "tools/list" else result.contents).clear()
    return result


async def ask_for_another(params: Any, context: Any, call_next: Any) -> Any:
    if context.method == "tools/list":
        return await call_next(msgspec.structs.replace(params, meta={**params.meta, "x": 1}), context)
    return await call_next(msgspec.structs.replace(params, uri="library:rules"), context)


@pytest.mark.spec("2026-07-28", "server/utilities/caching#security-considerations")
@pytest.mark.parametrize("middleware", [drop_all, drop_in_place, ask_for_another])
@pytest.mark.parametrize("method", ["tools/list", "resources/read"])
async def test_a_result_that_middleware_has_changed_is_private(middleware: Any, method: str) -> None:
    server = library(ALL)
    server.resource("library:more")(user)
    server.middleware(middleware)
    params = '"uri":"library:more"' if method == "resources/read" else ""

    assert ("private", HOUR.ttl_ms) == await hint(server, method, params)


async def test_middleware_that_changes_nothing_changes_no_hint_and_may_set_one() -> None:
    server = library({"tools/list": HOUR})

    @server.middleware
    async def around(params: Any, context: Any, call_next: Any) -> Any:
        result = await call_next(params, context)
        return msgspec.structs.replace(result, cache_scope="public") if context.method == "prompts/list" else result

    assert SHARED == await hint(server, "tools/list")
    assert ("public", 0) == await hint(server, "prompts/list")


async def test_the_lists_of_a_view_are_private() -> None:
    view = library(ALL).only(tags={"desk"})
    private = ("private", HOUR.ttl_ms)

    assert [private, private] == [await hint(view, each) for each in ("tools/list", "server/discover")]


async def test_older_revisions_have_no_hints_and_log_no_loss_of_them(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with client(library(ALL), revision) as peer:
        result = await peer.result("tools/list")

    assert (registry.revision(revision).era == "stateless") is ("ttlMs" in result)
    assert [] == [each.getMessage() for each in caplog.records if each.name.startswith("mcpgen")]


class Handlers(ServerHandlers[Any]): ...


def with_hints(given: object) -> Callable[[], object]:
    return lambda: Server("x", cache_hints=given)  # type: ignore[arg-type] # what is tested


WRONG: Mapping[str, tuple[Callable[[], object], str]] = {
    "no dict": (
        with_hints(HOUR),
        '`cache_hints` must be a dict, such as {"tools/list": CacheHint(ttl_ms=60_000)}, not ',
    ),
    "another method": (
        with_hints({"tools/call": HOUR}),
        "`cache_hints` has 'tools/call', but only the results of server/discover, tools/list, ",
    ),
    "no hint": (
        with_hints({"tools/list": 5}),
        "`cache_hints['tools/list']` must be a CacheHint, such as CacheHint(ttl_ms=60_000), not 5",
    ),
    "negative": (
        with_hints({"tools/list": CacheHint(ttl_ms=-1)}),
        "`ttl_ms` of `cache_hints['tools/list']` is -1; it must be a whole number of milliseconds, 0 or more",
    ),
    "a float": (with_hints({"tools/list": CacheHint(ttl_ms=cast("int", 0.5))}), "`ttl_ms` of "),
    "a scope": (
        with_hints({"tools/list": CacheHint(scope=cast("Any", "shared"))}),
        "`scope` of `cache_hints['tools/list']` is 'shared'; it must be public or private",
    ),
    "a resource": (
        lambda: Server("x").resource("x:y", cache_hint=cast("CacheHint", 5))(user),
        "`cache_hint` must be a CacheHint",
    ),
    "lists of handlers": (
        lambda: Server("x", handlers=Handlers(), cache_hints={"tools/list": HOUR}),
        "`cache_hints` has 'tools/list', but the server has `handlers`; remove this hint; handlers of 2026-07-28 set ",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_hint_is_refused(case: str) -> None:
    make, problem = WRONG[case]
    with pytest.raises(UsageError) as caught:
        make()

    assert str(caught.value).startswith(problem)


async def test_discovery_of_a_server_with_handlers_has_a_hint() -> None:
    server = Server("x", handlers=Handlers(), cache_hints={"server/discover": HOUR})

    assert SHARED == await hint(server, "server/discover")
