"""Decorated functions behind the whole engine: what they may say and hear there, in every revision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from mcpgen import Context, Limits, RequestError, RequestRefused, ResourceNotFound, Server, UsageError
from mcpgen.generated import registry
from mcpgen.generated.v2025_11_25 import models as old
from mcpgen.generated.v2025_11_25.server import ServerHandlers as OldHandlers
from mcpgen.runtime.protocol.newest import NEWEST, ServerHandlers, models
from mcpgen.runtime.server.functions import registrations
from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers
from mcpgen.runtime.server.functions.registrations import Registrations
from tests.specification.server.revision_client import client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.specification.server.revision_client import Client

pytestmark = pytest.mark.anyio

HANDSHAKES = [each.label for each in registry.REVISIONS if each.era == "handshake"]
WITH_ROOTS = '{"roots":{}}'
ROOTS = '{"roots":[{"uri":"file:///work"}]}'


def text(said: list[Any]) -> str:
    found: str = said[-1]["result"]["content"][0]["text"]
    return found


# --- middleware


def around(name: str, seen: list[str]) -> Callable[[Any, Any, Callable[[Any, Any], Awaitable[Any]]], Awaitable[Any]]:
    async def middleware(params: Any, context: Any, call_next: Callable[[Any, Any], Awaitable[Any]]) -> Any:
        seen.append(f"{name} before {context.method}")
        try:
            return await call_next(params, context)
        finally:
            seen.append(f"{name} after {context.method}")

    return middleware


async def test_the_first_middleware_is_outermost(revision: str) -> None:
    server = Server("layered", version="1")
    seen: list[str] = []
    server.middleware(around("outer", seen))
    server.middleware(around("inner", seen))

    @server.tool
    async def it() -> str:
        seen.append("it")
        return "done"

    async with client(server, revision) as peer:
        assert "done" == text(await peer.call("it"))

    before, after = "before tools/call", "after tools/call"
    assert [f"outer {before}", f"inner {before}", "it", f"inner {after}", f"outer {after}"] == seen


async def test_a_middleware_can_change_params_and_result(revision: str) -> None:
    server = Server("changed", version="1")

    @server.tool
    async def echo(said: str) -> str:
        return said

    @server.middleware
    async def louder(params: Any, context: Any, call_next: Callable[[Any, Any], Awaitable[Any]]) -> Any:
        params.arguments["said"] = params.arguments["said"].upper()
        result = await call_next(params, context)
        result.content.append(models.TextContent(text="!"))
        return result

    async with client(server, revision) as peer:
        said = await peer.call("echo", '{"said":"hi"}')

    assert ["HI", "!"] == [each["text"] for each in said[-1]["result"]["content"]]


async def test_a_middleware_can_answer_itself(revision: str) -> None:
    server = Server("guarded", version="1")

    @server.tool
    async def it() -> str:
        raise AssertionError

    @server.middleware
    async def guard(params: Any, context: Any, call_next: Callable[[Any, Any], Awaitable[Any]]) -> Any:
        del params, context, call_next
        raise RequestError(-32602, "not for you")

    async with client(server, revision) as peer:
        (refused,) = await peer.call("it")

    assert {"code": -32602, "message": "not for you"} == refused["error"]


async def test_a_middleware_that_comes_later_is_called_from_then_on(revision: str) -> None:
    server = Server("later", version="1")
    seen: list[str] = []

    @server.tool
    async def it() -> str:
        return "done"

    async with client(server, revision) as peer:
        assert "done" == text(await peer.call("it"))
        assert [] == seen
        server.middleware(around("late", seen))
        assert "done" == text(await peer.call("it"))

    assert ["late before tools/call", "late after tools/call"] == seen


# --- what was offered once


def everything() -> Server:
    server = Server("shrinking", version="1")

    @server.tool
    async def tool() -> str: ...  # type: ignore[empty-body]

    @server.resource("x:a")
    async def fixed() -> str: ...  # type: ignore[empty-body]

    @server.resource("x:{a}/b")
    async def template(a: str) -> str: ...  # type: ignore[empty-body]

    @server.prompt
    async def prompt(a: str) -> str: ...  # type: ignore[empty-body]

    return server


async def test_what_was_offered_once_stays_offered_and_is_listed_as_empty(revision: str) -> None:
    server = everything()
    async with client(server, revision) as peer:
        before = server._engine.handlers.capabilities(revision)
        server.remove_tool("tool")
        server.remove_resource("x:a")
        server.remove_resource("x:{a}/b")
        server.remove_prompt("prompt")

        await peer.wire.rest()  # the notifications of these changes

        assert before == server._engine.handlers.capabilities(revision)
        assert [] == (await peer.result("tools/list"))["tools"]
        assert [] == (await peer.result("resources/list"))["resources"]
        assert [] == (await peer.result("resources/templates/list"))["resourceTemplates"]
        assert [] == (await peer.result("prompts/list"))["prompts"]


async def test_completions_stay_offered_too() -> None:
    server = everything()

    @server.completion("prompt", "a")
    async def complete(value: str) -> list[str]:
        return [value]

    before = server._engine.handlers.capabilities(NEWEST)
    server.remove_prompt("prompt")

    assert before == server._engine.handlers.capabilities(NEWEST)


@pytest.mark.spec("2025-11-25", "server/tools#list-changed-notification")
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_hears_only_of_the_lists_that_were_declared_in_its_own_handshake(revision: str) -> None:
    server = Server("growing", version="1")
    async with client(server, revision) as early:

        @server.tool
        async def late() -> str: ...  # type: ignore[empty-body]

        async with client(server, revision) as later:
            await server.tools_changed()

            assert "tools" not in early.initialized["capabilities"]
            assert [] == await early.wire.rest()
            assert [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}] == await later.wire.rest()


def test_what_a_thread_registers_is_offered_although_requests_are_served_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server("busy", version="1")
    make = registrations.make_tool

    def make_while_a_request_is_served(*function: Any, **options: Any) -> Any:
        server._engine.handlers.method_handlers(NEWEST)
        return make(*function, **options)

    monkeypatch.setattr(registrations, "make_tool", make_while_a_request_is_served)

    @server.tool
    async def it() -> str: ...  # type: ignore[empty-body]

    assert "tools" in server._engine.handlers.capabilities(NEWEST)


# --- a client that refuses


async def refuse(peer: Client, said: list[Any]) -> list[Any]:
    """Answer the question that *said* ends with by an error."""
    error = {"code": -1, "message": "no, thank you"}
    return await peer.wire.say(json.dumps({"jsonrpc": "2.0", "id": said[-1]["id"], "error": error}).encode())


def curious() -> Server:
    server = Server("curious", version="1")

    @server.tool
    async def tool(ctx: Context) -> str:
        return str(await ctx.roots())

    @server.tool
    async def calm(ctx: Context) -> str:
        try:
            return str(await ctx.roots())
        except RequestRefused as error:
            return f"{error.method}: {error.code} {error.message}"

    @server.prompt
    async def prompt(ctx: Context) -> str:
        return str(await ctx.roots())

    @server.resource("x:a")
    async def resource(ctx: Context) -> str:
        return str(await ctx.roots())

    return server


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_what_a_client_refuses_is_the_result_of_a_tool_that_does_not_catch_it(revision: str) -> None:
    async with client(curious(), revision, WITH_ROOTS) as peer:
        said = await refuse(peer, await peer.call("tool"))

    told = "The tool tool failed: roots/list was answered with an error: no, thank you (-1)"
    assert {"content": [{"type": "text", "text": told}], "isError": True} == said[-1]["result"]


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_tool_may_catch_what_a_client_refuses(revision: str) -> None:
    async with client(curious(), revision, WITH_ROOTS) as peer:
        said = await refuse(peer, await peer.call("calm"))

    assert "roots/list: -1 no, thank you" == text(said)


@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize(("method", "params"), [("prompts/get", '"name":"prompt"'), ("resources/read", '"uri":"x:a"')])
async def test_elsewhere_what_a_client_refuses_is_an_internal_error(revision: str, method: str, params: str) -> None:
    async with client(curious(), revision, WITH_ROOTS) as peer:
        said = await refuse(peer, await peer.ask(method, params))

    message = "roots/list was answered with an error: no, thank you (-1)"
    assert {"code": -32603, "message": message} == said[-1]["error"]


@pytest.mark.spec("2026-07-28", "basic/index#meta")
@pytest.mark.parametrize(("method", "params"), [("prompts/get", '"name":"prompt"'), ("resources/read", '"uri":"x:a"')])
async def test_a_client_is_told_what_it_lacks_also_if_a_task_group_asked(method: str, params: str) -> None:
    server = Server("grouped", version="1")

    async def ask(ctx: Context) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.roots)
        return ""

    server.prompt(name="prompt")(ask)
    server.resource("x:a")(ask)

    async with client(server, NEWEST) as peer:
        assert -32021 == (await peer.error(method, params))["code"]


# --- a resource that is not there


@pytest.mark.spec("2024-11-05", "server/resources#error-handling")
@pytest.mark.spec("2026-07-28", "server/resources#error-handling")
async def test_a_function_that_finds_nothing_says_so_in_each_revisions_terms(revision: str) -> None:
    server = Server("empty", version="1")

    @server.resource("x:{name}")
    async def find(name: str) -> str:
        raise ResourceNotFound(f"x:{name}")

    async with client(server, revision) as peer:
        error = await peer.error("resources/read", '"uri":"x:ann"')

    code = -32602 if revision == NEWEST else -32002
    assert {"code": code, "message": "Resource not found", "data": {"uri": "x:ann"}} == error


# --- a function that demands input itself


def demanding(seen: list[Any] | None = None, **options: Any) -> Server:
    server = Server("demanding", version="1", **options)

    async def where(ctx: Context) -> str | models.InputRequiredResult:
        if seen is not None:
            seen.append((ctx.request_state, sorted(ctx.input_responses)))
        found = ctx.input_responses.get("where")
        if not isinstance(found, models.ListRootsResult):
            return models.InputRequiredResult(
                input_requests={"where": models.ListRootsRequest()}, request_state="step 1"
            )
        return f"{ctx.request_state}: {found.roots[0].uri}"

    server.tool(name="tool")(where)
    server.resource("x:a")(where)
    return server


CALLS = [("tools/call", '"name":"tool"', "content"), ("resources/read", '"uri":"x:a"', "contents")]


@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#basic-workflow")
@pytest.mark.parametrize(("method", "params", "member"), CALLS)
async def test_a_stateless_client_brings_the_answers_that_a_function_demanded(
    method: str, params: str, member: str
) -> None:
    seen: list[Any] = []
    async with client(demanding(seen), NEWEST, WITH_ROOTS) as peer:
        demand = await peer.result(method, params)
        assert {"where": {"method": "roots/list"}} == demand["inputRequests"]
        more = f'"requestState":"{demand["requestState"]}","inputResponses":{{"where":{ROOTS}}}'
        result = await peer.result(method, f"{params},{more}")

    assert "step 1: file:///work" == result[member][0]["text"]
    assert [(None, []), ("step 1", ["where"])] == seen


@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize(("method", "params", "member"), CALLS)
async def test_a_client_that_shook_hands_is_asked_what_a_function_demanded(
    revision: str, method: str, params: str, member: str
) -> None:
    seen: list[Any] = []
    async with client(demanding(seen), revision, WITH_ROOTS) as peer:
        (question,) = await peer.ask(method, params)
        assert "roots/list" == question["method"]
        (answer,) = await peer.answer(question, ROOTS)

    assert "step 1: file:///work" == answer["result"][member][0]["text"]
    assert [(None, []), ("step 1", ["where"])] == seen


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_what_a_function_demands_of_a_client_that_shook_hands_is_bounded_too(revision: str) -> None:
    server = Server("greedy", version="1", limits=Limits(max_rounds=2))

    @server.tool
    async def more() -> models.InputRequiredResult:
        return models.InputRequiredResult(input_requests={"where": models.ListRootsRequest()})

    async with client(server, revision, WITH_ROOTS) as peer:
        (said,) = await peer.call("more")
        for _ in range(2):
            (said,) = await peer.answer(said, ROOTS)

    assert {"code": -32603, "message": "the handler asked for input too often; the limit is 2 (max_rounds)"} == said[
        "error"
    ]


async def test_arguments_are_no_answers_whatever_they_are_called(revision: str) -> None:
    server = Server("named", version="1")

    @server.tool
    async def it(request_state: str, input_responses: dict[str, str], ctx: Context) -> str:
        del request_state, input_responses
        return f"{ctx.request_state} {dict(ctx.input_responses)}"

    async with client(server, revision) as peer:
        said = await peer.call("it", '{"request_state":"mine","input_responses":{"a":"b"}}')

    assert "None {}" == text(said)


# --- handlers instead of functions


class Watched(OldHandlers[Context]):
    """Handlers of 2025-11-25 that want to know who watches what."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def capabilities(self) -> old.ServerCapabilities:
        return old.ServerCapabilities(resources=old.ServerCapabilitiesResources(subscribe=True))

    async def subscribe(self, params: old.SubscribeRequestParams, context: Context, /) -> dict[str, object]:
        self.heard.append(f"{context.peer.revision} watches {params.uri}")
        return {}

    async def unsubscribe(self, params: old.UnsubscribeRequestParams, context: Context, /) -> dict[str, object]:
        self.heard.append(f"{context.peer.revision} leaves {params.uri}")
        return {}


