"""A client that goes away at a chosen moment, whatever the application does just then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
from anyio.lowlevel import checkpoint

from mcpgen.runtime.http.sse import KEEP_ALIVE
from tests.faults.event_loop_turns import until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.http.server.application import Application

QUIET_TURNS = 40  # of the event loop: whoever waits for nothing but us is through by then


class Leaver:
    """One request, whose client goes before the application's step of that number, or never.

    A step is what the application asks of the server that runs it: to receive, or to send. Of the comments that keep a
    silent stream alive only the first is a step: their number depends on how fast the machine is.

    Args:
        app: The application.
        method: Of the request.
        target: Path and query.
        lines: Headers.
        parts: The body.
        leaves_at: The step; None for never.
        is_told: Whether sending to a client that has gone fails; otherwise nothing happens, which servers may choose.

    Attributes:
        steps: How many there were.
        has_left: Whether the client is gone.
        has_returned: Whether the application is through.
        is_silent: Whether the application has sent a comment to keep the stream alive.
        status: 0 without a response.
        body: What the client has got.
    """

    def __init__(  # noqa: PLR0913 (the parts of a request, and of leaving)
        self,
        app: Application,
        method: str,
        target: str,
        lines: Sequence[tuple[str, str]],
        parts: Sequence[bytes] = (b"",),
        *,
        leaves_at: int | None = None,
        is_told: bool = True,
    ) -> None:
        self.steps = 0
        self.has_left = self.has_returned = self.is_complete = self.is_silent = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.failure: BaseException | None = None
        self._app = app
        self._parts = list(parts)
        self._leaves_at = leaves_at
        self._is_told = is_told
        self._gone = anyio.Event()
        path, _, query = target.partition("?")
        headers = [(b"host", b"localhost"), *((name.lower().encode(), value.encode()) for name, value in lines)]
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": headers,
            "state": {},
        }

    def leave(self) -> None:
        """Close the connection."""
        self.has_left = True
        self._gone.set()

    async def run(self) -> None:
        """Let the application answer."""
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001 (the test is told)
            self.failure = error
        finally:
            self.has_returned = True
            self._gone.set()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def _step(self) -> None:
        if self.steps == self._leaves_at:
            self.leave()
        self.steps += 1
        await checkpoint()

    async def _receive(self) -> dict[str, Any]:
        await self._step()
        if self._parts and not self.has_left:
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if self.is_silent and message.get("body") == KEEP_ALIVE:
            await checkpoint()
        else:
            self.is_silent = self.is_silent or message.get("body") == KEEP_ALIVE
            await self._step()
        if self.has_left:
            if self._is_told:
                raise OSError("the client has gone")
            return
        if message["type"] == "http.response.start":
            assert not self.status
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        assert self.status
        assert not self.is_complete
        self.body += message["body"]
        self.is_complete = not message.get("more_body", False)


async def quiet(*leavers: Leaver) -> None:
    """Return when the application waits for something."""
    turns, before = 0, -1
    while turns < QUIET_TURNS:
        await checkpoint()
        now = sum(each.steps + each.has_returned for each in leavers)
        turns = turns + 1 if now == before else 0
        before = now


async def settled(leaver: Leaver) -> None:
    """Return when the application has made its last step for *leaver*: it has returned, or keeps a stream alive."""
    await until(lambda: leaver.has_left or leaver.has_returned or leaver.is_silent)
    await quiet(leaver)
