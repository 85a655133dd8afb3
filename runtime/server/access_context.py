"""The part of `Context` that knows the access token of its request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.runtime.server.functions.signatures import BaseContext

if TYPE_CHECKING:
    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["AccessContext"]


class AccessContext(BaseContext):
    """The part of `Context` that knows the access token of its request."""

    __slots__ = ()

    if TYPE_CHECKING:
        _exchange: Exchange | None
        _session: ServerSession

    @property
    def access(self) -> Access | None:
        """What the access token of the request allows; None if the server takes no tokens.

        It is also None in a task that runs again in another process.
        """
        exchange = self._exchange
        if exchange is None:
            return self._session.access
        return exchange.last_access if exchange.request is None else exchange.request.access

    @property
    def _hides(self) -> bool:
        return self._session.hides
