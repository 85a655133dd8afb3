"""The command ``serve``: load a server from a file or a module, and run it on stdio or over HTTP."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.api.server_runner import print_terminal_hint, serve_command, stdin_is_terminal
from mcpgen.runtime.cli.completion_command import complete_target
from mcpgen.runtime.cli.server.continued_ids import with_continued_ids
from mcpgen.runtime.cli.server.http_options import asgi_options, http_options
from mcpgen.runtime.cli.server.server_object import Unservable, find_server
from mcpgen.runtime.cli.server.user_tracebacks import place_of, print_traceback, user_frames
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.transports import stdio_server
from mcpgen.runtime.transports.command_line import is_url
from mcpgen.runtime.transports.graceful_shutdown import end_with_parent
from mcpgen.runtime.transports.standard_streams import StandardStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet
    from types import ModuleType

    from mcpgen.runtime.http.server.application import Application
    from mcpgen.runtime.http.server.application_options import Options
    from mcpgen.runtime.transports.interfaces import ServerInterface

__all__ = ["serve"]

_NO_PACKAGE: Final = (  # `inspect` and `install` show it too, and take no bare name of a module
    " A file that is loaded alone cannot use relative imports: write `from names import …`, not `from .names import …`."
    " Or serve the module: mcpgen serve package.module:OBJECT"
)

F = TypeVar("F", bound="Callable[..., object]")


def _refuse_elsewhere(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    """Refuse an option of other frameworks, and name ours."""
    if value is not None and not ctx.resilient_parsing:
        port = value if option.name == "port" and value.isdecimal() else "8000"
        host = value if option.name == "host" else "127.0.0.1"
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        raise click.UsageError(f"There is no option `--{option.name}`. To serve over HTTP, use `--http {host}:{port}`.")


def _elsewhere(name: str) -> Callable[[F], F]:
    return click.option(f"--{name}", hidden=True, expose_value=False, callback=_refuse_elsewhere)


@click.command()
@click.argument("target", metavar="FILE.py[:OBJECT]", shell_complete=complete_target)
@click.option(
    "--http", "address", metavar="HOST:PORT", help="Use HTTP at this address instead of stdio. Port 0: any free port."
)
@http_options
@click.option("--reload", "is_reloaded", is_flag=True, help="Restart the server when a Python file changes.")
@click.option("-v", "--verbose", "is_verbose", is_flag=True, help="Show each request on standard error.")
@click.option(
    "--debug",
    "is_debug",
    is_flag=True,
    help="Put the exceptions of handlers into the errors that clients get, and log handlers that block the event loop. "
    "--reload includes it.",
)
@click.option("--load-only", "is_only_loaded", is_flag=True, hidden=True)  # for `mcpgen install`
@click.option("--end-with-input", "ends_with_input", is_flag=True, hidden=True)  # for `--reload`
@click.option("--sockets", multiple=True, type=int, hidden=True)  # for `--workers`
@_elsewhere("host")
@_elsewhere("port")
@_elsewhere("transport")
def serve(  # noqa: PLR0913 (the options of the command)
    *,
    target: str,
    address: str | None,
    is_reloaded: bool,
    is_verbose: bool,
    is_debug: bool,
    is_only_loaded: bool,
    ends_with_input: bool,
    sockets: tuple[int, ...],
    **http: Any,  # noqa: ANN401 (those of `http_options`)
) -> None:
    """Run a server on standard input and output (stdio), or over HTTP with --http.

    FILE.py is a Python file; package.module:OBJECT works too. OBJECT is the name of the server in the file. You
    can leave OBJECT out if there is one server, or if its name is server, mcp or app.

    On stdio, standard output carries only MCP messages. Text that the file or a handler prints goes to standard error.

    Over HTTP, clients of all revisions use the same endpoint; clients of 2024-11-05 can also use /sse.

    At a loopback address (127.0.0.1, ::1), the server accepts only requests whose Host header and Origin header (if
    present) name this machine. At any other address, it accepts every Host header, but no requests from web pages.
    --allow-host and --allow-origin replace these defaults. Behind a reverse proxy, use both to give the public names.

    The server has limits, for example on sessions, and divides them fairly between the addresses of its clients. Behind
    a reverse proxy, all clients have the address of the proxy. Name this address with --trusted-proxy: the server then
    reads the address of each client from a header that the proxy sends.

    With --auth-issuer and --resource, only requests with an access token can use the server. An authorization server
    issues the tokens; clients get the URL of the authorization server from this server. JSON Web Tokens need the extra
    auth.

    --reload is for development. It watches the Python files in the folder of FILE.py, or in the working directory if
    the server is in a module. A host on stdio keeps its connection.
    """
    if is_only_loaded:
        with StandardStreams():  # as below: a file that calls run() when it is loaded cannot be served
            _load_server(target, is_debug=is_debug)
        return
    options = asgi_options(address, **http)
    if is_reloaded and http["workers"] > 1:
        raise click.UsageError("`--reload` is for one worker: leave `--workers` out.")
    if address is not None and http["workers"] > 1 and not sockets:
        _serve_workers(address, http["workers"], http["redis"], click.get_current_context())
        return
    if is_reloaded:
        _serve_reloaded(target, address, click.get_current_context())
        return
    if address is not None:
        if ends_with_input:
            end_with_parent()
        wrap = _request_log().LoggedApplication if is_verbose else None
        _serve_http(target, address, options, wrap, sockets, is_debug=is_debug)
        return
    is_at_terminal = stdin_is_terminal()
    with StandardStreams() as streams:
        found = with_continued_ids(_load_server(target, is_debug=is_debug))
        if is_at_terminal:
            print_terminal_hint(getattr(found, "name", "the server"), target)
        _serve_stdio(_request_log().LoggedServer(found) if is_verbose else found, target, streams)


def _serve_stdio(server: ServerInterface, target: str, streams: StandardStreams) -> None:
    """Serve on stdio.

    Raises:
        click.ClickException: The user's code has raised an exception, such as the lifespan, or uses mcpgen wrongly.
    """
    streams.are_restored = False
    try:
        stdio_server.run(server, streams=streams)
    except Exception as error:  # the boundary: the user's code, such as a lifespan, may raise anything
        if isinstance(error, UsageError):
            raise click.ClickException(f"{place_of(error) or f'{target}: '}{error}.") from None
        if user_frames(error) is None:  # a defect of ours
            raise
        raise _stopped(error, target) from None


def _request_log() -> ModuleType:
    from mcpgen.runtime.cli.server import request_log  # noqa: PLC0415 (only --verbose needs it, and what it imports)

    return request_log


def _load_server(target: str, *, is_debug: bool) -> ServerInterface:
    origin, name = _split_object(target)
    found = find_server(_load(origin), origin, name)
    if is_debug:
        _set_debug(found)
    return found


def _set_debug(server: object) -> None:
    if isinstance(server, Server):
        server.debug = True


def _serve_http(  # noqa: PLR0913 (of `serve_http`)
    target: str,
    address: str,
    options: Options,
    wrap: Callable[[Application], object] | None,
    sockets: tuple[int, ...],
    *,
    is_debug: bool,
) -> None:
    uvicorn_server = _import_uvicorn_server()
    _address(address)
    found = _load_server(target, is_debug=is_debug)
    if not isinstance(found, Server):
        raise Unservable(f"{target} can be served on stdio only: HTTP needs an object of type Server.")
    try:
        uvicorn_server.serve_http(cast("Any", found), address, options, wrap, sockets)
    except UsageError as error:
        message = str(error).replace("allowed_origins", "--allow-origin").replace("allowed_hosts", "--allow-host")
        message = (
            message.replace("trusted_proxies", "--trusted-proxy")
            .replace("`path`", "`--path`")
            .replace("`health`", "`--health`")
            .replace("`sse_path`", "the path of HTTP+SSE")
            .replace("`message_path`", "the path of the messages of HTTP+SSE")
        )
        raise Unservable(f"{message}.") from None
    except Exception as error:  # the boundary, as in `_serve_stdio`
        if user_frames(error) is None:
            raise
        raise _stopped(error, target) from None


def _stopped(error: Exception, target: str) -> click.ClickException:
    """Print the traceback of the user's code, which raised *error*, and return the error of the command."""
    print_traceback(error)
    return click.ClickException(f"{target}: the server has stopped, because its code raised {type(error).__name__}.")


