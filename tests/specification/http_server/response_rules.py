"""Rules about one response by itself: its status, its headers, and what body goes with them.

Spec:
    2025-03-26 to 2025-11-25, basic/transports; 2026-07-28, basic/transports/streamable-http and basic/index, "_meta";
    RFC 9110.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.specification.http_server.asgi_exchange import Exchange

SINGLE = ("content-type", "content-length", "mcp-session-id", "cache-control", "x-accel-buffering")
TOKEN = re.compile(rb"[a-z0-9!#$%&'*+.^_`|~-]+")
VALUE = re.compile(rb"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
VISIBLE = re.compile(r"[\x21-\x7e]+")

# 2026-07-28, basic/index, "_meta", and basic/transports/streamable-http, "Protocol Version Header" and "Server
# Validation".
STATUS_OF = {-32020: 400, -32021: 400, -32022: 400, -32601: 404}


def of_headers(exchange: Exchange) -> Iterator[str]:
    """Yield what is wrong with the headers of a response."""
    names = [name for name, _ in exchange.response_lines]
    for name, value in exchange.response_lines:
        if not TOKEN.fullmatch(name):
            yield f"the header {name!r} has no name in lower case (ASGI, HTTP, Response Start)"
        if not VALUE.fullmatch(value):
            yield f"the header {name!r} has a value that HTTP does not carry: {value!r} (RFC 9110, 5.5)"
    for single in SINGLE:
        if names.count(single.encode()) > 1:
            yield f"{single} is there twice (RFC 9110, 5.3)"
    yield from _of_one_another(exchange)
    if exchange.is_stream:
        yield from _of_stream(exchange)


def _of_one_another(exchange: Exchange) -> Iterator[str]:
    session = exchange.header("mcp-session-id")
    if session is not None and not VISIBLE.fullmatch(session):
        yield f"a session id is visible ASCII, not {session!r} (2025-11-25, basic/transports, Session Management)"
    if exchange.status == 405 and not exchange.header("allow"):
        yield "a 405 says what is allowed (RFC 9110, 15.5.6)"
    if exchange.status == 204 and exchange.header("content-length") is not None:
        yield "a 204 has no length (RFC 9110, 8.6)"


def _of_stream(exchange: Exchange) -> Iterator[str]:
    if exchange.header("content-length") is not None:
        yield "a stream has no length"
    if not {"no-cache", "no-store"} & set((exchange.header("cache-control") or "").replace(",", " ").split()):
        yield "a stream is not to be cached (HTML Standard, Server-sent events)"


def of_body(exchange: Exchange, *, asked_ids: list[Any], is_batch: bool) -> Iterator[str]:
    """Yield what is wrong with a complete response that is no stream.

    Args:
        exchange: It.
        asked_ids: The ids of the requests in the body of the request.
        is_batch: Whether a batch may answer.
    """
    status, body, kind = exchange.status, exchange.body, (exchange.header("content-type") or "").partition(";")[0]
    length = exchange.header("content-length")
    if length is not None and exchange.method != "HEAD" and int(length) != len(body):
        yield f"the length is {len(body)} and not {length} (RFC 9110, 8.6)"
    if status in (202, 204):
        yield from _of_nothing(exchange, asked_ids)
        return
    if status == 200 and exchange.method == "POST" and kind != "application/json":
        yield f"JSON or a stream, and not {kind!r} (2025-11-25, basic/transports, Sending Messages, 5)"
    if not body:
        if status == 200:
            yield "an answer is not empty (2025-11-25, basic/transports, Sending Messages, 5)"
        return
    if kind == "application/json":
        yield from _of_json(exchange, asked_ids, is_batch=is_batch)


def _of_nothing(exchange: Exchange, asked_ids: list[Any]) -> Iterator[str]:
    if exchange.body:
        yield f"a {exchange.status} has no body (2025-11-25, basic/transports, Sending Messages to the Server)"
    if asked_ids and exchange.status == 202:
        yield "a request is answered with JSON or a stream (2025-11-25, basic/transports, Sending Messages, 5)"


def _of_json(exchange: Exchange, asked_ids: list[Any], *, is_batch: bool) -> Iterator[str]:
    try:
        message = json.loads(exchange.body)
    except ValueError:
        yield f"the body is not the JSON that it says it is: {exchange.body[:200]!r}"
        return
    if isinstance(message, list):
        if not is_batch:
            yield "one object, and not a batch (2025-11-25, basic/transports, Sending Messages, 5)"
    elif exchange.status >= 400:
        yield from of_refusal(message, asked_ids)
    elif "method" in message:
        yield "a response, and no call (2025-11-25, basic/transports, Sending Messages, 5)"


def of_refusal(message: Any, asked_ids: list[Any]) -> Iterator[str]:
    """Yield what is wrong with the body of a response whose status is an error."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "error" not in message:
        yield "the body of a refusal is a JSON-RPC error (2025-11-25, basic/transports, Sending Messages, 4)"
        return
    error = message["error"]
    if set(message) - {"jsonrpc", "id", "error"}:
        yield f"an error response does not hold {sorted(message)}"
    is_error = isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
    if not is_error:
        yield f"an error has a code and a message, {error} has not (2025-11-25, basic/index, Error Responses)"
    if "id" in message and not any(type(each) is type(message["id"]) and each == message["id"] for each in asked_ids):
        yield f"the id {message['id']!r} is that of no request here (2025-11-25, basic/transports, Sending Messages, 4)"


def of_stateless_status(status: int, message: Any) -> Iterator[str]:
    """Yield what is wrong with the status that goes with a response of 2026-07-28."""
    if "result" in message and status != 200:
        yield f"a result has the status 200, and not {status}"
    code = message.get("error", {}).get("code")
    if code in (-32600, -32700) and status < 400:
        yield f"what is no message has an error status, and not {status} (2026-07-28, streamable-http)"
    if code in STATUS_OF and status != STATUS_OF[code]:
        yield f"the error {code} has the status {STATUS_OF[code]}, and not {status} (2026-07-28, basic/index, _meta)"
