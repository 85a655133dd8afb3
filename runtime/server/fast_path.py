"""The short way of tool calls.

Theory of operation. What a busy server does most is call functions with plain arguments, which return text. Such a call
says the same in every revision, and so does its answer but for a frame around the text. So the arguments are decoded as
what the function takes, without a stop at the types of any revision, and the text is put into a frame that the long way
has made once. Whatever is not as plain as that takes the long way, which words all the errors too; a test compares the
two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.protocol.log_levels import LEVELS
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.exchange import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.negotiation import RequestMeta

__all__ = ["Callee", "FastPath"]

# Any text will do that stands nowhere else in a result.
_PROBE = "where the text goes"

_LEVELS = frozenset(LEVELS)


class Callee(Protocol):
    """A function, as the short way calls it."""

    @property
    def is_alone(self) -> bool:
        """Whether it takes no context."""
        ...

    def read(self, arguments: Raw | UnsetType) -> Struct | None:
        """Return what the function takes; None if the long way has to find out what is wrong with it."""
        ...

    async def run(self, arguments: Any, context: Any, /) -> Any:
        """Call it, and return text, or a result of home."""
        ...


class FastPath:
    """The short way to the functions of one server, for peers of one revision.

    Args:
        long: How the method is served otherwise.
        find: Returns the function that a name stands for, if there is one.
        sign: Makes the JSON of a result what is sent.
    """

    def __init__(self, long: Entry, find: Callable[[str], Callee | None], sign: Callable[[bytes], bytes]) -> None:
        self._long = long
        self._find = find
        result = sign(long.codec.result(models.CallToolResult(content=[models.TextContent(text=_PROBE)])))
        before, _, after = result.partition(msgspec.json.encode(_PROBE))
        self._frame = (before, after)
        self._known: dict[str, tuple[Entry, Callable[[Raw | UnsetType], Struct | None]]] = {}

    def __call__(self, meta: RequestMeta) -> tuple[Entry, Struct] | None:
        """Return how to serve a call and with what; None if it has to take the long way."""
        if not meta.is_plain or isinstance(meta.name, UnsetType):
            return None
        if meta.log_level is not UNSET and meta.log_level not in _LEVELS:
            return None
        known = self._known.get(meta.name) or self._learn(meta.name)
        if known is None:
            return None
        entry, read = known
        arguments = read(meta.arguments)
        return None if arguments is None else (entry, arguments)

    def _learn(self, name: str) -> tuple[Entry, Callable[[Raw | UnsetType], Struct | None]] | None:
        callee = self._find(name)
        if callee is None:
            return None
        long = self._long
        entry = Entry(
            method=long.method,
            codec=long.codec,
            call=callee.run,
            may_ask=long.may_ask,
            long=long,
            frame=self._frame,
            is_alone=callee.is_alone,
        )
        self._known[name] = entry, callee.read
        return self._known[name]
