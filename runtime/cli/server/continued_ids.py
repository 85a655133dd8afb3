"""The ids of the requests that a restarted server sends on stdio."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.cli.server.wrapped_server import WrappedServer
from mcpgen.runtime.server.connection import Connection

if TYPE_CHECKING:
    from mcpgen.runtime.transports.interfaces import Endpoint, MessageWriter, ServerInterface
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["LAST_ASKED", "with_continued_ids"]

# The variable with the greatest id that the processes before this one have used.
LAST_ASKED: Final = "MCPGEN_LAST_ASKED"


def with_continued_ids(server: ServerInterface) -> ServerInterface:
    """Return *server*, with greater ids than those of earlier processes, whose requests a host may still answer."""
    last_asked = os.environ.pop(LAST_ASKED, "0")
    return server if last_asked == "0" else _ContinuedIds(server, int(last_asked))


class _ContinuedIds(WrappedServer):
    def __init__(self, server: ServerInterface, last_asked: int) -> None:
        super().__init__(server)
        self._last_asked = last_asked

    def connect(self, writer: MessageWriter, spawner: Spawner, /) -> Endpoint:
        """Return a new connection of the server."""
        connection = self._server.connect(writer, spawner)
        if isinstance(connection, Connection):
            connection.session.last_id = self._last_asked
        return connection
