"""The server that the real clients talk to: ``mcpgen serve tests/interop/server.py``.

It does one thing of everything that a server can do, each with an answer that no accident gives. What a client must see
of it, in which revision, is written in ``client_expectations.py``.
"""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import anyio
from msgspec import Meta

from mcpgen import Context, Server, ToolError
from mcpgen.generated.v2026_07_28 import models

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# A server that serves some revisions only is the same server, started with this in its environment.
SERVED = os.environ.get("INTEROP_REVISIONS")

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
COUNTER = "interop://counter"

# A cancellation is noticed long before this; without a limit, one that is lost would hang the call for ever.
LONGEST_WAIT_SECONDS = 10


class Ledger:
    """What the processes that serve this file remember between calls: names that are set, and a count.

    It is a folder, which is shared if its name is in the environment.
    """

    def __init__(self, folder: str | None) -> None:
        self._own = None if folder else TemporaryDirectory()
        self._folder = Path(folder or (self._own.name if self._own else ""))

    def clear(self, name: str) -> None:
        """Forget a name."""
        (self._folder / name).unlink(missing_ok=True)

    def set(self, name: str) -> None:
        """Note a name."""
        (self._folder / name).touch()

    def has(self, name: str) -> bool:
        """Whether a name is noted."""
        return (self._folder / name).exists()

    async def wait(self, name: str) -> None:
        """Return when a name is noted."""
        with anyio.fail_after(LONGEST_WAIT_SECONDS):
            while not self.has(name):  # noqa: ASYNC110 (another process may note it)
                await anyio.sleep(0.01)

    @property
    def count(self) -> int:
        """How many times it was counted."""
        file = self._folder / "count"
        return file.stat().st_size if file.exists() else 0

    def count_up(self) -> None:
        """Count."""
        with (self._folder / "count").open("a") as file:
            file.write(".")


LEDGER = Ledger(os.environ.get("INTEROP_LEDGER"))
WORKERS = int(os.environ.get("SEVERAL_WORKERS", "1"))
NUMBER = os.environ.get("WORKER_NUMBER")


@asynccontextmanager
async def growing(_: Server) -> AsyncIterator[None]:
    """Add functions when another worker is told to."""

    async def follow() -> None:
        while not LEDGER.has("grow"):  # noqa: ASYNC110 (another process notes it)
            await anyio.sleep(0.01)
        add_functions()
        LEDGER.set(f"grown {NUMBER}")

    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        yield
        group.cancel_scope.cancel()


server = Server(
    "interop",
    version="4.2",
    title="Interoperability",
    instructions="Ask for one thing of everything.",
    page_size=4,
    revisions=SERVED.split(",") if SERVED else None,
    lifespan=growing if NUMBER is not None else None,
)


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first one.
        b: The one that is added to it.
    """
    return a + b


@dataclass
class Forecast:
    """What the weather will be."""

    city: str
    celsius: float
    sunny: bool


@server.tool(title="Weather forecast")
def forecast(city: str) -> Forecast:
    """Say what the weather will be."""
    return Forecast(city=city, celsius=21.5, sunny=True)


@server.tool
def gallery() -> list[models.ContentBlock]:
    """Show a block of every kind."""
    return [
        models.TextContent(text="plain"),
        models.ImageContent(data=PIXEL, mime_type="image/png"),
        models.AudioContent(data=SILENCE, mime_type="audio/wav"),
        models.ResourceLink(name="greeting", uri="interop://greeting"),
        models.EmbeddedResource(
            resource=models.TextResourceContents(uri="interop://note", text="enclosed", mime_type="text/plain")
        ),
    ]


@server.tool
def fail(reason: str) -> str:
    """Fail in a way that the model is told about."""
    raise ToolError(f"It failed: {reason}.")


@server.tool
def crash() -> str:
    """Fail in a way that nobody foresaw; the secret must not get out."""
    secret = "hunter2"  # noqa: S105 - the word that must not reach a client
    raise RuntimeError(secret)


@server.tool
async def whoami(ctx: Context) -> str:
    """Say who the client is, as the server sees it."""
    info = ctx.peer.info
    return json.dumps(
        {
            "revision": ctx.peer.revision,
            "era": ctx.peer.era,
            "name": info.name if info else None,
            "version": info.version if info else None,
        }
    )


@server.tool
def noisy(text: str) -> str:
    """Print to standard output, which belongs to the protocol."""
    print(f'{{"jsonrpc":"2.0","id":1,"result":"{text}"}}', flush=True)  # noqa: T201 - the point
    return text.upper()


@server.tool
async def mirror(text: str) -> str:
    """Say a text backwards."""
    return text[::-1]


@server.tool
async def count(to: int, ctx: Context) -> str:
    """Count, and tell how far it has come; go on when told to."""
    for step in range(1, to + 1):
        LEDGER.clear("go on")
        await ctx.progress(step, total=to, message=f"{step} of {to}")
        await LEDGER.wait("go on")
    return f"counted to {to}"


@server.tool
async def go_on() -> str:
    """Let the counting go on."""
    LEDGER.set("go on")
    return "gone on"


@server.tool
async def chatter(ctx: Context) -> str:
    """Log on three levels."""
    await ctx.log("debug", "a detail", logger="interop")
    await ctx.log("info", {"event": "news", "n": 1}, logger="interop")
    await ctx.log("error", "trouble")
    return "said"


@server.tool
async def hang(label: str, ctx: Context) -> str:
    """Wait to be cancelled; progress says when that has begun."""
    LEDGER.clear(f"cancelled {label}")
    try:
        await ctx.progress(1, total=2)
        await anyio.sleep(LONGEST_WAIT_SECONDS)
    except anyio.get_cancelled_exc_class():
        LEDGER.set(f"cancelled {label}")
        raise
    return "nobody cancelled"


@server.tool
async def was_cancelled(label: str) -> str:
    """Wait until the call with that label was cancelled."""
    await LEDGER.wait(f"cancelled {label}")
    return f"{label} was cancelled"


@dataclass
class Person:
    """Somebody who is asked for a name."""

    name: str
    age: int


@server.tool
async def ask(ctx: Context) -> str:
    """Ask the user for a name, then for a confirmation."""
    who = await ctx.elicit("Who are you?", Person)
    sure = await ctx.elicit("Really?", {"type": "object", "properties": {"sure": {"type": "boolean"}}})
    name = who.content.name if who.content else None
    return json.dumps({"first": who.action, "name": name, "second": sure.action})


@server.tool
async def ask_url(ctx: Context) -> str:
    """Send the user to a page."""
    return f"user said {await ctx.elicit_url('Please sign in.', 'https://example.com/sign-in')}"


@server.tool
async def sample(ctx: Context) -> str:
    """Ask the client's model."""
    answer = await ctx.sample("Six times seven?", max_tokens=32)
    text = answer.content.text if isinstance(answer.content, models.TextContent) else "?"
    return f"{answer.model} says {text}"