def _import_uvicorn_server() -> ModuleType:
    try:
        from mcpgen.runtime.http.server import uvicorn_server  # noqa: PLC0415 (an extra that stdio does not need)
    except ModuleNotFoundError as error:
        raise Unservable(
            f"HTTP needs the module {error.name!r}, which is not installed.\n"
            'Install it with: pip install "mcpgen[http]"'
        ) from None
    return uvicorn_server


def _address(address: str) -> tuple[str, int]:
    """Split an address into host and port.

    Raises:
        click.BadParameter: The address is not ``HOST:PORT``.
    """
    try:
        host, port = _import_uvicorn_server().split_address(address)
    except UsageError as error:
        raise click.BadParameter(f"{error}.", param_hint="'--http'") from None
    return host, port


def _serve_reloaded(target: str, address: str | None, context: click.Context) -> None:
    """Run this command without ``--reload`` in a process, and restart the process when a file changes."""
    from mcpgen.runtime.cli.server import reloader  # noqa: PLC0415 (for development only)
    from mcpgen.runtime.cli.server.source_changes import SourceChanges  # noqa: PLC0415 (likewise)

    origin, _ = _split_object(target)
    _check_origin(origin)
    changes = SourceChanges(Path(origin).resolve().parent if _is_file(origin) else Path.cwd())
    if address is None:
        if stdin_is_terminal():
            print_terminal_hint(target, target)
        reloader.reload_stdio(_reloaded_command(context), changes)
    else:
        _address(address)
        try:
            context.params["address"] = _import_uvicorn_server().free_address(address)
        except UsageError as error:
            raise Unservable(f"{error}.") from None
        reloader.reload_http(_reloaded_command(context), changes)