async def test_handlers_hear_of_what_stateless_clients_begin_and_cease_to_watch() -> None:
    own = Watched()
    async with client(Server("watched", version="1", handlers=own), NEWEST) as peer:
        listening = '"notifications":{"resourceSubscriptions":["x:a","x:b"]}'
        await peer.wire.say(peer.request("s", "subscriptions/listen", listening))
        assert [f"{NEWEST} watches x:a", f"{NEWEST} watches x:b"] == sorted(own.heard)
        del own.heard[:]
        await peer.wire.say(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}')

    assert [f"{NEWEST} leaves x:a", f"{NEWEST} leaves x:b"] == sorted(own.heard)


async def test_handlers_hear_of_what_sessions_watch() -> None:
    own = Watched()
    async with client(Server("watched", version="1", handlers=own), "2024-11-05") as peer:
        assert {} == await peer.result("resources/subscribe", '"uri":"x:a"')
        assert {} == await peer.result("resources/unsubscribe", '"uri":"x:a"')

    assert ["2024-11-05 watches x:a", "2024-11-05 leaves x:a"] == own.heard


async def test_a_result_of_another_revision_than_home_is_a_failure_and_logged(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Mixed(OldHandlers[Context]):
        async def call_tool(self, params: Any, context: Context, /) -> Any:
            del params, context
            return models.CallToolResult(content=[models.TextContent(text="new")])

    async with client(Server("mixed", version="1", handlers=Mixed()), revision) as peer:
        (refused,) = await peer.call("any")

    assert {"code": -32603, "message": "the server failed to handle this request"} == refused["error"]
    assert ["mcpgen.handlers"] == [each.name for each in caplog.records if each.levelname == "ERROR"]


# --- what a server is made of


async def test_a_catalogue_can_offer_what_is_registered_elsewhere(revision: str) -> None:
    elsewhere = Registrations()
    catalogue = FunctionHandlers(registry=elsewhere._registry)

    @elsewhere.tool
    async def it() -> str:
        return "done"

    async with client(Server("elsewhere", version="1", handlers=catalogue), revision) as peer:
        assert "done" == text(await peer.call("it"))


def test_what_makes_no_sense_is_refused_when_the_server_is_made() -> None:
    class Own(ServerHandlers[Context]): ...

    with pytest.raises(UsageError, match="give the server a name"):
        Server("")
    with pytest.raises(UsageError, match=r"`handlers` must be an instance, not a class; write Own\(\)"):
        Server("x", handlers=Own)
    with pytest.raises(UsageError, match="functions cannot be added"):
        Server("x", handlers=Own()).tool(test_what_makes_no_sense_is_refused_when_the_server_is_made)


@pytest.mark.parametrize("name", Limits.__struct_fields__)
def test_a_limit_is_more_than_nothing(name: str) -> None:
    with pytest.raises(UsageError, match=f"`{name}` of Limits is -1; use "):
        Limits(**{name: -1})
    with pytest.raises(UsageError, match=f"`{name}` of Limits must be a number, not '4MB'"):
        Limits(**{name: cast("Any", "4MB")})
    if name == "grace_seconds":
        assert 0 == Limits(grace_seconds=0).grace_seconds
        return
    with pytest.raises(UsageError, match=f"`{name}` of Limits is 0; use a value greater than 0"):
        Limits(**{name: 0})
