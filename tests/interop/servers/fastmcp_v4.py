"""FastMCP 4 as a server: functions, whose signatures say what they take. It stands on the official SDK 2.x.

To clients of 2026-07-28 a tool's question is a demand for input, which the tool returns; to others it is asked.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message
from fastmcp.server.event_store import EventStore
from fastmcp.tools import ToolResult
from listening import RETRY_MS, TRANSPORT, listen
from pydantic import Field
from repertoire import OFFERED, PAGE_SIZE, Caller, Repertoire, Wire

warnings.simplefilter("ignore")  # what the newest revision deprecates is here on purpose

STATELESS = "2026-07-28"

repertoire = Repertoire()
server = FastMCP(
    "interop",
    version="4.2",
    instructions="Ask for one thing of everything.",
    list_page_size=PAGE_SIZE,
    mask_error_details=True,
)


class Demand(Exception):  # noqa: N818 - no error: an outcome
    """A question that the client has not answered yet."""


def wire(model: Any) -> Wire:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class FastMCPV4(Caller):
    def __init__(self, context: Context) -> None:
        self._context = context
        self._revision = context.session.protocol_version
        self.answers: Wire = json.loads(context.request_state) if context.request_state else {}
        self.answers |= {key: wire(each) for key, each in (context.input_responses or {}).items()}

    def introduction(self) -> Wire:
        client = self._context.session.client_params
        about = {"name": client.client_info.name, "version": client.client_info.version} if client else {}
        era = "stateless" if self._revision == STATELESS else "handshake"
        return {"revision": self._revision, "era": era, **about}

    async def progress(self, step: float, total: float, message: str | None) -> None:
        await self._context.report_progress(step, total, message)

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        if isinstance(data, str):  # its logs are sentences, with facts beside them
            await self._context.log(data, level, logger)
        else:
            await self._context.log(data["event"], level, logger, extra={"n": data["n"]})

    async def ask(self, key: str) -> Wire:
        if key in self.answers:
            return self.answers[key]
        if self._revision == STATELESS:
            raise Demand(key)
        session, request = self._context.session, self._context.request_id
        params = OFFERED["questions"][key].get("params", {})
        if key == "roots":
            return wire(await session.list_roots())
        if key == "model":
            messages = [types.SamplingMessage.model_validate(each) for each in params["messages"]]
            return wire(await session.create_message(messages, max_tokens=params["maxTokens"]))
        if key == "page":
            return wire(await session.elicit_url(params["message"], params["url"], f"page-{request}", request))
        return wire(await session.elicit_form(params["message"], params["requestedSchema"], request))

    async def let_go(self) -> None:
        await self._context.close_sse_stream()

    async def updated(self, uri: str) -> None:
        """Do nothing: there are no subscriptions."""

    async def changed(self) -> None:
        await self._context.send_notification(types.ToolListChangedNotification())
        await self._context.send_notification(types.PromptListChangedNotification())
        await self._context.send_notification(types.ResourceListChangedNotification())


async def do(name: str, context: Context, **arguments: Any) -> Any:
    caller = FastMCPV4(context)
    try:
        result = await repertoire.call(name, arguments, caller)
    except Demand as demand:
        [key] = demand.args
        requests = {key: OFFERED["questions"][key]}
        state = json.dumps(caller.answers)
        return types.InputRequiredResult.model_validate({"inputRequests": requests, "requestState": state})
    return ToolResult([types.TextContent.model_validate(each) for each in result["content"]])


@dataclass
class Sum:
    result: int


@dataclass
class Forecast:
    city: str
    celsius: float
    sunny: bool


@server.tool
def add(
    a: Annotated[int, Field(description="The first one.")],
    b: Annotated[int, Field(description="The one that is added to it.")],
) -> Sum:
    """Add two numbers."""
    return Sum(a + b)


@server.tool(title="Weather forecast")
def forecast(city: str) -> Forecast:
    """Say what the weather will be."""
    return Forecast(city, 21.5, sunny=True)


@server.tool
def gallery() -> list[types.ContentBlock]:
    """Show a block of every kind."""
    return types.CallToolResult.model_validate({"content": OFFERED["gallery"]}).content


@server.tool
def fail(reason: str) -> None:
    """Fail in a way that the model is told about."""
    raise ToolError(f"It failed: {reason}.")


@server.tool
def crash() -> None:
    """Fail in a way that nobody foresaw; the secret must not get out."""
    raise RuntimeError("hunter2")


@server.tool
async def whoami(ctx: Context) -> Any:
    """Say who the client is, as the server sees it."""
    return await do("whoami", ctx)


@server.tool
async def noisy(text: str, ctx: Context) -> Any:
    """Print to standard output, which belongs to the protocol."""
    return await do("noisy", ctx, text=text)


@server.tool
async def mirror(text: str, ctx: Context) -> Any:
    """Say a text backwards."""
    return await do("mirror", ctx, text=text)


@server.tool
async def count(to: int, ctx: Context) -> Any:
    """Count, and tell how far it has come; go on when told to."""
    return await do("count", ctx, to=to)


@server.tool
async def go_on(ctx: Context) -> Any:
    """Let the counting go on."""
    return await do("go_on", ctx)


@server.tool
async def chatter(ctx: Context) -> Any:
    """Log on three levels."""
    return await do("chatter", ctx)


@server.tool
async def hang(label: str, ctx: Context) -> Any:
    """Wait to be cancelled; progress says when that has begun."""
    return await do("hang", ctx, label=label)


@server.tool
async def was_cancelled(label: str, ctx: Context) -> Any:
    """Wait until the call with that label was cancelled."""
    return await do("was_cancelled", ctx, label=label)


@server.tool
async def ask(ctx: Context) -> Any:
    """Ask the user for a name, then for a confirmation."""
    return await do("ask", ctx)


@server.tool
async def ask_url(ctx: Context) -> Any:
    """Send the user to a page."""
    return await do("ask_url", ctx)


@server.tool
async def sample(ctx: Context) -> Any:
    """Ask the client's model."""
    return await do("sample", ctx)


