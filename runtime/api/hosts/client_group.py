"""One client over several servers: lists are joined, and each call goes to the server that its name says.

The names are those of FastMCP: the tool ``add`` of the server ``notes`` is ``notes_add``, and so are prompts. A URI
stays as it is, and goes to the server that lists it.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import anyio
from msgspec.structs import replace

from mcpgen.runtime.api.hosts.uri_templates import template_fits
from mcpgen.runtime.errors import (
    McpgenError,
    RequestRefused,
    RequestTimedOut,
    TransportClosed,
    UnsupportedByPeer,
    UsageError,
    printable,
)
from mcpgen.runtime.limits import MAX_URI_CHARS
from mcpgen.runtime.protocol.argument_checks import check_texts
from mcpgen.runtime.protocol.newest import ErrorCode, models
from mcpgen.runtime.transports.errors import ServerExited
from mcpgen.runtime.transports.event_loops import next_turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Generator, Mapping
    from types import TracebackType
    from typing import Self

    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.client.outgoing_requests import CallOptions
    from mcpgen.runtime.client.tool_results import ToolResult

__all__ = ["ClientGroup", "NoServerConnected", "name_server"]

T = TypeVar("T")

_LOG = logging.getLogger("mcpgen.client")

# The templates that are compared in one turn of the event loop. Each character takes up to 0.2 µs.
_MAX_COMPARED_CHARS = 64 * 1024

# A program can read any number of resources of a template.
_MAX_OWNERS = 10_000


class NoServerConnected(TransportClosed):
    """None of the servers of a configuration could be connected.

    Attributes:
        failures: The error of each server, by its name.
    """

    def __init__(self, failures: Mapping[str, McpgenError]) -> None:
        self.failures: dict[str, McpgenError] = dict(failures)
        super().__init__(tuple(self.failures))

    def __str__(self) -> str:
        if not self.failures:
            return "no server is connected: the configuration disables all of them"
        reasons = "".join(f"\n    {printable(name)}: {error}" for name, error in self.failures.items())
        return f"no server of the configuration could be connected:{reasons}"


class ClientGroup:
    """The connections to the servers of a host's configuration. `connect` makes it.

    A server that cannot be connected does not stop the others: it is in `failures`. The tools and prompts of a server
    have its name before theirs: ``notes_add`` is the tool ``add`` of the server ``notes``. For all that is not here,
    such as `Client.listen`, use the client of one server: ``group["notes"]``.

    An error of a request is the one that the client of the server raises, with a note that names the server. If the
    list of a server fails, those of the other servers come first, and then its error.
    """

    def __init__(
        self,
        clients: Mapping[str, Client],
        failures: Mapping[str, McpgenError],
        max_call_seconds: float,
    ) -> None:
        self._clients = dict(clients)
        self._failures = dict(failures)
        self._max_call_seconds = max_call_seconds
        self._owners: dict[str, str] = {}  # the server of each resource that was read last

    @property
    def clients(self) -> Mapping[str, Client]:
        """The client of each connected server, by the name of the server."""
        return MappingProxyType(self._clients)

    @property
    def failures(self) -> Mapping[str, McpgenError]:
        """The error of each server that could not be connected, by the name of the server."""
        return MappingProxyType(self._failures)

    def __getitem__(self, server: str) -> Client:
        """Return the client of *server*.

        Raises:
            UsageError: The configuration has no such server.
            TransportClosed: The server could not be connected.
        """
        found = self._clients.get(server)
        if found is not None:
            return found
        if server in self._failures:
            reason = self._failures[server]
            raise TransportClosed(f"the server {server!r} is not connected: {reason}") from reason
        raise UsageError(f"the group has no server {server!r}; its servers are {self._names()}")

    def __repr__(self) -> str:
        failed = ", ".join(map(repr, self._failures))
        return f"<{type(self).__name__} of {self._names()}{f'; not connected: {failed}' if failed else ''}>"

    async def __aenter__(self) -> Self:
        """Return the group, which is connected already. It is closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close all clients."""
        await self.close()

    async def close(self) -> None:
        """Close all clients, and end the processes of their servers. Any task may call it, any number of times."""
        async with anyio.create_task_group() as tasks:
            for each in self._clients.values():
                tasks.start_soon(each.close)

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        returns: None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        returns: type[T],
        **options: Unpack[CallOptions],
    ) -> T: ...
    @overload
    async def call_tool(
        self, name: str, arguments: Mapping[str, object] | None = None, *, returns: Any, **options: Unpack[CallOptions]
    ) -> Any: ...
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a tool, such as ``notes_add``. The arguments and errors are those of `Client.call_tool`.

        Raises:
            UsageError: The name begins with no server's name, or several servers have such a tool.
            TransportClosed: The server could not be connected.
        """
        server, tool = await self._within(self._split(name, "tools"), "tools/list", options)
        with _named(server):
            return await self[server].call_tool(tool, arguments, returns=returns, **options)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> models.GetPromptResult:
        """Return the messages of a prompt, such as ``notes_review``.

        Raises:
            UsageError: The name begins with no server's name, or several servers have such a prompt.
            TransportClosed: The server could not be connected.
        """
        server, prompt = await self._within(self._split(name, "prompts"), "prompts/list", options)
        with _named(server):
            return await self[server].get_prompt(prompt, arguments, **options)

    async def read_resource(self, uri: str, **options: Unpack[CallOptions]) -> models.ReadResourceResult:
        """Return the contents of a resource of the server that lists it, or lists a template for it.

        Raises:
            UsageError: No server lists the URI, or several do; use the client of one server then.
        """
        server = await self._within(self._owner(uri), "resources/list", options)
        with _named(server):
            return await self[server].read_resource(uri, **options)

    async def complete(
        self,
        ref: models.PromptReference | models.ResourceTemplateReference,
        argument: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> models.CompleteResultCompletion:
        """Return suggestions for the value of an argument. *ref* has the name or the URI that the group lists.

        Raises:
            UsageError: The prompt or the template belongs to no server, or to several.
        """
        if isinstance(ref, models.PromptReference):
            server, prompt = await self._within(self._split(ref.name, "prompts"), "prompts/list", options)
            ref = replace(ref, name=prompt)
        else:
            listing = self._listing("resource_templates", "uri_template", ref.uri)
            server = self._sole(ref.uri, await self._within(listing, "resources/templates/list", options))
        with _named(server):
            return await self[server].complete(ref, argument, value, context=context, **options)

    async def tools(self, **options: Unpack[CallOptions]) -> AsyncIterator[models.Tool]:
        """Iterate over the tools of all servers, with the name of the server before theirs."""
        async for server, tool in self._items("tools", options):
            yield replace(tool, name=f"{server}_{tool.name}")

    async def prompts(self, **options: Unpack[CallOptions]) -> AsyncIterator[models.Prompt]:
        """Iterate over the prompts of all servers, with the name of the server before theirs."""
        async for server, prompt in self._items("prompts", options):
            yield replace(prompt, name=f"{server}_{prompt.name}")

    async def resources(self, **options: Unpack[CallOptions]) -> AsyncIterator[models.Resource]:
        """Iterate over the resources of all servers."""
        async for _, resource in self._items("resources", options):
            yield resource

    async def resource_templates(self, **options: Unpack[CallOptions]) -> AsyncIterator[models.ResourceTemplate]:
        """Iterate over the resource templates of all servers."""
        async for _, template in self._items("resource_templates", options):
            yield template

    def _names(self) -> str:
        return ", ".join(repr(each) for each in (*self._clients, *self._failures))

    async def _items(self, listing: str, options: Mapping[str, Any]) -> AsyncIterator[tuple[str, Any]]:
        """Iterate over a list of all servers that have it.

        Raises:
            McpgenError: The list of a server failed. Those of the other servers come first.
        """
        failure: McpgenError | None = None
        for server, client in self._clients.items():
            try:
                with _named(server):
                    async for each in getattr(client, listing)(**options):
                        yield server, each
            except UnsupportedByPeer:  # this server has no such list
                continue
            except McpgenError as error:
                # The client asks some revisions for lists that are not declared.
                is_missing = isinstance(error, RequestRefused) and error.code == ErrorCode.METHOD_NOT_FOUND
                if failure is None and not is_missing:
                    failure = error
        if failure is not None:
            raise failure

    async def _within(self, search: Awaitable[T], method: str, options: CallOptions) -> T:
        """Return what *search* finds in the lists of the servers, within the time of a call.

        Each page of a list has a time limit of its own, and a server can send a thousand pages. The call has what the
        search leaves of `timeout_seconds`.

        Raises:
            RequestTimedOut: The time is over.
        """
        seconds = options.get("timeout_seconds")
        is_given = isinstance(seconds, int | float) and seconds > 0  # the call itself refuses a wrong one
        limit = seconds if is_given and seconds is not None else self._max_call_seconds
        with anyio.move_on_after(limit) as scope:
            found = await search
            left = round(scope.deadline - anyio.current_time(), 2)
            if is_given and 0 < left < limit:
                options["timeout_seconds"] = left
            return found
        raise RequestTimedOut(method, limit)

    async def _listing(self, listing: str, key: str, value: str) -> list[str]:
        """Return the servers in whose list an item has the value *value* of *key*."""
        return [server async for server, each in self._items(listing, {}) if getattr(each, key) == value]

    async def _split(self, name: str, listing: str) -> tuple[str, str]:
        """Return the server and its own name of *name*.

        If the names of two servers fit, as with ``a`` and ``a_b``, the one that lists the name is meant.

        Raises:
            UsageError: No name fits, or several servers list the name.
            TransportClosed: The names of several servers fit, and one of them could not be connected.
        """
        check_texts(name=name)
        fitting = [each for each in (*self._clients, *self._failures) if name.startswith(f"{each}_")]
        if not fitting:
            kind = listing.removesuffix("s")
            raise UsageError(
                f"the {kind} {name!r} does not begin with the name of a server and an underscore; write "
                f"SERVER_{kind.upper()}, where SERVER is one of {self._names()}"
            )
        if len(fitting) > 1:
            for each in fitting:
                self[each]  # one that is not connected may be meant, so no other server gets its arguments
            listed = [server async for server, each in self._items(listing, {}) if f"{server}_{each.name}" == name]
            fitting = [self._sole(name, listed)]
        return fitting[0], name.removeprefix(f"{fitting[0]}_")

    async def _owner(self, uri: str) -> str:
        """Return the server of the resource *uri*. The lists are read if it is not known yet."""
        found = self._owners.get(uri)
        if found is None:
            # Both: otherwise, a server could list a URI of another server's template, and would get its requests.
            servers = await self._listing("resources", "uri", uri) + await self._fitting(uri)
            found = self._sole(uri, list(dict.fromkeys(servers)))
            if len(uri) <= MAX_URI_CHARS:
                self._owners[uri] = found
            if len(self._owners) > _MAX_OWNERS:
                del self._owners[next(iter(self._owners))]
        return found

    async def _fitting(self, uri: str) -> list[str]:
        """Return the server of each template that *uri* fits."""
        found: list[str] = []
        compared = 0
        async for server, each in self._items("resource_templates", {}):
            compared += len(each.uri_template)
            if compared > _MAX_COMPARED_CHARS:
                compared = len(each.uri_template)
                await next_turn()
            if template_fits(each.uri_template, uri):
                found.append(server)
        return found

    def _sole(self, what: str, servers: list[str]) -> str:
        if len(servers) == 1:
            return servers[0]
        problem = f"the servers {', '.join(map(repr, servers))} all have" if servers else "no server lists"
        example = servers[0] if servers else next(iter(self._clients), "name")
        raise UsageError(f"{problem} {what!r}; use the client of one server, such as group[{example!r}]")


@contextmanager
def _named(server: str) -> Generator[None]:
    """Add the name of the server to the errors of the block."""
    try:
        yield
    except McpgenError as error:
        name_server(error, server)
        raise


def name_server(error: McpgenError, server: str) -> None:
    """Add the name of the server to *error*."""
    if isinstance(error, ServerExited):
        error.command = server
    elif isinstance(error, RequestTimedOut) and error.server is not None:
        error.server = server
    note = f"This is about the server {server!r}."
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
