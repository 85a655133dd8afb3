"""Where tokens and registrations are kept between two programs: the protocol of a store, and two stores.

Theory of operation. A store maps keys to small JSON documents, which are secret. It also has a lock per key, which
holds between processes: a refresh token that is rotated can be used only once, so two processes must not refresh at the
same time. The one that waits reads the tokens again, and finds those of the other.

`FileTokenStore` has a file per key, with the permissions of its owner alone. A file is replaced at once or not at all.
The lock is one of the system on a file beside it, so it ends with its process. The folder belongs to the same user: the
owner of a folder can remove files of others in it, or put an old one back.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, runtime_checkable

import anyio
import anyio.to_thread
import msgspec

from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.http.auth.grants import Tokens
from mcpgen.runtime.http.auth.registration import Registration
from mcpgen.runtime.http.errors import LoginFailed
from mcpgen.runtime.protocol.argument_checks import check_file_path
from mcpgen.runtime.transports.environment import HOME_VARIABLE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from contextlib import AbstractAsyncContextManager

__all__ = ["FileTokenStore", "MemoryTokenStore", "TokenStore", "state_folder", "stored_client", "stored_tokens"]

S = TypeVar("S", bound=msgspec.Struct)

_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600

# A document has some tokens and a key; servers write much shorter tokens.
_MAX_BYTES: Final = 1024 * 1024
_VARIABLE: Final = "" if sys.platform == "win32" else " or the environment variable XDG_STATE_HOME"
_OTHER_FOLDER: Final = f"choose another folder, with FileTokenStore(folder){_VARIABLE}"

_HOMELESS: Final = "this user has no home folder, so there is no folder for tokens"

# A program that writes for longer than this was killed.
_WRITE_SECONDS: Final = 60

# How often a waiting process asks for the lock, which is held for a refresh, or for as long as a person logs in.
_LOCK_SECONDS: Final = 0.05

_REPARSED: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

# A pipe of another user in place of a file would block the reader.
_UNBLOCKED: Final = getattr(os, "O_NONBLOCK", 0)


@runtime_checkable
class TokenStore(Protocol):
    """Keeps the tokens of `OAuth`. Pass an implementation as ``OAuth(store=…)``.

    The documents contain access tokens, refresh tokens and private keys. Keep them where other users cannot read them.
    """

    async def load(self, key: str) -> bytes | None:
        """Return the document under *key*; None if there is none."""
        ...

    async def save(self, key: str, document: bytes | None) -> None:
        """Replace the document under *key*; None removes it."""
        ...

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Keep others from entering such a block with the same *key*: tasks, and programs with the same store."""
        ...


class MemoryTokenStore:
    """A `TokenStore` that forgets everything when the program ends."""

    def __init__(self) -> None:
        self._documents: dict[str, bytes] = {}
        self._locks: dict[str, threading.Lock] = {}

    def __repr__(self) -> str:
        return "MemoryTokenStore()"

    async def load(self, key: str) -> bytes | None:
        """Return the document under *key*; None if there is none."""
        return self._documents.get(key)

    async def save(self, key: str, document: bytes | None) -> None:
        """Replace the document under *key*; None removes it."""
        if document is None:
            self._documents.pop(key, None)
        else:
            self._documents[key] = document

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        """Keep other tasks and threads from entering such a block with the same *key*."""
        lock = self._locks.setdefault(key, threading.Lock())
        while not lock.acquire(blocking=False):  # noqa: ASYNC110 (its holder may be in another event loop)
            await anyio.sleep(_LOCK_SECONDS)
        try:
            yield
        finally:
            lock.release()


