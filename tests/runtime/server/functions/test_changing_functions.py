"""Functions that come, go, are hidden and shown while a server runs; and views, which show only some of them."""

from __future__ import annotations

import gc
import threading
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint

from mcpgen import Context, Server, UsageError, connect, connect_sync
from mcpgen.generated import registry
from mcpgen.runtime.protocol.newest import NEWEST, ServerHandlers
from mcpgen.runtime.server.change_delivery import ChangeDelivery
from mcpgen.runtime.server.functions.visibility import Rule, Visibility
from mcpgen.runtime.server.list_changes import ListChanges
from mcpgen.runtime.transports.event_loops import running_loop
from tests.patience import PATIENCE_SECONDS
from tests.specification.server.revision_client import client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from tests.specification.server.revision_client import Client

pytestmark = pytest.mark.anyio

HANDSHAKES = [each.label for each in registry.REVISIONS if each.era == "handshake"]
LISTS = {"tools": "tools/list", "resources": "resources/list", "prompts": "prompts/list"}
EVERYTHING = '{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}'


def shop() -> Server:
    server = Server("shop", version="1")

    @server.tool
    async def buy() -> str:
        return "bought"

    @server.tool(tags={"admin", "stock"})
    async def restock() -> str:
        return "restocked"

    @server.resource("shop:opening", tags=["public"])
    async def opening() -> str:
        return "nine"

    @server.resource("shop:{item}", tags={"admin"})
    async def item(item: str) -> str:
        return item

    @server.prompt(tags={"admin"})
    async def report(month: str) -> str:
        return month

    @server.completion("report", "month")
    async def months(value: str) -> list[str]:
        return [value]

    return server


def changes(said: list[Any]) -> list[str]:
    return [each["method"].removeprefix("notifications/") for each in said]


async def names(peer: Client) -> list[str]:
    """Return the names of all that the client can list."""
    found = [(await peer.result(method))[kind] for kind, method in LISTS.items()]
    found.append((await peer.result("resources/templates/list"))["resourceTemplates"])
    return [each["name"] for listed in found for each in listed]


async def listen(peer: Client) -> None:
    """Have a stateless client subscribe to all lists; a client of the handshake hears of them anyway."""
    if peer.is_stateless:
        await peer.ask("subscriptions/listen", f'"notifications":{EVERYTHING}')


def new_tool(server: Server) -> None:
    @server.tool
    async def new() -> str: ...  # type: ignore[empty-body]


def new_template(server: Server) -> None:
    @server.resource("shop:{a}/{b}")
    async def new(a: str, b: str) -> str: ...  # type: ignore[empty-body]


CHANGES: dict[str, tuple[Callable[[Server], object], list[str]]] = {
    "a tool is added": (new_tool, ["tools"]),
    "a template is added": (new_template, ["resources"]),
    "a tool is removed": (lambda server: server.remove_tool("buy"), ["tools"]),
    "a resource is removed": (lambda server: server.remove_resource("shop:opening"), ["resources"]),
    "a template is removed": (lambda server: server.remove_resource("shop:{item}"), ["resources"]),
    "a prompt is removed": (lambda server: server.remove_prompt("report"), ["prompts"]),
    "a tool is disabled": (lambda server: server.disable(names={"buy"}), ["tools"]),
    "a resource is disabled": (lambda server: server.disable(names={"shop:opening"}), ["resources"]),
    "a tag is disabled": (lambda server: server.disable(tags={"admin"}), ["tools", "resources", "prompts"]),
    "prompts are disabled": (lambda server: server.disable(components={"prompt"}), ["prompts"]),
    "what is shown is enabled": (lambda server: server.enable(tags={"admin"}), []),
    "an unused tag is disabled": (lambda server: server.disable(tags={"nothing"}), []),
}


