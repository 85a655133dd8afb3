"""`connect`: from a URL, a command, a server or a transport to a client."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, overload

import msgspec
from msgspec import UNSET

from mcpgen import __version__
from mcpgen.generated import registry
from mcpgen.runtime.api.client import Client
from mcpgen.runtime.client.base_client import BaseClient, ClientContext
from mcpgen.runtime.client.client_features import ClientFeatures, merge_capabilities
from mcpgen.runtime.client.connection_task import ConnectionTask
from mcpgen.runtime.client.engine import ClientEngine
from mcpgen.runtime.client.era_cache import EraCache
from mcpgen.runtime.client.handler_functions import HandlerFunction, HandlerFunctions, Roots, handlers_from_functions
from mcpgen.runtime.client.output_validation import OutputValidator, Policy
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.transport import Http
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.protocol.negotiation import selected_revisions
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.transports.command_line import is_url
from mcpgen.runtime.transports.interfaces import ServerInterface, Transport
from mcpgen.runtime.transports.memory import Memory
from mcpgen.runtime.transports.process import Process

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

__all__ = ["Connection", "Options", "Target", "connect"]

C_co = TypeVar("C_co", bound=BaseClient, covariant=True)

Target = str | Sequence[str] | ServerInterface | Transport
"""How a server is reached: a URL, a command, a `Server` of this process, or a transport such as `Http` or `Process`."""

_ERAS = EraCache()

# Options that users look for in `connect`, and where they are.
_OF_PROCESS = "it is an option of Process: connect(Process(command, environment=…, directory=…))"
_OF_LIMITS = "it is one of ClientLimits: connect(…, limits=ClientLimits(call_seconds=…))"
_OF_HTTP = "it is an option of Http: connect(Http(url, headers=…, auth=…))"
_ELSEWHERE = {
    **dict.fromkeys(("headers", "auth", "client", "http_client"), _OF_HTTP),
    **dict.fromkeys(("env", "environment", "cwd", "directory", "on_stderr", "inherit_environment"), _OF_PROCESS),
    **dict.fromkeys(("timeout", "timeout_seconds", "call_seconds", "connect_seconds"), _OF_LIMITS),
}


class Options(TypedDict, total=False):
    """The options of `connect`, for functions that pass them on. The parameters of `connect` have the defaults."""

    name: str
    version: str
    title: str | None
    revisions: Iterable[str] | None
    handlers: object
    elicit: HandlerFunction | None
    elicit_url: HandlerFunction | None
    sample: HandlerFunction | None
    roots: Roots | None
    log: HandlerFunction | None
    capabilities: Mapping[str, object] | None
    structured: Policy
    limits: ClientLimits | None


_HOW_TO_OPEN = "write `async with connect(…) as client`, or `client = await connect(…)`"


class Connection(Generic[C_co]):
    """A client that is not connected yet. Open it once: with ``async with``, or with ``await``.

    ``async with`` closes the client at the end of the block. After ``await``, call ``client.close()``.
    """

    def __init__(self, start: Callable[[], Awaitable[C_co]], description: str) -> None:
        self._start = start
        self._description = description
        self._is_opened = False
        self._client: C_co | None = None

    def __repr__(self) -> str:
        state = f"not opened: {_HOW_TO_OPEN}"
        if self._is_opened:
            state = "opened, but not connected" if self._client is None else f"opened: {self._client!r}"
        return f"<{type(self).__name__} to {self._description!r}, {state}>"

    if not TYPE_CHECKING:  # type checkers must report other attributes as errors

        def __getattr__(self, name: str) -> object:
            raise AttributeError(f"a connection has no {name}, a client has: {_HOW_TO_OPEN}")

    def __await__(self) -> Generator[Any, Any, C_co]:
        """Connect.

        Raises:
            McpgenError: The connection failed. Nothing is left behind.
        """
        return self._open().__await__()

    async def __aenter__(self) -> C_co:
        """Connect.

        Raises:
            McpgenError: The connection failed. Nothing is left behind.
        """
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the client."""
        if self._client is not None:
            await self._client.close()

    async def _open(self) -> C_co:
        if self._is_opened:
            raise UsageError("this connection was opened before; call connect() again for each client")
        self._is_opened = True
        self._client = await self._start()
        return self._client


@overload
def connect(target: Target, *, native_revision: None = None, **options: Unpack[Options]) -> Connection[Client]: ...


@overload
def connect(target: Target, *, native_revision: str, **options: Unpack[Options]) -> Connection[BaseClient]: ...


