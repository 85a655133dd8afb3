"""`connect`: from a URL, a command, a server or a transport to a client."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, cast, overload

from msgspec import UNSET

from mcpgen.generated import registry
from mcpgen.runtime.api.client import Client
from mcpgen.runtime.api.connect_options import DEFAULTS, Options, refuse_unknown, warn_deprecated
from mcpgen.runtime.api.server_runner import PYTHON_VARIABLES, serve_command
from mcpgen.runtime.client.base_client import BaseClient, ClientContext
from mcpgen.runtime.client.changes import LISTEN
from mcpgen.runtime.client.client_features import ClientFeatures, merge_capabilities
from mcpgen.runtime.client.connection_task import ConnectionTask
from mcpgen.runtime.client.engine import ClientEngine
from mcpgen.runtime.client.era_cache import EraCache
from mcpgen.runtime.client.era_store import EraStore, cache_folder
from mcpgen.runtime.client.extensions import client_extensions
from mcpgen.runtime.client.handler_functions import HandlerFunctions, check_modes, handlers_from_functions
from mcpgen.runtime.client.output_validation import OutputValidator, Policy
from mcpgen.runtime.client.result_cache import ResultCache
from mcpgen.runtime.errors import RequestTimedOut, UnknownRevision, UsageError
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.protocol.argument_checks import check_fields, check_required_texts, check_texts
from mcpgen.runtime.protocol.negotiation import selected_revisions
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
from mcpgen.runtime.transports.command_line import is_url
from mcpgen.runtime.transports.interfaces import ServerInterface, Transport
from mcpgen.runtime.transports.memory import Memory
from mcpgen.runtime.transports.process_transport import Process

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from mcpgen.runtime.api.hosts.client_group import ClientGroup
    from mcpgen.runtime.client.connection import ClientConnection
    from mcpgen.runtime.client.declared_methods import Undeclared
    from mcpgen.runtime.protocol.extensions import Extension

__all__ = ["Connection", "Target", "as_transport", "connect"]

C_co = TypeVar("C_co", bound="BaseClient | ClientGroup", covariant=True)

Target = str | Sequence[str] | Path | ServerInterface | Transport
"""How a server is reached: a URL, a command, the path of a Python file, a `Server` of this process, or a transport.

