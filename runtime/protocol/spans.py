"""OpenTelemetry spans of requests, and their trace context in `_meta`.

Theory of operation. mcpgen does not depend on OpenTelemetry, and does not import it. If the program has imported
``opentelemetry.trace``, each request has a span: one of the kind CLIENT where it is sent, one of the kind SERVER around
its handler. The client writes the context of its span into the `_meta` of the request. The server takes it from there
as the parent of its span. The keys are those of the specification, whatever propagators the program has chosen.

Without OpenTelemetry, the keys pass unchanged: a handler reads them from `Context.meta`, and a caller sets them with
the option ``meta``.

Spec:
    2026-07-28, basic/index, "OpenTelemetry trace context"; OpenTelemetry, semantic conventions for MCP.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import RequestError, RequestRefused, UnsupportedByPeer
from mcpgen.runtime.protocol.exception_groups import sole_exception
from mcpgen.runtime.protocol.negotiation import read_meta_object
from mcpgen.runtime.protocol.newest import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

__all__ = [
    "Operation",
    "Outcome",
    "client_span",
    "has_opentelemetry",
    "note_request_id",
    "server_span",
]

_KEYS: Final = ("traceparent", "tracestate", "baggage")

# W3C Baggage, section 3.3.2, "Limits": what every platform must propagate.
_MAX_VALUE_CHARS: Final = 8192

# Spans wait for their exporter, 2,048 of them by default, and a client chooses names and URIs of megabytes.
_MAX_SHOWN_CHARS: Final = 1024

# An instrument keeps each combination of attributes until the process ends, and a client can choose any name.
_MAX_MEASURED_NAMES: Final = 1000

# The names of tools and prompts that are measured. Those that were refused are not among them: they may be unknown.
_measured_names: Final[set[str]] = set()

# The current span of the program may be one of its own.
_client_span: Final[ContextVar[Any]] = ContextVar("mcpgen.client_span", default=None)

# The kind of the failure of a tool that has returned an error for the model.
TOOL_ERROR: Final = "tool_error"

# The attribute for what a request is about, by method.
_NAMES: Final = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
_URI_METHODS: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})


def has_opentelemetry() -> bool:
    """Whether the program has imported OpenTelemetry. redis-py imports it, too; then, whether spans go anywhere."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or "redis" not in sys.modules:
        return trace is not None
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