def connect(  # noqa: PLR0913 (each option has a name)
    target: Target,
    *,
    native_revision: str | None = None,
    name: str = "mcpgen",
    version: str = __version__,
    title: str | None = None,
    revisions: Iterable[str] | None = None,
    handlers: object = None,
    elicit: HandlerFunction | None = None,
    elicit_url: HandlerFunction | None = None,
    sample: HandlerFunction | None = None,
    roots: Roots | None = None,
    log: HandlerFunction | None = None,
    capabilities: Mapping[str, object] | None = None,
    structured: Policy = "off",
    limits: ClientLimits | None = None,
    **unknown: object,
) -> Connection[Any]:
    """Connect to a server of any revision.

        async with connect("python server.py") as client:
            await client.call_tool("echo", {"text": "hi"})

    Args:
        target: A URL (http or https); a command, as a string or a list; a `Server` of this process; or a transport:
            `Http` takes headers and credentials, `Process` an environment.
        native_revision: The revision in whose types you read and write; by default the newest. With any other, you get
            a `BaseClient`, the sender of that revision's ``ClientMethods``.
        name: The name of this client.
        version: The version of this client.
        title: The name of this client for people.
        revisions: The revisions to offer; by default all.
        handlers: An instance of a subclass of the native revision's ``ClientHandlers``, instead of functions.
        elicit: Answers form elicitation: ``(params, context) -> ElicitResult``.
        elicit_url: Answers URL elicitation: ``(params, context) -> ElicitResult``.
        sample: Answers sampling: ``(params, context) -> CreateMessageResult``.
        roots: The roots, or a function that returns them: ``(context) -> [Root]``.
        log: Takes log entries of the server: ``(params, context)``.
        capabilities: Capabilities in addition to those that follow from the functions, in the native revision:
            ``{"sampling": {"tools": {}}}``.
        structured: Whether to check structured content against the tool's output schema: ``off``, ``warn``, ``strict``.
        limits: Limits on what the server may send, and timeouts.
        **unknown: Refused. The error says where the option is.

    Raises:
        UsageError: An argument is wrong, or two do not fit together.
        UnknownRevision: There is no such revision.
    """
    _refuse(unknown)
    bounds = ClientLimits() if limits is None else _checked_limits(limits)
    offered = selected_revisions(revisions)
    label = NEWEST if native_revision is None else registry.revision(native_revision).label
    transport = _transport(target)
    functions = HandlerFunctions(elicit=elicit, elicit_url=elicit_url, sample=sample, roots=roots, log=log)
    found, declared = _handlers(handlers, functions, label)
    features = ClientFeatures(
        found, capabilities=merge_capabilities(declared, capabilities or {}), info=_info(name, version, title)
    )
    if features.native_revision != label:
        written_in = features.native_revision
        raise UsageError(f"`handlers` is written in {written_in}; pass native_revision={written_in!r}")
    OutputValidator(structured)  # reports a wrong policy now, and not when the client connects
    kind: type[BaseClient] = Client if label == NEWEST else BaseClient

    async def start() -> BaseClient:
        task = ConnectionTask(
            transport, features, offered=offered, limits=bounds, eras=_ERAS, make_context=ClientContext
        )
        connection = await task.start()
        try:
            engine = ClientEngine(task, connection, label, OutputValidator(structured))
            client = task.client = kind(engine)
            await engine.translated.subscribe_to_lists()
        except BaseException:
            await task.close()
            raise
        return client

    return Connection(start, transport.description)


def _refuse(unknown: Mapping[str, object]) -> None:
    for each in unknown:
        meant = difflib.get_close_matches(each, Options.__annotations__, 1)
        hint = f"did you mean `{meant[0]}`?" if meant else f"the options are {', '.join(Options.__annotations__)}"
        raise UsageError(f"connect() has no option `{each}`; {_ELSEWHERE.get(each, hint)}")


def _checked_limits(limits: Any) -> ClientLimits:
    if not isinstance(limits, ClientLimits):
        raise UsageError(f"`limits` must be a ClientLimits, such as ClientLimits(call_seconds=10), not {limits!r}")
    return limits


def _transport(target: Any) -> Transport:
    if isinstance(target, str) and is_url(target):
        return Http(target)
    if isinstance(target, str | list | tuple):
        return Process(_command(target))
    if isinstance(target, ServerInterface) and not isinstance(target, type):
        return Memory(target)
    if isinstance(target, Transport) and not isinstance(target, type):
        return target
    hint = f"; write {target.__name__}()" if isinstance(target, type) else ""
    raise UsageError(
        f"`target` must be a URL, a command, a Server or a transport such as Process, not {target!r}{hint}"
    )


def _command(target: Any) -> str | Sequence[str]:
    command: str | Sequence[str] = target  # Process checks its parts
    return command


def _handlers(handlers: object, functions: HandlerFunctions, native_revision: str) -> tuple[object, dict[str, object]]:
    """Return the handlers, and the capabilities that the functions among them declare."""
    if handlers is not None:
        if not functions.is_empty:
            raise UsageError("`handlers` and functions such as `elicit` were both given; choose one")
        return handlers, {}
    if native_revision == NEWEST:
        return handlers_from_functions(functions)
    if not functions.is_empty:
        raise UsageError(f"functions such as `elicit` are written in {NEWEST}; pass `handlers` for {native_revision}")
    return registry.revision(native_revision).bindings().client.ClientHandlers(), {}


def _info(name: str, version: str, title: str | None) -> models.Implementation:
    info = models.Implementation(name=name, version=version, title=UNSET if title is None else title)
    try:
        models.decode(msgspec.json.encode(info), models.Implementation)
    except (msgspec.MsgspecError, TypeError) as error:
        raise UsageError(f"`name`, `version` or `title` is not valid: {error}") from error
    return info
