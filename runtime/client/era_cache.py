"""What was learnt of servers: whether they shake hands. It saves the next client of the same server the question.

Spec:
    2026-07-28, basic/versioning, "Backward Compatibility": clients SHOULD cache the result for the lifetime of the
    server process, and MAY longer, if they ask again once it turns out to be wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Era", "EraCache"]

Era: TypeAlias = Literal["handshake", "stateless"]

# A gateway has hundreds of servers; each takes about a hundred bytes here.
_MOST: Final = 10_000


class EraCache:
    """Remembers the eras of servers, those that were met last."""

    def __init__(self) -> None:
        self._eras: OrderedDict[Hashable, Era] = OrderedDict()

    def of(self, identity: Hashable | None) -> Era | None:
        """Return the era of a server; None if it is not known."""
        return None if identity is None else self._eras.get(identity)

    def remember(self, identity: Hashable | None, era: Era) -> None:
        """Note the era of a server."""
        if identity is None:
            return
        self._eras[identity] = era
        self._eras.move_to_end(identity)
        if len(self._eras) > _MOST:
            self._eras.popitem(last=False)

    def forget(self, identity: Hashable | None) -> None:
        """Take it that nothing is known of a server."""
        if identity is not None:
            self._eras.pop(identity, None)
