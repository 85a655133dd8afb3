"""The changes of Python files, which ``mcpgen serve --reload`` waits for."""

from __future__ import annotations

import threading
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import click

from mcpgen.runtime.cli.terminal_text import escaped_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import ModuleType

__all__ = ["SourceChanges", "WatchfilesMissing"]

# After the last of several changes, which an editor makes at once. watchfiles' own default.
_SETTLE_MILLISECONDS: Final = 50

# How long the library waits at a time. It yields first after one such wait, and from then on it certainly watches.
_WAIT_MILLISECONDS: Final = 100

_UNREADABLE_NAME: Final = "Unable to decode path"  # in the text of its error; the class has no other sign


class WatchfilesMissing(click.ClickException):
    """The library that watches files is not installed."""

    exit_code = 2  # as for other usage errors


class SourceChanges:
    """The changes of the Python files in a folder and its subfolders.

    Args:
        folder: The folder.

    Raises:
        WatchfilesMissing: watchfiles is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stopped = threading.Event()
        self._watchfiles = _import_watchfiles()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield an empty text when watching has begun, and then, after each change, the names of the changed files."""
        library, is_announced = self._watchfiles, False
        while not self._stopped.is_set():
            if not self._folder.is_dir():  # it was removed together with such a file
                await anyio.sleep(_SETTLE_MILLISECONDS / 1000)
                continue
            try:
                async for found in library.awatch(
                    self._folder,
                    watch_filter=library.PythonFilter(),
                    step=_SETTLE_MILLISECONDS,
                    rust_timeout=_WAIT_MILLISECONDS,
                    yield_on_timeout=True,
                    stop_event=self._stopped,
                ):
                    if not is_announced:
                        is_announced = True
                        yield ""
                    if found:
                        for _, path in found:
                            _remove_bytecode(path)
                        yield ", ".join(sorted({escaped_line(self._name(path)) for _, path in found}))
            except* RuntimeError as group:
                # watchfiles fails at a file whose name is not UTF-8. Such a file is no module, so watch the others.
                if not all(_UNREADABLE_NAME in str(error) for error in group.exceptions):
                    raise

    def stop(self) -> None:
        """End the iteration soon."""
        self._stopped.set()

    def _name(self, path: str) -> str:
        try:
            return str(Path(path).relative_to(self._folder))
        except ValueError:  # behind a link
            return path


def _remove_bytecode(path: str) -> None:
    """Remove the bytecode of *path*.

    Python would use it for a new source of the same size that was saved in the same second.
    """
    with suppress(OSError):
        Path(cache_from_source(path)).unlink()


def _import_watchfiles() -> ModuleType:
    try:
        import watchfiles  # noqa: PLC0415 (an extra that nothing else needs)
    except ModuleNotFoundError as error:
        raise WatchfilesMissing(
            f"`--reload` needs the module {error.name!r}, which is not installed.\n"
            'Install it with: pip install "mcpgen[reload]"'
        ) from None
    return watchfiles
