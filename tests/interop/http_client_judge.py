"""A judge of a client over HTTP: what HTTP demands of its requests, and what the protocol does of its messages.

It reads one conversation, as `http_recording.play` shows it. Its rules come from the specification, never from what the
runtime thinks of a request. A `ClientRecorder` judges the messages, as on any wire.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from tests.harness.client_recorder import ClientRecorder
from tests.harness.client_state import ERAS, META
from tests.interop.http_recording import play
from tests.specification.http_server.strict_events import EventText

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.interop.relay import Tape
    from tests.specification.http_server.asgi_exchange import Exchange

__all__ = ["Manners", "misconduct"]

VISIBLE = re.compile(r"[\x21-\x7e]+")

# 2026-07-28, basic/transports/streamable-http, "Standard Headers": what Mcp-Name repeats.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def misconduct(tape: Tape, offered: list[str]) -> list[str]:
    """Return each rule that a client has broken, which offers these revisions, with the exchange that breaks it."""
    refusals = Refusals()
    play(tape, refusals)
    manners = Manners(offered, refusals.numbers)
    faults = play(tape, manners)
    return [*faults, *manners.verdict(), *([] if tape.pieces else ["nothing was said"])]


class Refusals:
    """Finds the POSTs that are refused as HTTP, and so never are messages; a watcher.

    Attributes:
        numbers: Which ones they are, in the order of asking.
    """

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self._asked: list[Exchange] = []

    def asked(self, exchange: Exchange) -> None:
        """Take a request."""
        self._asked.append(exchange)

    def started(self, exchange: Exchange) -> None:
        """Take the status and the headers."""

    def sent(self, exchange: Exchange, data: bytes) -> None:
        """Take a part of the body."""

    def ended(self, exchange: Exchange) -> None:
        """Take the end of the response."""
        if exchange.status >= 400 and not _answers(exchange):
            self.numbers.add(self._asked.index(exchange))

    def returned(self, exchange: Exchange) -> None:
        """Take that an exchange is over."""


class Manners:
    """Judges the exchanges of one client; a watcher.

    Args:
        offered: The revisions that it has.
        refused: The requests that are no messages, as `Refusals` finds them.

    Attributes:
        faults: What it has done wrong.
    """

    def __init__(self, offered: list[str], refused: set[int]) -> None:
        self.faults: list[str] = []
        self._refused = refused
        self._count = 0
        self._recorder = ClientRecorder(offered)
        self._recorder.may_cross = True
        self._session: str | None = None
        self._revision: str | None = None
        self._endpoint: str | None = None  # of HTTP+SSE
        self._has_left = False
        self._has_stated = False  # the revision, in a request that is no probe
        self._texts: dict[int, EventText] = {}

    def verdict(self) -> list[str]:
        """Return what was wrong with all of it."""
        if self._session is not None and self._endpoint is None and not self._has_left:
            self.faults.append("clients SHOULD end a session by DELETE (2025-11-25, Session Management, 5)")
        return [*self.faults, *map(str, self._recorder.violations)]

    # --- steps of an exchange

    def asked(self, exchange: Exchange) -> None:
        """Take a request."""
        for reason in self._judged(exchange):
            self.faults.append(f"{reason}\n    {exchange}")
        if exchange.method == "POST" and self._count not in self._refused:
            self._recorder.said(exchange.request)
        elif exchange.method == "DELETE":
            self._has_left = True
        self._count += 1

    def started(self, exchange: Exchange) -> None:
        """Take the status and the headers."""
        if exchange.status == 200 and _calls(exchange.request, "initialize"):
            self._session = exchange.header("mcp-session-id")

    def sent(self, exchange: Exchange, data: bytes) -> None:
        """Take a part of the body."""
        if not exchange.is_stream:
            return
        for event in self._texts.setdefault(id(exchange), EventText()).feed(data):
            if event.name == "endpoint":
                self._endpoint = urljoin(exchange.path, event.data or "")
            elif event.data:
                self._hear(event.data.encode())

    def ended(self, exchange: Exchange) -> None:
        """Take the end of the response."""
        kind = (exchange.header("content-type") or "").partition(";")[0].strip()
        if kind == "application/json" and (exchange.status < 400 or _answers(exchange)):
            self._hear(exchange.body)

    def returned(self, exchange: Exchange) -> None:
        """Take that an exchange is over."""
        self._texts.pop(id(exchange), None)

    def _hear(self, message: bytes) -> None:
        self._recorder.heard(message)
        try:
            said = json.loads(message)
        except ValueError:
            return
        result = said.get("result") if isinstance(said, dict) else None
        if isinstance(result, dict) and isinstance(result.get("protocolVersion"), str):
            self._revision = result["protocolVersion"]

    # --- rules

    def _judged(self, exchange: Exchange) -> Iterator[str]:
        method = exchange.method
        if method not in ("GET", "POST", "DELETE"):
            yield f"a client of MCP does not send {method}"
        if self._has_left:
            yield "the session is over, and nothing comes behind that"
        names = [name.lower() for name, _ in exchange.lines]
        yield from (f"{name} is there twice" for name in sorted({name for name in names if names.count(name) > 1}))
        message: Any = None
        if method == "POST":
            if exchange.sent_header("content-type") != "application/json":
                yield f"what is posted is JSON, not {exchange.sent_header('content-type')}"
            message = json.loads(exchange.request)
        elif exchange.request:
            yield f"a {method} has no body"
        if self._endpoint is not None:
            yield from self._of_old(exchange)
        else:
            yield from self._of_endpoint(exchange, message)

    def _of_old(self, exchange: Exchange) -> Iterator[str]:
        """Judge a request behind the first of HTTP+SSE (2024-11-05, basic/transports, "HTTP with SSE")."""
        target = f"{exchange.path}?{exchange.query}".rstrip("?")
        if exchange.method != "POST" or target != self._endpoint:
            yield f"messages are posted to {self._endpoint}"

    def _of_endpoint(self, exchange: Exchange, message: Any) -> Iterator[str]:
        """Judge a request to the endpoint of Streamable HTTP."""
        accepted = {each.partition(";")[0].strip() for each in (exchange.sent_header("accept") or "").split(",")}
        if exchange.method == "POST" and not {"application/json", "text/event-stream"} <= accepted:
            yield f"a POST takes both kinds of answer, not {accepted} (2025-11-25, Sending Messages, 2)"
        if exchange.method == "GET" and "text/event-stream" not in accepted:
            yield f"a GET takes a stream, not {accepted} (2025-11-25, Listening for Messages, 2)"
        params = message.get("params") if isinstance(message, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        stated = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
        if isinstance(stated, str):
            self._has_stated = self._has_stated or message["method"] != "server/discover"
            yield from self._stateless(exchange, message, stated)
        elif self._has_stated and exchange.method != "POST":
            yield f"no {exchange.method} without a handshake (2026-07-28, Earlier Streamable HTTP Revisions)"
        else:
            yield from self._in_session(exchange, is_first=_calls(exchange.request, "initialize"))

    def _stateless(self, exchange: Exchange, message: Mapping[str, Any], stated: str) -> Iterator[str]:
        """Judge what repeats the message (2026-07-28, basic/transports/streamable-http, "Standard Headers")."""
        params, method = message["params"], message["method"]
        wanted = {"mcp-protocol-version": stated, "mcp-method": method, "mcp-name": None, "mcp-session-id": None}
        if method in NAMED_BY:
            wanted["mcp-name"] = params[NAMED_BY[method]]
        for name, value in wanted.items():
            if exchange.sent_header(name) != value:
                yield f"{name} is {exchange.sent_header(name)!r}, and must be {value!r}"

    def _in_session(self, exchange: Exchange, *, is_first: bool) -> Iterator[str]:
        told, version = exchange.sent_header("mcp-session-id"), exchange.sent_header("mcp-protocol-version")
        session = None if is_first else self._session
        if told != session:
            yield f"the session is {session!r}, and not {told!r} (2025-11-25, Session Management, 2)"
        if told is not None and not VISIBLE.fullmatch(told):
            yield f"a session id is visible ASCII, not {told!r}"
        if is_first or self._revision is None:
            return
        if list(ERAS).index(self._revision) >= list(ERAS).index("2025-06-18") and version != self._revision:
            yield f"MCP-Protocol-Version is {version}, and {self._revision} is spoken (Protocol Version Header)"
        if self._revision != "2025-03-26" and isinstance(json.loads(exchange.request or b"null"), list):
            yield "the body is a single message (2025-06-18, Sending Messages, 4)"


def _answers(exchange: Exchange) -> bool:
    """Whether what is refused is answered by an error of JSON-RPC, too."""
    try:
        asked, said = json.loads(exchange.request), json.loads(exchange.body)
    except ValueError:
        return False
    is_one = isinstance(asked, dict) and isinstance(said, dict)
    return is_one and "id" in asked and isinstance(said.get("error"), dict) and said.get("id") == asked["id"]


def _calls(body: bytes, method: str) -> bool:
    try:
        message = json.loads(body) if body else None
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("method") == method