class Operation(Struct, frozen=True, kw_only=True):
    """A request.

    Attributes:
        method: Its method.
        revision: The revision that both sides use.
        name: The name of the tool or prompt.
        uri: The URI of the resource.
        request_id: Its id; None if it is not known yet.
    """

    method: str
    revision: str
    name: object = UNSET
    uri: object = UNSET
    request_id: str | int | None = None

    @property
    def title(self) -> str:
        """The name of the span."""
        name = self.attributes.get(_NAMES.get(self.method, ""))
        return self.method if name is None else f"{self.method} {name}"

    def measured(self, failure: str | None) -> dict[str, str]:
        """Return those of the attributes that a server has few values of, and the kind of the *failure*, if any."""
        kept = {"mcp.method.name", "mcp.protocol.version", "gen_ai.operation.name"}
        found = {name: value for name, value in self.attributes.items() if name in kept}
        if failure is not None:
            found["error.type"] = failure
        key = _NAMES.get(self.method, "")
        name = self.attributes.get(key)
        if name is not None:
            if failure in {None, TOOL_ERROR} and len(_measured_names) < _MAX_MEASURED_NAMES:
                _measured_names.add(name)
            if name in _measured_names:
                found[key] = name
        return found

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of the span."""
        found = {"mcp.method.name": self.method, "mcp.protocol.version": self.revision}
        if self.method in _NAMES and isinstance(self.name, str):
            found[_NAMES[self.method]] = self.name[:_MAX_SHOWN_CHARS]
        if self.method == "tools/call":
            found["gen_ai.operation.name"] = "execute_tool"
        if self.method in _URI_METHODS and isinstance(self.uri, str):
            found["mcp.resource.uri"] = self.uri[:_MAX_SHOWN_CHARS]
        if self.request_id is not None:
            found["jsonrpc.request.id"] = str(self.request_id)
        return found


class Outcome:
    """Notes the result of the request on its span.

    Attributes:
        failure: The kind of the failure; None without one.
    """

    def __init__(self, span: Any) -> None:  # noqa: ANN401 (OpenTelemetry may be absent)
        self._span = span
        self.failure: str | None = None

    def set(self, result: object) -> None:
        """Note *result*."""
        if getattr(result, "is_error", UNSET) is True:
            self._fail(TOOL_ERROR, "")

    def fail(self, failure: BaseException) -> None:
        """Note that the request ended with *failure*."""
        failure = sole_exception(failure)
        code = _error_code(failure)
        if code is None:
            self._fail(type(failure).__qualname__, "")
            return
        self._span.set_attribute("rpc.response.status_code", str(code))
        self._fail(str(code), failure.message if isinstance(failure, RequestError) else "")

    def _fail(self, kind: str, description: str) -> None:
        self.failure = kind
        status: Any = _trace().Status
        self._span.set_attribute("error.type", kind)
        self._span.set_status(status(_trace().StatusCode.ERROR, description or None))


@contextmanager
def client_span(operation: Operation) -> Generator[tuple[dict[str, str], Outcome]]:
    """Open the span of a request that is sent; yield the keys for its `_meta`, and where its result is noted."""
    with _tracer().start_as_current_span(
        operation.title,
        kind=_trace().SpanKind.CLIENT,
        attributes=operation.attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        carrier: dict[str, str] = {}
        for each in _propagators():
            each.inject(carrier)
        outcome = Outcome(span)
        token = _client_span.set(span)
        try:
            yield carrier, outcome
        except BaseException as failure:
            outcome.fail(failure)
            raise
        finally:
            _client_span.reset(token)


def _is_propagated(value: object) -> bool:
    """Whether *value* could be that of an HTTP header: OpenTelemetry writes others to the log as they are."""
    return isinstance(value, str) and len(value) <= _MAX_VALUE_CHARS and value.isascii() and value.isprintable()


@contextmanager
def server_span(operation: Operation, params: Raw | UnsetType) -> Generator[Outcome]:
    """Open the span of a request that is served; yield where its result is noted."""
    context: Any = import_module("opentelemetry.context")
    meta: Mapping[str, Any] = read_meta_object(params)
    carrier = {key: meta[key] for key in _KEYS if _is_propagated(meta.get(key))}
    ambient = _trace().get_current_span().get_span_context()
    parent: Any = context.get_current()
    for each in _propagators():
        parent = each.extract(carrier, parent)
    remote = _trace().get_current_span(parent).get_span_context()
    is_remote = "traceparent" in carrier and remote.is_valid and remote.span_id != ambient.span_id
    token = context.attach(parent)
    try:
        with _tracer().start_as_current_span(
            operation.title,
            kind=_trace().SpanKind.SERVER,
            attributes=operation.attributes,
            # The span of the transport, such as that of an HTTP request.
            links=[_trace().Link(ambient)] if is_remote and ambient.is_valid else None,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            outcome = Outcome(span)
            try:
                yield outcome
            except BaseException as failure:
                outcome.fail(failure)
                raise
    finally:
        context.detach(token)


def note_request_id(request_id: str | int) -> None:
    """Note the id of a request on its span, if it has one."""
    span = _client_span.get()
    if span is not None:
        span.set_attribute("jsonrpc.request.id", str(request_id))


def _error_code(failure: BaseException) -> int | None:
    """Return the error code of the response; None if there is no response."""
    if isinstance(failure, RequestRefused | RequestError):
        return failure.code
    if isinstance(failure, UnsupportedByPeer) and failure.peer == "client" and failure.required is not None:
        return ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY.value
    return None


def _trace() -> Any:  # noqa: ANN401 (OpenTelemetry may be absent)
    return sys.modules["opentelemetry.trace"]


def _tracer() -> Any:  # noqa: ANN401 (OpenTelemetry may be absent)
    return _trace().get_tracer("mcpgen")


def _propagators() -> tuple[Any, Any]:
    trace_context: Any = import_module("opentelemetry.trace.propagation.tracecontext")
    baggage: Any = import_module("opentelemetry.baggage.propagation")
    return trace_context.TraceContextTextMapPropagator(), baggage.W3CBaggagePropagator()
