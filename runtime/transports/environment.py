"""The environment that a server gets: what any program needs to run, and what its user gave it.

The rest is not the server's business: the environment of a host is where tokens of other services lie.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["checked", "environment_of"]

_POSIX: Final = frozenset(
    {
        # Who runs it, and where that user's files are.
        *("HOME", "LOGNAME", "USER", "SHELL"),
        # Where programs are found, and what they may do with a terminal.
        *("PATH", "TERM"),
        # The language, encoding and time zone of what it prints; LC_* come on top.
        *("LANG", "LANGUAGE", "TZ", "PYTHONUTF8"),
        # Where it may write for a while.
        "TMPDIR",
        # Where settings, caches and sockets of that user are, if not where they usually are: without them a package
        # runner would download anew, and a container's client not find its daemon.
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
    }
)

_WINDOWS: Final = frozenset(
    {
        # Without these, sockets, random numbers and most libraries fail to load.
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OS"),
        # Where programs are found, and which endings they have.
        *("PATH", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)"),
        # Who runs it, and where that user's files are.
        *("USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA"),
        # Where it may write for a while; the time zone and encoding of what it prints.
        *("TEMP", "TMP", "TZ", "PYTHONUTF8"),
    }
)


def environment_of(given: Mapping[str, str], *, inherits_all: bool) -> dict[str, str]:
    """Return the environment of a process that is to have *given*, and of ours what it needs, or all."""
    if inherits_all:
        return {**os.environ, **given}
    ours = {name: value for name, value in os.environ.items() if _is_needed(name) and not _is_function(value)}
    return {**ours, **given}


def checked(given: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of *given*.

    Raises:
        UsageError: It holds what no environment can.
    """
    for name, value in given.items():
        try:
            is_allowed = name and "=" not in name and "\0" not in name + value
        except TypeError as error:
            raise UsageError(f"the environment variable {name!r} and its value have to be strings") from error
        if not is_allowed:  # the value may be a secret, so that it is not shown
            raise UsageError(f"the environment variable {name!r} cannot be set: its name or value is not allowed")
    return dict(given)


def _is_needed(name: str) -> bool:
    if sys.platform == "win32":
        return name.upper() in _WINDOWS
    return name in _POSIX or name.startswith("LC_")


def _is_function(value: str) -> bool:
    # Shells export functions so, and would run what they find behind it.
    return value.startswith("()")
