"""The eras of servers in a file of the user's cache folder, so that the next process need not probe again.

A file that cannot be read or written, or that has other content, never fails a connection: it only costs the probe.

Spec:
    2026-07-28, basic/versioning, "Backward Compatibility": clients MAY keep the result longer than the server's process
    lives, if they probe again once it turns out to be wrong.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from mcpgen.runtime.client.era_cache import Era, EraCache
from mcpgen.runtime.transports.command_line import is_url

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["EraStore", "cache_folder"]

# A server that gets another era, or a second one, is noticed after a week at the latest.
_MAX_AGE_SECONDS: Final = 7 * 24 * 3600.0

# A known server is written again after a day, not at each connection.
_REFRESH_SECONDS: Final = 24 * 3600.0

_MAX_SERVERS: Final = 1000
_MAX_FILE_BYTES: Final = 1024 * 1024


class _Entry(Struct, array_like=True):
    era: Era
    seconds: float  # of the system's clock when it was found


_Entries = dict[str, _Entry]


class EraStore(EraCache):
    """The era of one server, in the file ``eras.json`` of a folder; and those that this process knows.

    Args:
        eras: What this process knows.
        folder: The folder; it is created.
        description: The command or the URL of the server. The file has only its hash.
        clock: Returns the seconds of the system's clock.
    """

    def __init__(self, eras: EraCache, folder: Path, description: str, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._known = eras
        self._path = folder / "eras.json"
        # A command means another server in another folder.
        place = ""
        if not is_url(description):
            with contextlib.suppress(OSError):  # it was removed
                place = str(Path.cwd())
        self._key = sha256(f"{description}\0{place}".encode("utf-8", "surrogatepass")).hexdigest()
        self._clock = clock

    def get(self, identity: Hashable | None) -> Era | None:
        """Return the era of the server, if it is known."""
        if identity is None:
            return None
        found = self._read().get(self._key)
        return self._known.get(identity) or (None if found is None else found.era)

    def remember(self, identity: Hashable | None, era: Era) -> None:
        """Store the era of the server."""
        self._known.remember(identity, era)
        if identity is None:
            return
        entries, now = self._read(), self._clock()
        found = entries.pop(self._key, None)
        if found is None or found.era != era or now - found.seconds > _REFRESH_SECONDS:
            entries[self._key] = _Entry(era, now)
            newest = sorted(entries.items(), key=lambda each: each[1].seconds)[-_MAX_SERVERS:]
            self._write(dict(newest))

    def forget(self, identity: Hashable | None) -> None:
        """Remove the era of the server."""
        self._known.forget(identity)
        entries = self._read()
        if entries.pop(self._key, None) is not None:
            self._write(entries)

    def _read(self) -> _Entries:
        """Return the entries of the file that are not too old; none if it cannot be read."""
        try:
            with self._path.open("rb") as file:
                entries = msgspec.json.decode(file.read(_MAX_FILE_BYTES), type=_Entries)
        except (OSError, ValueError, RecursionError):
            return {}
        now = self._clock()
        return {key: each for key, each in entries.items() if 0 <= now - each.seconds <= _MAX_AGE_SECONDS}

    def _write(self, entries: _Entries) -> None:
        """Replace the file at once, so that no process reads half of it."""
        import tempfile  # noqa: PLC0415 (few clients write; with it come `shutil` and three compressors)

        temporary = ""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix="eras-", dir=self._path.parent)  # with mode 0600
            with open(descriptor, "wb") as file:  # noqa: PTH123 (of a descriptor)
                file.write(msgspec.json.encode(entries))
            Path(temporary).replace(self._path)
        except OSError:
            if temporary:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()


def cache_folder() -> Path | None:
    """Return the folder for caches of mcpgen, by the rules of the platform; None if the user has no home.

    ``XDG_CACHE_HOME`` decides everywhere, if it is an absolute path.
    """
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if Path(chosen).is_absolute():
        return Path(chosen) / "mcpgen"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "mcpgen" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "mcpgen"
    return home / ".cache" / "mcpgen"
