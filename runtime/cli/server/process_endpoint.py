"""The server's side of the relay of ``mcpgen serve --reload``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from mcpgen.runtime.protocol.framing import OversizedLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["ProcessEndpoint"]


class ProcessEndpoint:
    """Takes the messages of the process of a server. It is a `ClientEndpoint`.

    Args:
        take: Called with each message.
        take_too_long: Called for each message that is too long to be read.
    """

    def __init__(self, take: Callable[[bytes], object], take_too_long: Callable[[OversizedLine], object]) -> None:
        self._take = take
        self._take_too_long = take_too_long

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Take messages."""
        for frame in frames:
            if isinstance(frame, OversizedLine):
                self._take_too_long(frame)
            else:
                self._take(frame)

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        """Not called by a process."""

    def awaits(self, request_id: RequestId) -> bool:
        """Not called by a process."""
        del request_id
        return True

    def session_renewed(self) -> None:
        """Not called by a process."""

    def paused(self) -> AbstractContextManager[None]:
        """Not called by a process."""
        return nullcontext()

    async def ready(self) -> None:
        """Not called by a process: `_Relay` holds it."""

    def end_of_input(self) -> None:
        """Nothing to do: `Channel.run` returns."""

    async def wait_finished(self) -> None:
        """Nothing runs here."""

    def close(self) -> None:
        """Nothing runs here."""
