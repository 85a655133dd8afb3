"""What a server has: its own words, under its own revision, with all their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET, Struct

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.errors import RequestRefused, UnsupportedByPeer
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.messages import Code

if TYPE_CHECKING:
    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.cli.server_visit import ServerVisit

__all__ = ["Inventory", "LISTS", "Listing", "PROMPTS", "TOOLS", "inventory_of", "listed_by"]

# As a server that always has another page would never end; the engine has the same bound for its own lists.
_MOST_PAGES: Final = 1000

_HELLO: Final = {"handshake": "initialize", "stateless": "server/discover"}
_INFO: Final = "io.modelcontextprotocol/serverInfo"


class Listing(NamedTuple):
    """A list that servers have.

    Attributes:
        method: What asks for it.
        key: Where its items stand in the result.
    """

    method: str
    key: str


TOOLS: Final = Listing("tools/list", "tools")
PROMPTS: Final = Listing("prompts/list", "prompts")

LISTS: Final = (
    TOOLS,
    Listing("resources/list", "resources"),
    Listing("resources/templates/list", "resourceTemplates"),
    PROMPTS,
)


class Inventory(Struct, kw_only=True):
    """What a server has.

    Attributes:
        server: How it was started, or where it is.
        place: Which of the two: ``command`` or ``url``.
        revision: What is spoken with it.
        era: How that was agreed on.
        hello: The result of `initialize` or `server/discover`.
        lists: The items of what it offers, by key.
        pages: What stood beside the items, page by page, by method.
        failures: The errors that a list was answered with, by method.
    """

    server: str
    place: str
    revision: str
    era: str
    hello: dict[str, Any]
    lists: dict[str, list[Any]] = {}
    pages: dict[str, list[dict[str, Any]]] = {}
    failures: dict[str, RequestRefused] = {}

    @property
    def info(self) -> dict[str, Any]:
        """Name and version, and what else the server says of itself."""
        meta = self.hello.get("_meta")
        found = self.hello.get("serverInfo", meta.get(_INFO) if is_object(meta) else None)
        return dict(found) if is_object(found) else {}

    @property
    def capabilities(self) -> dict[str, Any]:
        """What it has declared."""
        found = self.hello.get("capabilities")
        return dict(found) if is_object(found) else {}

    def as_json(self) -> dict[str, Any]:
        """Return all of it as one object."""
        made: dict[str, Any] = {self.place: self.server, "revision": self.revision, "era": self.era}
        made |= {"serverInfo": self.info, "capabilities": self.capabilities}
        if "instructions" in self.hello:
            made["instructions"] = self.hello["instructions"]
        made |= self.lists
        results: dict[str, Any] = {_HELLO[self.era]: self.hello, **self.pages}
        made["results"] = results
        if self.failures:
            made["errors"] = {method: _as_error(each) for method, each in self.failures.items()}
        return made


def _as_error(refused: RequestRefused) -> dict[str, Any]:
    made: dict[str, Any] = {"code": refused.code, "message": refused.message}
    return made if refused.data is UNSET else {**made, "data": refused.data}


async def inventory_of(client: Client, visit: ServerVisit) -> Inventory:
    """Ask for all that the server offers.

    Raises:
        McpgenError: As for every request, but for an error that a list is answered with, which is kept.
    """
    made = await _without_lists(client, visit)
    for listing in LISTS:
        if not offers(made.capabilities, client.revision, listing.method):
            continue
        try:
            items, rest = await _every_page(client, listing)
        except RequestRefused as refused:
            # Many a server has resources and knows nothing of templates: there is no capability for these.
            if refused.code != Code.METHOD_NOT_FOUND or listing.key != "resourceTemplates":
                made.failures[listing.method] = refused
            continue
        made.lists[listing.key] = items
        made.pages[listing.method] = rest
    return made


async def listed_by(client: Client, visit: ServerVisit, listing: Listing) -> list[Any]:
    """Return the items of one list.

    Raises:
        UnsupportedByPeer: The server has not declared that it has one; it was not asked.
        McpgenError: As for every request.
    """
    known = await _without_lists(client, visit)
    if not offers(known.capabilities, client.revision, listing.method):
        kind = listing.method.partition("/")[0]
        reason = f"it has not declared {kind}"
        raise UnsupportedByPeer(revision=client.revision, what=listing.method, reason=reason)
    items, _ = await _every_page(client, listing)
    return items


async def _without_lists(client: Client, visit: ServerVisit) -> Inventory:
    method = _HELLO[client.era]
    hello = visit.result(method)
    if not is_object(hello):  # it was known what the server speaks, and nobody has asked it
        hello = await client.request_json(method)
    target = visit.target
    return Inventory(
        server=target.name, place=target.place, revision=client.revision, era=client.era, hello=dict(hello)
    )


async def _every_page(client: Client, listing: Listing) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the items of all pages of a list, and what each page says beside them.

    Raises:
        McpgenError: As for every request.
    """
    items: list[Any] = []
    rest: list[dict[str, Any]] = []
    cursor: object = None
    seen: set[str] = set()
    for _ in range(_MOST_PAGES):
        page = await client.request_json(listing.method, {} if cursor is None else {"cursor": cursor})
        found = page.get(listing.key)
        items += found if is_array(found) else []
        rest.append({key: value for key, value in page.items() if key != listing.key})
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in seen:
            break
        seen.add(cursor)
    return items, rest
