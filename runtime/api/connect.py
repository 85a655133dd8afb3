"""Connecting to a server: from what is known of it, a URL, a command or an object, to a client of it."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, cast, overload

import msgspec
from msgspec import UNSET, Struct

from mcpgen import __version__
from mcpgen.generated import registry
from mcpgen.runtime.api.client import Client
from mcpgen.runtime.client.base_client import BaseClient, ClientContext
from mcpgen.runtime.client.client_features import ClientFeatures, merged
from mcpgen.runtime.client.connection_task import ConnectionTask
from mcpgen.runtime.client.era_cache import EraCache
from mcpgen.runtime.client.handler_functions import HandlerFunctions, handlers_from_functions
from mcpgen.runtime.client.output_validation import OutputValidator
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.transport import Http
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.protocol.negotiation import selected_revisions
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.transports.command_line import is_url
from mcpgen.runtime.transports.interfaces import Endpoints, Transport
from mcpgen.runtime.transports.memory import Memory
from mcpgen.runtime.transports.process import Process

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

__all__ = ["Connection", "Options", "Target", "connect"]

C_co = TypeVar("C_co", bound=BaseClient, covariant=True)

Target = str | Sequence[str] | Endpoints | Transport
"""How a server is reached: a URL, a command, a `Server` of this process, or a transport: `Http`, `Process`."""

_VERDICTS = EraCache()
# What people look for here, and where it is.
_OF_PROCESS = "; it is one of Process: connect(Process(command, environment=…, directory=…))"
_OF_LIMITS = "; it is one of ClientLimits: connect(…, limits=ClientLimits(call_seconds=…))"
_OF_HTTP = "; it is one of Http: connect(Http(url, headers=…, auth=…))"
_ELSEWHERE = {
    **dict.fromkeys(("headers", "auth", "client", "http_client"), _OF_HTTP),
    **dict.fromkeys(("env", "environment", "cwd", "directory", "on_stderr", "inherit_environment"), _OF_PROCESS),
    **dict.fromkeys(("timeout", "timeout_seconds", "call_seconds", "connect_seconds"), _OF_LIMITS),
}


class Options(HandlerFunctions, total=False):
    """The options of `connect`; `HandlerFunctions` has those that are functions."""

    name: str
    """What servers call this client; ``mcpgen`` by default."""
    version: str
    """Its version."""
    title: str | None
    """What people call it."""
    revisions: Iterable[str] | None
    """The revisions to offer; all by default."""
    handlers: object
    """An instance of a subclass of home's generated ``ClientHandlers``, instead of functions."""
    capabilities: Mapping[str, object] | None
    """What is declared beyond what the above show, as JSON of home: ``{"sampling": {"tools": {}}}``."""
    structured: Literal["off", "warn", "strict"]
    """Whether structured results are checked against the schemas that the server listed for its tools."""
    limits: ClientLimits | None
    """Bounds on what the server may ask for, and how long it is waited for."""


class _Settings(Struct, kw_only=True):
    """The options with their defaults."""

    name: str = "mcpgen"
    version: str = __version__
    title: str | None = None
    revisions: Any = None
    handlers: Any = None
    functions: HandlerFunctions
    capabilities: Any = None
    structured: Any = "off"
    limits: Any = None


_WAIT = "write `async with connect(…) as client`, or `client = await connect(…)`"