@pytest.mark.spec("2024-11-05", "server/tools#list-changed-notification")
@pytest.mark.spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications")
@pytest.mark.parametrize("change", CHANGES)
async def test_clients_are_notified_of_the_lists_that_have_changed(change: str, revision: str) -> None:
    server = shop()
    act, lists = CHANGES[change]
    async with client(server, revision) as peer:
        await listen(peer)
        act(server)

        assert [f"{each}/list_changed" for each in lists] == changes(await peer.wire.rest())


async def test_many_changes_in_one_step_are_one_notification(revision: str) -> None:
    server = shop()
    async with client(server, revision) as peer:
        await listen(peer)
        for number in range(100):
            server.tool(name=f"tool{number}")(print_nothing)
        server.disable(names={"tool7", "tool8"}).enable(names={"tool8"}).remove_tool("tool9")

        assert ["tools/list_changed"] == changes(await peer.wire.rest())


def print_nothing() -> None: ...


async def test_a_change_that_the_author_reports_as_well_is_reported_once(revision: str) -> None:
    server = shop()
    async with client(server, revision) as peer:
        await listen(peer)
        server.remove_tool("buy")
        await server.tools_changed()

        assert ["tools/list_changed"] == changes(await peer.wire.rest())


async def test_a_stateless_client_that_listens_to_nothing_is_not_notified() -> None:
    server = shop()
    async with client(server, NEWEST) as peer:
        server.remove_tool("buy")

        assert [] == await peer.wire.rest()


async def test_a_change_in_a_worker_thread_is_reported_in_the_event_loop(revision: str) -> None:
    server = shop()
    threads: list[int] = []
    async with client(server, revision) as peer:
        await listen(peer)
        write = peer.wire.write

        def noting(message: bytes) -> None:
            threads.append(threading.get_ident())
            write(message)

        peer.wire.write = noting  # type: ignore[method-assign] # to see which thread writes
        await to_thread.run_sync(lambda: server.disable(names={"buy"}))

        assert ["tools/list_changed"] == changes(await peer.wire.rest())
        assert [threading.get_ident()] == threads


def test_clients_in_event_loops_of_other_threads_are_notified() -> None:
    server = shop()
    with (
        connect_sync(server) as one,
        connect_sync(server) as two,
        one.listen(tools=True) as heard,
        two.listen(tools=True) as heard_too,
    ):
        server.remove_tool("buy")

        assert ["tools", "tools"] == [next(iter(heard)).kind, next(iter(heard_too)).kind]


