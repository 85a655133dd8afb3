"""Middleware of one method, and the middleware of `mcpgen.middleware`."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from mcpgen import Context, MemoryTaskStore, RequestError, RequestRefused, Server, ToolError, UsageError, connect
from mcpgen.generated.v2025_11_25 import methods as old_methods
from mcpgen.generated.v2025_11_25 import models as old
from mcpgen.generated.v2025_11_25.server import ServerHandlers as OldHandlers
from mcpgen.generated.v2026_07_28 import methods, models
from mcpgen.middleware import (
    ErrorHandlingMiddleware,
    LoggingMiddleware,
    ResponseLimitingMiddleware,
    TimingMiddleware,
)

if TYPE_CHECKING:
    from mcpgen import ToolResult

pytestmark = pytest.mark.anyio


class BrokenError(Exception): ...


class VeryBrokenError(BrokenError): ...


def office() -> Server:
    server = Server("office", version="1")

    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    def fail(kind: str) -> str:
        raise {
            "broken": BrokenError("secret"),
            "very": VeryBrokenError("secret"),
            "other": LookupError("secret"),
            "tool": ToolError("as it is"),
            "group": ExceptionGroup("group", [BrokenError("secret")]),
        }[kind]

    @server.resource("office:{kind}")
    async def file(kind: str) -> str:
        if kind == "broken":
            raise BrokenError
        return kind * 100

    @server.prompt
    async def letter(text: str) -> str:
        return text

    return server


async def call(server: Server, tool: str, **arguments: Any) -> ToolResult:
    async with connect(server) as client:
        return await client.call_tool(tool, arguments)


# --- middleware of one method


async def test_middleware_of_a_method_is_called_for_that_method_only_in_the_order_of_registration() -> None:
    server = office()
    seen: list[str] = []

    def noting(name: str) -> Any:
        async def note(params: Any, context: Context, call_next: Any) -> Any:
            seen.append(f"{name} {context.method}")
            return await call_next(params, context)

        return note

    server.middleware(noting("all"))
    server.middleware(methods.CALL_TOOL)(noting("calls"))
    server.middleware(methods.LIST_TOOLS)(noting("lists"))
    server.middleware(noting("inner"))
    async with connect(server) as client:
        await client.list_tools()
        await client.call_tool("echo", {"text": "hi"})

    assert [
        "all tools/list",
        "lists tools/list",
        "inner tools/list",
        "all tools/call",
        "calls tools/call",
        "inner tools/call",
    ] == seen


def test_tools_keep_their_fast_path_if_no_middleware_is_for_them() -> None:
    server = office()
    server.middleware(methods.LIST_TOOLS)(cast("Any", print))
    handlers = server._engine.handlers.method_handlers("2026-07-28")

    assert handlers["tools/call"].fast_path is not None

    server.middleware(methods.CALL_TOOL)(cast("Any", print))

    assert server._engine.handlers.method_handlers("2026-07-28")["tools/call"].fast_path is None


async def test_middleware_gets_the_types_of_the_native_revision() -> None:
    class Handlers(OldHandlers[Context]):
        async def call_tool(self, params: old.CallToolRequestParams, _context: Context, /) -> old.CallToolResult:
            return old.CallToolResult(content=[old.TextContent(text=params.name)])

    server = Server("old", version="1", handlers=Handlers())
    seen: list[type] = []

    @server.middleware(old_methods.CALL_TOOL)
    async def note(params: old.CallToolRequestParams, context: Context, call_next: Any) -> Any:
        result = await call_next(params, context)
        seen.extend((type(params), type(result)))
        return result

    server.middleware(ResponseLimitingMiddleware(50))
    result = await call(server, "a" * 100)

    assert [old.CallToolRequestParams, old.CallToolResult] == seen
    assert result.text.startswith("The result has ")


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (
            old_methods.CALL_TOOL,
            (
                "the constant for `tools/call` is not of 2026-07-28, the native revision of this server; use a "
                "constant of mcpgen.generated.v2026_07_28.methods, such as methods.CALL_TOOL"
            ),
        ),
        (methods.CREATE_MESSAGE, "`sampling/createMessage` is not a method of 2026-07-28 that a server handles; use "),
        (
            methods.DISCOVER,
            "mcpgen itself answers server/discover, and calls no middleware for it; remove this middleware",
        ),
    ],
)
def test_middleware_of_a_method_that_no_handler_gets_is_refused(method: Any, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        office().middleware(method)

    assert str(caught.value).startswith(problem)


def test_middleware_of_a_method_must_be_a_function() -> None:
    with pytest.raises(UsageError, match=r"`function` of middleware\(\) must be a function, not 3"):
        office().middleware(methods.CALL_TOOL)(cast("Any", 3))


def test_a_server_without_middleware_does_not_load_it() -> None:
    program = (
        "import sys; from mcpgen import Server; Server('x'); sys.exit('mcpgen.runtime.api.middleware' in sys.modules)"
    )

    assert 0 == subprocess.run([sys.executable, "-I", "-c", program], check=False).returncode


# --- timing and logging


def logged(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == logger]


async def test_the_time_of_each_handler_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = office()
    server.middleware(TimingMiddleware())
    await call(server, "echo", text="hi")
    async with connect(server) as client:
        with pytest.raises(RequestRefused):
            await client.read_resource("office:broken")
    one, two = logged(caplog, "mcpgen.timing")

    assert one.startswith("tools/call 'echo' took ")
    assert one.endswith(" ms")
    assert two.startswith("resources/read 'office:broken' failed after ")


async def test_a_long_name_is_logged_in_part(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = office()
    server.middleware(TimingMiddleware())
    async with connect(server) as client:
        with pytest.raises(RequestRefused):
            await client.call_tool("x" * 100_000)
    (entry,) = logged(caplog, "mcpgen.timing")

    assert 1100 > len(entry)


async def test_requests_and_answers_are_logged_without_their_contents(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = office()
    server.middleware(LoggingMiddleware(methods=["tools/call", "resources/read"]))
    async with connect(server) as client:
        await client.list_tools()
        await client.call_tool("echo", {"text": "secret"})
        await client.call_tool("fail", {"kind": "other"})
        with pytest.raises(RequestRefused):
            await client.read_resource("office:broken")
    entries = [
        " ".join(word for word in each.split() if not word.isdigit()) for each in logged(caplog, "mcpgen.requests")
    ]

    assert [
        "tools/call 'echo' of request from a client of 2026-07-28",
        "tools/call 'echo' of request answered: a result",
        "tools/call 'fail' of request from a client of 2026-07-28",
        "tools/call 'fail' of request answered: an error for the model",
        "resources/read 'office:broken' of request from a client of 2026-07-28",
        "resources/read 'office:broken' of request failed: BrokenError",
    ] == [each.replace(" : ", ": ").replace("request:", "request") for each in entries]


async def test_contents_are_logged_on_request_and_cut(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("own")
    caplog.set_level(logging.DEBUG, "own")
    server = office()
    server.middleware(
        LoggingMiddleware(logger=logger, level=logging.DEBUG, include_payloads=True, max_payload_chars=30)
    )
    await call(server, "echo", text="x" * 100)
    request, answer = logged(caplog, "own")[-2:]

    assert request.endswith(': {"name":"echo","arguments":{"t…')
    assert answer.endswith("…")


async def test_the_contents_of_requests_about_tasks_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcpgen.requests")
    server = Server("office", version="1", tasks=MemoryTaskStore())
    server.middleware(LoggingMiddleware(include_payloads=True))

    @server.tool(task=True)
    async def echo(text: str) -> str:
        return text

    async with connect(server, tasks=True) as client:
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"

    assert any(
        each.startswith("tasks/get") and '"status":"completed"' in each for each in logged(caplog, "mcpgen.requests")
    )


# --- large results


async def test_a_large_result_of_a_tool_is_replaced_by_an_error_for_the_model() -> None:
    server = office()
    server.middleware(ResponseLimitingMiddleware(200))
    small, large = await call(server, "echo", text="hi"), await call(server, "echo", text="x" * 200)

    assert ("hi", True) == (small.text, large.is_error)
    assert large.text.startswith("The result has ")
    assert large.text.endswith(" bytes; the limit is 200. Ask for less.")


async def test_a_large_request_for_input_passes() -> None:
    server = office()
    server.middleware(ResponseLimitingMiddleware(200))

    @server.tool
    async def ask(ctx: Context) -> Any:
        if ctx.input_responses:
            return "answered"
        form = models.ElicitRequestFormParams(message="x" * 200, requested_schema={"type": "object", "properties": {}})
        return models.InputRequiredResult(input_requests={"name": models.ElicitRequest(params=form)})

    def accept(params: object, context: object) -> models.ElicitResult:
        return models.ElicitResult(action="accept", content={})

    async with connect(server, elicit=accept) as client:
        assert "answered" == (await client.call_tool("ask")).text


async def test_large_resources_and_prompts_are_refused_and_lists_are_not() -> None:
    server = office()
    server.middleware(ResponseLimitingMiddleware(200))
    async with connect(server) as client:
        assert 2 == len((await client.list_tools()).tools)
        with pytest.raises(RequestRefused, match=r"The result has \d+ bytes; the limit is 200"):
            await client.read_resource("office:word")
        with pytest.raises(RequestRefused, match=r"The result has \d+ bytes; the limit is 200"):
            await client.get_prompt("letter", {"text": "x" * 200})


async def test_the_limit_may_hold_for_some_tools_only() -> None:
    server = office()
    server.middleware(ResponseLimitingMiddleware(200, tools=["fail"]))
    async with connect(server) as client:
        assert 200 == len((await client.call_tool("echo", {"text": "x" * 200})).text)
        assert (await client.read_resource("office:word")).contents


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="`max_bytes` is 0; it must be a number of bytes, 1 or more"):
        ResponseLimitingMiddleware(0)
    with pytest.raises(UsageError, match=r"`methods` must be a list of strings, such as \['tools/call'\], not 'ping'"):
        LoggingMiddleware(methods="ping")


# --- errors


ERRORS = ErrorHandlingMiddleware(
    {BrokenError: "It is broken.", VeryBrokenError: lambda error: RequestError(7, type(error).__name__)}
)


async def test_an_exception_of_a_tool_becomes_the_text_and_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    server = office()
    server.middleware(ERRORS)

    assert "It is broken." == (await call(server, "fail", kind="broken")).text
    assert "It is broken." == (await call(server, "fail", kind="group")).text
    assert [] == logged(caplog, "mcpgen.handlers")
    assert "The tool fail failed." == (await call(server, "fail", kind="other")).text
    assert 1 == len(logged(caplog, "mcpgen.handlers"))


async def test_the_closest_class_decides_and_a_function_makes_any_exception() -> None:
    server = office()
    server.middleware(ERRORS)
    with pytest.raises(RequestRefused) as caught:
        await call(server, "fail", kind="very")

    assert (7, "VeryBrokenError") == (caught.value.code, caught.value.message)


async def test_an_exception_of_a_resource_is_replaced_too() -> None:
    server = office()
    server.middleware(ERRORS)
    async with connect(server) as client:
        with pytest.raises(RequestRefused, match="It is broken"):
            await client.read_resource("office:broken")


async def test_a_function_of_errors_that_returns_no_exception_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = office()
    text: Any = lambda _: "It is broken."  # noqa: E731 (a wrong type)
    server.middleware(ErrorHandlingMiddleware({BrokenError: text}))

    assert "The tool fail failed." == (await call(server, "fail", kind="broken")).text
    assert "the function of ErrorHandlingMiddleware for BrokenError returned a value of type str; " in caplog.text


async def test_errors_that_are_meant_for_clients_are_kept_unless_they_are_named() -> None:
    server = office()
    server.middleware(ErrorHandlingMiddleware({Exception: "Something is wrong."}))
    named = office()
    named.middleware(ErrorHandlingMiddleware({ToolError: "Something is wrong."}))

    assert "as it is" == (await call(server, "fail", kind="tool")).text
    assert "Something is wrong." == (await call(server, "fail", kind="other")).text
    assert "Something is wrong." == (await call(named, "fail", kind="tool")).text
    with pytest.raises(RequestRefused, match="Unknown tool: nothing"):
        await call(server, "nothing")


async def test_the_inner_middleware_replaces_first() -> None:
    server = office()
    server.middleware(ErrorHandlingMiddleware({ZeroDivisionError: "outer", BrokenError: "not called"}))
    server.middleware(ErrorHandlingMiddleware({BrokenError: lambda _: ZeroDivisionError()}))

    assert "outer" == (await call(server, "fail", kind="broken")).text


@pytest.mark.parametrize(
    ("errors", "problem"),
    [
        ({"BrokenError": "text"}, "`errors` has 'BrokenError', which is not a subclass of Exception"),
        ({KeyboardInterrupt: "text"}, "`errors` has <class 'KeyboardInterrupt'>, which is not a subclass of Exception"),
        ({BrokenError: 3}, "`errors` has 3 for BrokenError; it must be a string or a function"),
    ],
)
def test_wrong_errors_are_refused(errors: Any, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        ErrorHandlingMiddleware(errors)

    assert problem == str(caught.value)