class Connection(Generic[C_co]):
    """A client that can be had: by ``async with``, which closes it at the end of the block, or by ``await``.

    Whoever awaits it has to call its ``close``.
    """

    def __init__(self, start: Callable[[], Awaitable[C_co]]) -> None:
        self._start = start
        self._has_begun = False
        self._client: C_co | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {_WAIT}>"

    if not TYPE_CHECKING:  # to a type checker, there are no other attributes

        def __getattr__(self, name: str) -> object:
            raise AttributeError(f"a connection has no {name}, a client has: {_WAIT}")

    def __await__(self) -> Generator[Any, Any, C_co]:
        """Connect.

        Raises:
            McpgenError: That could not be done; nothing is left behind.
        """
        return self._begin().__await__()

    async def __aenter__(self) -> C_co:
        """Connect.

        Raises:
            McpgenError: That could not be done; nothing is left behind.
        """
        self._client = await self._begin()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the client, whichever task this is."""
        if self._client is not None:
            await self._client.close()

    async def _begin(self) -> C_co:
        if self._has_begun:
            raise UsageError("this connection was opened before; each client needs a connect() of its own")
        self._has_begun = True
        return await self._start()


@overload
def connect(target: Target, *, native_revision: None = None, **options: Unpack[Options]) -> Connection[Client]: ...


@overload
def connect(target: Target, *, native_revision: str, **options: Unpack[Options]) -> Connection[BaseClient]: ...


def connect(target: Target, *, native_revision: str | None = None, **options: Unpack[Options]) -> Connection[Any]:
    """Connect to a server, whichever revision it speaks.

        async with connect("python server.py") as client:
            await client.call_tool("echo", {"text": "hi"})

    Args:
        target: How it is reached: a URL of http or https; a command, as one string or a list; a `Server` of this
            process; or a transport: `Http`, which takes headers and credentials, or `Process`.
        native_revision: The revision in whose types the client is written; by default the newest. Only a client of the
            newest has a method for everything. A client of another revision is a `BaseClient`, the sender of that
            revision's ``ClientMethods``.
        **options: `Options` says what else there is.

    Raises:
        UsageError: The arguments make no sense together; the message says why.
        UnknownRevision: There is no such revision.
    """
    settings = _settings(options)
    limits = ClientLimits() if settings.limits is None else settings.limits
    if not isinstance(limits, ClientLimits):
        raise UsageError(f"limits are a ClientLimits, such as ClientLimits(call_seconds=10), not {limits!r}")
    offered = selected_revisions(settings.revisions)
    label = NEWEST if native_revision is None else registry.revision(native_revision).label
    transport = _transport(target)
    offering = _offering(settings, label)
    OutputValidator(settings.structured)  # what is wrong with the policy is found now
    kind: type[BaseClient] = Client if label == NEWEST else BaseClient

    async def start() -> BaseClient:
        owner = ConnectionTask(
            transport, offering, offered=offered, limits=limits, verdicts=_VERDICTS, context=ClientContext
        )
        conversation = await owner.start()
        try:
            client = kind(owner, conversation, label, OutputValidator(settings.structured))
            owner.client = client
            await client.begin()
        except BaseException:
            await owner.close()
            raise
        return client

    return Connection(start)


def _settings(options: Options) -> _Settings:
    known = Options.__annotations__
    for each in options:
        if each not in known:
            meant = difflib.get_close_matches(each, known, 1)
            hint = f"; did you mean {meant[0]}?" if meant else f"; there are {', '.join(known)}"
            hint = _ELSEWHERE.get(each, hint)
            raise UsageError(f"connect has no option {each!r}{hint}")
    functions = {name: each for name, each in options.items() if name in HandlerFunctions.__annotations__}
    others: dict[str, Any] = {name: each for name, each in options.items() if name not in functions}
    return _Settings(functions=cast("HandlerFunctions", functions), **others)


def _transport(target: Any) -> Transport:
    if isinstance(target, str) and is_url(target):
        return Http(target)
    if isinstance(target, str | list | tuple):
        return Process(_command(target))
    if isinstance(target, Endpoints) and not isinstance(target, type):
        return Memory(target)
    if isinstance(target, Transport) and not isinstance(target, type):
        return target
    hint = f"; write {target.__name__}()" if isinstance(target, type) else ""
    raise UsageError(
        f"a server is reached by a URL, a command, a Server or a transport such as Process, not {target!r}{hint}"
    )


def _command(target: Any) -> str | Sequence[str]:
    command: str | Sequence[str] = target  # whose parts Process looks at
    return command


def _offering(settings: _Settings, native_revision: str) -> ClientFeatures:
    functions = settings.functions
    has_functions = any(each is not None for each in functions.values())
    declared: dict[str, object] = {}
    handlers = settings.handlers
    if handlers is None:
        if native_revision != NEWEST and has_functions:
            raise UsageError(f"functions are written in {NEWEST}; for {native_revision} there are handlers")
        handlers, declared = (
            handlers_from_functions(functions) if native_revision == NEWEST else (_none(native_revision), {})
        )
    elif has_functions:
        raise UsageError("either handlers or functions answer the server, not both")
    info = models.Implementation(
        name=settings.name, version=settings.version, title=UNSET if settings.title is None else settings.title
    )
    try:
        models.decode(msgspec.json.encode(info), models.Implementation)
    except (msgspec.MsgspecError, TypeError) as error:
        raise UsageError(f"what the client says about itself is not valid: {error}") from error
    made = ClientFeatures(handlers, capabilities=merged(declared, settings.capabilities or {}), info=info)
    if made.native_revision != native_revision:
        raise UsageError(
            f"the handlers are written in {made.native_revision}: say native_revision={made.native_revision!r}"
        )
    return made


def _none(native_revision: str) -> object:
    return registry.revision(native_revision).bindings().client.ClientHandlers()
