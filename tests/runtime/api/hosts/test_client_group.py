"""One client over several servers: joined lists, routed calls, and servers that fail."""

from __future__ import annotations

import logging
import sys
import textwrap
import time
import traceback
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mcpgen import (
    ClientGroup,
    ClientLimits,
    NoServerConnected,
    RequestError,
    RequestRefused,
    RequestTimedOut,
    Server,
    ServerExited,
    ToolFailed,
    TransportClosed,
    UsageError,
    connect,
)
from mcpgen.generated.v2026_07_28 import ListResourcesResult, ServerHandlers
from mcpgen.runtime.api.hosts import client_group
from mcpgen.runtime.api.hosts.group_start import prepare_group
from mcpgen.runtime.api.hosts.uri_templates import template_fits
from mcpgen.runtime.protocol.newest import models
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

SECRET = "hunter2"  # noqa: S105 (planted)


def shop(name: str, *tools: str) -> Server:
    """Return a server with tools that say the server's name, a prompt, a resource and a template."""
    server = Server(name, version="1")

    def tell() -> str:
        return name

    for each in ("tell", *tools):
        server.tool(tell, name=each)

    @server.prompt(name="ask")
    def ask(topic: str = "") -> str:
        return f"{name} {topic}"

    @server.completion("ask", "topic")
    def topics(value: str) -> list[str]:
        return [f"{value} of {name}"]

    scheme = name.replace("_", "-")

    @server.resource(f"{scheme}:one")
    def one() -> str:
        return f"one of {name}"

    @server.resource(f"{scheme}:item/{{number}}")
    def item(number: str) -> str:
        return f"{number} of {name}"

    @server.completion(f"{scheme}:item/{{number}}", "number")
    def numbers(value: str) -> list[str]:
        return [f"{value} of {name}"]

    @server.resource("shared:thing")
    def thing() -> str:
        return name

    return server


async def group_of(**servers: Server) -> ClientGroup:
    """Return a group of servers in this process."""
    config = {"mcpServers": {name: {"command": "x"} for name in servers}}
    start, _ = prepare_group(config, lambda transport: connect(servers[transport.description]))
    return await start()


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


async def test_lists_are_joined_in_the_order_of_the_configuration() -> None:
    async with await group_of(b=shop("b"), a=shop("a")) as group:
        assert ["b_tell", "a_tell"] == [each.name async for each in group.tools()]
        assert ["b_ask", "a_ask"] == [each.name async for each in group.prompts()]
        uris = [each.uri async for each in group.resources()]
        assert ["b:one", "shared:thing", "a:one", "shared:thing"] == uris
        templates = [each.uri_template async for each in group.resource_templates()]
        assert ["b:item/{number}", "a:item/{number}"] == templates


async def test_calls_go_to_the_server_of_their_name() -> None:
    async with await group_of(a=shop("a"), b=shop("b")) as group:
        assert "b" == (await group.call_tool("b_tell")).text
        assert "a" == await group.call_tool("a_tell", {}, returns=str)
        assert "a tea" in repr(await group.get_prompt("a_ask", {"topic": "tea"}))
        completed = await group.complete(models.PromptReference(name="b_ask"), "topic", "tea")
        assert ["tea of b"] == completed.values


async def test_a_resource_is_read_from_the_server_that_lists_it_or_its_template() -> None:
    async with await group_of(a=shop("a"), b=shop("b")) as group:
        assert "one of b" in repr(await group.read_resource("b:one"))
        assert "one of b" in repr(await group.read_resource("b:one"))
        assert "7 of a" in repr(await group.read_resource("a:item/7"))
        with pytest.raises(UsageError, match=r"the servers 'a', 'b' all have 'shared:thing'.*group\['a'\]"):
            await group.read_resource("shared:thing")
        with pytest.raises(UsageError, match="no server lists 'c:one'; use the client of one server"):
            await group.read_resource("c:one")
        assert "b" in repr(await group["b"].read_resource("shared:thing"))


@pytest.mark.parametrize("first", ["honest", "other"])
async def test_a_server_that_lists_what_fits_the_template_of_another_does_not_get_the_request(first: str) -> None:
    other = Server("other")

    @other.resource("honest:item/7")
    def item() -> str:
        return "of the other"

    servers = {"honest": shop("honest"), "other": other}
    async with await group_of(**{first: servers.pop(first)}, **servers) as group:
        with pytest.raises(UsageError, match="all have 'honest:item/7'"):
            await group.read_resource("honest:item/7")


