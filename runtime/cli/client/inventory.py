"""Fetch everything that a server lists, as JSON in its own revision, with all keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET, Struct

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.errors import InvalidPayload, RequestRefused, UnsupportedByPeer
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.newest import ErrorCode, MetaKey

if TYPE_CHECKING:
    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.cli.client.client_run import ClientRun

__all__ = ["Inventory", "LISTS", "Listing", "PROMPTS", "TOOLS", "fetch_inventory", "fetch_list"]

# A server could return a next cursor for ever. The limits count all lists together.
_MAX_PAGES: Final = 1000
_MAX_BYTES: Final = 16 * 1024 * 1024
_MAX_MEMORY_BYTES: Final = 64 * 1024 * 1024  # of many small values, a list of few bytes takes this

_HELLO_METHODS: Final = {"handshake": "initialize", "stateless": "server/discover"}


class Listing(NamedTuple):
    """A list that a client can request.

    Attributes:
        method: The method of the request.
        key: The key of the items in the result.
        title: Its name for people.
    """

    method: str
    key: str
    title: str


TOOLS: Final = Listing("tools/list", "tools", "Tools")
PROMPTS: Final = Listing("prompts/list", "prompts", "Prompts")

LISTS: Final = (
    TOOLS,
    Listing("resources/list", "resources", "Resources"),
    Listing("resources/templates/list", "resourceTemplates", "Resource templates"),
    PROMPTS,
)


class Inventory(Struct, kw_only=True):
    """The description of a server: its identity, capabilities and lists.

    Attributes:
        server: The command, the URL, or the name in the configuration of the server.
        kind: ``command``, ``url`` or ``server``: what *server* is.
        revision: The negotiated revision.
        era: ``handshake`` or ``stateless``.
        hello: The result of ``initialize`` or ``server/discover``.
        lists: The items of each list, by key.
        pages: The other members of each page, by method.
        failures: The error that a list request was answered with, by method.
        incomplete: Why the rest of a list was not requested, by method.
    """

    server: str
    kind: str
    revision: str
    era: str
    hello: dict[str, Any]
    lists: dict[str, list[Any]] = {}
    pages: dict[str, list[dict[str, Any]]] = {}
    failures: dict[str, RequestRefused] = {}
    incomplete: dict[str, str] = {}

    @property
    def info(self) -> dict[str, Any]:
        """The ``serverInfo`` of the server."""
        meta = self.hello.get("_meta")
        found = self.hello.get("serverInfo", meta.get(MetaKey.SERVER_INFO) if is_object(meta) else None)
        return dict(found) if is_object(found) else {}

    @property
    def capabilities(self) -> dict[str, Any]:
        """The declared capabilities."""
        found = self.hello.get("capabilities")
        return dict(found) if is_object(found) else {}

    def as_json(self) -> dict[str, Any]:
        """Return everything as one JSON object."""
        shown = self.server.encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair has no UTF-8
        made: dict[str, Any] = {self.kind: shown, "revision": self.revision, "era": self.era}
        made |= {"serverInfo": self.info, "capabilities": self.capabilities}
        if "instructions" in self.hello:
            made["instructions"] = self.hello["instructions"]
        made |= self.lists
        results: dict[str, Any] = {_HELLO_METHODS[self.era]: self.hello, **self.pages}
        made["results"] = results
        if self.failures:
            made["errors"] = {method: _as_error(each) for method, each in self.failures.items()}
        if self.incomplete:
            made["incomplete"] = self.incomplete
        return made


def _as_error(refused: RequestRefused) -> dict[str, Any]:
    made: dict[str, Any] = {"code": refused.code, "message": refused.message}
    return made if refused.data is UNSET else {**made, "data": refused.data}


class ListReader:
    """Requests the pages of lists, up to the limits of a command.

    Attributes:
        incomplete: Why the rest of a list was not requested, by method.

    Args:
        client: The client.
        run: The run of the command, which records the results.
        max_items: The most items of each list.
    """

    def __init__(self, client: Client, run: ClientRun, max_items: int) -> None:
        self.incomplete: dict[str, str] = {}
        self._client = client
        self._run = run
        self._max_items = max_items
        self._pages = self._bytes = self._memory_bytes = 0

    async def read(self, listing: Listing) -> tuple[list[Any], list[dict[str, Any]]]:
        """Return the items of all pages of a list, and the other members of each page.

        Raises:
            McpgenError: The request failed.

        Spec:
            2026-07-28, server/utilities/pagination: a list ends without a cursor; the value of a cursor means nothing.
        """
        items: list[Any] = []
        rest: list[dict[str, Any]] = []
        cursor: object = None
        while True:
            params = {} if cursor is None else {"cursor": cursor}
            page = await self._client.request_json(listing.method, params)
            self._check_type(page, listing.method)
            found = page.get(listing.key)
            items += found if is_array(found) else []
            rest.append({key: value for key, value in page.items() if key != listing.key})
            cursor = page.get("nextCursor")
            self._pages += 1
            size, memory_bytes = self._run.result_size(listing.method)
            self._bytes += size
            self._memory_bytes += memory_bytes
            limit = self._limit(len(items), is_last=not isinstance(cursor, str))
            if limit:
                self.incomplete[listing.method] = (
                    f"the list is cut after {min(len(items), self._max_items)} items: {limit}"
                )
            if limit or not isinstance(cursor, str):
                return items[: self._max_items], rest

    def _check_type(self, page: dict[str, Any], method: str) -> None:
        """Refuse a page of an unknown type: nothing in it is an item, so the list would seem to be empty.

        Raises:
            InvalidPayload: The result has such a type.

        Spec:
            2026-07-28, basic/index, "ResultType".
        """
        found = page.get("resultType", "complete")
        if self._client.era == "stateless" and found != "complete":
            reason = f"the result type {str(found)[:100]!r} is unknown"
            what = f"the result of {method}"
            raise InvalidPayload(revision=self._client.revision, pointer="/resultType", what=what, reason=reason)

    def _limit(self, count: int, *, is_last: bool) -> str:
        """Return the limit that a list has reached; empty if there is none."""
        if count > self._max_items or (count == self._max_items and not is_last):
            return f"`--max-items` is {self._max_items}"
        if not is_last and self._bytes >= _MAX_BYTES:
            return f"the limit is {_MAX_BYTES} bytes for all lists"
        if not is_last and self._memory_bytes >= _MAX_MEMORY_BYTES:
            return f"the limit is {_MAX_MEMORY_BYTES} bytes of memory for all lists"
        if not is_last and self._pages >= _MAX_PAGES:
            return f"the limit is {_MAX_PAGES} pages for all lists"
        return ""


async def fetch_inventory(client: Client, run: ClientRun, max_items: int) -> Inventory:
    """Request every list that the server's capabilities declare, up to *max_items* of each.

    Raises:
        McpgenError: A request failed. An error response to a list request is not raised, but kept in ``failures``.
    """
    made = await _hello(client, run)
    reader = ListReader(client, run, max_items)
    made.incomplete = reader.incomplete
    for listing in LISTS:
        if not offers(made.capabilities, client.revision, listing.method):
            continue
        try:
            items, rest = await reader.read(listing)
        except RequestRefused as refused:
            # Some servers have resources but no templates, and no capability says so.
            if refused.code != ErrorCode.METHOD_NOT_FOUND or listing.key != "resourceTemplates":
                made.failures[listing.method] = refused
            continue
        made.lists[listing.key] = items
        made.pages[listing.method] = rest
    return made


async def fetch_list(client: Client, run: ClientRun, listing: Listing, max_items: int) -> tuple[list[Any], str]:
    """Return the items of one list, up to *max_items*; and why the list is cut, if it is.

    Raises:
        UnsupportedByPeer: The server has not declared the capability; nothing is sent.
        McpgenError: The request failed.
    """
    known = await _hello(client, run)
    if not offers(known.capabilities, client.revision, listing.method):
        kind = listing.method.partition("/")[0]
        reason = f"the server has not declared the capability {kind}"
        raise UnsupportedByPeer(revision=client.revision, what=listing.method, reason=reason, peer="server")
    reader = ListReader(client, run, max_items)
    items, _ = await reader.read(listing)
    return items, reader.incomplete.get(listing.method, "")


async def _hello(client: Client, run: ClientRun) -> Inventory:
    method = _HELLO_METHODS[client.era]
    hello = run.result(method)
    if not is_object(hello):  # the client knew the server's era, and skipped `server/discover`
        hello = await client.request_json(method)
    target = run.target
    return Inventory(server=target.name, kind=target.kind, revision=client.revision, era=client.era, hello=dict(hello))
