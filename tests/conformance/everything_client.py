"""A client that does with a server whatever a scenario of the official conformance suite wants to see.

The suite starts it, ``python everything_client.py URL``, and says in the environment which scenario is on, and in which
revision. With ``--any`` the client does not listen to the latter, and finds out. It is also an example of what a client
can do: each function below is a scenario, and needs no more than the client that it gets.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import anyio
import httpx
from msgspec import UNSET

from mcpgen import (
    Client,
    ClientContext,
    ClientCredentials,
    ClientLimits,
    HttpRefused,
    IdJag,
    JwtAssertion,
    LoginFailed,
    MemoryTokenStore,
    OAuth,
    connect,
)
from mcpgen.generated.v2026_07_28 import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitResult,
    Root,
    TextContent,
    Tool,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# What the harness looks for: that the checks are as they must be says nothing of how the client ended.
DONE = "The scenario was gone through."

# What a user would type into a field, or give to a tool.
TYPED: dict[str, object] = {"string": "something", "integer": 1, "number": 1.5, "boolean": True}


# --- What answers a server


def fill_in(params: ElicitRequestFormParams, context: ClientContext) -> ElicitResult:
    """Accept a form, with the defaults of its fields where they have one, and otherwise with anything that fits."""
    fields: Any = params.requested_schema["properties"]
    anything = {name: field.get("enum", [TYPED.get(field["type"])])[0] for name, field in fields.items()}
    defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
    return ElicitResult(action="accept", content=anything | defaults)


async def fill_in_after_another_call(params: ElicitRequestFormParams, context: ClientContext) -> ElicitResult:
    """Accept a form, but call another tool before."""
    if isinstance(context.client, Client):
        await context.client.call_tool("test_mrtr_unrelated")
    return fill_in(params, context)


def complete(params: CreateMessageRequestParams, context: ClientContext) -> CreateMessageResult:
    """Be the model."""
    return CreateMessageResult(role="assistant", content=TextContent(text="Yes."), model="conformance")


# --- Scenarios


async def look_around(client: Client) -> None:
    """List what there is, as far as the server has declared it: what any client does."""
    await client.ping()
    if client.capabilities.tools is not UNSET:
        async for tool in client.tools():
            await client.call_tool(tool.name, arguments_for(tool))


async def reconnect(client: Client) -> None:
    """Call a tool whose connection is closed before there is a result."""
    await client.call_tool("test_reconnection")


async def demand_input(client: Client) -> None:
    """Call tools that demand input, and one that says nothing of it."""
    for tool in ("test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"):
        await client.call_tool(tool)


async def use_everything(client: Client) -> None:
    """List everything, and use everything that is listed."""
    async for tool in client.tools():
        await client.call_tool(tool.name, arguments_for(tool))
    async for resource in client.resources():
        await client.read_resource(resource.uri)
    async for prompt in client.prompts():
        await client.get_prompt(prompt.name)


async def call_as_told(client: Client) -> None:
    """Call the tools that the suite names with the arguments that it gives, once they were listed."""
    listed = {tool.name async for tool in client.tools()}
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        assert call["name"] in listed
        await client.call_tool(call["name"], call["arguments"])


async def list_only(client: Client) -> None:
    """List the tools, whose schemas refer to what is elsewhere."""
    assert [tool.name async for tool in client.tools()] == ["lookup_user"]


async def echo_a_schema(client: Client) -> None:
    """Send a tool's schema back as it came."""
    schemas = {tool.name: tool.input_schema async for tool in client.tools()}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


def arguments_for(tool: Tool) -> dict[str, object]:
    """Return something for each argument that a tool needs."""
    properties: Any = tool.input_schema.get("properties", {})
    needed: Any = tool.input_schema.get("required", [])
    return {name: TYPED.get(properties[name].get("type")) for name in needed}


# --- Logins


async def visit(url: str) -> str:
    """Go to the login page, which logs in whoever comes, and return where it redirects to."""
    async with httpx.AsyncClient() as browser:
        response = await browser.get(url)
    return response.headers["location"]


def credentials(scenario: str, context: dict[str, str]) -> OAuth | ClientCredentials | JwtAssertion:
    """Return what the client logs in with, where the suite gives it something, or wants to see something."""
    match scenario.removeprefix("auth/"):
        case "client-credentials-basic":
            return ClientCredentials(context["client_id"], secret=context["client_secret"])
        case "client-credentials-jwt":
            key, algorithm = context["private_key_pem"], context["signing_algorithm"]
            return ClientCredentials(context["client_id"], private_key=key, algorithm=algorithm)
        case "enterprise-managed-authorization":
            identity = IdJag(
                context["idp_token_endpoint"], client_id=context["idp_client_id"], id_token=context["idp_id_token"]
            )
            return JwtAssertion(identity, client_id=context["client_id"], client_secret=context["client_secret"])
        case "wif-jwt-bearer":
            return JwtAssertion(lambda issuer, resource: context["valid_jwt"], client_id=context["client_id"])
    return OAuth(
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        client_metadata_url="https://conformance-test.local/client-metadata.json",
        visit=visit,
        store=MemoryTokenStore(),
        dpop="on" if "dpop" in scenario else "auto",
    )


# What a client must not go on with: another server, another issuer, or a server that always wants more.
REFUSED = {
    "auth/iss-normalized": LoginFailed,
    "auth/iss-supported-missing": LoginFailed,
    "auth/iss-unexpected": LoginFailed,
    "auth/iss-wrong-issuer": LoginFailed,
    "auth/metadata-issuer-mismatch": LoginFailed,
    "auth/resource-mismatch": LoginFailed,
    "auth/scope-retry-limit": HttpRefused,
}


SCENARIOS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "sse-retry": reconnect,
    "sep-2322-client-request-state": demand_input,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
    "json-schema-ref-no-deref": list_only,
    "json-schema-2020-12-preservation": echo_a_schema,
}


async def main(url: str, revision: str | None) -> None:
    """Go through the scenario that is on, in this revision, or in whichever is found."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    if scenario not in REFUSED:
        await go_through(scenario, url, revision)
    else:
        try:
            await go_through(scenario, url, revision)
        except REFUSED[scenario] as refusal:
            sys.stdout.write(f"{refusal}\n")
        else:
            raise AssertionError(f"{scenario} has to be refused")
    sys.stdout.write(f"{DONE}\n")


async def go_through(scenario: str, url: str, revision: str | None) -> None:
    """Connect, log in where the scenario is about that, and do what it wants to see."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    # The suite starts all clients at once; a probe that is not answered in time is not what is tried here.
    async with connect(
        url,
        limits=ClientLimits(probe_seconds=30),
        name="everything-client",
        version="1.0",
        revisions=[revision] if revision else None,
        elicit=fill_in_after_another_call if scenario == "sep-2322-client-request-state" else fill_in,
        sample=complete,
        roots=[Root(uri="file:///home/me")],
        auth=credentials(scenario, context) if scenario.startswith("auth/") else None,
    ) as client:
        await SCENARIOS.get(scenario, look_around)(client)


if __name__ == "__main__":
    told = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
    anyio.run(main, sys.argv[-1], None if "--any" in sys.argv else told)