async def test_the_servers_of_the_last_resources_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program can read any number of resources of a template."""
    monkeypatch.setattr(client_group, "_MAX_OWNERS", 3)
    monkeypatch.setattr(client_group, "MAX_URI_CHARS", len("a:item/0"))
    async with await group_of(a=shop("a")) as group:
        for each in (*range(5), 10):
            await group.read_resource(f"a:item/{each}")
        assert [f"a:item/{each}" for each in (2, 3, 4)] == list(group._owners)


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("x:{a}", "x:", True),
        ("x:{a}{b}", "x:1", True),
        ("x:{a}/{b}/z", "x:1/2/3/z", True),
        ("x:{a}\n{b}", "x:1\n2\n3", True),
        ("{a}/1/{b}/2", "x/1/2", False),  # the parts may not overlap
        ("aa{a}aa", "aaa", False),
        ("x:{a}/y/{b}", "x:1/z/2", False),
        ("x:1", "x:1", True),
        ("x:1", "x:12", False),
        ("x:{a", "x:1", False),
        ("x:{a}" + "{b}" * 10_000, "x:1", False),  # a server can list one of a million expressions
    ],
)
def test_a_template_fits_what_has_its_texts_in_their_order(template: str, uri: str, fits: bool) -> None:  # noqa: FBT001
    assert fits == template_fits(template, uri)


async def test_long_templates_are_compared_in_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of a hostile server can have a million expressions, which take a second."""
    long = Server("long", version="1", page_size=200)

    def thing(a: str) -> str:
        return a

    for number in range(200):
        long.resource(f"long:{number}/{'x' * 1000}/{{a}}", name=f"thing {number}")(thing)
    turns: list[int] = []
    compared: dict[int, int] = {}

    def compare(template: str, uri: str) -> bool:
        compared[len(turns)] = compared.get(len(turns), 0) + len(template)
        return template_fits(template, uri)

    async def count() -> None:
        while True:
            turns.append(1)
            await checkpoint()

    monkeypatch.setattr(client_group, "template_fits", compare)
    async with await group_of(long=long) as group, anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        with pytest.raises(UsageError, match="no server lists"):
            await group.read_resource("other:one")
        tasks.cancel_scope.cancel()

    assert sum(compared.values()) > 200_000
    assert max(compared.values()) <= 2 * 64 * 1024  # trio may run a task twice between two runs of another


@pytest.mark.slow
async def test_a_template_of_a_hostile_server_does_not_stop_the_client() -> None:
    hostile = Server("hostile", version="1")

    @hostile.resource("x:" + "-".join(f"{{v{each}}}" for each in range(4)) + "!")
    def none(v0: str, v1: str, v2: str, v3: str) -> str:
        return v0 + v1 + v2 + v3

    async with await group_of(a=shop("a"), hostile=hostile) as group:
        started = time.thread_time()
        with pytest.raises(UsageError, match="no server lists"):
            await group.read_resource("x:" + "-" * 250)
        assert time.thread_time() - started < 1


async def test_a_template_is_completed_by_the_server_that_lists_it() -> None:
    async with await group_of(a=shop("a"), b=shop("b")) as group:
        reference = models.ResourceTemplateReference(uri="b:item/{number}")
        assert ["1 of b"] == (await group.complete(reference, "number", "1")).values
        with pytest.raises(UsageError, match=r"no server lists 'c:\{x\}'"):
            await group.complete(models.ResourceTemplateReference(uri="c:{x}"), "x", "1")


async def test_a_name_that_two_servers_may_mean_goes_to_the_one_that_lists_it() -> None:
    async with await group_of(a=shop("a", "b_c", "b_both"), a_b=shop("a_b", "d", "both")) as group:
        assert "a" == (await group.call_tool("a_b_c")).text
        assert "a_b" == (await group.call_tool("a_b_d")).text
        with pytest.raises(UsageError, match="the servers 'a', 'a_b' all have 'a_b_both'; use the client of one"):
            await group.call_tool("a_b_both")
        with pytest.raises(UsageError, match="no server lists 'a_b_none'; use the client of one"):
            await group.call_tool("a_b_none")


async def test_the_tool_of_a_server_that_is_not_connected_goes_to_no_other_server() -> None:
    config = {"mcpServers": {"a": {"command": "x"}, "a_b": {"command": ["wrong"]}}}
    start, _ = prepare_group(config, lambda transport: connect(shop("a", "b_c")))
    async with await start() as group:
        with pytest.raises(TransportClosed, match="the server 'a_b' is not connected"):
            await group.call_tool("a_b_c")
        assert "a" == (await group.call_tool("a_tell")).text


async def test_a_server_without_a_list_is_left_out() -> None:
    bare = Server("bare")

    @bare.tool
    def one() -> int:
        return 1

    async with await group_of(bare=bare, b=shop("b")) as group:
        assert ["bare_one", "b_tell"] == [each.name async for each in group.tools()]
        assert ["b_ask"] == [each.name async for each in group.prompts()]
        assert "one of b" in repr(await group.read_resource("b:one"))


