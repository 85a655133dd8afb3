"""Tokens in the keyring of the system, by a backend of the package keyring."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import anyio
import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, NoKeyringError, PasswordDeleteError

from mcpgen import KeyringTokenStore, LoginFailed, OAuth, TokenStore, UsageError, connect
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.login_world import login_world

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.anyio


class Chain(KeyringBackend):
    """A keyring that forgets, and that a test can break.

    Attributes:
        entries: The passwords, by service and user name.
        failure: What it raises, if anything.
        unlocked: Set unless the user lets it wait.
    """

    priority = 0.5  # less than those that keyring chooses by itself

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str], str] = {}
        self.failure: Exception | None = None
        self.unlocked = threading.Event()
        self.unlocked.set()

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.entries.pop((service, username), None) is None:
            raise PasswordDeleteError(username)

    def _check(self) -> None:
        assert self.unlocked.wait(PATIENCE_SECONDS)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Chain]:
    """A keyring, which is the one of the system; its locks are in a folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    before, found = keyring.get_keyring(), Chain()
    keyring.set_keyring(found)
    yield found
    keyring.set_keyring(before)


async def test_the_keyring_keeps_what_it_gets(chain: Chain) -> None:
    store = KeyringTokenStore()
    assert isinstance(store, TokenStore)
    assert await store.load("a") is None
    await store.save("a", b"1")
    await store.save("a", "ä".encode())
    await store.save("b", b"3")
    assert "ä".encode() == await store.load("a")
    assert {("mcpgen", "a"): "ä", ("mcpgen", "b"): "3"} == chain.entries
    await store.save("a", None)
    await store.save("a", None)
    assert await store.load("a") is None


@pytest.mark.slow
async def test_a_login_is_in_the_keyring_alone(chain: Chain, tmp_path: Path) -> None:
    async with login_world() as world:
        for _ in range(2):
            async with connect(world.url, auth=world.oauth(store=KeyringTokenStore("my-client"))) as client:
                await client.call_tool("greet", {"name": "Ann"})

        assert 1 == len(world.logins)
        assert {"my-client"} == {service for service, _ in chain.entries}
        assert {"client", "tokens"} == {name.partition(" ")[0] for _, name in chain.entries}
        (token,) = world.valid
        assert any(token in each for each in chain.entries.values())
        assert not any(token.encode() in each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())  # noqa: ASYNC240 (a few)


async def test_another_backend_can_be_given(chain: Chain) -> None:
    other = Chain()
    await KeyringTokenStore(backend=other).save("a", b"1")
    assert ([("mcpgen", "a")], {}) == (list(other.entries), chain.entries)


async def test_two_stores_have_the_same_locks(chain: Chain) -> None:
    inside = 0

    async def enter() -> None:
        nonlocal inside
        async with KeyringTokenStore(backend=chain).lock("a"):
            inside += 1
            assert 1 == inside
            await anyio.sleep(0.01)
            inside -= 1

    async with KeyringTokenStore("other", backend=chain).lock("a"), anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(enter)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (NoKeyringError("secret"), "this machine has no keyring; use FileTokenStore"),
        (KeyringLocked("secret"), "Chain raised KeyringLocked; unlock the keyring"),
        (OSError("secret"), "Chain raised OSError"),
    ],
)
async def test_a_keyring_that_fails_is_explained_without_a_secret(chain: Chain, failure: Exception, said: str) -> None:
    chain.failure = failure
    store = KeyringTokenStore()
    with pytest.raises(LoginFailed, match=f"cannot be read: .*{said}") as reading:
        await store.load("a")
    with pytest.raises(LoginFailed, match=f"cannot be written: .*{said}"):
        await store.save("a", b"secret")
    assert "secret" not in str(reading.value)
    assert reading.value.__cause__ is None
    assert reading.value.__context__ is None


async def test_a_keyring_that_waits_for_its_user_does_not_keep_a_call_from_being_cancelled(chain: Chain) -> None:
    chain.unlocked.clear()
    store = KeyringTokenStore()
    with anyio.fail_after(PATIENCE_SECONDS):
        with anyio.move_on_after(0.01) as scope:
            await store.load("a")
    assert scope.cancelled_caught
    chain.unlocked.set()


async def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(UsageError, match="pip install keyring"):
        OAuth(store=KeyringTokenStore())
