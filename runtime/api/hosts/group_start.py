"""Connecting to all servers of a host's configuration."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.api.hosts.client_group import ClientGroup, NoServerConnected, name_server
from mcpgen.runtime.api.hosts.config import parse_config
from mcpgen.runtime.errors import McpgenError, UsageError, printable
from mcpgen.runtime.limits import ClientLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.transports.interfaces import Transport

__all__ = ["prepare_group"]

_LOG = logging.getLogger("mcpgen.client")
_MAX_CALL_SECONDS: Final = ClientLimits().max_call_seconds


def prepare_group(
    config: object, connect: Callable[[Transport], Awaitable[Client]], max_call_seconds: float = _MAX_CALL_SECONDS
) -> tuple[Callable[[], Awaitable[ClientGroup]], str]:
    """Return a function that connects to all servers of a configuration, and what to call them in messages.

    Args:
        config: The configuration of a host.
        connect: Returns a connection to one server, which is not open yet. It checks the options.
        max_call_seconds: See `ClientLimits`.

    Raises:
        UsageError: It is no such configuration, or an option is wrong.
    """
    connections: dict[str, Awaitable[Client]] = {}
    failures: dict[str, McpgenError] = {}
    for entry in parse_config(config):
        if entry.is_disabled:
            _LOG.info("the server %r is disabled in the configuration", entry.name)
            continue
        if entry.ignored:
            ignored = ", ".join(printable(each) for each in entry.ignored)
            _LOG.warning("the server %r of the configuration has keys that are not used: %s", entry.name, ignored)
        try:
            transport = entry.transport()
        except UsageError as error:
            failures[entry.name] = error
        else:
            connections[entry.name] = connect(transport)

    async def start() -> ClientGroup:
        failed = dict(failures)
        return ClientGroup(await _open_all(connections, failed), failed, max_call_seconds)

    return start, ", ".join((*connections, *failures))


async def _open_all(
    connections: Mapping[str, Awaitable[Client]], failures: dict[str, McpgenError]
) -> dict[str, Client]:
    """Connect to all servers at once, and add those that fail to *failures*.

    Raises:
        NoServerConnected: None of them could be connected.
    """
    clients: dict[str, Client] = {}

    async def open_one(server: str, connection: Awaitable[Client]) -> None:
        try:
            clients[server] = await connection
        except McpgenError as error:
            name_server(error, server)
            failures[server] = error

    try:
        async with anyio.create_task_group() as tasks:
            for name, connection in connections.items():
                tasks.start_soon(open_one, name, connection)
    except BaseException:
        # All at once: a process that does not exit by itself takes some seconds.
        await ClientGroup(clients, failures, _MAX_CALL_SECONDS).close()
        raise
    if not clients:
        raise NoServerConnected(failures)
    for name, error in failures.items():
        _LOG.warning("the server %r is not connected: %s", name, error)
    # In the order of the configuration, and not in that in which they were ready.
    return {name: clients[name] for name in connections if name in clients}