def _serve_workers(address: str, workers: int, redis: str, context: click.Context) -> None:
    """Run this command in several processes, which serve the same address."""
    from mcpgen.runtime.cli.server import worker_supervisor  # noqa: PLC0415 (most servers are one process)

    host, port = _address(address)
    try:
        bound = _import_uvicorn_server().bind(host, port)
    except UsageError as error:
        raise Unservable(f"{error}.") from None
    os.environ["MCPGEN_REDIS"] = redis  # the list of processes would show its password

    def command(descriptors: Sequence[int]) -> list[str]:
        words = ["--end-with-input", *(word for each in descriptors for word in ("--sockets", str(each)))]
        return _command(context, words, {"redis"})

    context.exit(worker_supervisor.supervise(command, bound, workers))


def _command(context: click.Context, words: list[str], omitted: AbstractSet[str]) -> list[str]:
    """Return the command of a process: this one, with *words*, and without the options *omitted*."""
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if isinstance(option, click.Option) and value and option.name not in omitted:
            for each in value if option.multiple else [value]:
                words += option.opts[:1] if option.is_flag else [option.opts[0], str(each)]
    return serve_command(context.params["target"], words)


def _reloaded_command(context: click.Context) -> list[str]:
    """Return the command of the process: this one, with ``--debug`` in place of ``--reload``."""
    words = ["--debug"] if context.params["address"] is None else ["--debug", "--end-with-input"]
    return _command(context, words, {"is_reloaded", "is_debug", "workers"})


def _split_object(target: str) -> tuple[str, str]:
    """Split *target* into the file or module, and the name of the object, which may be empty."""
    origin, colon, name = target.rpartition(":")
    is_drive = len(origin) == 1 and not name.isidentifier()  # C:\server.py
    if not colon or is_drive or is_url(target) or Path(target).exists():
        return target, ""
    return origin, name


def _load(origin: str) -> ModuleType:
    """Load the file or the module *origin*.

    Raises:
        Unservable: There is none; or it uses mcpgen wrongly; or it raises another exception, whose traceback is printed
            first.
    """
    _check_origin(origin)
    is_file = _is_file(origin)
    try:
        return _load_file(Path(origin)) if is_file else _load_module(origin)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's file can raise anything, and is shown it)
        if _is_missing(error, origin) and not is_file:
            is_other_file = Path(origin).is_file()
            text = f"{origin} is not a Python file." if is_other_file else f"There is no file or module {origin}."
            raise Unservable(text) from None
        if isinstance(error, UsageError):
            raise Unservable(f"{place_of(error)}{error}.") from None
        print_traceback(error)
        is_relative = isinstance(error, ImportError) and "relative import" in str(error)
        hint = _NO_PACKAGE if is_relative else ""
        raise Unservable(f"{origin} cannot be loaded: it raised {type(error).__name__}.{hint}") from None


def _is_file(origin: str) -> bool:
    """Whether *origin* is a file rather than a module."""
    return origin.endswith(".py") or "/" in origin or "\\" in origin


def _check_origin(origin: str) -> None:
    """Check that *origin* is a file, or can be the name of a module.

    Raises:
        Unservable: It is neither.
    """
    if is_url(origin):
        raise Unservable(
            "`serve` runs a Python file, and this is a URL; to look at a running server, use `mcpgen inspect URL`."
        )
    path = Path(origin)
    if origin and path.is_dir() and not (path / "__init__.py").is_file():
        raise Unservable(f"{origin} is a folder; give a Python file, such as {path / 'server.py'}.")
    if _is_file(origin) and not path.is_file():
        raise Unservable(f"There is no file {origin}.")
    if not (_is_file(origin) or all(part.isidentifier() for part in origin.split("."))):
        raise Unservable(f"There is no file or module {origin!r}.")


def _load_file(path: Path) -> ModuleType:
    # Like "python FILE", except for `__name__`: many files end with "if __name__ == '__main__'".
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise Unservable(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where `typing.get_type_hints` looks names up
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, "")  # like "python -m"
    return import_module(name)


def _is_missing(error: BaseException, name: str) -> bool:
    return isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