class Endless(ServerHandlers[object]):
    """Lists that go on for ever: an empty page after the other."""

    def __init__(self) -> None:
        self.pages = 0

    async def list_resources(self, params: models.PaginatedRequestParams, context: object, /) -> ListResourcesResult:
        self.pages += 1
        await anyio.sleep(0.05)
        return ListResourcesResult(resources=[], next_cursor=str(self.pages), ttl_ms=0, cache_scope="private")


async def test_a_server_whose_list_never_ends_holds_nobody_up() -> None:
    endless = Endless()
    async with await group_of(a=shop("a"), b=Server("b", version="1", handlers=endless)) as group:
        with pytest.raises(RequestTimedOut, match="resources/list was not answered within"):
            await group.read_resource("a:one", timeout_seconds=0.3)
        assert 0 < endless.pages < 10
        assert "a" == (await group.call_tool("a_tell")).text


async def test_a_call_has_the_time_that_the_search_for_its_server_leaves() -> None:
    slow = Server("a", version="1")

    @slow.resource("a:slow")
    async def wait() -> str:
        await anyio.sleep_forever()
        return ""

    @slow.middleware
    async def delay(params: Any, context: Any, call_next: Any) -> Any:
        if context.method == "resources/list":
            await anyio.sleep(0.5)
        return await call_next(params, context)

    async with await group_of(a=slow) as group:
        with pytest.raises(RequestTimedOut, match="resources/read was not answered within") as late:
            await group.read_resource("a:slow", timeout_seconds=2)
        assert late.value.seconds <= 1.5


async def test_errors_name_the_server() -> None:
    async with await group_of(a=shop("a"), b=shop("b")) as group:
        with pytest.raises(RequestRefused, match="nope") as refused:
            await group.call_tool("b_nope")
        assert "This is about the server 'b'." in told(refused.value)
        with pytest.raises(
            UsageError, match=r"the tool 'tell' does not begin with the name of a server.* one of 'a', 'b'"
        ):
            await group.call_tool("tell")
        with pytest.raises(UsageError, match=r"the prompt 'x'.* does not begin with .*; write SERVER_PROMPT"):
            await group.get_prompt("x")
        with pytest.raises(UsageError, match="the group has no server 'c'; its servers are 'a', 'b'"):
            group["c"]


async def test_a_list_that_fails_comes_after_those_of_the_other_servers() -> None:
    broken = shop("a")

    @broken.middleware
    async def refuse(params: Any, context: Any, call_next: Any) -> Any:
        if context.method == "tools/list":
            raise RequestError(-32603, "no")
        return await call_next(params, context)

    async with await group_of(a=broken, b=shop("b")) as group:
        tools = group.tools()
        assert "b_tell" == (await anext(tools)).name
        with pytest.raises(RequestRefused) as refused:
            await anext(tools)

    assert "This is about the server 'a'." in told(refused.value)


async def test_a_tool_that_fails_names_the_server_too() -> None:
    server = Server("any")

    @server.tool
    def fail() -> int:
        raise ValueError(SECRET)

    async with await group_of(a=server) as group:
        with pytest.raises(ToolFailed) as failure:
            await group.call_tool("a_fail", returns=int)

    assert "This is about the server 'a'." in told(failure.value)


async def test_all_clients_are_closed_with_the_group() -> None:
    async with await group_of(a=shop("a"), b=shop("b")) as group:
        clients = list(group.clients.values())
    await group.close()

    for client in clients:
        with pytest.raises(TransportClosed):
            await client.ping()


async def test_closing_is_not_cut_short_by_a_cancellation() -> None:
    group = await group_of(a=shop("a"), b=shop("b"))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await group.close()

    for client in group.clients.values():
        with pytest.raises(TransportClosed):
            await client.ping()


@pytest.mark.slow
async def test_functions_that_answer_are_given_to_each_client(tmp_path: Path) -> None:
    file = tmp_path / "asking.py"
    file.write_text(
        textwrap.dedent("""
            from mcpgen import Context, Server

            server = Server("asking")

            @server.tool
            async def roots(context: Context) -> list[str]:
                return [each.uri for each in await context.roots()]
        """),
        encoding="utf-8",
    )
    command = {"command": sys.executable, "args": ["-P", "-m", "mcpgen", "serve", str(file)]}
    asked: list[str] = []

    def roots(context: Any) -> list[models.Root]:
        asked.append(context.peer.info.name)
        return [models.Root(uri="file:///x")]

    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect({"mcpServers": {"a": command, "b": command}}, roots=roots) as group:
            assert ["file:///x"] == await group.call_tool("a_roots", returns=list[str])
            assert ["file:///x"] == await group.call_tool("b_roots", returns=list[str])

    assert ["asking", "asking"] == asked


# Servers that fail