@server.tool
async def roots(ctx: Context) -> str:
    """List the client's roots."""
    return json.dumps([[root.uri, root.name] for root in await ctx.roots()])


@server.tool
async def bump(ctx: Context) -> str:
    """Count one up, and tell who subscribed."""
    LEDGER.count_up()
    await ctx.resource_updated(COUNTER)
    return f"now {LEDGER.count}"


def add_functions() -> None:
    """Add a tool, a prompt and a resource, of which the server tells its clients."""

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


@server.tool
async def grow() -> str:
    """Add a tool, a prompt and a resource, in all workers."""
    if WORKERS == 1:
        add_functions()
    else:
        LEDGER.set("grow")
        for each in range(WORKERS):
            await LEDGER.wait(f"grown {each}")
    return "grown"


@server.tool
async def let_go(ctx: Context) -> str:
    """Close the connection, and answer when the client is back."""
    await ctx.disconnect(retry_seconds=0.1)
    return "here again"


@server.tool
def route(
    region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
    count: Annotated[int, Meta(extra_json_schema={"x-mcp-header": "Count"})],
) -> str:
    """Say where something goes."""
    return f"{count} to {region}"


@server.resource("interop://greeting", mime_type="text/plain")
def greeting() -> str:
    """Greet."""
    return "Good morning, Vera."


@server.resource("interop://pixel", mime_type="image/png")
def pixel() -> bytes:
    """Show one pixel."""
    return bytes.fromhex("89504e470d0a1a0a")


@server.resource(COUNTER)
def counter() -> str:
    """Say how often it was counted up."""
    return str(LEDGER.count)


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


@server.resource("interop://files/{+path}")
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
def review(code: str, style: str = "kind") -> str:
    """Review some code.

    Args:
        code: What to look at.
        style: How to say it.
    """
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
def dialogue() -> list[models.PromptMessage]:
    """Start a conversation; on the next page."""
    return [
        models.PromptMessage(role="user", content=models.TextContent(text="Knock knock.")),
        models.PromptMessage(role="assistant", content=models.TextContent(text="Who is there?")),
    ]


@server.completion("review", "style")
def complete_style(value: str, arguments: dict[str, str]) -> list[str]:
    """Complete a style, knowing what else was said."""
    styles = ["kind", "kinetic", "strict"]
    return [style + "!" * len(arguments.get("code", "")) for style in styles if style.startswith(value)]


@server.completion("interop://echo/{word}", "word")
def complete_word(value: str, arguments: dict[str, str]) -> list[str]:
    """Complete a word."""
    del arguments
    return [word for word in ("alpha", "alphabet", "beta") if word.startswith(value)]
