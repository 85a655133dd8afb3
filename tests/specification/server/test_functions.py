"""Decorated functions, as clients of every revision see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import jsonschema_rs
import pytest
from msgspec import Meta, Struct

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.server.functions.tools import ToolError
from tests.specification.citation import everywhere, since, spec
from tests.specification.server.revision_client import client

if TYPE_CHECKING:
    from tests.specification.server.revision_client import Client

pytestmark = pytest.mark.anyio


class Point(Struct):
    x: int
    y: float = 0.5


def made(page_size: int = 3) -> Server:  # noqa: C901 (a dozen functions, one after the other)
    """Return a server with functions of every kind."""
    server = Server("demo", version="1", page_size=page_size)

    @server.tool
    async def add(a: int, b: int = 2) -> int:
        """Add two numbers.

        Args:
            a: The first.
        """
        return a + b

    @server.tool
    async def point(x: int) -> Point:
        return Point(x)

    @server.tool
    async def pick(text: Annotated[str, Meta(min_length=2)], kind: Literal["a", "b"] = "a") -> list[str]:
        return [text, kind]

    @server.tool
    async def fail() -> str:
        raise ToolError("API rate limit exceeded")

    @server.tool
    async def refuse() -> str:
        raise RequestError(4711, "not today")

    @server.tool
    async def crash() -> str:
        raise ValueError("the password is hunter2")

    @server.tool
    async def number(text: str) -> float:
        return float(text)

    @server.resource("config://app")
    async def config() -> str:
        return "settings"

    @server.resource("file:///{+path}", mime_type="text/plain")
    async def file(path: str) -> bytes:
        return path.encode()

    @server.prompt
    async def review(code: str, language: str = "python") -> str:
        return f"Review this {language}: {code}"

    @server.completion("review", "language")
    async def languages(value: str, arguments: dict[str, str]) -> list[str]:
        del arguments
        return [f"{value}{each}" for each in range(150)]

    return server


async def all_tools(peer: Client) -> list[Any]:
    """Return the tools of all pages."""
    page = await peer.result("tools/list")
    found = list(page["tools"])
    while "nextCursor" in page:
        page = await peer.result("tools/list", f'"cursor":{json.dumps(page["nextCursor"])}')
        found += page["tools"]
    return found


@spec("2026-07-28", "changelog#minor-changes", "ccaf3ee5")
@spec("2024-11-05", "server/utilities/pagination#implementation-guidelines")
@spec("2026-07-28", "server/tools#capabilities", "323caf3d")
@everywhere
async def test_the_pages_of_a_list_hold_everything_once_in_a_stable_order(revision: str) -> None:
    async with client(made(), revision) as peer:
        first, second = await all_tools(peer), await all_tools(peer)

    assert ["add", "point", "pick", "fail", "refuse", "crash", "number"] == [each["name"] for each in first]
    assert first == second


@spec("2026-07-28", "server/utilities/pagination#implementation-guidelines", "085cfbe4")
@spec("2024-11-05", "server/utilities/pagination#error-handling")
@spec("2026-07-28", "server/utilities/pagination#error-handling", "b4cbeb22")
@everywhere
@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
async def test_a_cursor_that_the_server_has_not_made_is_invalid(method: str, revision: str) -> None:
    async with client(made(), revision) as peer:
        for cursor in ("3", "nonsense", "AAAA", "dG9vbCA5OTk", "\u20ac", "x" * 10_000):
            said = await peer.ask(method, f'"cursor":{json.dumps(cursor)}')

            assert -32602 == said[-1].get("error", {}).get("code"), (cursor, said)


@spec("2026-07-28", "basic/index#schema-validation", "caea1f66")
@spec("2024-11-05", "server/tools#tool")
@spec("2025-11-25", "server/tools#tool")
@spec("2026-07-28", "server/tools#tool", "a249d2e4")
@everywhere
async def test_every_schema_of_a_tool_is_a_valid_one_of_an_object(revision: str) -> None:
    async with client(made(), revision) as peer:
        tools = await all_tools(peer)

    schemas = [each[key] for each in tools for key in ("inputSchema", "outputSchema") if key in each]
    for schema in schemas:
        jsonschema_rs.Draft202012Validator(schema)  # raises for what is none
        assert "object" == schema["type"]


WRONG = ['{"a":"x"}', "{}", '{"a":1,"z":2}', '{"a":1.5}', '{"a":null}']


@spec("2025-11-25", "server/tools#error-handling")
@spec("2026-07-28", "server/tools#error-handling")
@pytest.mark.parametrize("revision", since("2025-11-25"))
@pytest.mark.parametrize("arguments", WRONG)
async def test_wrong_arguments_are_an_error_of_the_tool(arguments: str, revision: str) -> None:
    async with client(made(), revision) as peer:
        (said,) = await peer.call("add", arguments)

    assert said["result"]["isError"] is True
    assert "add" in said["result"]["content"][0]["text"]


@spec("2024-11-05", "server/tools#error-handling")
@spec("2025-03-26", "server/tools#error-handling")
@spec("2025-06-18", "server/tools#error-handling")
@pytest.mark.parametrize("revision", since("2024-11-05", "2025-11-25"))
@pytest.mark.parametrize("arguments", WRONG)
async def test_wrong_arguments_are_a_protocol_error_in_older_revisions(arguments: str, revision: str) -> None:
    async with client(made(), revision) as peer:
        (said,) = await peer.call("add", arguments)

    assert -32602 == said["error"]["code"]


@spec("2026-07-28", "server/tools#security-considerations", "6b85029c")
@everywhere
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("add", '{"a":1}'),
        ("add", '{"a":1.0}'),
        ("add", '{"a":"1"}'),
        ("add", '{"a":true}'),
        ("add", '{"a":1,"b":null}'),
        ("add", '{"a":100000000000000000000}'),
        ("pick", '{"text":"xx"}'),
        ("pick", '{"text":"x"}'),
        ("pick", '{"text":"\\ud83c\\udf0d\\ud83c\\udf0d"}'),
        ("pick", '{"text":"xx","kind":"c"}'),
        ("pick", '{"text":["x","y"]}'),
    ],
)
async def test_what_the_schema_of_a_tool_allows_is_accepted_and_nothing_else(
    tool: str, arguments: str, revision: str
) -> None:
    async with client(made(), revision) as peer:
        (schema,) = [each["inputSchema"] for each in await all_tools(peer) if each["name"] == tool]
        (said,) = await peer.call(tool, arguments)

    is_valid = jsonschema_rs.Draft202012Validator(schema).is_valid(json.loads(arguments))
    assert is_valid == ("result" in said and not said["result"].get("isError", False)), said


@spec("2026-07-28", "server/tools#structured-content", "caedb576")
@spec("2025-06-18", "server/tools#output-schema")
@spec("2025-11-25", "server/tools#output-schema")
@spec("2026-07-28", "server/tools#output-schema", "a51d20f1")
@pytest.mark.parametrize("revision", since("2025-06-18"))
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("add", '{"a":1}'), ("point", '{"x":1}'), ("pick", '{"text":"xx"}'), ("number", '{"text":"1.5"}')],
)
async def test_structured_results_conform_to_the_schema_of_the_tool_and_come_as_text_too(
    tool: str, arguments: str, revision: str
) -> None:
    async with client(made(), revision) as peer:
        (schema,) = [each["outputSchema"] for each in await all_tools(peer) if each["name"] == tool]
        (said,) = await peer.call(tool, arguments)

    structured = said["result"]["structuredContent"]
    jsonschema_rs.Draft202012Validator(schema).validate(structured)
    assert structured == json.loads(said["result"]["content"][0]["text"])


@spec("2025-06-18", "server/tools#output-schema")
@spec("2025-11-25", "server/tools#output-schema")
@spec("2026-07-28", "server/tools#output-schema")
@pytest.mark.parametrize("revision", since("2025-06-18"))
@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
async def test_what_json_has_no_number_for_is_no_structured_result(text: str, revision: str) -> None:
    async with client(made(), revision) as peer:
        (schema,) = [each["outputSchema"] for each in await all_tools(peer) if each["name"] == "number"]
        (said,) = await peer.call("number", f'{{"text":"{text}"}}')

    result = said.get("result", {"isError": True})
    assert result.get("isError", False) or jsonschema_rs.Draft202012Validator(schema).is_valid(
        result["structuredContent"]
    ), said


@spec("2024-11-05", "server/tools#error-handling")
@spec("2026-07-28", "server/tools#error-handling")
@everywhere
async def test_an_error_of_a_function_is_a_result_that_tells_nothing_internal(revision: str) -> None:
    async with client(made(), revision) as peer:
        (failed,) = await peer.call("fail")
        (crashed,) = await peer.call("crash")
        (refused,) = await peer.call("refuse")
        (unknown,) = await peer.call("nobody")

    assert (True, "API rate limit exceeded") == (failed["result"]["isError"], failed["result"]["content"][0]["text"])
    assert crashed["result"]["isError"] is True
    assert "hunter2" not in json.dumps(crashed)
    assert [4711, -32602] == [refused["error"]["code"], unknown["error"]["code"]]


@spec("2026-07-28", "server/prompts#implementation-considerations", "355b3bc0")
@spec("2024-11-05", "server/prompts#error-handling")
@spec("2026-07-28", "server/prompts#error-handling", "fd0b99dc")
@everywhere
@pytest.mark.parametrize("params", ['"name":"review"', '"name":"review","arguments":{}', '"name":"nobody"'])
async def test_an_unknown_prompt_or_a_missing_argument_has_invalid_params(params: str, revision: str) -> None:
    async with client(made(), revision) as peer:
        assert -32602 == (await peer.error("prompts/get", params))["code"]


@spec("2024-11-05", "server/utilities/completion#completion-results")
@spec("2026-07-28", "server/utilities/completion#completion-results")
@everywhere
async def test_a_hundred_completions_are_sent_and_more_are_announced(revision: str) -> None:
    reference = '"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"language","value":"py"}'
    async with client(made(), revision) as peer:
        completion = (await peer.result("completion/complete", reference))["completion"]

    assert [f"py{each}" for each in range(100)] == completion["values"]
    assert (150, True) == (completion.get("total", 150), completion["hasMore"])


@spec("2025-03-26", "server/utilities/completion#error-handling")
@spec("2026-07-28", "server/utilities/completion#error-handling", "58995aa1", "70d4d011")
@everywhere
@pytest.mark.parametrize(
    "params",
    [
        '"ref":{"type":"ref/prompt","name":"nobody"},"argument":{"name":"language","value":"py"}',
        '"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"nothing","value":"py"}',
        '"ref":{"type":"ref/resource","uri":"nope://{x}"},"argument":{"name":"x","value":"py"}',
    ],
)
async def test_a_completion_of_nothing_has_invalid_params(params: str, revision: str) -> None:
    async with client(made(), revision) as peer:
        assert -32602 == (await peer.error("completion/complete", params))["code"]


@spec("2026-07-28", "server/resources#security-considerations", "babc5a75", "bf2df650")
@spec("2024-11-05", "server/resources#error-handling")
@everywhere
@pytest.mark.parametrize(
    "uri",
    ["file:///../x", "file:///a/../../x", "file:///%2e%2e/x", "file:///..%2fx", "file:///a%00b", "nope://x", "x", ""],
)
async def test_a_path_cannot_escape_and_what_is_not_there_is_not_found(uri: str, revision: str) -> None:
    async with client(made(), revision) as peer:
        error = await peer.error("resources/read", f'"uri":"{uri}"')

    assert (-32602 if peer.is_stateless else -32002, {"uri": uri}) == (error["code"], error["data"])


@spec("2025-11-25", "server/prompts#capabilities", "c214bc2f")
@spec("2026-07-28", "server/prompts#capabilities", "c5ab7280")
@spec("2026-07-28", "server/resources#capabilities", "746de08e")
@spec("2026-07-28", "server/utilities/completion#capabilities", "d47cc158")
@spec("2024-11-05", "server/tools#capabilities", "f50d3c63")
@spec("2026-07-28", "server/discover#discoverresult")
@everywhere
async def test_a_server_declares_what_it_has_functions_for(revision: str) -> None:
    server = Server("demo", version="1")

    @server.tool
    async def only() -> str:
        return "tool"

    async with client(server, revision) as peer:
        initialized = peer.initialized or await peer.result("server/discover")
        assert "tools" in await peer.result("tools/list")

        codes = [(await peer.error(each))["code"] for each in ("prompts/list", "resources/list")]

    assert {"logging", "tools"} == set(initialized["capabilities"])
    assert [-32601, -32601] == codes


@spec("2024-11-05", "server/tools#list-changed-notification")
@spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications")
@everywhere
async def test_a_tool_that_comes_later_is_listed_and_told_of(revision: str) -> None:
    server = made(page_size=100)
    async with client(server, revision) as peer:
        if peer.is_stateless:
            await peer.wire.say(peer.request("s", "subscriptions/listen", '"notifications":{"toolsListChanged":true}'))

        @server.tool
        async def late() -> str:
            return "better than never"

        await server.tools_changed()
        (told,) = await peer.wire.rest()
        names = [each["name"] for each in await all_tools(peer)]

    assert "notifications/tools/list_changed" == told["method"]
    assert "late" == names[-1]


@spec("2025-06-18", "basic/index#meta", "350d4d51", "25ec8ba5")
@spec("2025-11-25", "basic/index#meta", "350d4d51", "25ec8ba5")
@spec("2026-07-28", "basic/index#meta", "350d4d51", "25ec8ba5")
@pytest.mark.parametrize("key", ["com..example/x", "com.example-/x", "1com/x", "/x"])
def test_a_key_of_meta_that_cannot_be_sent_is_refused_before_it_makes_a_list_fail(key: str) -> None:
    own, meta = Server("any", version="1"), {key: 1}

    def function() -> str:
        return "never"

    for register in (
        own.tool(meta=meta),
        own.prompt(meta=meta),
        own.resource("any:one", meta=meta),
    ):
        with pytest.raises(UsageError, match=r"_meta.*is not a valid key"):
            register(function)


@spec("2025-11-25", "server/resources#resource")
def test_a_mime_type_that_cannot_be_sent_is_refused_before_it_makes_a_list_fail() -> None:
    own = Server("any", version="1")

    def one() -> str:
        return "never"

    def each(path: str) -> str:
        return path

    with pytest.raises(UsageError, match="is not a MIME type"):
        own.resource("any:one", mime_type="text")(one)
    with pytest.raises(UsageError, match="is not a MIME type"):
        own.resource("any:{path}", mime_type="text")(each)
