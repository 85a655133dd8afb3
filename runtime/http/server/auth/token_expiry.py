"""The end of streams whose token has expired.

Theory of operation. A stream without an end of its own would go on after its client has lost access: the stream that a
GET opens, that of HTTP+SSE, and that of ``subscriptions/listen``. It ends when its token expires. The client opens
another one, with a new token. A call that was allowed when it began is answered to its end.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["ending_with_token"]

# The clock of the machine may be corrected while a stream waits.
_LONGEST_SLEEP_SECONDS: Final = 60.0


@contextmanager
def ending_with_token(access: Access | None, spawner: Spawner, end: Callable[[], object]) -> Generator[None]:
    """Call *end* when the token of *access* expires, unless the block has ended by then."""
    if access is None or access.expires_at is None:
        yield
        return
    watch = spawner.start(_wait_and_end, access.expires_at, end)
    try:
        yield
    finally:
        watch.cancel()


async def _wait_and_end(expires_at: float, end: Callable[[], object]) -> None:
    while (seconds := expires_at - time.time()) > 0:  # noqa: ASYNC110 (it waits for a time)
        await anyio.sleep(min(seconds, _LONGEST_SLEEP_SECONDS))
    end()
