"""The answers to a balancer or an orchestrator that asks whether this process lives, and whether it can serve.

``live`` is answered as long as the event loop runs. ``ready`` has the status 503 while the server shuts down, and while
the cluster cannot be reached. They need neither a token nor a known Host header: an orchestrator asks an address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from mcpgen.runtime.http.server import responses

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.responses import Send

__all__ = ["HealthCheck"]

_READY: Final = ("", "/ready")
_LIVE: Final = "/live"


class HealthCheck:
    """Answers at a path, and at ``/live`` and ``/ready`` below it.

    Args:
        path: The path.
    """

    def __init__(self, path: str) -> None:
        self._path = path.rstrip("/")

    def has(self, path: str) -> bool:
        """Whether *path* is one of those that are answered here."""
        return path.startswith(self._path) and path[len(self._path) :] in (*_READY, _LIVE)

    async def serve(self, state: AppState, method: str, path: str, send: Send) -> None:
        """Answer one request."""
        if method not in ("GET", "HEAD"):
            await responses.send_error(
                send, 405, "this path accepts only GET and HEAD", headers=((b"allow", b"GET, HEAD"),)
            )
            return
        problem = ""
        if not path.endswith(_LIVE):
            await state.open()
            problem = state.problem
        body = msgspec.json.encode({"status": "unavailable", "reason": problem} if problem else {"status": "ok"})
        lines = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        lines.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": 503 if problem else 200, "headers": lines})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})
