"""The requests that a server has declared, and what a client does about the others."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from mcpgen.runtime.errors import UnsupportedByPeer
from mcpgen.runtime.protocol.capabilities import has_capability, may_ask_undeclared, offers, required_capability

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.capabilities import ServerPeer

__all__ = ["DeclaredMethods", "Undeclared", "unsupported"]

Undeclared: TypeAlias = Literal["ask", "refuse"]
"""What a client does about a request for which the server has not declared the capability."""

_LOG: Final = logging.getLogger("mcpgen.session")


class DeclaredMethods:
    """The requests that a server has declared.

    Args:
        server: The server.
        undeclared: What to do about the others; None for what the revision says.
    """

    def __init__(self, server: ServerPeer, undeclared: Undeclared | None = None) -> None:
        self._server = server
        self._undeclared = undeclared
        self._asked: set[str] = set()

    def require(self, method: str) -> None:
        """Check that the server has declared what *method* needs, unless the client sends it anyway.

        Raises:
            UnsupportedByPeer: It is neither.
        """
        revision = self._server.revision
        if offers(self._server.declared, revision, method):
            return
        reason = f"the server has not declared the capability {required_capability(revision, method)}"
        may_ask = may_ask_undeclared(revision, method) if self._undeclared is None else self._undeclared == "ask"
        if not may_ask:
            advice = 'to send it anyway, pass undeclared="ask" to connect()'
            raise unsupported(self._server, method, f"{reason}; {advice}")
        if method not in self._asked:
            self._asked.add(method)
            _LOG.warning("%s, but %s is sent anyway", reason, method)

    def require_task(self, method: str) -> None:
        """Check that the server has declared that it can run *method* as a task.

        Raises:
            UnsupportedByPeer: It has not.
        """
        if not has_capability(self._server.declared, ("tasks", "requests", *method.split("/"))):
            reason = f"the server has not declared that it can run {method} as a task"
            raise unsupported(self._server, method, reason)


def unsupported(server: ServerPeer, what: str, reason: str) -> UnsupportedByPeer:
    """Return the error of a call that *server* cannot take."""
    return UnsupportedByPeer(revision=server.revision, what=what, reason=reason, peer="server")
