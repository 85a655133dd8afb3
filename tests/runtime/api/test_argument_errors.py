"""Wrong arguments of a client and of a context: the error names the argument, before anything is sent."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest
from pydantic import BaseModel

from mcpgen import (
    Context,
    Depends,
    HttpLimits,
    Process,
    RequestError,
    Server,
    TaskLimits,
    UsageError,
    connect,
    connect_sync,
)
from mcpgen.generated import v2025_11_25 as old
from mcpgen.generated import v2026_07_28 as models
from mcpgen.generated.v2026_07_28 import PromptReference
from mcpgen.runtime.http.client.auth.credentials import ClientCredentials
from mcpgen.runtime.transports.spawner import open_spawner
from mcpgen.testing import connect_as

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

server = Server("demo")


class Order(BaseModel):
    size: int


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def advance(ctx: Context, total: bool) -> str:  # noqa: FBT001 (an argument of a tool)
    await ctx.progress(cast("Any", 1 if total else "x"), cast("Any", "y" if total else None))
    return "done"


@server.tool
async def tell(ctx: Context, what: str) -> str:
    wrong: Any = 5
    match what:
        case "message":
            await ctx.progress(1, message=wrong)
        case "logger":
            await ctx.log("debug", "x", logger=wrong)
        case "option":
            await ctx.sample("hi", max_tokens=5, temprature=1)
        case "request":
            await ctx.request("roots/list")
        case _:
            await ctx.notify("notifications/message")
    return "done"


@server.tool
async def ask(ctx: Context, question: str) -> str:
    schemas: dict[str, Any] = {
        "a form": {"properties": {"size": {"type": "integer"}}},
        "no form": {"type": "array"},
        "no properties": {"properties": [1]},
    }
    if question == "a pydantic model":
        await ctx.elicit("How large?", Order)
    if question == "no conversation":
        await ctx.sample(cast("Any", 5), max_tokens=5)
    if question == "no time":
        await ctx.disconnect(retry_seconds=cast("Any", "x"))
    if question == "no tokens":
        await ctx.sample("hi", max_tokens=cast("Any", "many"))
    return str((await ctx.elicit("How large?", schemas[question])).content)


@server.tool
async def look(ctx: Context) -> int:
    return len(await ctx.roots())


@server.prompt
def order(item: str) -> str:
    return item


CALLS: dict[str, tuple[Callable[[Any], object], str]] = {
    "a URI": (
        lambda client: client.read_resource(5),
        "are not valid in 2026-07-28 at /uri: Expected `str`, got `int`; correct the arguments of the call",
    ),
    "a key of meta": (
        lambda client: client.read_resource("a:b", meta={"bad key!": 1}),
        "; correct the arguments of the call",
    ),
    "an argument of a prompt": (
        lambda client: client.get_prompt("order", {"item": 5}),
        "`arguments['item']` must be a string, not 5; arguments of prompts are text",
    ),
    "an object": (
        lambda client: client.call_tool("add", {"a": 1, "b": [1, object()]}),
        "not valid in 2026-07-28 at /arguments/b/1: Encoding objects of type object is unsupported",
    ),
    "a reference": (
        lambda client: client.complete("order", "item", "x"),
        "`ref` must be a PromptReference(name=…) or a ResourceTemplateReference(uri=…), not 'order'; both are in ",
    ),
    "a method by name": (
        lambda client: client.request("tools/list"),
        "`method` must be a constant of the module `methods` of the bindings, such as methods.LIST_TOOLS",
    ),
    "a notification by name": (
        lambda client: client.notify("notifications/progress"),
        "of the module `methods` of the bindings or of an extension, not 'notifications/progress'",
    ),
    "no task": (
        lambda client: client.task(""),
        "`task_id` is empty: the server ran the tool without a task; use the handle that `start_tool` returned",
    ),
    "a task": (
        lambda client: client.task(5),
        "`task_id` must be a string, not int",
    ),
    "no method": (
        lambda client: client.request_json(""),
        "`method` must be the name of a method, such as 'tools/list', not ''",
    ),
    "other values of a prompt": (
        lambda client: client.complete(PromptReference(name="order"), "item", "x", context=["a"]),
        "`context` must be a mapping, such as {'name': 'value'}, not ['a']",
    ),
    "params": (
        lambda client: client.request_json("tools/list", [1]),
        "`params` must be a mapping, such as {'name': 'value'}, not [1]",
    ),
    "a progress function": (
        lambda client: client.call_tool("add", {"a": 1, "b": 2}, on_progress=lambda: 1),
        "`on_progress` must be a function that takes progress, total and message, but ",
    ),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_wrong_argument_of_a_call_is_a_usage_error(what: str) -> None:
    call, told = CALLS[what]
    with connect_sync(server) as client, pytest.raises(UsageError) as caught:
        call(client)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("total", "told"), [(False, "`progress` must be a number, not 'x'"), (True, "`total` must be")]
)
def test_progress_that_is_no_number_is_named(total: bool, told: str, caplog: pytest.LogCaptureFixture) -> None:  # noqa: FBT001
    with connect_sync(server) as client:
        assert client.call_tool("advance", {"total": total}).is_error is True

    assert told in caplog.text


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("message", "`message` must be a string, not int"),
        ("logger", "`logger` must be a string, not int"),
        ("option", "sample() has no option `temprature`; did you mean `temperature`?"),
        ("request", "such as methods.LIST_ROOTS, not 'roots/list'"),
        ("notification", "such as methods.LOGGING_MESSAGE, not 'notifications/message'"),
    ],
)
def test_a_mistake_is_named_even_if_the_client_did_not_ask(
    what: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with connect_sync(server) as client:
        assert client.call_tool("tell", {"what": what}).is_error is True

    assert told in caplog.text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": 5}, "`name` must be a string, not int"),
        ({"version": None}, "`version` must be a string, not None"),
        ({"title": 1.0}, "`title` must be a string, not float"),
        ({"extensions": [5]}, "`extensions` has 5, but must have packages that `mcpgen build --extension` wrote, or"),
    ],
)
def test_a_wrong_argument_of_connect_is_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect_sync(server, **options)

    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("roots", "told"),
    [
        (None, "this client offers no roots; pass a function"),
        ([], "this client has declared that its roots do not change"),
    ],
)
def test_a_change_of_roots_that_cannot_change_says_why(roots: Any, told: str) -> None:
    with connect_as(server, "2025-11-25", roots=roots) as client, pytest.raises(UsageError) as caught:
        client.roots_changed()

    assert str(caught.value).startswith(told)


def test_handlers_of_roots_are_told_how_to_declare_that_the_roots_change() -> None:
    class Folders(old.ClientHandlers[object]):
        async def list_roots(self, params: old.RequestParams, context: object, /) -> old.ListRootsResult:
            raise NotImplementedError

    async def change(**options: Any) -> None:
        async with connect(server, native_revision="2025-11-25", revisions=["2025-11-25"], **options) as client:
            await client.roots_changed()

    with pytest.raises(UsageError, match="with handlers: connect") as caught:
        asyncio.run(change(handlers=Folders()))

    assert "is a list" not in str(caught.value)
    asyncio.run(change(handlers=Folders(), capabilities={"roots": {"listChanged": True}}))


@pytest.mark.parametrize("given", [5, "abc", {"a": 1}, ["/work"]])
@pytest.mark.slow
def test_a_roots_function_that_returns_no_list_is_named(given: object) -> None:
    def folders(_: object) -> Any:
        return given

    with connect_sync(server, roots=folders) as client, pytest.raises(UsageError) as caught:
        client.call_tool("look")

    found = given if isinstance(given, list) else f"a value of type {type(given).__name__}"
    expected = f"folders() returned {found}"
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("no form", "UsageError: the schema of a form must have the type 'object', not 'array'"),
        ("no properties", "UsageError: `properties` of a form must be a dict of schemas, not [1]"),
        ("a pydantic model", ", which is or contains a pydantic type; use a dataclass, a TypedDict or a Struct whose "),
        ("no conversation", "UsageError: `messages` must be a list, not 5"),
        ("no time", "UsageError: `retry_seconds` must be a number, not 'x'"),
        ("no tokens", "at /maxTokens: Expected `int`, got `str`; correct the arguments of the call"),
    ],
)
def test_a_wrong_question_to_the_client_is_a_usage_error(
    question: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with connect_sync(server, elicit=lambda _, __: None, sample=lambda _, __: None) as client:
        assert client.call_tool("ask", {"question": question}).is_error is True

    assert told in caplog.text
    assert "UsageError: " in caplog.text


@pytest.mark.slow
def test_a_dict_that_is_no_answer_to_a_form_is_named_with_its_function() -> None:
    def fill_in(_: object, __: object) -> Any:
        return {"size": 5}

    with connect_sync(server, elicit=fill_in) as client, pytest.raises(UsageError) as caught:
        client.call_tool("ask", {"question": "a form"})

    assert "`elicit` must be a function that returns an ElicitResult, such as ElicitResult(" in str(caught.value)
    told = "fill_in() returned a dict that is not a valid ElicitResult: Object missing required field `action`"
    assert told in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (old.ElicitResult(action="decline"), "returned the ElicitResult of mcpgen.generated.v2025_11_25; import"),
        (models.ElicitResult(action=cast("Any", "yes")), "returned an invalid ElicitResult: Invalid enum value 'yes'"),
    ],
)
def test_an_answer_of_the_wrong_type_is_named_with_its_function(answer: object, told: str) -> None:
    with connect_sync(server, elicit=lambda _, __: answer) as client, pytest.raises(UsageError) as caught:
        client.call_tool("ask", {"question": "a form"})

    assert told in str(caught.value)


def test_a_dict_can_be_the_answer_to_a_form() -> None:
    answer: Any = {"action": "accept", "content": {"size": 5}}
    with connect_sync(server, elicit=lambda _, __: answer) as client:
        assert "{'size': 5}" == client.call_tool("ask", {"question": "a form"}).text


def test_a_dict_that_does_not_fit_the_form_is_not_sent() -> None:
    answer: Any = {"action": "accept", "content": {"size": "large"}}
    with connect_sync(server, elicit=lambda _, __: answer) as client, pytest.raises(UsageError, match="is not valid: "):
        client.call_tool("ask", {"question": "a form"})


def test_a_command_that_is_no_list_is_explained() -> None:
    with pytest.raises(UsageError, match=r"a string, or a list of strings such as \['python', 'server.py'\]"):
        Process(cast("Any", 3))


def test_the_code_of_an_error_is_a_number() -> None:
    with pytest.raises(UsageError, match="`code` of RequestError must be an integer, not 'there is none'"):
        RequestError(cast("Any", "there is none"), cast("Any", -32602))


@pytest.mark.parametrize("name", TaskLimits.__struct_fields__)
def test_a_limit_of_tasks_is_more_than_nothing(name: str) -> None:
    with pytest.raises(UsageError, match=f"`{name}` of TaskLimits is 0; use a value greater than 0"):
        TaskLimits(**{name: 0})


def test_depends_without_a_function_is_explained() -> None:
    def bake(oven: str = cast("Any", Depends)) -> None: ...

    with pytest.raises(UsageError, match=r"bake\(\) is `Depends` itself; write Depends\(function\)"):
        server.tool(bake)


def test_a_rate_limit_is_not_a_number() -> None:
    with pytest.raises(UsageError) as caught:
        HttpLimits(rate_limit=cast("Any", 5))

    assert (
        "`rate_limit` of HttpLimits must be a RateLimit, such as RateLimit(per_second=10, burst=50), or None, not 5"
        == str(caught.value)
    )


def test_the_place_of_root_is_named() -> None:
    with pytest.raises(UsageError, match=r"not \['x'\]; Root is in mcpgen\.generated\.v2026_07_28$"):
        connect(server, roots=cast("Any", ["x"]))


def test_an_environment_that_is_no_mapping_is_refused_without_its_value() -> None:
    with pytest.raises(UsageError) as caught:
        Process("python x", environment=cast("Any", ["secret"]))

    assert "`environment` must be a mapping of str to str, such as {'NAME': 'value'}, not list" == str(caught.value)


def test_a_folder_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a folder; name a program in it, or 'python' and a Python file in it"):
        connect_sync([str(tmp_path)])


@pytest.mark.parametrize(("key", "value"), [("command", 3), ("url", 5)])
def test_a_command_or_a_url_of_a_configuration_is_a_string(key: str, value: int) -> None:
    with pytest.raises(Exception, match="no server of the configuration") as caught:
        connect_sync({"mcpServers": {"a": {key: value}}})

    assert f"`{key}` must be a string, not a number" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "needs `secret` or `private_key`"),
        ({"secret": "a", "private_key": "b"}, "has both `secret` and `private_key`"),
    ],
)
def test_client_credentials_need_one_secret(options: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ClientCredentials("x", **cast("Any", options))


def test_a_function_whose_event_loop_ends_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    opening = open_spawner(1)

    async def run() -> None:
        spawner = await opening.__aenter__()
        spawner.start(asyncio.sleep, 60)
        await asyncio.sleep(0.01)  # the loop ends without the end of the block

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())

    assert "raised a cancellation exception" not in caplog.text
