"""What users see of a client: its names, its representations, and the signature of `connect`."""

from __future__ import annotations

import inspect

import pytest
from msgspec import UNSET

from mcpgen import BaseClient, Client, Http, Process, Server, UsageError, connect
from mcpgen.runtime.api.connect_options import Options
from mcpgen.runtime.transports.memory import Memory

pytestmark = pytest.mark.anyio

server = Server("shown", version="1.0")

BASE_NAMES = {
    *("capabilities", "era", "extensions", "instructions", "meta", "native_revision", "revision", "server", "stderr"),
    *("close", "listen", "notify", "ping", "request", "request_json", "roots_changed", "set_log_level"),
}
NAMES = {
    *BASE_NAMES,
    *("call_tool", "complete", "get_prompt", "methods", "read_resource", "start_tool", "task"),
    *("list_prompts", "list_resource_templates", "list_resources", "list_tools"),
    *("prompts", "resource_templates", "resources", "tools"),
}


def public(value: object) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


async def test_a_client_shows_what_users_call_and_nothing_else() -> None:
    async with connect(server) as client:
        assert isinstance(client, Client)
        assert NAMES == public(client)
    async with connect(server, native_revision="2025-06-18") as base:
        assert type(base) is BaseClient
        assert BASE_NAMES == public(base)


def test_a_connection_shows_nothing() -> None:
    assert set() == public(connect(server))


def test_connect_shows_its_options_and_their_defaults() -> None:
    parameters = inspect.signature(connect).parameters
    options = {name: each for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}

    assert Options.__annotations__.keys() == options.keys() - {"native_revision"}
    assert ("mcpgen", "off", None) == tuple(options[name].default for name in ("name", "structured", "limits"))
    assert [] == [name for name, each in options.items() if each.default is each.empty]


async def test_a_client_says_where_it_is_connected_and_whether_it_is_closed() -> None:
    connection = connect(server, revisions=["2025-11-25"])
    assert repr(connection).startswith("<Connection to 'shown', not opened: write `async with connect(…) as client`")

    async with connection as client:
        assert "<Client to 'shown': shown 1.0, revision 2025-11-25, open>" == repr(client)
        assert f"<Connection to 'shown', opened: {client!r}>" == repr(connection)

    assert "<Client to 'shown': shown 1.0, revision 2025-11-25, closed>" == repr(client)


async def test_a_connection_that_failed_says_so() -> None:
    connection = connect(["no-such-program"])

    with pytest.raises(UsageError):
        await connection

    assert "<Connection to 'no-such-program', opened, but not connected>" == repr(connection)


def test_a_transport_says_where_it_leads_without_secrets() -> None:
    assert "Memory('shown')" == repr(Memory(server))
    assert "Http('https://example.com/mcp?…')" == repr(Http("https://u:p@example.com/mcp?k=1", headers={"x-key": "s"}))
    assert "Process('python server.py')" == repr(Process(["python", "server.py"], environment={"KEY": "secret"}))
    assert "Process('python server.py', directory='/')" == repr(Process("python server.py", directory="/"))


@pytest.mark.parametrize("name", ["list_tools", "list_prompts", "list_resources", "list_resource_templates"])
async def test_a_gateway_can_pass_on_the_cursor_of_a_request_without_one(name: str) -> None:
    lists = Server("lists")

    @lists.tool
    @lists.prompt
    @lists.resource("text://one")
    def one() -> str:
        return "1"

    @lists.resource("text://{number}")
    def many(number: str) -> str:
        return number

    async with connect(lists) as client:
        page = await getattr(client, name)(UNSET)

    assert UNSET is page.next_cursor
