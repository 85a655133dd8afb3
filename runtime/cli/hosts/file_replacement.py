"""Replace the content of a file at once, or not at all, and keep a copy of what it was.

The new content goes into a file beside it, which then takes its place. So a host that reads the file meanwhile sees the
old content or the new one. If the file has changed since it was read, nothing is written. (A change in the moment
between that comparison and the replacement would be lost; no system offers a replacement with a condition.)
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import UsageError, printable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FileSnapshot"]

# The configuration of a user may hold tokens.
_NEW_MODE: Final = 0o600

_MAX_BACKUPS: Final = 1000


class FileSnapshot:
    """The content that a file has now, or that there is no file.

    Attributes:
        path: The file. If the given path is a symbolic link, this is the file that the link leads to.
        data: Its content; None if there is no file.

    Args:
        path: The file. Its folder must exist.
        makes_folder: Whether `replace` creates the folder if there is none. Then the folder above must exist.

    Raises:
        UsageError: The path leads to no place for a file, or the file cannot be read.
    """

    def __init__(self, path: Path, *, makes_folder: bool = False) -> None:
        self.path: Path = _target(path)
        folder = self.path.parent
        self._makes_folder = makes_folder and not folder.exists()
        self._checked_folder = folder.parent if self._makes_folder else folder
        if not self._checked_folder.is_dir():
            shown = printable(str(self._checked_folder))
            raise UsageError(f"there is no folder {shown}; create it, or name another file with `--file`")
        self._mode = _NEW_MODE
        self._owner = (-1, -1)
        self.data: bytes | None = self._read()

    def check_writable(self) -> None:
        """Check that the file may be replaced: a replacement would ignore that it is read-only.

        Raises:
            UsageError: It may not.
        """
        if self.data is not None and not (self._mode & stat.S_IWUSR and os.access(self.path, os.W_OK)):
            raise UsageError(f"{self._shown} is read-only; change its permissions, or edit it by hand")
        if not os.access(self._checked_folder, os.W_OK | os.X_OK):
            raise UsageError(f"the folder {printable(str(self._checked_folder))} is read-only; change its permissions")

    def replace(self, data: bytes) -> Path | None:
        """Write *data* as the new content. Return the copy of the old content; None if there was no file.

        Raises:
            UsageError: The file has changed since it was read, or it cannot be written. It is as it was.
        """
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}.new")
        backup: Path | None = None
        is_replaced = False
        try:
            if self._makes_folder:
                self.path.parent.mkdir(exist_ok=True)
            self._create(new, data)
            backup = None if self.data is None else self._back_up(self.data)
            # Last, since writing the copy takes milliseconds, in which another `mcpgen install` can write.
            if self._read() != self.data:
                raise UsageError(f"{self._shown} has changed meanwhile, so nothing was written; try again")
            new.replace(self.path)
            is_replaced = True
        except OSError as error:
            raise UsageError(f"{self._shown} cannot be written: {error.strerror}; nothing was changed") from None
        finally:
            for each in (new, *((backup,) if backup is not None and not is_replaced else ())):
                with suppress(OSError):
                    each.unlink(missing_ok=True)
        return backup

    @property
    def _shown(self) -> str:
        return printable(str(self.path))

    def _read(self) -> bytes | None:
        try:
            found = self.path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise UsageError(f"{self._shown} is not a file; name one with `--file`")
            self._mode, self._owner = stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid)
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"{self._shown} cannot be read: {error.strerror}") from None

    def _create(self, path: Path, data: bytes) -> None:
        """Create a file with *data* and with the permissions of the original."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags, self._mode)
        with open(descriptor, "wb") as opened:  # noqa: PTH123 (there is no other way to open a descriptor)
            opened.write(data)
            opened.flush()
            os.fsync(descriptor)
        if self.data is not None:
            path.chmod(self._mode)  # `os.open` applies the umask
            _keep_owner(path, self._owner)

    def _back_up(self, data: bytes) -> Path:
        for number in range(_MAX_BACKUPS):
            path = self.path.with_name(f"{self.path.name}.bak{number or ''}")
            with suppress(FileExistsError):
                self._create(path, data)
                return path
        raise UsageError(f"there are {_MAX_BACKUPS} backups of {self._shown}; remove some of them")


def _target(path: Path) -> Path:
    """Return the file that *path* leads to.

    Raises:
        UsageError: It leads nowhere.
    """
    shown = printable(str(path))
    loop = f"{shown} is a loop of symbolic links"
    try:
        target = path.resolve()
    except (OSError, RuntimeError):
        raise UsageError(loop) from None
    if target.is_symlink():  # Python 3.13 returns a link of the loop, and older ones raise an exception
        raise UsageError(loop)
    return target


def _keep_owner(path: Path, owner: tuple[int, int]) -> None:
    """Give *path* its *owner* and group: an administrator may edit the file of another user."""
    if os.name == "posix":
        made = path.stat()
        if (made.st_uid, made.st_gid) != owner:
            os.chown(path, *owner)
