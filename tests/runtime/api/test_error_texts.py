"""Errors that a newcomer meets: each says what is wrong, where, and what to do."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import Context, RequestRefused, Server, SyncClient, UsageError, connect, connect_sync, read_config
from mcpgen.generated import v2025_11_25 as old
from mcpgen.generated.v2026_07_28 import TextContent
from mcpgen.middleware import ErrorHandlingMiddleware, ResponseLimitingMiddleware, TimingMiddleware
from mcpgen.testing import REVISIONS, Answers, connect_as

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcpgen.testing import Answer

server = Server("demo")


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def ask(ctx: Context) -> str:
    return str((await ctx.elicit("Sure?", bool)).content)


class Unknown:
    """A class that msgspec does not know."""


async def _takes_one(ctx: Context) -> None: ...


def _enter(opened: Any) -> None:
    with opened:
        raise AssertionError


async def _enter_async(opened: Any) -> None:
    async with opened:
        raise AssertionError


def _wrapped(function: Any) -> Any:
    def wrapper(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    return wrapper


def _iterate(opened: SyncClient) -> None:
    with opened as client:
        list(client.listen(tools=True))


def _listen(*filters: Any, **options: Any) -> None:
    with connect_sync(server) as client:
        client.listen(*filters, **options)


def _call(**options: Any) -> None:
    with connect_sync(server) as client:
        client.call_tool("add", **options)


async def _run() -> None:
    server.run()


def _replace(value: Any) -> None:
    server.overrides[add] = value


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "connect without async": (
        lambda: _enter(connect(server)),
        "connect() needs `async with`; without `async`, write `with connect_sync(…) as client`",
    ),
    "connect_sync with async": (
        lambda: asyncio.run(_enter_async(connect_sync(server))),
        "connect_sync() needs `with`; in a coroutine, write `async with connect(…) as client`",
    ),
    "a native revision": (
        lambda: connect_sync(server, native_revision="2025-11-25"),  # type: ignore[call-overload]
        "connect_sync() has no option `native_revision`; leave it out, or use connect()",
    ),
    "arguments as options": (
        lambda: _call(a=1, b=2),
        "arguments of a tool or prompt go into one dict, such as {'a': …}",
    ),
    "returns a class": (
        lambda: _call(arguments={"a": 1, "b": 2}, returns=Unknown),
        "(msgspec does not know this class)",
    ),
    "changes without with": (
        lambda: _iterate(connect_sync(server)),
        "write `async with client.listen(…) as changes`, or `with` for a blocking client",
    ),
    "a URI as a filter": (
        lambda: _listen("a://b"),
        "listen() does not know str; write listen(uris=[…]) or listen(tools=True), or pass a `SubscriptionFilter`",
    ),
    "URIs as a flag": (
        lambda: _listen(resources=["a://b"]),
        "`resources` must be True or False, not ['a://b']",
    ),
    "URIs that are no list": (lambda: _listen(uris=5), "`uris` must be a list, not 5"),
    "a wrapper without wraps": (
        lambda: server.tool(_wrapped(add)),
        "one parameter of the type `list`; if a decorator made this function, write @functools.wraps above it",
    ),
    "run in a loop": (
        lambda: asyncio.run(_run()),
        "run() cannot be called where an event loop runs; write `await server.run_async(…)`",
    ),
    "a middleware of one parameter": (
        lambda: server.middleware(_takes_one),
        "cannot be a middleware; it must take (params, context, call_next)",
    ),
    "a middleware class": (
        lambda: server.middleware(TimingMiddleware),
        "`function` of middleware() is the class TimingMiddleware; pass an instance of it",
    ),
    "a method as text": (
        lambda: server.middleware("tools/call"),
        "not 'tools/call'; to name a method, pass a constant of the module `methods`, such as methods.CALL_TOOL",
    ),
    "a limit as text": (
        lambda: ResponseLimitingMiddleware("1MB"),  # type: ignore[arg-type]
        "`max_bytes` is '1MB'; it must be a number of bytes, 1 or more",
    ),
    "errors as a list": (
        lambda: ErrorHandlingMiddleware([KeyError]),  # type: ignore[arg-type]
        "`errors` must be a dict, such as {KeyError: 'There is no such key.'}, not [",
    ),
    "an override that is no function": (
        lambda: Server("any").overrides.__setitem__(_nothing, 5),  # type: ignore[arg-type]
        "`overrides[_nothing]` must be a function that replaces _nothing, not 5",
    ),
}


def _nothing() -> int:
    return 1


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_remedy(mistake: str) -> None:
    act, told = MISTAKES[mistake]
    with pytest.raises(UsageError) as caught:
        act()

    assert told in str(caught.value)


def test_a_connection_of_a_test_that_is_not_open_says_how_to_open_it() -> None:
    with pytest.raises(AttributeError, match=r"has no `call_tool`; open it to get the client: `with connect_as"):
        connect_as(server, "2025-11-25").call_tool("add")  # type: ignore[attr-defined]


@pytest.mark.parametrize("revision", REVISIONS[2:])
@pytest.mark.parametrize("answer", ["yes", "accepted"])
def test_an_answer_that_does_not_fit_its_request_fails_the_test(revision: str, answer: Answer) -> None:
    with (
        pytest.raises((AssertionError, UsageError)) as caught,
        connect_as(server, revision, elicit=Answers(answer)) as client,
    ):
        client.call_tool("ask")

    told = [str(caught.value), *getattr(caught.value, "__notes__", [])]
    assert any("`elicit`: answer 1 of the script: the answer to elicitation must be" in each for each in told)


def returning(value: Any) -> Any:
    def it() -> Any:
        return value

    return it


async def forgets_to_return(params: object, ctx: Context, call_next: Any) -> Any:
    await call_next(params, ctx)


async def forgets_to_wait(params: object, ctx: Context, call_next: Any) -> Any:
    return call_next(params, ctx)


async def forgets_the_context(params: object, ctx: Context, call_next: Any) -> Any:
    return await call_next(params)


async def returns_a_part(params: object, ctx: Context, call_next: Any) -> Any:
    return (await call_next(params, ctx)).content


def is_plain(params: object, ctx: Context, call_next: Any) -> Any:
    """Decide without the next handler, which needs no `await`."""


@pytest.mark.parametrize(
    ("middleware", "told"),
    [
        (forgets_to_return, "the middleware forgets_to_return returned None; return the result of `await call_next("),
        (forgets_to_wait, "the middleware forgets_to_wait returned a coroutine; return the result of `await call_next"),
        (returns_a_part, "the middleware returns_a_part returned a value of the type list; return the result of "),
        (is_plain, "the middleware is_plain is not an `async def`; make it one, and return the result of `"),
        (forgets_the_context, "call_next() missing 1 required positional argument: 'context'"),
    ],
)
def test_a_middleware_that_calls_the_next_one_wrongly_is_told_how(middleware: Any, told: str) -> None:
    forgetful = Server("forgetful", debug=True)
    forgetful.tool(add)
    forgetful.middleware(middleware)

    with connect_as(forgetful, "2025-11-25") as client, pytest.raises(Exception, match="call_next") as caught:
        client.call_tool("add", {"a": 1, "b": 2})

    assert told in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        old.TextContent(text="hi"),
        [old.TextContent(text="hi")],
        [TextContent(text="hi"), old.TextContent(text="hi")],
        old.CallToolResult(content=[]),
    ],
)
def test_a_tool_that_returns_a_type_of_another_revision_is_told_where_to_import_it(value: Any) -> None:
    mixed = Server("mixed", debug=True)
    mixed.tool(name="it")(returning(value))

    with connect_as(mixed, "2025-11-25") as client:
        result = client.call_tool("it")

    assert result.is_error is True
    assert "of mcpgen.generated.v2025_11_25, but functions use the types of 2026-07-28; import it from" in result.text


def test_a_prompt_and_a_resource_that_return_a_type_of_another_revision_are_told_where_to_import_it() -> None:
    mixed = Server("mixed", debug=True)
    message = old.PromptMessage(role="user", content=old.TextContent(text="hi"))
    mixed.prompt(name="it")(returning(message))
    mixed.resource("it:now")(returning(old.TextResourceContents(uri="it:now", text="hi")))

    with connect_as(mixed, "2025-11-25") as client:
        for ask in (lambda: client.get_prompt("it"), lambda: client.read_resource("it:now")):
            with pytest.raises(RequestRefused, match=r"of mcpgen\.generated\.v2025_11_25, but functions use the types"):
                ask()


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"command": sys.executable, "cwd": "/none"}, "`cwd` is not a folder; correct it in the configuration"),
        ({"command": "python server.py"}, "the program does not exist; put its arguments into `args`"),
        ({"command": "localhost:8000/mcp"}, "it is a URL; write it as `url` instead of `command`"),
        ({"command": "http://localhost:8000/mcp"}, "it is a URL; write it as `url` instead of `command`"),
        ({"url": "example.com/mcp"}, "is not a URL of http or https; begin it with https:// or http://"),
    ],
)
def test_a_wrong_entry_is_described_in_the_words_of_the_configuration(entry: dict[str, str], told: str) -> None:
    with pytest.raises(Exception, match="no server of the configuration") as caught:
        connect_sync({"mcpServers": {"one": entry}})

    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("no-such-program --token hunter2", "'no-such-program …' cannot be started"),
        ("https://example.com/mcp?key=hunter2", "'https://example.com/mcp …' cannot be started"),
        ("localhost:8000/mcp?key=hunter2", "'localhost:8000/mcp …' cannot be started"),
    ],
)
def test_arguments_in_the_command_of_an_entry_are_not_shown(
    command: str, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    for entry in ({"command": command}, {"command": command, "cwd": "/none"}):
        with pytest.raises(Exception, match="no server of the configuration") as caught:
            connect_sync({"mcpServers": {"one": entry}})

        assert shown in str(caught.value)
        assert "hunter2" not in str(caught.value) + caplog.text


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("server.py", 'it is a Python file; write "python" as `command`, and the file into `args`'),
        ("my server.py", 'it is a Python file; write "python" as `command`, and the file into `args`'),
        ("my server", "it is not executable by this user"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no files that cannot be executed")
def test_a_command_that_exists_but_cannot_be_executed_is_not_called_missing(
    file: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text("", encoding="utf-8")
    for entry in ({"command": str(tmp_path / file)}, {"command": f"./{file}", "cwd": str(tmp_path)}):
        with pytest.raises(Exception, match="no server of the configuration") as caught:
            connect_sync({"mcpServers": {"one": entry}})

        assert told in str(caught.value)


@pytest.mark.parametrize("config", ["[]", "{}"])
def test_a_file_that_is_no_configuration_is_named(config: str, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(config, encoding="utf-8")
    with pytest.raises(UsageError, match=r"mcp\.json: the configuration .*mcpServers"):
        read_config(tmp_path / "mcp.json")


def test_a_configuration_without_servers_shows_how_to_add_one() -> None:
    with pytest.raises(UsageError) as caught:
        connect_sync({"mcpServers": {}})

    assert json.loads(str(caught.value).partition("as in ")[2])