class FileTokenStore:
    """A `TokenStore` in the files of a folder that only its owner can read.

    Args:
        folder: The folder; it is created. By default ``mcpgen/tokens`` in the user's folder for state
            (``XDG_STATE_HOME``). If this variable is not set and the user has no home, nothing is stored, and `save`
            and `lock` raise `LoginFailed`. A server that needs no login can be used all the same.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        if folder is not None:
            check_file_path("folder", folder)
        self._folder = _default_folder() if folder is None else Path(os.fspath(folder))
        self._is_chosen = folder is not None

    def __repr__(self) -> str:
        return "FileTokenStore()" if self._folder is None else f"FileTokenStore({str(self._folder)!r})"

    @property
    def is_default(self) -> bool:
        """Whether this is the store of the commands."""
        return self._folder == _default_folder()

    async def load(self, key: str) -> bytes | None:
        """Return the document under *key*; None if there is none.

        Raises:
            LoginFailed: The file cannot be read, or others can read or replace it, too.
        """
        if self._folder is None:
            return None
        return await anyio.to_thread.run_sync(self._load, self._path(key))

    async def save(self, key: str, document: bytes | None) -> None:
        """Replace the document under *key*; None removes it.

        Raises:
            LoginFailed: The file cannot be written, or the user has no home.
        """
        with anyio.CancelScope(shield=True):  # a rotated refresh token that is not written would be lost
            await anyio.to_thread.run_sync(self._save, self._path(key), document)

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        """Keep other tasks and programs from entering such a block with the same *key*.

        Raises:
            LoginFailed: The file of the lock cannot be opened, or the user has no home.
        """
        descriptor = self._open_lock(self._path(key).with_suffix(".lock"))
        try:
            while not _try_lock(descriptor):  # noqa: ASYNC110 (another process has no event to set)
                await anyio.sleep(_LOCK_SECONDS)
            try:
                yield
            finally:
                _unlock(descriptor)
        finally:
            os.close(descriptor)

    def _path(self, key: str) -> Path:
        if self._folder is None:
            raise LoginFailed(f"{_HOMELESS}; set the environment variable {HOME_VARIABLE}, or {_OTHER_FOLDER}")
        return self._folder / f"{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"

    def _load(self, path: Path) -> bytes | None:
        with _explained(path, "read"):
            try:
                descriptor = os.open(path, os.O_RDONLY | _UNBLOCKED | _REPARSED)
            except (FileNotFoundError, NotADirectoryError):
                return None
            with open(descriptor, "rb") as opened:  # noqa: PTH123 (there is no other way to open a descriptor)
                self._check_folders(path.parent)
                _check_private(opened.fileno(), path)
                document = opened.read(_MAX_BYTES + 1)
        if len(document) > _MAX_BYTES:
            raise LoginFailed(f"the file {_shown(path)} is too large to hold the tokens of a server; remove it")
        return document

    def _save(self, path: Path, document: bytes | None) -> None:
        with _explained(path, "written"):
            if document is None:
                path.unlink(missing_ok=True)
                _remove_left_files(path)
                return
            if len(document) > _MAX_BYTES:
                raise LoginFailed(f"the tokens are too long for {_shown(path)}; pass another `store`")
            self._make_folder(path.parent)
            new = path.with_name(f".{path.stem}.{secrets.token_hex(8)}.new")
            try:
                descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _REPARSED, _FILE_MODE)
                with open(descriptor, "wb") as opened:  # noqa: PTH123 (there is no other way to open a descriptor)
                    opened.write(document)
                    opened.flush()
                    os.fsync(descriptor)
                new.replace(path)
            finally:
                with suppress(OSError):
                    new.unlink(missing_ok=True)

    def _open_lock(self, path: Path) -> int:
        with _explained(path, "opened"):
            self._make_folder(path.parent)
            return os.open(path, os.O_RDWR | os.O_CREAT | _REPARSED, _FILE_MODE)

    def _make_folder(self, folder: Path) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        self._check_folders(folder)
        if os.name == "posix":
            folder.chmod(_FOLDER_MODE)

    def _check_folders(self, folder: Path) -> None:
        """Check that no other user owns *folder*.

        Raises:
            LoginFailed: Another user does.
        """
        if os.name != "posix":
            return
        # The user may have chosen the place of a folder of their own within one of others.
        for each in [folder] if self._is_chosen else [folder.parent, folder]:
            with suppress(FileNotFoundError, NotADirectoryError):
                if each.stat().st_uid != os.getuid():
                    raise LoginFailed(
                        f"the folder of the tokens, {_shown(each)}, belongs to another user; {_OTHER_FOLDER}"
                    )


def _remove_left_files(path: Path) -> None:
    """Remove the unfinished files of programs that were killed over a minute ago while they wrote *path*."""
    for each in path.parent.glob(f".{path.stem}.*.new"):
        with suppress(FileNotFoundError):
            if time.time() - each.stat().st_mtime > _WRITE_SECONDS:
                each.unlink()


def state_folder() -> Path:
    """Return the folder of this project in the user's folder for state.

    Raises:
        UsageError: The user has no home, and no environment variable names the folder.
    """
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME"
    named = os.environ.get(variable, "")
    try:
        if sys.platform == "win32":
            return Path(named or Path.home() / "AppData" / "Local") / "mcpgen"
        base = Path(named) if named.startswith("/") else Path.home() / ".local" / "state"  # as XDG demands
    except RuntimeError:
        raise UsageError(f"{_HOMELESS}; set the environment variable {HOME_VARIABLE} or {variable}") from None
    return base / "mcpgen"


def _default_folder() -> Path | None:
    """Return the folder of the commands' tokens; None if the user has no home, and no variable names the folder."""
    try:
        return state_folder() / "tokens"
    except UsageError:
        return None


def _check_private(descriptor: int, path: Path) -> None:
    """Check that other users can neither read nor write the file, which would be their tokens, or ours."""
    if os.name != "posix":
        return
    found = os.fstat(descriptor)
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise LoginFailed(f"other users can read or write {_shown(path)}; remove it, and log in again")


@contextmanager
def _explained(path: Path, what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        hint = "check its permissions and those of its folders" if isinstance(error, PermissionError) else _OTHER_FOLDER
        raise LoginFailed(f"{_shown(path)} cannot be {what}: {reason}; {hint}") from None


def _shown(path: Path) -> str:
    return printable(str(path))


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        with suppress(OSError):
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


async def stored_tokens(store: TokenStore, key: str) -> Tokens | None:
    """Return the tokens under *key*; None if there are none that can be read."""
    return await _stored(store, key, Tokens)


async def stored_client(store: TokenStore, key: str) -> Registration | None:
    """Return the registration under *key*; None if there is none that can be read."""
    return await _stored(store, key, Registration)


async def _stored(store: TokenStore, key: str, kind: type[S]) -> S | None:
    document = await store.load(key)
    if document is None:
        return None
    try:
        return msgspec.json.decode(document, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