EXITING = {"command": sys.executable, "args": ["-c", "raise SystemExit(3)", f"--token={SECRET}"], "env": {"T": SECRET}}
SILENT = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()", f"--token={SECRET}"]}
GOOD = """
from mcpgen import Server
server = Server("good")
@server.tool
def add(a: int, b: int) -> int:
    return a + b
@server.tool
def die() -> int:
    import os
    os._exit(4)
"""


def good(tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "good.py"
    file.write_text(GOOD, encoding="utf-8")
    return {"command": sys.executable, "args": ["-P", "-m", "mcpgen", "serve", str(file), f"--token={SECRET}"][:5]}


async def test_a_server_that_does_not_start_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpgen")
    servers = {
        "missing": {"command": "no-such-program", "args": [SECRET]},
        "good": {**good(tmp_path), "alwaysAllow": [SECRET]},
        "exiting": EXITING,
        "wrong": {"command": ["x", SECRET]},
        "unreachable": {"url": f"http://u:{SECRET}@127.0.0.1:9/?key={SECRET}", "headers": {"X": SECRET}},
        "off": {"command": "no-such-program", "disabled": True},
    }
    connection = connect({"mcpServers": servers}, limits=ClientLimits(connect_seconds=PATIENCE_SECONDS))
    async with connection as group:
        assert 3 == await group.call_tool("good_add", {"a": 1, "b": 2}, returns=int)
        assert {"missing", "exiting", "wrong", "unreachable"} == set(group.failures)
        assert isinstance(group.failures["exiting"], ServerExited)
        with pytest.raises(TransportClosed, match="the server 'missing' is not connected: 'no-such-program' cannot be"):
            await group.call_tool("missing_x")
        with pytest.raises(UsageError, match="does not begin with the name of a server"):
            await group.call_tool("off_x")
        said = [repr(connection), repr(group), *map(told, group.failures.values())]

    assert "the server 'exiting' has exited with status 3" in caplog.text
    assert "the server 'good' of the configuration has keys that are not used: alwaysAllow" in caplog.text
    assert "the server 'off' is disabled in the configuration" in caplog.text
    assert SECRET not in caplog.text + "".join(said)


async def test_a_server_that_dies_later_is_named(tmp_path: Path) -> None:
    async with connect({"mcpServers": {"good": good(tmp_path)}}) as group:
        with pytest.raises(ServerExited, match="the server 'good' has exited with status 4"):
            await group.call_tool("good_die")


async def test_a_server_that_is_not_ready_is_named() -> None:
    with pytest.raises(NoServerConnected) as failure:
        await connect({"mcpServers": {"slow": SILENT}}, limits=ClientLimits(connect_seconds=0.2))

    assert isinstance(failure.value.failures["slow"], RequestTimedOut)
    assert "\n    slow: the server 'slow' was not ready within 0.2 seconds" in str(failure.value)


async def test_without_any_server_there_is_an_error_with_each_reason() -> None:
    with pytest.raises(NoServerConnected) as failure:
        await connect({"mcpServers": {"a": EXITING, "b": {"command": ""}}})

    text = str(failure.value)
    assert text.startswith("no server of the configuration could be connected:\n")
    assert "\n    a: the server 'a' has exited with status 3" in text
    assert "\n    b: the server 'b' of the configuration is wrong: `command` is empty" in text
    assert {"a", "b"} == set(failure.value.failures)
    assert SECRET not in told(failure.value)


async def test_if_all_servers_are_disabled_the_error_says_so() -> None:
    with pytest.raises(NoServerConnected, match="the configuration disables all of them"):
        await connect({"mcpServers": {"a": {"command": "x", "disabled": True}}})


async def test_a_cancelled_start_leaves_no_client(tmp_path: Path) -> None:
    opened: list[Any] = []
    servers = {"good": shop("good")}

    async def recorded(transport: Any) -> Any:
        if transport.description == "slow":
            await anyio.sleep_forever()
        opened.append(await connect(servers[transport.description]))
        scope.cancel()
        return opened[0]

    start, _ = prepare_group({"mcpServers": {"slow": {"command": "x"}, "good": {"command": "x"}}}, recorded)
    with anyio.CancelScope() as scope:
        await start()

    assert scope.cancelled_caught
    with pytest.raises(TransportClosed):
        await opened[0].ping()


# Wrong arguments are reported by `connect`, and not later


def test_options_are_checked_at_once() -> None:
    config = {"mcpServers": {"a": {"command": "x"}}}

    with pytest.raises(UsageError, match="connect\\(\\) has no option `elicitt`"):
        connect(config, elicitt=print)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="`native_revision` is for a connection to one server"):
        connect(config, native_revision="2025-11-25")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="the configuration has no `mcpServers`"):
        connect({"command": "x"})