Transports are `Http` and `Process`, for example.
"""

_ERAS = EraCache()

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
            raise AttributeError(
                f"connect() returns a connection, which has no `{name}`; open it to get the client: {_HOW_TO_OPEN}"
            )

        def __enter__(self) -> object:
            raise UsageError("connect() needs `async with`; without `async`, write `with connect_sync(…) as client`")

        def __exit__(self, *_: object) -> None:
            """Exist, because Python looks for it before `__enter__` is called."""

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


@overload
def connect(
    target: Mapping[str, object], *, native_revision: None = None, **options: Unpack[Options]
) -> Connection[ClientGroup]: ...


def connect(
    target: Target | Mapping[str, object], *, native_revision: str | None = None, **options: Unpack[Options]
) -> Connection[Any]:
    """Connect to a server of any revision.

        async with connect("python server.py") as client:
            await client.call_tool("echo", {"text": "hi"})

    Args:
        target: A URL (http or https); a command, as a string or a list; a `Path` of a Python file, which is run with
            ``mcpgen serve``; a `Server` of this process; or a transport. Use the transport `Http` to set headers,
            and `Process` to set environment variables. The configuration of a host,
            ``{"mcpServers": {…}}``, gives a `ClientGroup` over its servers.
        native_revision: The revision whose types the params and results have; by default the newest. For any other
            revision, you get a `BaseClient`. Pass it to the generated ``ClientMethods`` of that revision:
            ``ClientMethods(client).call_tool(...)``.
        **options: ``name``, ``revisions``, ``limits``, functions such as ``elicit``, and others.
            `mcpgen.runtime.api.connect_options.Options` describes them.

    Raises:
        UsageError: An argument is wrong, or two arguments contradict each other.
        UnknownRevision: There is no such revision.
    """
    refuse_unknown(options)
    warn_deprecated(options)
    if isinstance(target, Mapping):
        return _connect_group(target, native_revision, options)
    given: dict[str, Any] = {**DEFAULTS, **options}
    limits = _limits(given.get("limits"))
    offered = selected_revisions(given.get("revisions"))
    label = NEWEST if native_revision is None else _native_label(native_revision)
    transport = as_transport(target, given.get("auth"))
    features = _features(given, label)
    eras = _eras(given["cache"], transport)
    policy: Policy = given["structured"]
    is_strict, undeclared = _reading_options(given)
    keeps_results = given["cache_results"]
    if not isinstance(keeps_results, bool):
        raise UsageError(f"`cache_results` must be True or False, not {keeps_results!r}")
    pings = given.get("ping_seconds")
    if pings is not None and (isinstance(pings, bool) or not isinstance(pings, int | float) or not pings > 0):
        raise UsageError(f"`ping_seconds` must be a number greater than 0, or None, not {pings!r}")
    restarts = given["max_restarts"]
    if isinstance(restarts, bool) or not isinstance(restarts, int) or restarts < 0:
        raise UsageError(f"`max_restarts` must be a whole number, such as 3, or 0 for none, not {restarts!r}")
    OutputValidator(policy)  # reports a wrong policy now, and not when the client connects
    kind: type[BaseClient] = Client if label == NEWEST else BaseClient

    def make_engine(task: ConnectionTask, connection: ClientConnection) -> ClientEngine:
        engine = ClientEngine(task, connection, label, OutputValidator(policy), undeclared)
        engine.client = kind(engine)
        if keeps_results:
            connection.session.cache = ResultCache(
                limits.max_cached_bytes, lambda: getattr(transport, "authorization_context", None)
            )
        return engine

    async def start() -> BaseClient:
        task = ConnectionTask(
            transport,
            features,
            offered=offered,
            limits=limits,
            eras=eras,
            reading=ReadingPolicy("the server", is_strict=is_strict),
            make_engine=make_engine,
            make_context=ClientContext,
            ping_seconds=pings,
            max_restarts=restarts,
        )
        connection = await task.start()
        try:
            engine = task.engine(connection)
            await _listen_to_lists(engine, task.seconds_left, limits, transport.description)
        except BaseException:
            await task.close()
            raise
        client: BaseClient = engine.client
        return client

    return Connection(start, transport.description)


async def _listen_to_lists(engine: ClientEngine, seconds: float, limits: ClientLimits, server: str) -> None:
    """Listen for the changes of lists that a handler takes, within the time that is left to connect.

    Raises:
        RequestTimedOut: The time is over.
    """
    with engine.connection.deadlines.limit(seconds) as limit:
        await engine.translated.subscribe_to_lists()
    if limit.cancelled_caught:
        raise RequestTimedOut(LISTEN, limits.connect_seconds, server)


def _connect_group(config: Mapping[str, object], native_revision: str | None, options: Options) -> Connection[Any]:
    from mcpgen.runtime.api.hosts.group_start import prepare_group  # noqa: PLC0415 (most programs need no group)

    if native_revision is not None:
        raise UsageError("`native_revision` is for a connection to one server; leave it out for a configuration")
    connect(["any"], **options)  # reports wrong options at once, also if each server of the configuration is wrong
    limits = options.get("limits") or ClientLimits()
    start = prepare_group(config, lambda transport: connect(transport, **options), limits.max_call_seconds)
    return Connection(*start)


def _signature() -> inspect.Signature:
    """Return the signature of `connect` with its options, for `help` and editors: types as in `Options`."""
    signature = inspect.signature(connect)
    named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    for name, annotation in Options.__annotations__.items():
        shown = getattr(annotation, "__forward_arg__", annotation)
        kind = inspect.Parameter.KEYWORD_ONLY
        named.append(inspect.Parameter(name, kind, default=DEFAULTS.get(name), annotation=shown))
    return signature.replace(parameters=named)


connect.__dict__["__signature__"] = _signature()


def _native_label(revision: str) -> str:
    try:
        return selected_revisions([revision])[0]
    except UnknownRevision as error:
        error.args = (str(error).replace("unknown revision", "`native_revision` is", 1),)
        raise


def _reading_options(options: Mapping[str, Any]) -> tuple[bool, Undeclared | None]:
    strict, undeclared = options["strict"], options.get("undeclared")
    if not isinstance(strict, bool):
        raise UsageError(f"`strict` must be True or False, not {strict!r}")
    if undeclared not in (None, "ask", "refuse"):
        raise UsageError(f"`undeclared` is {undeclared!r}; use ask or refuse, or leave it out")
    return strict, "refuse" if strict and undeclared is None else undeclared


def _eras(cache: Any, transport: Transport) -> EraCache:
    if not isinstance(cache, bool | str | os.PathLike):
        raise UsageError(f"`cache` must be True, False or the path of a folder, not {type(cache).__name__}")
    folder = cache_folder() if cache is True else None if cache is False else Path(os.fspath(cache))
    return _ERAS if folder is None else EraStore(_ERAS, folder, transport.description)


def _limits(limits: Any) -> ClientLimits:
    found = ClientLimits() if limits is None else limits
    if not isinstance(found, ClientLimits):
        kind = type(limits).__name__
        raise UsageError(f"`limits` must be a ClientLimits, such as ClientLimits(call_seconds=10), not {kind}")
    return found


def as_transport(target: Any, auth: Any = None) -> Transport:
    """Return the transport to *target*, which is a URL if there are credentials *auth*.

    Raises:
        UsageError: It is not a target of `connect`.
    """
    if auth is not None or (isinstance(target, str) and is_url(target)):
        return _http(target, auth)
    if isinstance(target, str | list | tuple):
        return Process(cast("str | Sequence[str]", target))  # which checks the parts of a list
    if isinstance(target, Path):
        return _python_file(target)
    if isinstance(target, ServerInterface) and not isinstance(target, type):
        return Memory(target)
    if isinstance(target, Transport) and not isinstance(target, type):
        return target
    # The target itself is not shown: a dict of a host's configuration contains tokens.
    named = f"the class {target.__name__}" if isinstance(target, type) else type(target).__name__
    hint = "; write Http(url, headers=…) or Process(command, environment=…)" if isinstance(target, Mapping) else ""
    raise UsageError(
        f"`target` must be a URL, a command, a Path, a Server or a transport such as Process, not {named}{hint}"
    )


def _http(target: Any, auth: Any) -> Transport:
    from mcpgen.runtime.http.client.transport import Http  # noqa: PLC0415 (3 ms, which clients of commands save)

    if isinstance(target, Http):
        raise UsageError("`auth` is for a URL; write it into the transport: connect(Http(url, auth=…))")
    if not isinstance(target, str) or not is_url(target):
        raise UsageError("`auth` is for a URL, but `target` is not a URL; leave `auth` out")
    return Http(target, auth=auth)


def _python_file(path: Path) -> Process:
    """Return the transport to the server in the file *path*."""
    if path.is_dir():
        raise UsageError(f"`target` is the path {str(path)!r}, which is a folder; name a Python file in it")
    if path.suffix != ".py":
        hint = f"for a program, pass a command, such as [{str(path)!r}]"
        raise UsageError(f"`target` is the path {str(path)!r}, which is not a Python file (.py); {hint}")
    if not path.is_file():
        raise UsageError(f"`target` is the path {str(path)!r}, which does not exist")
    # Where Python finds modules: the file needs the same settings as we do.
    ours = {name: os.environ[name] for name in PYTHON_VARIABLES if name in os.environ}
    return Process(serve_command(str(path)), environment=ours)


def _features(options: Mapping[str, Any], native_revision: str) -> ClientFeatures:
    """Return what the client declares and answers."""
    functions = {name: each for name, each in options.items() if name in HandlerFunctions.__annotations__}
    has_functions = any(each is not None for each in functions.values())
    declared: dict[str, object] = {}
    handlers = options.get("handlers")
    if handlers is not None:
        if has_functions:
            raise UsageError("`handlers` and functions such as `elicit` were both given; choose one")
    elif native_revision == NEWEST:
        handlers, declared = handlers_from_functions(cast("HandlerFunctions", functions))
        check_modes(functions, options.get("capabilities") or {})
    elif has_functions:
        raise UsageError(
            f"functions such as `elicit` use the types of {NEWEST}; to use those of {native_revision}, pass `handlers`"
        )
    else:
        handlers = registry.revision(native_revision).bindings().client.ClientHandlers()
    more: Any = options.get("capabilities")
    if more is not None and not isinstance(cast("object", more), Mapping):
        raise UsageError(f"`capabilities` must be a mapping, such as {{'roots': {{}}}}, not {more!r}")
    capabilities = merge_capabilities(declared, more or {})
    extensions = client_extensions([*_extensions(options["extensions"]), *_tasks(options["tasks"])])
    made = ClientFeatures(handlers, capabilities=capabilities, info=_info(options), extensions=extensions)
    if made.native_revision != native_revision:
        written_in = made.native_revision
        raise UsageError(
            f"`handlers` uses the types of {written_in}; write connect(…, native_revision={written_in!r}), or use the "
            f"types of {native_revision}"
        )
    return made


def _extensions(given: Any) -> Iterable[Any]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        example = given if isinstance(given, str) else "com.example/rooms"
        raise UsageError(f"`extensions` must be a list, such as [{example!r}], not {given!r}")
    return cast("Iterable[Any]", given)


def _tasks(is_wanted: Any) -> Iterable[Extension]:
    if not isinstance(is_wanted, bool):
        raise UsageError(f"`tasks` must be True or False, not {is_wanted!r}")
    if not is_wanted:
        return ()
    from mcpgen.generated.extensions import tasks  # noqa: PLC0415 (few clients take tasks)
    from mcpgen.runtime.client.task_watcher import TaskWatcher  # noqa: PLC0415
    from mcpgen.runtime.protocol.extensions import Extension  # noqa: PLC0415

    return (Extension(tasks, handlers=TaskWatcher()),)


def _info(options: Mapping[str, Any]) -> models.Implementation:
    name, version, title = options["name"], options["version"], options.get("title")
    check_required_texts(name=name, version=version)
    check_texts(title=title)
    info = models.Implementation(name=name, version=version, title=UNSET if title is None else title)
    check_fields(info, "of connect()")
    return info
