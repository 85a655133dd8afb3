"""The OpenTelemetry span around a handler of a server, and its duration as a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcpgen.runtime.protocol.metrics import has_metrics, record_duration
from mcpgen.runtime.protocol.negotiation import read_meta
from mcpgen.runtime.protocol.spans import Operation, server_span

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.exchange import Call, Exchange

__all__ = ["with_span"]


async def with_span(clock: Callable[[], float], exchange: Exchange, call: Call, params: Any, context: Any) -> Any:
    """Call the handler of *exchange* within an OpenTelemetry span."""
    meta, request = read_meta(exchange.raw), exchange.request
    uri = getattr(exchange.params, "uri", UNSET)
    request_id = None if request is None else request.id
    operation = Operation(
        method=exchange.handler.method, revision=exchange.peer.revision, name=meta.name, uri=uri, request_id=request_id
    )
    begun, outcome = clock(), None
    try:
        with server_span(operation, exchange.raw) as outcome:
            result = await call(params, context)
            outcome.set(result)
    finally:
        if has_metrics():
            record_duration(clock() - begun, operation.measured(None if outcome is None else outcome.failure))
    return result
