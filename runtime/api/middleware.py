"""The types of middleware, and middleware that is ready for use. The public names are in `mcpgen.middleware`.

The classes need no server of functions: params and results may be of any native revision.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET

from mcpgen.runtime.errors import McpgenError, RequestError, UsageError
from mcpgen.runtime.protocol.argument_checks import check_flags, check_lists, check_whole_numbers
from mcpgen.runtime.protocol.exception_groups import sole_exception
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.value_types import dump_value
from mcpgen.runtime.server.functions.tools import FAILURE_MAP, ToolError

if TYPE_CHECKING:
    from mcpgen.runtime.server.context import Context

__all__ = [
    "CallNext",
    "ErrorHandlingMiddleware",
    "LoggingMiddleware",
    "MethodMiddleware",
    "Middleware",
    "ResponseLimitingMiddleware",
    "TimingMiddleware",
]

if TYPE_CHECKING:
    import typing_extensions

    # A plain `CallNext` is a `CallNext[Any, Any]`.
    P_contra = typing_extensions.TypeVar("P_contra", default=Any, contravariant=True)
    R_co = typing_extensions.TypeVar("R_co", default=Any, covariant=True)
else:  # type variables have defaults from Python 3.13 on
    P_contra = TypeVar("P_contra", contravariant=True)
    R_co = TypeVar("R_co", covariant=True)

P = TypeVar("P")
R = TypeVar("R")

Failure: TypeAlias = str | Callable[[Any], Exception]
"""What replaces an exception: the text of a `ToolError`, or a function that makes another exception of it."""

# A result is rarely larger on purpose: a megabyte of JSON is about 250,000 tokens of a model.
MAX_RESULT_BYTES: Final = 1_000_000

# Enough to recognise a message in a log.
MAX_PAYLOAD_CHARS: Final = 1000

_LIMITED: Final = ("tools/call", "resources/read", "prompts/get")

_encode: Final = msgspec.json.Encoder(enc_hook=dump_value).encode


class CallNext(Protocol[P_contra, R_co]):
    """The next middleware, or the handler: ``await call_next(params, context)``."""

    def __call__(self, params: P_contra, context: Context, /) -> Awaitable[R_co]:
        """Return the result."""
        ...


Middleware: TypeAlias = "Callable[[Any, Context, CallNext], Awaitable[Any]]"
"""Called with params, context and the next call, for requests of any method."""

MethodMiddleware: TypeAlias = "Callable[[P, Context, CallNext[P, R]], Awaitable[R]]"
"""The same for the requests of one method, with its params and its result."""


class TimingMiddleware:
    """Logs how long handlers take.

    Args:
        logger: Default: ``mcpgen.timing``.
        level: The level of the entries.
    """

    def __init__(self, *, logger: logging.Logger | None = None, level: int = logging.INFO) -> None:
        check_whole_numbers(level=level)
        self._logger = logging.getLogger("mcpgen.timing") if logger is None else logger
        self._level = level

    async def __call__(self, params: Any, context: Context, call_next: CallNext, /) -> Any:
        """Call the next middleware, or the handler."""
        begun = time.perf_counter()
        outcome = "failed after"
        try:
            result = await call_next(params, context)
            outcome = "took"
            return result
        finally:
            milliseconds = 1000 * (time.perf_counter() - begun)
            self._logger.log(self._level, "%s %s %.1f ms", _name(params, context), outcome, milliseconds)


class LoggingMiddleware:
    """Logs each request, and how it was answered.

    Args:
        logger: Default: ``mcpgen.requests``.
        level: The level of the entries.
        methods: The methods whose requests are logged; None for all.
        include_payloads: Whether params and results are logged, too. They may hold secrets.
        max_payload_chars: The most characters of one payload; the rest is cut off.
    """

    def __init__(
        self,
        *,
        logger: logging.Logger | None = None,
        level: int = logging.INFO,
        methods: Collection[str] | None = None,
        include_payloads: bool = False,
        max_payload_chars: int = MAX_PAYLOAD_CHARS,
    ) -> None:
        if isinstance(methods, str):
            raise UsageError(f"`methods` must be a list of strings, such as ['tools/call'], not {methods!r}")
        check_whole_numbers(level=level, max_payload_chars=max_payload_chars)
        check_flags(include_payloads=include_payloads)
        self._logger = logging.getLogger("mcpgen.requests") if logger is None else logger
        self._level = level
        self._methods = methods
        self._include_payloads = include_payloads
        self._max_payload_chars = max_payload_chars

    async def __call__(self, params: Any, context: Context, call_next: CallNext, /) -> Any:
        """Call the next middleware, or the handler."""
        if self._methods is not None and context.method not in self._methods:
            return await call_next(params, context)
        what = f"{_name(params, context)} of request {context.request_id!r}"
        client = f"a client of {context.peer.revision}" + (f", user {context.user!r}" if context.user else "")
        self._log("%s from %s%s", what, client, self._payload(params))
        try:
            result = await call_next(params, context)
        except BaseException as error:
            self._log("%s failed: %s", what, type(sole_exception(error)).__name__)
            raise
        self._log("%s answered: %s%s", what, _kind(result), self._payload(result))
        return result

    def _log(self, text: str, *values: object) -> None:
        self._logger.log(self._level, text, *values)

    def _payload(self, value: object) -> str:
        if not self._include_payloads:
            return ""
        members = msgspec.to_builtins(value, enc_hook=_readable)
        members.pop("_meta", None)  # the capabilities of the client, mostly
        text = _encode(members).decode()
        return f": {text}" if len(text) <= self._max_payload_chars else f": {text[: self._max_payload_chars]}…"


class ResponseLimitingMiddleware:
    """Refuses results of tools, resources and prompts that are too large, so that they do not fill a model's context.

    The model reads the size and the limit instead. The size is that of the JSON, so each result is encoded once more.

    Args:
        max_bytes: The largest size of a result.
        tools: The tools whose results are limited; None for everything.

    Raises:
        UsageError: The limit is not above zero.
    """

    def __init__(self, max_bytes: int = MAX_RESULT_BYTES, *, tools: Collection[str] | None = None) -> None:
        if not isinstance(cast("object", max_bytes), int) or max_bytes < 1:
            raise UsageError(f"`max_bytes` is {max_bytes!r}; it must be a number of bytes, 1 or more")
        if tools is not None:
            check_lists(tools=tools)
        self._max_bytes = max_bytes
        self._tools = tools

    async def __call__(self, params: Any, context: Context, call_next: CallNext, /) -> Any:
        """Call the next middleware, or the handler.

        Raises:
            RequestError: The result of a resource or a prompt is too large.
        """
        result: Any = await call_next(params, context)
        if context.method not in _LIMITED or hasattr(result, "input_requests"):
            return result
        if self._tools is not None and (context.method != "tools/call" or params.name not in self._tools):
            return result
        size = len(_encode(result))
        if size <= self._max_bytes:
            return result
        reason = f"The result has {size} bytes; the limit is {self._max_bytes}. Ask for less."
        if context.method != "tools/call":
            raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
        content = [{"type": "text", "text": reason}]
        kind: Any = result.__class__
        return msgspec.convert({"content": content, "isError": True, "resultType": "complete"}, kind)


class ErrorHandlingMiddleware:
    """Replaces exceptions of tools, resources and prompts by others, which say to clients what went wrong.

        ErrorHandlingMiddleware({sqlite3.IntegrityError: "That name is taken."})

    Without it, a client reads that the tool failed, and the log has the exception. A replaced exception is not logged.

    Args:
        errors: By type of exception, the text of a `ToolError`, or a function that takes the exception and returns the
            one that replaces it, such as a `RequestError`. The closest base class decides. ``Exception`` does not
            match the errors of mcpgen, such as `ToolError`, because these are written for clients already.

    Raises:
        UsageError: A key is not a type of exception, or a value is neither a string nor a function.
    """

    def __init__(self, errors: Mapping[type[Exception], Failure]) -> None:
        if not isinstance(cast("object", errors), Mapping):
            raise UsageError(f"`errors` must be a dict, such as {{KeyError: 'There is no such key.'}}, not {errors!r}")
        for kind, failure in cast("Mapping[object, object]", errors).items():
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise UsageError(f"`errors` has {kind!r}, which is not a subclass of Exception")
            if not (isinstance(failure, str) or callable(failure)):
                raise UsageError(f"`errors` has {failure!r} for {kind.__name__}; it must be a string or a function")
        self._errors: dict[type[Exception], Failure] = {**errors}

    async def __call__(self, params: Any, context: Context, call_next: CallNext, /) -> Any:
        """Call the next middleware, or the handler.

        Raises:
            Exception: The one that replaces that of the handler.
        """
        outer = FAILURE_MAP.get()
        token = FAILURE_MAP.set(lambda error: outer(self._replaced(error)))
        try:
            return await call_next(params, context)
        except Exception as error:  # raised again, or replaced by what the author declared for it
            found = sole_exception(error)
            replaced = self._replaced(found)
            if replaced is found:
                raise
            raise replaced from error
        finally:
            FAILURE_MAP.reset(token)

    def _replaced(self, error: Exception) -> Exception:
        for kind in type(error).__mro__:
            failure = self._errors.get(kind)
            if failure is not None and (issubclass(kind, McpgenError) or not isinstance(error, McpgenError)):
                if isinstance(failure, str):
                    return ToolError(failure)
                replaced = cast("object", failure(error))
                if isinstance(replaced, Exception):
                    return replaced
                fault = UsageError(
                    f"the function of ErrorHandlingMiddleware for {kind.__name__} returned a value of type "
                    f"{type(replaced).__name__}; return an exception, such as ToolError(…)"
                )
                fault.__cause__ = error
                return fault
        return error


def _name(params: Any, context: Context) -> str:
    """Return the method of a request, and the tool, prompt or resource that it is about."""
    for field in ("name", "uri"):
        value = getattr(params, field, UNSET)
        if isinstance(value, str):  # of any length
            shown = value if len(value) <= MAX_PAYLOAD_CHARS else f"{value[:MAX_PAYLOAD_CHARS]}…"
            return f"{context.method} {shown!r}"
    return str(context.method)


def _readable(value: object) -> object:
    # The results of tasks are members that are JSON already.
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else dump_value(value)


def _kind(result: Any) -> str:
    if getattr(result, "result_type", "complete") == "input_required":
        return "a request for input"
    return "an error for the model" if getattr(result, "is_error", False) is True else "a result"
