"""`Server.run` and `Server.run_async`: serve on standard input and output, or at an address over HTTP."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from mcpgen.runtime.api.server import Server

__all__ = [
    "PYTHON_VARIABLES",
    "print_terminal_hint",
    "run",
    "run_async",
    "serve_command",
    "shown_path",
    "stdin_is_terminal",
]

# Options of other frameworks for the same thing.
_ELSEWHERE: Final = {"transport": "to serve on stdio, leave it out; ", "host": "", "port": ""}


PYTHON_VARIABLES: Final = ("PYTHONPATH", "PYTHONHOME")
"""Where Python finds modules. A server file that we start needs the same settings as we do."""


def serve_command(target: str, options: Sequence[str] = (), registered: Sequence[str] = ()) -> list[str]:
    """Return the command that runs ``mcpgen serve`` in a process, with this Python.

    Args:
        target: The file or the module of the server, as ``mcpgen serve`` takes it.
        options: Options of ``mcpgen serve``.
        registered: Packages of drafts, for ``mcpgen --register``.
    """
    more = [word for package in registered for word in ("--register", package)]
    return [sys.executable, "-P", "-m", "mcpgen", *more, "serve", *options, "--", target]


def run(server: Server[Any], http: str | None, options: Mapping[str, Any]) -> None:
    """Do what `Server.run` describes.

    Raises:
        UsageError: The address or an option is not valid, or something that HTTP needs is not installed.
    """
    _check_options("run", http, options)
    from mcpgen.runtime.transports.event_loops import running_loop  # noqa: PLC0415 (imports asyncio)

    if running_loop() is not None:
        raise UsageError("run() cannot be called where an event loop runs; write `await server.run_async(…)`")
    if http is not None:
        _import_uvicorn_server().serve_http(server, http, options)
        return
    # Most servers are started by a host, over stdio, and need nothing else.
    from mcpgen.runtime.transports import stdio_server  # noqa: PLC0415 (only this transport needs descriptors and signals)

    _hint_at_terminal(server)
    stdio_server.run(server)


async def run_async(server: Server[Any], http: str | None, options: Mapping[str, Any]) -> None:
    """Do what `Server.run_async` describes.

    Raises:
        UsageError: As for `run`; or the event loop cannot serve HTTP.
    """
    _check_options("run_async", http, options)
    if http is not None:
        await _import_uvicorn_server().serve_http_async(server, http, options)
        return
    from mcpgen.runtime.transports import stdio_server  # noqa: PLC0415 (as in `run`)

    _hint_at_terminal(server)
    await stdio_server.serve_stdio(server)


def _check_options(name: str, http: str | None, options: Mapping[str, Any]) -> None:
    for each in options:
        if each in _ELSEWHERE:
            over_http = f'to serve over HTTP, give the address: {name}(http="127.0.0.1:8000")'
            raise UsageError(f"{name}() has no option `{each}`; {_ELSEWHERE[each]}{over_http}")
    if options:
        from mcpgen.runtime.http.server.application_options import Options  # noqa: PLC0415 (a server over stdio needs no HTTP)

        known = Options.__annotations__
        for each in options:
            if each not in known:
                raise UsageError(f"{name}() has no option `{each}`; the options are http, {', '.join(known)}")
            if http is None:
                raise UsageError(f'the option `{each}` of {name}() is for HTTP; add the address: http="127.0.0.1:8000"')


def _import_uvicorn_server() -> ModuleType:
    try:
        from mcpgen.runtime.http.server import uvicorn_server  # noqa: PLC0415 (an extra that stdio does not need)
    except ModuleNotFoundError as error:
        raise UsageError(
            f'HTTP needs the module {error.name!r}, which is not installed: pip install "mcpgen[http]"'
        ) from None
    return uvicorn_server


def stdin_is_terminal() -> bool:
    """Return whether a person started this process at a terminal, rather than a host with a pipe."""
    stdin = sys.stdin
    return stdin is not None and not stdin.closed and stdin.isatty() and sys.stderr is not None


def _hint_at_terminal(server: Server[Any]) -> None:
    if not stdin_is_terminal():
        return
    file = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    print_terminal_hint(server.name, shown_path(file) if file.endswith(".py") else "FILE.py")


def print_terminal_hint(name: str, target: str) -> None:
    """Tell a person at the terminal, on standard error, what this process does and how to use it.

    Args:
        name: The name of the server.
        target: The file or the module of the server, as the commands take it.
    """
    from mcpgen.runtime.transports.command_line import join_command  # noqa: PLC0415 (hosts do not read it)

    word = join_command([target])
    lines = (
        f"mcpgen: {name} is running, and waits for MCP messages on standard input. A host starts it in the same way.",
        f"  To see what it offers:   mcpgen inspect {word}",
        f"  To serve it over HTTP:   mcpgen serve {word} --http 127.0.0.1:8000",
        "  To stop it:              Ctrl-C",
    )
    print("\n".join(lines), file=sys.stderr, flush=True)  # noqa: T201 (for the person at the terminal)


def shown_path(file: str) -> str:
    """Return *file* as a person in the working directory writes it."""
    from pathlib import Path  # noqa: PLC0415 (likewise)

    path = Path(file)
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere; or there is no working directory any more
        return str(path)
