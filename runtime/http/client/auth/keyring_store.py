"""Keep tokens in the keyring of the system: `KeyringTokenStore`.

Theory of operation. The package `keyring` has backends for the keyrings of macOS, Windows, GNOME and KDE. Its functions
block, and may wait for a user who unlocks the keyring, so they run in threads. A keyring has no locks that hold between
processes; a file in the folder of this project has them.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.to_thread

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.auth.token_store import FileTokenStore, state_folder
from mcpgen.runtime.http.errors import LoginFailed
from mcpgen.runtime.protocol.argument_checks import check_texts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

__all__ = ["KeyringTokenStore"]

T = TypeVar("T")

_LOCKS: Final = "keyring-locks"


class KeyringTokenStore:
    """A `TokenStore` in the keyring of the system. It needs the package ``keyring``.

    Args:
        service: The name under which the keyring shows the entries.
        backend: A backend of ``keyring`` to use. By default, the one that ``keyring`` chooses.

    Raises:
        UsageError: ``keyring`` is not installed, or there is no folder for the locks (see `FileTokenStore`).
    """

    def __init__(
        self,
        service: str = "mcpgen",
        *,
        backend: Any = None,  # noqa: ANN401 (a class of an optional package)
    ) -> None:
        check_texts(service=service)
        try:
            library: Any = import_module("keyring")
            self._errors: Any = import_module("keyring.errors")
        except ImportError as error:
            raise UsageError("KeyringTokenStore needs keyring, which is not installed: pip install keyring") from error
        self._service = service
        self._backend: Any = library.get_keyring() if backend is None else backend
        self._locks = FileTokenStore(state_folder() / _LOCKS)

    def __repr__(self) -> str:
        return f"KeyringTokenStore({self._service!r})"

    async def load(self, key: str) -> bytes | None:
        """Return the document under *key*; None if there is none.

        Raises:
            LoginFailed: The keyring cannot be read.
        """
        # A user who does not unlock the keyring must not keep a call from being cancelled.
        found = await anyio.to_thread.run_sync(
            self._explained, "read", lambda: self._backend.get_password(self._service, key), abandon_on_cancel=True
        )
        return None if found is None else found.encode("utf-8", "surrogatepass")

    async def save(self, key: str, document: bytes | None) -> None:
        """Replace the document under *key*; None removes it.

        Raises:
            LoginFailed: The keyring cannot be written.
        """
        with anyio.CancelScope(shield=True):  # a rotated refresh token that is not written would be lost
            await anyio.to_thread.run_sync(self._explained, "written", lambda: self._save(key, document))

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        """Keep other tasks and programs from entering such a block with the same *key*.

        Raises:
            LoginFailed: The file of the lock cannot be opened.
        """
        async with self._locks.lock(f"{self._service} {key}"):
            yield

    def _save(self, key: str, document: bytes | None) -> None:
        if document is not None:
            self._backend.set_password(self._service, key, document.decode("utf-8"))
        elif self._backend.get_password(self._service, key) is not None:
            self._backend.delete_password(self._service, key)

    def _explained(self, what: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except Exception as error:  # noqa: BLE001 (backends raise errors of their own, too)
            name = type(error).__name__
        # Not the text of the error, which may have the document, and no cause.
        if name == self._errors.NoKeyringError.__name__:
            hint = "this machine has no keyring; use FileTokenStore()"
        else:
            hint = f"{type(self._backend).__name__} raised {name}; unlock the keyring, or use FileTokenStore()"
        raise LoginFailed(f"the keyring cannot be {what}: {hint}")
