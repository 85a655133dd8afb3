"""``mcpgen login`` and ``logout``, and commands that log in by themselves, at a terminal."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from mcpgen import LoginFailed, MemoryTokenStore, connect
from mcpgen.runtime.http.client.address import parse_address
from mcpgen.runtime.http.client.auth.credentials import tokens_key
from mcpgen.runtime.http.client.auth.logout import log_out
from tests.patience import PATIENCE_SECONDS
from tests.runtime.cli.terminals import run
from tests.runtime.http.login_world import METADATA, PRM, LoginWorld, browse, login_world, served, visit

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from tests.runtime.cli.terminals import Terminal

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NO_BROWSER = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": "", "SSH_CONNECTION": "here"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Desk:
    """A user at a terminal, with a folder for the tokens."""

    def __init__(self, at_terminal: Callable[..., Terminal], folder: Path) -> None:
        self._at_terminal = at_terminal
        self.environment = {"XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder), **NO_BROWSER}

    async def terminal(self, *words: str) -> Terminal:
        return await anyio.to_thread.run_sync(lambda: self._at_terminal(*words, width=2000, **self.environment))

    async def sees(self, terminal: Terminal, text: str) -> str:
        return await anyio.to_thread.run_sync(terminal.sees, text)

    async def page(self, terminal: Terminal) -> str:
        """Return the URL of the login page."""
        found = re.search(r"http://\S+/authorize\S+", await self.sees(terminal, "press Enter."))
        assert found
        return found[0]

    async def end(self, terminal: Terminal) -> tuple[int, str, str]:
        return await anyio.to_thread.run_sync(terminal.end)

    async def run(self, *words: str) -> tuple[int, str, str]:
        return await anyio.to_thread.run_sync(lambda: run(*words, **self.environment))


@pytest.fixture
def desk(at_terminal: Callable[..., Terminal], tmp_path: Path) -> Desk:
    return Desk(at_terminal, tmp_path)


async def log_in(desk: Desk, world: LoginWorld, *words: str) -> tuple[int, str, str]:
    terminal = await desk.terminal("login", *words, world.url)
    await browse(await desk.page(terminal))
    return await desk.end(terminal)


async def test_a_login_is_stored_for_the_other_commands(desk: Desk) -> None:
    async with login_world() as world:
        assert (0, f"You are logged in to {world.url}.\n") == (await log_in(desk, world))[:2]
        status, out, _ = await desk.run("call", world.url, "greet", "name=Ann")

        assert (0, "Hello, Ann!\n") == (status, out)
        assert 1 == len(world.logins)


async def test_more_scopes_are_requested_of_a_user_who_is_logged_in(desk: Desk) -> None:
    async with login_world() as world:
        await log_in(desk, world)
        status, out, _ = await log_in(desk, world, "--scope", "write")
        assert (0, f"You are logged in to {world.url}.\n") == (status, out)
        assert ["read offline_access", "read offline_access write"] == [each["scope"] for each in world.logins]

        terminal = await desk.terminal("login", "--scope", "write", "--scope", "read", world.url)
        _, out, _ = await desk.end(terminal)
        assert "already" in out
        world.needed = ["read", "write"]
        assert (0, "Hello, Ann!\n") == (await desk.run("call", world.url, "greet", "name=Ann"))[:2]


async def test_a_login_for_more_scopes_that_fails_keeps_the_tokens(desk: Desk) -> None:
    async with login_world() as world:
        await log_in(desk, world)
        world.overrides["/token"] = (400, {}, b'{"error": "access_denied"}')
        status, _, said = await log_in(desk, world, "--scope", "write")
        assert (1, True) == (status, "access_denied" in said)

        assert (0, "Hello, Ann!\n") == (await desk.run("call", world.url, "greet", "name=Ann"))[:2]


async def test_the_redirected_url_can_be_pasted(desk: Desk) -> None:
    """Incident: a machine without a browser could not log in (ext-auth 18)."""
    async with login_world() as world:
        terminal = await desk.terminal("login", world.url)
        redirected = await visit(await desk.page(terminal))
        terminal.types("not a URL\n")
        await desk.sees(terminal, "This is not a URL")
        terminal.types(f"  {redirected} \n")

        assert 0 == (await desk.end(terminal))[0]


async def test_a_redirected_url_that_is_longer_than_a_line_of_a_terminal_can_be_pasted(desk: Desk) -> None:
    """A terminal that edits lines takes 1,024 bytes on macOS and 4,096 on Linux; some codes are longer."""
    async with login_world() as world:
        terminal = await desk.terminal("login", world.url)
        redirected = f"{await visit(await desk.page(terminal))}&session_state={'x' * 6000}"
        terminal.types("htp")
        terminal.types("\x7f\x7f\x7f")  # Backspace
        terminal.types(f"{redirected}\n")

        assert 0 == (await desk.end(terminal))[0]


async def test_a_command_logs_in_by_itself(desk: Desk) -> None:
    async with login_world() as world:
        terminal = await desk.terminal("call", world.url, "greet", "name=Ann")
        await browse(await desk.page(terminal))

        assert (0, "Hello, Ann!\n") == (await desk.end(terminal))[:2]


async def test_without_a_terminal_the_error_names_the_command(desk: Desk) -> None:
    async with login_world() as world:
        status, _, err = await desk.run("call", world.url, "greet", "name=Ann")

        assert 1 == status
        assert f"run `mcpgen login {world.url}`" in err
        assert (2, True) == _status_and(await desk.run("login", world.url), "needs a terminal")
        assert (2, False) == _status_and(await desk.run("login", "shop.py"), "needs a terminal")


async def test_a_logout_revokes_the_tokens_and_forgets_them(desk: Desk) -> None:
    async with login_world() as world:
        await log_in(desk, world)
        refresh = next(iter(world.refreshable))
        assert f"You are logged out of {world.url}.\n" == (await desk.run("logout", world.url))[1]
        assert refresh in [each.get("token") for each in world.forms]
        assert f"You were not logged in to {world.url}.\n" == (await desk.run("logout", world.url))[1]
        assert 1 == (await desk.run("call", world.url, "greet", "name=Ann"))[0]


async def test_a_logout_works_if_the_tokens_cannot_be_revoked(desk: Desk) -> None:
    async with login_world() as world:
        await log_in(desk, world)
        world.overrides["/revoke"] = (500, {}, b"")
        status, out, err = await desk.run("logout", world.url)

        assert (0, f"You are logged out of {world.url}.\n") == (status, out)
        assert "the refresh token could not be revoked: the authorization server answered 500" in err
        assert "the access token could not be revoked: the authorization server answered 500" in err  # it is tried, too


async def test_a_logout_that_is_stopped_while_it_revokes_has_forgotten_the_tokens() -> None:
    """Until the revocation has ended, no other program can use the refresh token, which may still be valid."""
    revokes = anyio.Event()

    class NeverRevokes(LoginWorld):
        async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            if scope.get("path") == "/revoke":
                revokes.set()
                await anyio.sleep_forever()
            await super().__call__(scope, receive, send)

    async with served(NeverRevokes) as world:
        oauth = world.oauth()
        key = tokens_key(oauth, parse_address(world.url))
        async with connect(world.url, auth=oauth), anyio.create_task_group() as group:
            group.start_soon(log_out, world.url, oauth)
            with anyio.fail_after(PATIENCE_SECONDS):
                await revokes.wait()
            with anyio.move_on_after(0.1) as waiting:
                async with oauth.store.lock(key):
                    pass
            group.cancel_scope.cancel()
        assert waiting.cancelled_caught
        assert None is await oauth.store.load(key)


async def test_tokens_that_cannot_be_removed_are_revoked() -> None:
    class Full(MemoryTokenStore):
        is_full = False

        async def save(self, key: str, document: bytes | None) -> None:
            if self.is_full:
                raise LoginFailed("the disk is full")
            await super().save(key, document)

    async with login_world() as world:
        store = Full()
        async with connect(world.url, auth=world.oauth(store=store)):
            store.is_full = True
        with pytest.raises(LoginFailed, match="the disk is full"):
            await log_out(world.url, world.oauth(store=store))

        assert 2 == world.asked.count("POST /revoke")


def expire_soon(folder: Path) -> None:
    """Let the stored tokens be valid for so short a time that they are refreshed."""
    for each in folder.glob("mcpgen/tokens/*.json"):
        document = json.loads(each.read_bytes())
        if "access_token" in document:
            each.write_text(json.dumps(document | {"expires_at": time.time() + 25}))


async def test_a_login_says_when_its_token_cannot_be_refreshed(desk: Desk) -> None:
    async with login_world() as world:
        await log_in(desk, world)
        world.refreshable.clear()
        expire_soon(Path(desk.environment["XDG_STATE_HOME"]))
        terminal = await desk.terminal("login", world.url)
        status, out, _ = await desk.end(terminal)

    assert 0 == status
    assert re.search(r"already, but only for \d+ more seconds?\. To log in anew, run `mcpgen logout` first\.", out)


async def test_a_logout_that_fails_is_not_called_a_login(desk: Desk, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    desk.environment["XDG_STATE_HOME"] = str(taken)
    status, _, err = await desk.run("logout", "https://example.com/mcp")

    assert (1, True) == (status, err.startswith("Error: the logout failed: "))
    assert "choose another folder, with the environment variable XDG_STATE_HOME" in err


async def test_a_client_that_is_registered_can_be_named(desk: Desk) -> None:
    desk.environment["SECRET"] = "s3cret"  # noqa: S105 (of a test)
    async with login_world() as world:
        words = ("--client-id", "mine", "--client-secret-env", "SECRET", "--scope", "write", "--issuer", world.origin)
        assert 0 == (await log_in(desk, world, *words))[0]
        assert ("mine", "write") == (world.logins[0]["client_id"], world.logins[0]["scope"])
        assert 0 == (await desk.run("call", world.url, "greet", "name=Ann"))[0]  # although it does not name the client
        status, _, err = await desk.run("login", "--client-id", "mine", "--client-secret-env", "NONE", world.url)

        assert (2, True) == (status, "NONE (`--client-secret-env`) is not set" in err)


async def test_the_redirect_uri_can_be_a_registered_one(desk: Desk) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{free.getsockname()[1]}/back"
    async with login_world() as world:
        assert 0 == (await log_in(desk, world, "--client-id", "mine", "--redirect-uri", uri))[0]
        assert uri == world.logins[0]["redirect_uri"]
        terminal = await desk.terminal("login", "--redirect-uri", "ftp://127.0.0.1/back", world.url)

        assert "`--redirect-uri` must be a URL of https, or of http at localhost" in (await desk.end(terminal))[2]


async def test_a_login_that_fails_names_the_options_of_the_command(desk: Desk) -> None:
    async with login_world() as world:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            uri = f"http://127.0.0.1:{taken.getsockname()[1]}/back"
            terminal = await desk.terminal("login", "--redirect-uri", uri, world.url)
            assert "choose another `--redirect-uri`" in (await desk.end(terminal))[2]
        terminal = await desk.terminal("login", "--issuer", "https://other.example", world.url)
        assert "correct `--issuer` if it is wrong" in (await desk.end(terminal))[2]
        world.overrides["/register"] = (201, {}, b"{}")
        terminal = await desk.terminal("login", world.url)

        assert "lacks `client_id`" in (await desk.end(terminal))[2]  # a field of a message, and not the option


async def test_pkce_can_be_assumed(desk: Desk) -> None:
    async with login_world() as world:
        del world.metadata["code_challenge_methods_supported"]
        status, _, seen = await desk.end(await desk.terminal("login", world.url))
        assert (1, True) == (status, "run `mcpgen login --assume-pkce URL`" in seen)

        assert 0 == (await log_in(desk, world, "--assume-pkce"))[0]
        assert "S256" == world.logins[0]["code_challenge_method"]


async def test_a_login_that_is_not_needed_says_so(desk: Desk) -> None:
    async with login_world() as world:
        await log_in(desk, world)
        terminal = await desk.terminal("login", world.url)

        assert "already" in (await desk.end(terminal))[1]


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--issuer", "login", "`--issuer` must be the URL"),
        ("--client-secret-env", "PATH", "`--client-secret-env` needs `--client-id`"),
        ("--scope", "a b", "`--scope` has 'a b', which is not a scope"),
    ],
)
async def test_a_wrong_value_is_named_by_its_option(desk: Desk, option: str, value: str, told: str) -> None:
    terminal = await desk.terminal("login", "https://example.com/mcp", option, value)
    status, _, seen = await desk.end(terminal)

    assert (2, True) == (status, f"Error: {told}" in seen)


async def test_a_server_without_a_login_is_for_the_commands_that_take_a_token(desk: Desk) -> None:
    async with login_world() as world:
        for path in (PRM, METADATA, "/register"):
            world.overrides[path] = (404, {}, b"")
        world.overrides["/mcp"] = (401, {}, b"who are you?")
        terminal = await desk.terminal("login", world.url)
        status, _, seen = await desk.end(terminal)

        assert (1, True) == (status, "pass --bearer-env, or --header, to the other commands" in seen)


async def test_without_a_login_page_the_error_names_options_of_the_commands(desk: Desk) -> None:
    async with login_world() as world:
        del world.metadata["authorization_endpoint"]
        terminal = await desk.terminal("login", world.url)
        status, _, seen = await desk.end(terminal)

        advice = "no login page; get a token in another way, and pass --bearer-env, or --header, to the other commands"
        assert (1, True) == (status, advice in seen)


async def test_a_client_that_must_be_registered_is_told_the_option_of_the_command(desk: Desk) -> None:
    """The commands have no metadata document of a client."""
    async with login_world() as world:
        del world.metadata["registration_endpoint"]
        world.metadata["client_id_metadata_document_supported"] = True
        terminal = await desk.terminal("login", world.url)
        status, _, seen = await desk.end(terminal)

        assert 1 == status
        assert seen.rstrip().endswith("; register a client there, and run `mcpgen login --client-id ID URL`"), seen


async def test_a_token_that_is_bound_to_an_unknown_key_is_for_the_operator(desk: Desk) -> None:
    """The commands have no option `dpop`."""
    async with login_world() as world:
        world._issue = lambda scopes: {"access_token": "bound", "token_type": "DPoP"}  # type: ignore[method-assign]
        status, _, seen = await log_in(desk, world)

        assert (1, True) == (status, "although none was sent; tell the operator of the authorization server" in seen)


@pytest.mark.parametrize("command", ["login", "logout"])
async def test_a_url_that_is_none_is_a_wrong_use(desk: Desk, command: str) -> None:
    terminal = await desk.terminal(command, "example.com")
    status, _, seen = await desk.end(terminal)

    assert (2, True) == (status, "is not a URL of http or https" in seen)


def _status_and(done: tuple[int, str, str], text: Any) -> tuple[int, bool]:
    return done[0], text in done[2]
