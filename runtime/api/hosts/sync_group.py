"""The blocking form of `ClientGroup`: what is not derived from it."""

from __future__ import annotations

import atexit
from types import MappingProxyType
from typing import TYPE_CHECKING

from mcpgen.runtime.api.blocking_client import BorrowedThread
from mcpgen.runtime.api.sync_client import SyncClient, SyncGroupMethods

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.api.blocking_client import EventLoopThread
    from mcpgen.runtime.api.hosts.client_group import ClientGroup

__all__ = ["SyncClientGroup"]


class SyncClientGroup(SyncGroupMethods):
    """The connections to the servers of a host's configuration, for programs without an event loop.

    `connect_sync` makes it. It has the methods of `ClientGroup`; ``group["notes"]`` is a `SyncClient`.
    """

    def __init__(self, thread: EventLoopThread, client: ClientGroup) -> None:
        super().__init__(thread, client)
        borrowed = BorrowedThread(thread)
        self._clients = {name: SyncClient(borrowed, each) for name, each in client.clients.items()}

    @property
    def clients(self) -> Mapping[str, SyncClient]:
        """The client of each connected server, by the name of the server."""
        return MappingProxyType(self._clients)

    def __getitem__(self, server: str) -> SyncClient:
        """Return the client of *server*.

        Raises:
            UsageError: The configuration has no such server.
            TransportClosed: The server could not be connected.
        """
        found = self._clients.get(server)
        if found is None:
            self._client[server]  # raises the error
            raise KeyError(server)
        return found

    def close(self) -> None:
        """Close all clients, and end the processes of their servers. Any thread may call it, any number of times."""
        super().close()
        for each in self._clients.values():
            atexit.unregister(each.close)
