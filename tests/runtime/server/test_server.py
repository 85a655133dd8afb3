"""A server whose arguments or handlers would only fail when the first client comes is refused at once, and told why."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Context, Server, UsageError
from mcpgen.runtime.protocol.newest import NEWEST, ServerHandlers
from tests.specification.server.revision_client import client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


def refusal(**options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        Server("x", **options)
    return str(caught.value)


@pytest.mark.parametrize(("option", "value"), [("version", 1.0), ("title", 3), ("website_url", 4)])
def test_what_a_server_says_about_itself_is_of_its_type(option: str, value: object) -> None:
    assert f"`{option}` must be a string, not {type(value).__name__}" == refusal(**{option: value})


def test_icons_are_of_their_type() -> None:
    assert "`icons` of Server is not valid: Expected" in refusal(icons=["i"])


def test_a_lifespan_without_its_decorator_is_refused_with_the_decorator() -> None:
    async def database(server: Server) -> AsyncGenerator[str]:
        yield server.name

    assert "`lifespan` lacks its decorator; write @asynccontextmanager above database" == refusal(lifespan=database)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("icons", 3, "`icons` must be a list of Icon, such as [Icon(src='https://…')], not 3"),
        ("icons", "i", "`icons` must be a list of Icon, such as [Icon(src='https://…')], not 'i'"),
        ("lifespan", 3, "`lifespan` must be a function with @asynccontextmanager, not 3"),
    ],
)
def test_an_argument_of_another_kind_is_named(option: str, value: object, expected: str) -> None:
    assert expected == refusal(**{option: value})


def test_limits_that_are_none_are_refused() -> None:
    message = refusal(limits={})

    assert "`limits` must be a Limits" in message
    assert message.endswith("not dict")


def test_middleware_that_cannot_be_called_is_refused() -> None:
    server = Server("x", version="1")

    with pytest.raises(UsageError, match=r"`function` of middleware\(\) must be a function, not 3"):
        server.middleware(3)  # type: ignore[arg-type] # what is tested


def test_a_handler_that_is_no_coroutine_function_is_refused_by_name() -> None:
    class Blocking(ServerHandlers[Any]):
        def call_tool(self, params: Any, context: Any) -> Any:
            del params, context

    message = refusal(handlers=Blocking())

    assert "Blocking.call_tool is not a coroutine function; write `async def call_tool`" == message


def test_a_handler_that_takes_too_little_is_refused_by_name() -> None:
    class Short(ServerHandlers[Any]):
        async def call_tool(self, params: Any) -> Any:  # type: ignore[override] # what is tested
            del params

    message = refusal(handlers=Short())

    assert (
        "Short.call_tool does not take params and context; write `async def call_tool(self, params, context)`"
        == message
    )


def test_a_handler_whose_name_is_misspelt_is_refused_with_the_one_that_was_meant() -> None:
    class Misspelt(ServerHandlers[Any]):
        async def call_tol(self, params: Any, context: Any) -> Any:
            del params, context

    advice = "did you mean `call_tool`? If only your own code calls it, name it `_call_tol`"
    assert f"Misspelt has a method `call_tol`, which mcpgen never calls; {advice}" == refusal(handlers=Misspelt())


@pytest.mark.parametrize("name", ["initialize", "ping", "set_level", "subscribe", "unsubscribe"])
def test_a_handler_of_a_method_that_only_another_revision_has_is_refused_by_name(name: str) -> None:
    async def handle(self: Any, params: Any, context: Any) -> Any:
        del self, params, context

    older = type("Older", (ServerHandlers,), {name: handle})

    told = f"Older has a method `{name}`, but mcpgen handles this method itself; remove it from the class"
    assert told == refusal(handlers=older())


@pytest.mark.anyio
async def test_a_second_connection_waits_until_the_lifespan_has_begun() -> None:
    begins = anyio.Event()

    @asynccontextmanager
    async def slow(server: Server) -> AsyncGenerator[str]:
        await begins.wait()
        yield server.name

    server = Server("two", lifespan=slow)
    found: list[object] = []

    async def run() -> None:
        async with server.running():
            found.append(server.state)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        begins.set()

    assert ["two", "two"] == found


# --- what users see of the objects

SERVER_NAMES = (
    "asgi completion connect debug disable enable extend limits middleware name native_revision only overrides prompt "
    "prompts_changed remove_prompt remove_resource remove_tool resource resource_updated resources_changed run "
    "run_async running state tool tools_changed ui_resource"
)
CONTEXT_NAMES = (
    "access debug defer disconnect elicit elicit_url elicitation_completed input_responses is_cancelled log meta "
    "method notify peer progress prompts_changed request request_id request_state resource_updated "
    "resources_changed roots sample state sync tools_changed user"
)


def public(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith("_")]


def test_a_server_and_a_context_show_only_what_users_call() -> None:
    assert SERVER_NAMES.split() == public(dir(Server("x")))
    assert CONTEXT_NAMES.split() == public(dir(Context))


def test_a_server_shows_what_it_offers() -> None:
    server = Server("x")

    @server.tool
    def echo(text: str) -> str:
        return text

    class Own(ServerHandlers[Context]): ...

    assert "<Server 'x': tools 1, resources 0, prompts 0>" == repr(server)
    assert f"<Server 'own': handlers of {NEWEST}>" == repr(Server("own", handlers=Own()))


@pytest.mark.anyio
async def test_a_connection_and_a_context_show_their_client_and_what_they_serve() -> None:
    server = Server("x")

    @server.tool
    async def show(context: Context) -> str:
        return repr(context)

    async with client(server, "2025-11-25") as peer:
        result = await peer.result("tools/call", '"name":"show"')

        assert "<Context: tools/call, request 1, of a client of 2025-11-25>" == result["content"][0]["text"]
        assert "<Connection of 'x': 2025-11-25, 0 running>" == repr(peer.wire.connection)
    assert "<Connection of 'x': closed>" == repr(peer.wire.connection)
