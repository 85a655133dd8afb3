"""The environment of a server's process: the variables that any program needs, and those that the user sets.

The rest is left out, because the environment of a host often holds the tokens of other services.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final, cast

from mcpgen.runtime.errors import UsageError

__all__ = ["HOME_VARIABLE", "check_environment", "child_environment"]

HOME_VARIABLE: Final = "USERPROFILE" if sys.platform == "win32" else "HOME"
"""The environment variable that names the home folder of the user."""

_POSIX: Final = frozenset(
    {
        # The user, and the folders of the user.
        *("HOME", "LOGNAME", "USER", "SHELL"),
        # The folders of programs, and the kind of terminal.
        *("PATH", "TERM"),
        # Language, encoding and time zone of the output. The LC_* variables are added below.
        *("LANG", "LANGUAGE", "TZ", "PYTHONUTF8"),
        # The folder of temporary files.
        "TMPDIR",
        # The folders of settings, caches and sockets. Without them a package runner downloads everything again, and the
        # client of a container runtime does not find its daemon.
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
    }
)

_WINDOWS: Final = frozenset(
    {
        # Without these, sockets, random numbers and most libraries fail.
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OS"),
        # The folders of programs, and their file extensions.
        *("PATH", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)"),
        # The user, and the folders of the user.
        *("USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA"),
        # The folder of temporary files; time zone and encoding of the output.
        *("TEMP", "TMP", "TZ", "PYTHONUTF8"),
    }
)


def child_environment(given: Mapping[str, str], *, inherits_all: bool) -> dict[str, str]:
    """Return *given*, and of our environment either the variables that any program needs, or all."""
    if inherits_all:
        return {**os.environ, **given}
    ours = {name: value for name, value in os.environ.items() if _is_needed(name) and not _is_function(value)}
    return {**ours, **given}


def check_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of *given*.

    Raises:
        UsageError: It is not a mapping, or a name or a value is not allowed in an environment.
    """
    mapping = cast("object", given)
    if not isinstance(mapping, Mapping):  # the value may have secrets, so it is not shown
        raise UsageError(
            f"`environment` must be a mapping of str to str, such as {{'NAME': 'value'}}, not {type(given).__name__}"
        )
    for name, value in given.items():
        try:
            is_allowed = name and "=" not in name and "\0" not in name + value
        except TypeError as error:
            raise UsageError(f"the environment variable {name!r} and its value must be strings") from error
        if not is_allowed:  # the value may be a secret, so it is not shown
            raise UsageError(
                f"the environment variable {name!r} cannot be set: its name is empty or contains '=', or its name or "
                "value contains a NUL character; correct it"
            )
    return dict(given)


def _is_needed(name: str) -> bool:
    if sys.platform == "win32":
        return name.upper() in _WINDOWS
    return name in _POSIX or name.startswith("LC_")


def _is_function(value: str) -> bool:
    # Shells export functions in this form, and run the code after it.
    return value.startswith("()")