@server.tool
async def roots(ctx: Context) -> Any:
    """List the client's roots."""
    return await do("roots", ctx)


@server.tool
async def bump(ctx: Context) -> Any:
    """Count one up, and tell who subscribed."""
    return await do("bump", ctx)


@server.tool
async def grow(ctx: Context) -> Any:
    """Add a tool, a prompt and a resource, and tell who listens."""

    @server.tool
    def sprout() -> str:
        """Exist since a moment ago."""
        return "sprouted"

    @server.prompt
    def seed() -> str:
        """Exist since a moment ago."""
        return "seeded"

    @server.resource("interop://leaf")
    def leaf() -> str:
        """Exist since a moment ago."""
        return "unfolded"

    return await do("grow", ctx)


@server.tool
async def let_go(ctx: Context) -> Any:
    """Close the connection, and answer when the client is back."""
    return await do("let_go", ctx)


@server.tool
async def route(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    count: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Count"})],
    ctx: Context,
) -> Any:
    """Say where something goes."""
    return await do("route", ctx, region=region, count=count)


def contents(uri: str) -> str | bytes:
    [content] = repertoire.read(uri) or [{}]
    return bytes.fromhex("89504e470d0a1a0a") if "blob" in content else content["text"]


@server.resource("interop://greeting", mime_type="text/plain")
def greeting() -> str | bytes:
    """Greet."""
    return contents("interop://greeting")


@server.resource("interop://pixel", mime_type="image/png")
def pixel() -> str | bytes:
    """Show one pixel."""
    return contents("interop://pixel")


@server.resource("interop://counter")
def counter() -> str | bytes:
    """Say how often it was counted up."""
    return contents("interop://counter")


@server.resource("interop://one")
def one() -> str:
    """Fill a page."""
    return "1"


@server.resource("interop://two")
def two() -> str:
    """Fill the next page."""
    return "2"


@server.resource("interop://echo/{word}", mime_type="text/plain")
def echo(word: str) -> str:
    """Say a word again."""
    return f"echo of {word}"


@server.resource("interop://files/{path*}")
def files(path: str) -> str:
    """Name a file."""
    return f"file {path}"


@server.resource("interop://grid/{row}/{column}")
def grid(row: str, column: str) -> str:
    """Name a place."""
    return f"{row}:{column}"


@server.resource("interop://search{?query}")
def search(query: str = "") -> str:
    """Find something."""
    return f"found {query}"


@server.resource("interop://last/{page}")
def last(page: str) -> str:
    """Fill the next page."""
    return page


@server.prompt
def review(
    code: Annotated[str, Field(description="What to look at.")],
    style: Annotated[str, Field(description="How to say it.")] = "kind",
) -> str:
    """Review some code."""
    return f"In a {style} way, review: {code}"


@server.prompt
def first() -> str:
    """Fill a page."""
    return "1"


@server.prompt
def second() -> str:
    """Fill a page."""
    return "2"


@server.prompt
def third() -> str:
    """Fill a page."""
    return "3"


@server.prompt
def dialogue() -> list[Message]:
    """Start a conversation; on the next page."""
    return [Message("Knock knock."), Message("Who is there?", role="assistant")]


@server.completion
def complete(ref: Any, argument: Any, context: Any) -> list[str]:
    known = (context.arguments if context else None) or {}
    return repertoire.complete(getattr(ref, "name", ""), argument.value, known)


match TRANSPORT:
    case "stdio":
        server.run(show_banner=False)
    case "sse":
        listen(server.http_app(transport="sse"))
    case "sessionless":
        listen(server.http_app(stateless_http=True))
    case _:
        listen(server.http_app(event_store=EventStore(), retry_interval=RETRY_MS))
