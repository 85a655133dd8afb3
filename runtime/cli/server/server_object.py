"""The object that ``mcpgen serve`` serves, in the module that the user names."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import click

from mcpgen.runtime.transports.interfaces import ServerInterface

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Unservable", "find_server"]

# The usual names of a server, in a file that has several.
_USUAL_NAMES: Final = ("server", "mcp", "app")


class Unservable(click.ClickException):
    """The target has no server, or the server cannot be run as the options say."""

    exit_code = 2  # as for other usage errors


def find_server(module: ModuleType, origin: str, name: str) -> ServerInterface:
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
            raise Unservable(f"There is no `{name}` in {origin}.{_its_servers(module, origin)}") from None
    if not _is_server(found):
        kind = "a class" if isinstance(found, type) else f"of type {type(found).__name__}"
        hint = _uvicorn_hint(found, origin, name) or _its_servers(module, origin)
        if not hint and inspect.isfunction(found) and not inspect.signature(found).parameters:
            hint = f" If it returns a Server, write `server = {name}()` in the file."
        raise Unservable(f"`{name}` in {origin} is not a Server; it is {kind}.{hint}")
    return found


def _its_servers(module: ModuleType, origin: str) -> str:
    """Return a sentence that lists the servers in *module*; empty if there are none."""
    servers = ", ".join(f"{origin}:{key}" for key, value in vars(module).items() if _is_server(value))
    return servers and f" Its servers: {servers}"


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