class Noting:
    """A connection that notes what it is notified of."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def notify_change(self, method: str, uri: str | None) -> None:
        assert uri is None
        self.heard.append(method)


async def test_each_event_loop_notifies_its_own_connections() -> None:
    here, elsewhere = Noting(), Noting()
    connections: Any = {here: running_loop(), elsewhere: None}
    ListChanges(connections, ChangeDelivery(connections)).announce(["a", "b", "a"])

    assert [[], ["a", "b"]] == [here.heard, elsewhere.heard]

    await checkpoint()
    await checkpoint()

    assert [["a", "b"], ["a", "b"]] == [here.heard, elsewhere.heard]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_change_that_a_function_reports_reaches_clients_in_other_event_loops(backend: str) -> None:
    server = shop()
    heard: list[str | None] = []
    is_listening, is_over = threading.Event(), threading.Event()

    @server.tool
    async def reopen(ctx: Context) -> None:
        await ctx.resource_updated("shop:opening")

    async def listen() -> None:
        async with connect(server) as client, client.listen(uris=["shop:opening"]) as changes:
            is_listening.set()
            heard.append((await anext(changes)).uri)
            is_over.set()

    async def report() -> None:
        async with connect(server) as client, client.listen(uris=["shop:opening"]) as changes:
            assert not (await client.call_tool("reopen")).is_error
            heard.append((await anext(changes)).uri)

    listening = threading.Thread(target=partial(anyio.run, listen, backend=backend), daemon=True)
    listening.start()
    assert is_listening.wait(PATIENCE_SECONDS)
    anyio.run(report, backend=backend)

    assert is_over.wait(PATIENCE_SECONDS)
    assert ["shop:opening"] * 2 == heard
    listening.join(PATIENCE_SECONDS)


def test_a_change_after_the_event_loop_has_ended_is_not_reported() -> None:
    server = shop()

    async def connect_and_leave() -> None:
        server._engine.add(forgotten)  # type: ignore[arg-type] # all that is called of a connection

    forgotten = Noting()
    anyio.run(connect_and_leave)
    server.remove_tool("buy")

    assert [] == forgotten.heard
    assert {} == server._engine._list_changes._pending


# --- hidden functions


async def test_a_hidden_function_is_neither_listed_nor_served(revision: str) -> None:
    server = shop()
    reference = '"ref":{"type":"ref/prompt","name":"report"},"argument":{"name":"month","value":"5"}'
    async with client(server, revision) as peer:
        assert "restocked" in str(await peer.call("restock"))
        server.disable(tags={"admin"})
        await peer.wire.rest()

        assert ["buy", "opening"] == await names(peer)
        assert "Unknown tool: restock" == (await peer.call("restock"))[-1]["error"]["message"]
        assert "Unknown prompt: report" == (await peer.error("prompts/get", '"name":"report"'))["message"]
        assert "Resource not found" == (await peer.error("resources/read", '"uri":"shop:tea"'))["message"]
        assert "Unknown reference: report" == (await peer.error("completion/complete", reference))["message"]

        server.enable(tags={"admin"})
        await peer.wire.rest()

        assert ["buy", "restock", "opening", "report", "item"] == await names(peer)
        assert "restocked" in str(await peer.call("restock"))
        assert ["5"] == (await peer.result("completion/complete", reference))["completion"]["values"]


async def test_a_call_that_runs_when_its_tool_is_disabled_goes_on(revision: str) -> None:
    server = Server("busy", version="1")

    @server.tool
    async def hide_me() -> str:
        server.disable(names={"hide_me"})
        await checkpoint()
        return "done"

    async with client(server, revision) as peer:
        said = await peer.call("hide_me")

        assert ["done"] == [each["result"]["content"][0]["text"] for each in said if "result" in each]


async def test_the_capabilities_do_not_depend_on_what_is_hidden(revision: str) -> None:
    server = shop()
    before = server._engine.handlers.capabilities(revision)
    server.disable(components={"tool", "resource", "template", "prompt"})

    assert before == server._engine.handlers.capabilities(revision)
    for each in ("tools", "resources", "prompts"):
        assert before[each]["listChanged"] is True  # type: ignore[index]
    async with client(server, revision) as peer:
        assert [] == await names(peer)


def shown(server: Server) -> list[str]:
    return [key for each in server._registry.lists.values() for key in each.entries]


def test_the_last_call_decides() -> None:
    server = shop()

    assert ["buy", "shop:opening"] == shown(server.disable(tags={"admin"}))
    assert ["buy", "restock", "shop:opening"] == shown(server.enable(names={"restock"}))
    assert ["buy", "shop:opening"] == shown(server.disable(tags={"stock", "other"}))
    assert ["report"] == shown(server.enable(tags={"admin"}, components={"prompt"}, only=True))
    assert ["shop:opening", "report"] == shown(server.enable(names={"shop:opening"}))
    assert 5 == len(shown(server.enable(components=["tool", "resource", "template", "prompt"])))


def test_a_disabled_tag_holds_for_functions_that_are_registered_later() -> None:
    server = Server("later").disable(tags={"admin"})
    server.tool(tags={"admin"}, name="late")(print_nothing)

    assert [] == shown(server)


def test_the_name_of_a_hidden_function_stays_in_use_until_it_is_removed() -> None:
    server = shop().disable(names={"buy"})
    with pytest.raises(UsageError, match=r"the tool 'buy' of .* is registered already"):
        server.tool(name="buy")(print_nothing)
    server.remove_tool("buy")
    server.tool(name="buy")(print_nothing)

    assert "buy" in shown(server)


def test_rules_do_not_pile_up() -> None:
    rules = Visibility()
    for number in range(100):
        rules.add(Rule(is_shown=bool(number % 2), names=frozenset({"a"})))
        rules.add(Rule(is_shown=bool(number % 2), tags=frozenset({"t", "u"})))
        rules.add(Rule(is_shown=bool(number % 3), tags=frozenset({"t"}), components=frozenset({"tool"})))

    assert 3 == len(rules.rules)

    rules.forget("a")

    assert 2 == len(rules.rules)


def test_functions_that_are_hidden_and_shown_in_turn_need_no_more_rules() -> None:
    rules, counts = Visibility(), set[int]()
    for _ in range(5):
        for is_shown in (False, True):
            for name in "abc":
                rules.add(Rule(is_shown=is_shown, names=frozenset({name})))
                assert is_shown is rules.shows("tool", name, frozenset())
                counts.add(len(rules.rules))

    assert {1, 2} == counts


def test_functions_that_are_hidden_one_by_one_need_one_rule() -> None:
    rules = Visibility()
    rules.show_only(Rule(is_shown=True, tags=frozenset({"t"})))
    for name in "abc":
        rules.add(Rule(is_shown=False, names=frozenset({name})))
    rules.add(Rule(is_shown=True, names=frozenset({"b"})))
    rules.add(Rule(is_shown=True, names=frozenset({"d"}), components=frozenset({"tool"})))

    assert 5 == len(rules.rules)
    assert [False, True, False, True, False] == [
        rules.shows("tool", name, frozenset(tags))
        for name, tags in [("a", "t"), ("b", "t"), ("c", "t"), ("d", ""), ("e", "")]
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "no functions are selected; pass `names`, `tags` or `components`"),
        ({"tags": "admin"}, "`tags` must be a list of strings, such as [\"admin\"], not 'admin'"),
        ({"names": {3}}, '`names` must be a list of strings, such as ["admin"], not {3}'),
        ({"tags": 3}, '`tags` must be a list of strings, such as ["admin"], not 3'),
        ({"components": "tool"}, "`components` must be a list of strings, such as [\"tool\"], not 'tool'"),
        ({"components": {"tools"}}, "`components` has 'tools'; it may have tool, resource, template, prompt"),
        ({"names": {"bye"}}, "`names` has 'bye', but there is no function of that name; registered: buy, report, "),
    ],
)
def test_a_wrong_selection_is_refused(options: Any, problem: str) -> None:
    server = shop()
    for act in (server.enable, server.disable, server.only):
        with pytest.raises(UsageError) as caught:
            act(**options)

        assert str(caught.value).startswith(problem)


def test_wrong_tags_are_refused() -> None:
    for register in (Server("x").tool, Server("x").prompt, Server("x").resource):
        with pytest.raises(UsageError, match="`tags` must be a list of strings"):
            register("x:y", tags="admin")(print_nothing) if register.__name__ == "resource" else register(tags="admin")(
                print_nothing
            )


def test_handlers_have_no_functions_to_enable() -> None:
    class Handlers(ServerHandlers[Any]): ...

    server = Server("x", handlers=Handlers())
    for act in (server.enable, server.disable, server.only):
        with pytest.raises(UsageError, match="the server 'x' has `handlers`"):
            act(tags={"a"})


# --- views


async def test_a_view_shows_only_what_matches_and_follows_its_server(revision: str) -> None:
    server = shop()
    view = server.only(tags={"admin"})
    async with client(view, revision) as peer:
        await listen(peer)

        assert ["restock", "report", "item"] == await names(peer)
        assert "Unknown tool: buy" == (await peer.call("buy"))[-1]["error"]["message"]
        assert "restocked" in str(await peer.call("restock"))

        server.tool(tags={"admin"}, name="close")(print_nothing)
        server.tool(name="leave")(print_nothing)

        assert ["tools/list_changed"] == changes(await peer.wire.rest())
        assert ["restock", "close", "report", "item"] == await names(peer)

        server.remove_tool("buy")  # which this client has never seen
        assert [] == await peer.wire.rest()

        server.disable(names={"restock"})
        assert ["tools/list_changed"] == changes(await peer.wire.rest())
        assert ["close", "report", "item"] == await names(peer)

        view.disable(components={"prompt"})
        assert ["prompts/list_changed"] == changes(await peer.wire.rest())
        assert ["close", "item"] == await names(peer)

    assert "report" in shown(server)


async def test_a_view_declares_only_what_it_has_shown(revision: str) -> None:
    server = shop()
    view = server.only(tags={"public"})

    assert {"resources", "logging"} == set(view._engine.handlers.capabilities(revision))

    server.tool(tags={"public"}, name="greet")(print_nothing)

    assert {"resources", "logging", "tools"} == set(view._engine.handlers.capabilities(revision))


@pytest.mark.slow
async def test_a_view_that_only_its_application_holds_follows_the_server() -> None:
    server = shop()
    engine = server.only(tags={"admin"})._engine
    gc.collect()
    server.remove_prompt("report")

    assert {"prompts": []} == {"prompts": list(engine.handlers._handlers._registry.prompts.entries)}


@pytest.mark.slow
async def test_a_view_that_nothing_holds_is_forgotten() -> None:
    server = shop()
    for _ in range(3):
        server.only(tags={"admin"})
    gc.collect()

    assert 0 == len(server._registry._views)


async def test_a_view_shares_lifespan_dependencies_and_middleware() -> None:
    opened: list[str] = []
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server[Any]) -> AsyncGenerator[list[str]]:
        opened.append(server.name)
        yield opened
        opened.append("closed")

    server = Server("shared", version="1", lifespan=lifespan)
    view = server.only(tags={"a"})

    @server.tool(tags={"a"})
    async def it(ctx: Context[list[str]]) -> str:
        return ctx.state[0]

    @server.middleware
    async def note(params: Any, ctx: Context, call_next: Any) -> Any:
        seen.append(params.name)
        return await call_next(params, ctx)

    async with connect(server) as one, connect(view) as two:
        assert ["shared", "shared"] == [(await each.call_tool("it")).text for each in (one, two)]

    assert ["shared", "closed"] == opened
    assert ["it", "it"] == seen


def test_a_view_registers_nothing() -> None:
    view = shop().only(tags={"admin"})
    for act in (
        lambda: view.tool(print_nothing),
        lambda: view.remove_tool("restock"),
        lambda: view.middleware(print_nothing),  # type: ignore[type-var] # it is refused before it is called
    ):
        with pytest.raises(UsageError, match="a view, which `only` returned, cannot register"):
            act()


def test_a_view_of_a_view_shows_what_both_match() -> None:
    server = shop()
    view = server.only(tags={"admin"}).only(components={"tool"})

    assert ["restock"] == shown(view)

    server.tool(tags={"admin"}, name="close")(print_nothing)

    assert ["restock", "close"] == shown(view)


async def test_states_of_a_server_are_not_valid_in_its_view() -> None:
    keys = [b"k" * 32]
    server, same = (Server("sealed", state_keys=keys) for _ in range(2))
    server.tool(tags={"a"}, name="it")(print_nothing)
    same.tool(tags={"a"}, name="it")(print_nothing)
    about: Any = {"principal": "", "method": "tools/call", "digest": b""}
    state = server.only(tags={"a"})._engine.sealer.seal(b"state", **about)

    assert b"state" == same.only(tags={"a"})._engine.sealer.open(state, **about)
    for other in (server, server.only(tags={"b"})):
        with pytest.raises(Exception, match="is not valid for this request"):
            other._engine.sealer.open(state, **about)


async def test_functions_that_change_in_many_threads_are_all_there(anyio_backend_name: str) -> None:
    del anyio_backend_name
    server = Server("threads")

    def register(number: int) -> None:
        server.tool(name=f"tool{number}", tags={"all"})(print_nothing)
        server.disable(names={f"tool{number}"})

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            for number in range(30):
                group.start_soon(to_thread.run_sync, register, number)

    assert 30 == len(server._registry.tools.registered)
    assert [] == shown(server)
