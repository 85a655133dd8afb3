"""The command ``serve``: load a server from a file or a module, and run it on stdio or over HTTP."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

import click

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.transports import stdio_server
from mcpgen.runtime.transports.interfaces import ServerInterface
from mcpgen.runtime.transports.standard_streams import StandardStreams

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    from mcpgen.runtime.http.server.application import Options

__all__ = ["serve"]

# The usual names of a server, in a file that has several.
_USUAL_NAMES: Final = ("server", "mcp", "app")


class Unservable(click.ClickException):
    """The target has no server, or the server cannot be run as the options say."""

    exit_code = 2  # as for other usage errors


@click.command()
@click.argument("target", metavar="FILE.py[:OBJECT]")
@click.option(
    "--http", "address", metavar="HOST:PORT", help="Use HTTP at this address instead of stdio. Port 0: any free port."
)
@click.option("--path", default="/mcp", show_default=True, metavar="PATH", help="Path of the HTTP endpoint.")
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Accept requests from web pages of this origin, such as https://example.com. Repeatable.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="Accept requests with this name in the Host header. Repeatable.",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Believe X-Forwarded-For and Forwarded of this proxy, an address or a network such as 10.0.0.0/8. Repeatable.",
)
def serve(  # noqa: PLR0913, PLR0917 (the options of the command)
    target: str,
    address: str | None,
    path: str,
    origins: tuple[str, ...],
    hosts: tuple[str, ...],
    proxies: tuple[str, ...],
) -> None:
    """Run a server on standard input and output (stdio), or over HTTP with --http.

    FILE.py is a Python file; the dotted name of a module works too. OBJECT is the name of the server in the file. You
    can leave OBJECT out if there is one server, or if its name is server, mcp or app.

    On stdio, standard output carries only MCP messages. Text that the file or a handler prints goes to standard error.

    Over HTTP, clients of all revisions use the same endpoint; clients of 2024-11-05 can also use /sse.

    At a loopback address (127.0.0.1, ::1), the server accepts only requests whose Host header and Origin header name
    this machine. At any other address, it accepts every Host header, but no requests from web pages. --allow-host and
    --allow-origin replace these defaults. Behind a reverse proxy, use both to give the public names.

    The server has limits, for example on sessions, and divides them fairly between the addresses of its clients. Behind
    a reverse proxy, all clients have the address of the proxy. Name this address with --trusted-proxy: the server then
    reads the address of each client from a header that the proxy sends.
    """
    if address is not None:
        options: Options = {
            "path": path,
            "allowed_origins": origins or None,
            "allowed_hosts": hosts or None,
            "trusted_proxies": proxies or None,
        }
        _serve_http(target, address, options)
        return
    if origins or hosts or proxies or path != "/mcp":
        raise click.UsageError(
            "`--path`, `--allow-origin`, `--allow-host` and `--trusted-proxy` are for HTTP: add `--http HOST:PORT`."
        )
    with StandardStreams() as streams:
        origin, name = _split_object(target)
        found = _find_server(_load(origin), origin, name)
        stdio_server.run(found, streams=streams)


def _serve_http(target: str, address: str, options: Options) -> None:
    try:
        from mcpgen.runtime.http.server import uvicorn_server  # noqa: PLC0415 (an extra that stdio does not need)
    except ModuleNotFoundError as error:
        raise Unservable(
            f"HTTP needs the module {error.name!r}, which is not installed.\n"
            'Install it with: pip install "mcpgen[http]"'
        ) from None
    host, port = _host_and_port(address)
    origin, name = _split_object(target)
    found = _find_server(_load(origin), origin, name)
    if not isinstance(found, Server):
        raise Unservable(f"{target} can be served on stdio only: HTTP needs an object of type Server.")
    try:
        with ExitStack() as stack:
            sockets = [stack.enter_context(each) for each in uvicorn_server.bind(host, port)]
            uvicorn_server.serve_http(cast("Any", found), sockets, options)
    except UsageError as error:
        message = str(error).replace("allowed_origins", "--allow-origin").replace("allowed_hosts", "--allow-host")
        message = message.replace("trusted_proxies", "--trusted-proxy")
        raise Unservable(f"{message}.") from None


def _host_and_port(address: str) -> tuple[str, int]:
    """Split an address into host and port.

    Raises:
        click.BadParameter: The address is not ``HOST:PORT``.
    """
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""  # an IPv6 address without brackets: its port is ambiguous
    if not host or not port.isdecimal() or not port.isascii() or int(port) > 65535:  # noqa: PLR2004 (of TCP)
        raise click.BadParameter(
            f"{address!r} is not HOST:PORT, such as 127.0.0.1:8000 or [::1]:8000.", param_hint="'--http'"
        )
    return host, int(port)


def _split_object(target: str) -> tuple[str, str]:
    """Split *target* into the file or module, and the name of the object, which may be empty."""
    origin, colon, name = target.rpartition(":")
    is_drive = len(origin) == 1  # C:\server.py
    if not colon or is_drive or Path(target).exists():
        return target, ""
    return origin, name


def _load(origin: str) -> ModuleType:
    """Load the file or the module *origin*.

    Raises:
        Unservable: There is none; or it raises an exception, whose traceback is printed first.
    """
    is_file = origin.endswith(".py") or "/" in origin or "\\" in origin
    path = Path(origin)
    if is_file and not path.is_file():
        raise Unservable(f"There is no file {origin}.")
    if not (is_file or all(part.isidentifier() for part in origin.split("."))):
        raise Unservable(f"There is no file or module {origin!r}.")
    try:
        return _load_file(path) if is_file else _load_module(origin)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's file can raise anything, and is shown it)
        if _is_missing(error, origin) and not is_file:
            raise Unservable(f"There is no module {origin}.") from None
        _print_traceback(error)
        raise Unservable(f"{origin} cannot be loaded: it raised {type(error).__name__}.") from None


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


def _print_traceback(error: BaseException) -> None:
    """Print the traceback of *error* without the frames of mcpgen and the import system."""
    frame: TracebackType | None = error.__traceback__
    while frame is not None and _is_ours(frame):
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)


def _is_ours(frame: TracebackType) -> bool:
    file = frame.tb_frame.f_code.co_filename
    return file.startswith("<frozen importlib") or file in {__file__, importlib.__file__}


def _find_server(module: ModuleType, origin: str, name: str) -> ServerInterface:
    """Return the server *name* in *module*; without a name, the only one or the one with a usual name.

    Raises:
        Unservable: There is no server, or more than one to choose from.
    """
    if name:
        return _named(module, origin, name)
    servers = {key: value for key, value in vars(module).items() if _is_server(value)}
    if not servers:
        raise Unservable(f'There is no server in {origin}. Define one, such as: server = Server("name", version="1")')
    if len({id(each) for each in servers.values()}) == 1:
        return next(iter(servers.values()))
    for usual in _USUAL_NAMES:
        if usual in servers:
            return servers[usual]
    raise Unservable(
        f"There are several servers in {origin}. Choose one: {' or '.join(f'{origin}:{key}' for key in servers)}"
    )


def _named(module: ModuleType, origin: str, name: str) -> ServerInterface:
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Unservable(f"There is no {name} in {origin}.") from None
    if not _is_server(found):
        kind = "a class" if isinstance(found, type) else f"of type {type(found).__name__}"
        raise Unservable(f"{name} in {origin} is not a Server; it is {kind}.{_uvicorn_hint(found, origin, name)}")
    return found


def _uvicorn_hint(found: object, origin: str, name: str) -> str:
    """Return the uvicorn command that serves *found*, if it is an application."""
    from mcpgen.runtime.http.server.application import Application  # noqa: PLC0415 (only this error needs it)

    if not isinstance(found, Application):
        return ""
    file = Path(origin)
    if file.suffix != ".py":
        return f" Run it with: uvicorn {origin}:{name}"
    folder = "" if file.parent == Path() else f"--app-dir {file.parent} "
    return f" Run it with: uvicorn {folder}{file.stem}:{name}"


def _is_server(value: object) -> TypeGuard[ServerInterface]:
    return isinstance(value, ServerInterface) and not isinstance(value, type)
