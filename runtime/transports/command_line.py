"""Command lines: splitting one into program and arguments, joining it again, and telling it from a URL."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["hide_userinfo", "is_url", "join_command", "missing_scheme", "split_command"]

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# A user name with or without a password in a URL; or what is before an @ without a scheme. The look-behind lets a match
# begin only at the start of a word, so that the time is linear in the length of the text.
_USERINFO: Final = re.compile(r"(//)[^\s/]*@|(?<![^\s/@])([^\s/@]+)@")
_NAME: Final = re.compile(r"(?:(?<=[\s'\"=])|^)[^'\"=][^'\"=:]*:(?=.)")
_WINDOWS_PATH: Final = re.compile(r"[\"']?[A-Za-z]:\\")
_SCHEMELESS: Final = re.compile(r"(?:[\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}(?:/\S*)?")

# Without a user name and a query, which may be secrets: the URL is shown.
_ONE_SLASH: Final = re.compile(r"(https?):/([^/@?\s][^@?\s]*)")


def split_command(command: str | Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Return the program and its arguments.

    Raises:
        UsageError: There is no program, or a part cannot be an argument.
    """
    if isinstance(command, str):
        try:
            words = _split(command)
        except ValueError as error:
            raise UsageError(f"the command {hide_userinfo(command)!r} cannot be split into words: {error}") from error
    else:
        try:
            words = tuple("" + os.fspath(each) for each in command)  # "" + refuses bytes
        except TypeError as error:
            raise UsageError(
                "the command must be a string, or a list of strings such as ['python', 'server.py']"
            ) from error
    if isinstance(command, str) and sys.platform != "win32" and _WINDOWS_PATH.match(command):
        raise UsageError(
            f"the program of the command {hide_userinfo(command)!r} is a path of Windows, but this system is not "
            "Windows; write a path of this system, with /"
        )
    if not words or not words[0]:
        raise UsageError(f"the command {hide_userinfo(repr(command))} names no program")
    if any("\0" in each for each in words):
        place = next(index for index, each in enumerate(words) if "\0" in each)
        what = f"argument {place}" if place else "the program"  # not its text, which may be a secret
        raise UsageError(
            f"{what} of the command contains a NUL character; remove it, because arguments cannot contain one"
        )
    return words


def join_command(words: Sequence[str]) -> str:
    """Return *words* as one string that a shell would split into them."""
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _split(command: str) -> tuple[str, ...]:
    if sys.platform == "win32":  # posix=False keeps backslashes, which paths need, but also the quotes around words
        words = shlex.split(command, posix=False)
        return tuple(each[1:-1] if each[:1] in {"'", '"'} and each[:1] == each[-1:] else each for each in words)
    return tuple(shlex.split(command))


def hide_userinfo(text: str) -> str:
    """Return *text* without the names and passwords of URLs in it: commands are shown, and contain such URLs."""
    return _USERINFO.sub(_without_userinfo, text)


def _without_userinfo(match: re.Match[str]) -> str:
    if match[1]:
        return "//…@"
    name = _NAME.search(text := match.string, match.start(), match.end(2))
    return f"{text[match.start() : name.start()]}…@" if name else match[0]


def is_url(text: str) -> bool:
    """Return whether *text* looks like a URL, of any scheme."""
    return _URL.match(text) is not None


def missing_scheme(text: str) -> str | None:
    """Return the URL that *text* is without its scheme, such as ``localhost:8000/mcp``; None if it is none.

    The same for one slash instead of two, as in ``http:/localhost:8000/mcp``.
    """
    if (found := _ONE_SLASH.fullmatch(text)) is not None:
        return f"{found[1]}://{found[2]}"
    return f"http://{text}" if _SCHEMELESS.fullmatch(text) else None
