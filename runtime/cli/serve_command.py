"""The command ``serve``: find a server in a file or module, and serve it on standard input and output, or over HTTP."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import click

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.transports import stdio_server
from mcpgen.runtime.transports.interfaces import Endpoints
from mcpgen.runtime.transports.standard_streams import StandardStreams

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    from mcpgen.runtime.http.server.application import Options

__all__ = ["serve"]

# What people call their server, if a file has more than one.
_USUAL_NAMES: Final = ("server", "mcp", "app")


class Unservable(click.ClickException):
    """There is nothing to serve where the caller said there would be."""

    exit_code = 2  # as for any other way of calling us wrongly


@click.command()
@click.argument("target", metavar="FILE.py[:OBJECT]")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP instead, at this address; port 0 is any.")
@click.option("--path", default="/mcp", show_default=True, help="Path of the HTTP endpoint.")
@click.option("--allow-origin", "origins", multiple=True, metavar="ORIGIN", help="Whose pages may ask; repeatable.")
@click.option("--allow-host", "hosts", multiple=True, metavar="HOST", help="What the server may be called; repeatable.")
def serve(target: str, address: str | None, path: str, origins: tuple[str, ...], hosts: tuple[str, ...]) -> None:
    """Serve on standard input and output, or with --http at an address.

    FILE.py may also be a module's dotted name. The server is OBJECT, or the only one there, or that called server, mcp
    or app. On standard input and output, what the file prints, and what its handlers print, goes to standard error.

    Over HTTP, clients of every revision use the one endpoint, and those of 2024-11-05 also /sse. At an address of this
    machine alone, the server is only called by names of this machine, and only its pages may ask, unless --allow-host
    and --allow-origin name others, as behind a proxy. At any other address it is called anything, and no pages may ask.
    """
    if address is not None:
        _serve_http(target, address, path, origins, hosts)
        return
    if origins or hosts or path != "/mcp":
        raise click.UsageError("--path, --allow-origin and --allow-host are about HTTP: add --http HOST:PORT")
    with StandardStreams() as streams:
        origin, name = _parted(target)
        found = _chosen(_loaded(origin), origin, name)
        stdio_server.run(found, streams=streams)


def _serve_http(target: str, address: str, path: str, origins: tuple[str, ...], hosts: tuple[str, ...]) -> None:
    try:
        from mcpgen.runtime.http.server import uvicorn_server  # noqa: PLC0415 (an extra, which stdio needs nothing of)
    except ModuleNotFoundError as error:
        raise Unservable(f'HTTP needs {error.name}, which is not installed: pip install "mcpgen[http]"') from None
    host, port = _host_and_port(address)
    origin, name = _parted(target)
    found = _chosen(_loaded(origin), origin, name)
    if not isinstance(found, Server):
        raise Unservable(f"{target} is served on standard input and output only; over HTTP, it has to be a Server.")
    try:
        options: Options = {
            "path": path,
            "allowed_origins": origins or None,
            "allowed_hosts": hosts or None,
        }
        with ExitStack() as stack:
            sockets = [stack.enter_context(each) for each in uvicorn_server.bind(host, port)]
            uvicorn_server.serve_http(found, sockets, options)
    except UsageError as error:
        raise Unservable(f"{_in_words_of_options(str(error))}.") from None


def _in_words_of_options(message: str) -> str:
    return message.replace("allowed_origins", "--allow-origin").replace("allowed_hosts", "--allow-host")


def _host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of an address.

    Raises:
        click.BadParameter: It has others.
    """
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""  # an address of IPv6 without its brackets: nobody knows where its port begins
    if not host or not port.isdecimal() or not port.isascii() or int(port) > 65535:  # noqa: PLR2004 (of TCP)
        raise click.BadParameter(f"{address!r} is no address such as 127.0.0.1:8000 or [::1]:8000", param_hint="--http")
    return host, int(port)


def _parted(target: str) -> tuple[str, str]:
    """Return the file or module, and the name of the object, which may be empty."""
    origin, colon, name = target.rpartition(":")
    is_drive = len(origin) == 1  # C:\server.py
    if not colon or is_drive or Path(target).exists():
        return target, ""
    return origin, name


def _loaded(origin: str) -> ModuleType:
    """Return the module that *origin* names.

    Raises:
        Unservable: There is none, or it cannot be loaded; then its traceback has been printed.
    """
    is_file = origin.endswith(".py") or "/" in origin or "\\" in origin
    path = Path(origin)
    if is_file and not path.is_file():
        raise Unservable(f"There is no file {origin}.")
    if not (is_file or all(part.isidentifier() for part in origin.split("."))):
        raise Unservable(f"There is no file or module {origin!r}.")
    try:
        return _of_file(path) if is_file else _of_name(origin)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever somebody's file raises is theirs to read)
        if _is_missing(error, origin) and not is_file:
            raise Unservable(f"There is no module {origin}.") from None
        _print_theirs(error)
        raise Unservable(f"{origin} cannot be loaded: it raised {type(error).__name__}.") from None


def _of_file(path: Path) -> ModuleType:
    # As "python FILE" does, but for the name: a server's last line is often "if __name__ == '__main__'".
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise Unservable(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where annotations are looked up
    spec.loader.exec_module(module)
    return module


def _of_name(name: str) -> ModuleType:
    sys.path.insert(0, "")  # as "python -m" does
    return import_module(name)


def _is_missing(error: BaseException, name: str) -> bool:
    return isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")


def _print_theirs(error: BaseException) -> None:
    """Print the traceback of *error* from where their code begins."""
    frame: TracebackType | None = error.__traceback__
    while frame is not None and _is_ours(frame):
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)


def _is_ours(frame: TracebackType) -> bool:
    file = frame.tb_frame.f_code.co_filename
    return file.startswith("<frozen importlib") or file in {__file__, importlib.__file__}


def _chosen(module: ModuleType, origin: str, name: str) -> Endpoints:
    """Return the server called *name* in *module*, or that which is meant without a name.

    Raises:
        Unservable: There is none, or which one is unclear.
    """
    if name:
        return _named(module, origin, name)
    servers = {key: value for key, value in vars(module).items() if _is_server(value)}
    if not servers:
        raise Unservable(f"There is no server in {origin}; it should have something like: server = Server(…)")
    if len({id(each) for each in servers.values()}) == 1:
        return next(iter(servers.values()))
    for usual in _USUAL_NAMES:
        if usual in servers:
            return servers[usual]
    raise Unservable(
        f"There are several servers in {origin}; say which one: {' or '.join(f'{origin}:{key}' for key in servers)}"
    )


def _named(module: ModuleType, origin: str, name: str) -> Endpoints:
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Unservable(f"There is no {name} in {origin}.") from None
    if not _is_server(found):
        kind = "a class" if isinstance(found, type) else f"of type {type(found).__name__}"
        raise Unservable(f"{name} in {origin} is no Server; it is {kind}.{_hint(found, origin, name)}")
    return found


def _hint(found: object, origin: str, name: str) -> str:
    """Return what else serves *found*, if anything does."""
    from mcpgen.runtime.http.server.application import Application  # noqa: PLC0415 (where nothing else is of use)

    if not isinstance(found, Application):
        return ""
    file = Path(origin)
    if file.suffix != ".py":
        return f" uvicorn serves it: uvicorn {origin}:{name}"
    folder = "" if file.parent == Path() else f"--app-dir {file.parent} "
    return f" uvicorn serves it: uvicorn {folder}{file.stem}:{name}"


def _is_server(value: object) -> TypeGuard[Endpoints]:
    return isinstance(value, Endpoints) and not isinstance(value, type)
