"""A client that logs in: what it asks, what it stores, and how often it disturbs its user."""

from __future__ import annotations

import json
import logging
import time
import traceback
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from mcpgen import (
    ClientLimits,
    FileTokenStore,
    Http,
    HttpRefused,
    LoginFailed,
    LoginNeeded,
    MemoryTokenStore,
    OAuth,
    Server,
    UsageError,
    connect,
)
from mcpgen.runtime.cli.terminal_text import error_text
from mcpgen.runtime.http.client import exchange_choice
from mcpgen.runtime.http.client.auth import access_tokens
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.login_world import (
    METADATA,
    PRM,
    LoginWorld,
    answer_json,
    browse,
    login_world,
    query_of,
    served,
    visit,
    whole,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
spec = pytest.mark.spec
OIDC = "/.well-known/openid-configuration"
REGISTRATION = "basic/authorization/client-registration"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def greet(world: LoginWorld, oauth: OAuth, **options: Any) -> str:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(world.url, auth=oauth, **options) as client:
            result = await client.call_tool("greet", {"name": "Ann"})
    return str(result.content[0].text)


# --- one login


@spec("2025-03-26", "basic/authorization#dynamic-client-registration", "cc3b71b3")
@spec("2025-03-26", "basic/authorization#overview", "bdb489e3", "fec08c1a")
@spec("2025-03-26", "basic/authorization#token-requirements", "0aaf7d41", "2a0123cd", "89b52a96", "d53423e4")
@spec("2025-06-18", "basic/authorization#authorization-flow-steps")
@spec("2025-06-18", "basic/authorization#dynamic-client-registration", "6edb1e32")
@spec("2025-06-18", "basic/authorization#overview", "0dae264b", "a7e6e4a6")
@spec("2025-06-18", "basic/authorization#server-metadata-discovery", "6283a7e9")
@spec("2025-06-18", "basic/authorization#token-requirements", "0aaf7d41", "89b52a96", "d988e431", "e2ffee0e")
@spec("2025-11-25", "basic/authorization#token-requirements", "0aaf7d41", "89b52a96", "d988e431", "e2ffee0e")
@spec("2026-07-28", "basic/authorization/index#authorization-flow-steps")
@spec("2026-07-28", "basic/authorization/index#token-requirements", "7f9a2301", "8dde9469", "96c4eb7a", "e9a19215")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("library", ["asyncio", "httpx"])
async def test_a_client_logs_in_once_and_sends_the_token_with_each_request(
    revision: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library == "httpx":
        monkeypatch.setattr(exchange_choice, "_is_plain", lambda *_: False)
    async with login_world() as world:
        said = await greet(world, world.oauth(), revisions=[revision])

        assert "Hello, Ann!" == said
        assert 1 == len(world.logins)
        assert [f"GET {PRM}", f"GET {METADATA}", "POST /register", "GET /authorize", "POST /token"] == world.asked
        assert "" == world.bearers[0]
        assert {f"Bearer {next(iter(world.valid))}"} == set(world.bearers[1:])
        assert {""} == set(world.queries)


@spec("2025-03-26", "basic/authorization#implementation-requirements", "a99d0f7f")
@spec("2025-06-18", "basic/authorization#access-token-privilege-restriction", "32f29b80")
@spec("2025-06-18", "basic/authorization#authorization-code-protection", "2c8983e3")
@spec("2025-06-18", "basic/authorization#canonical-server-uri", "ef6d3856")
@spec(
    "2025-06-18",
    "basic/authorization#resource-parameter-implementation",
    "126afae6",
    "27e032ab",
    "c612ba04",
    "eafb137c",
)
@spec("2025-06-18", "basic/authorization#token-audience-binding-and-validation", "3931e9b7")
@spec("2025-11-25", "basic/authorization#access-token-privilege-restriction", "32f29b80")
@spec("2025-11-25", "basic/authorization#authorization-code-protection", "22c2ce74")
@spec("2025-11-25", "basic/authorization#canonical-server-uri", "ef6d3856")
@spec(
    "2025-11-25",
    "basic/authorization#resource-parameter-implementation",
    "126afae6",
    "27e032ab",
    "c612ba04",
    "eafb137c",
)
@spec("2025-11-25", "basic/authorization#token-audience-binding-and-validation", "3931e9b7")
@spec("2026-07-28", "basic/authorization/index#canonical-server-uri", "4cbcabdd")
@spec(
    "2026-07-28",
    "basic/authorization/index#resource-parameter-implementation",
    "6d677454",
    "b28e81a0",
    "f19608bf",
    "f260e342",
)
@spec("2026-07-28", "basic/authorization/security-considerations#access-token-privilege-restriction", "71c716b4")
@spec("2026-07-28", "basic/authorization/security-considerations#authorization-code-protection", "0d6d2b3e")
@spec("2026-07-28", "basic/authorization/security-considerations#token-audience-binding-and-validation", "4638c2c1")
async def test_login_and_token_request_name_the_resource_as_the_server_writes_it() -> None:
    """Incident: a client added a slash to the resource (python-sdk 1919, 2883; fastmcp 1431)."""
    async with login_world() as world:
        world.resource["resource"] = world.origin  # without a slash, which a URL library would add
        await greet(world, world.oauth())

        assert [world.origin, world.origin] == [world.logins[0]["resource"], world.forms[0]["resource"]]
        assert "S256" == world.logins[0]["code_challenge_method"]
        assert world.logins[0]["redirect_uri"] == world.forms[0]["redirect_uri"]


@spec("2025-06-18", "basic/authorization#open-redirection", "e5ff42cd")
@spec("2025-11-25", "basic/authorization#open-redirection", "e5ff42cd")
@spec("2026-07-28", "basic/authorization/security-considerations#open-redirection", "8bddc9ca")
async def test_the_redirect_comes_to_this_machine_if_the_browser_follows_it() -> None:
    async with login_world() as world:
        assert "Hello, Ann!" == await greet(world, world.oauth(visit=browse))
        assert world.logins[0]["redirect_uri"].startswith("http://127.0.0.1:")
        assert [world.logins[0]["redirect_uri"]] == world.registrations[0]["redirect_uris"]


async def test_a_redirect_to_another_machine_needs_a_function_that_returns_it() -> None:
    async def show(_: str) -> None: ...

    async with login_world() as world:
        with pytest.raises(LoginFailed, match="because `redirect_uri` is not at this machine; pass `visit`"):
            await greet(world, world.oauth(visit=show, redirect_uri="https://app.example/back"))


async def test_a_login_on_trio(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server needs asyncio, so it is in a thread of its own."""
    import threading

    import trio

    ready, done = threading.Event(), threading.Event()
    found: list[LoginWorld] = []

    async def serve() -> None:
        async with login_world() as world:
            found.append(world)
            ready.set()
            await anyio.to_thread.run_sync(done.wait)

    thread = threading.Thread(target=lambda: anyio.run(serve))
    thread.start()
    try:
        assert await anyio.to_thread.run_sync(ready.wait, PATIENCE_SECONDS)
        said = await anyio.to_thread.run_sync(lambda: trio.run(lambda: greet(found[0], found[0].oauth())))
    finally:
        done.set()
        thread.join()

    assert "Hello, Ann!" == said


@spec("2026-07-28", "basic/authorization/index#protocol-requirements")
@pytest.mark.slow
async def test_a_login_takes_longer_than_all_limits_of_calls_and_of_the_probe() -> None:
    async def slow(url: str) -> str:
        await anyio.sleep(6)
        return await visit(url)

    limits = ClientLimits(probe_seconds=3, call_seconds=5, connect_seconds=5)
    async with login_world() as world:
        assert "Hello, Ann!" == await greet(world, world.oauth(visit=slow), limits=limits)
        assert 1 == len(world.logins)

        world.needed = ["write"]
        assert "Hello, Ann!" == await greet(world, world.oauth(visit=slow), limits=limits)


@pytest.mark.slow
async def test_a_slow_login_is_not_reported_as_a_slow_server(caplog: pytest.LogCaptureFixture) -> None:
    async def slow(url: str) -> str:
        await anyio.sleep(2.5)
        return await visit(url)

    async with login_world() as world:
        await greet(world, world.oauth(visit=slow))

    assert [] == [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


async def test_many_calls_wait_for_one_login() -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.revoke()
        world.refreshable.clear()
        async with anyio.create_task_group() as group:
            for name in range(20):
                group.start_soon(client.call_tool, "greet", {"name": str(name)})

        assert 2 == len(world.logins)


async def test_a_cancelled_call_does_not_end_the_login_that_others_wait_for() -> None:
    opened = anyio.Event()
    proceed = anyio.Event()

    async def patient(url: str) -> str:
        opened.set()
        await proceed.wait()
        return await visit(url)

    async with login_world() as world:
        store = MemoryTokenStore()
        await greet(world, world.oauth(store=store))
        async with connect(world.url, auth=world.oauth(store=store, visit=patient)) as client:
            world.revoke()
            world.refreshable.clear()
            scope = anyio.CancelScope()

            async def first() -> None:
                with scope:
                    await client.call_tool("greet", {"name": "1"})

            async with anyio.create_task_group() as group:
                group.start_soon(first)
                await opened.wait()
                group.start_soon(client.call_tool, "greet", {"name": "2"})
                await anyio.lowlevel.checkpoint()
                scope.cancel()
                proceed.set()

        assert 2 == len(world.logins)


# --- tokens that end


async def test_stored_tokens_need_no_login_in_the_next_program(tmp_path: Path) -> None:
    """Incident: each start of a program demanded a login (fastmcp 3053)."""
    async with login_world() as world:
        await greet(world, world.oauth(store=FileTokenStore(tmp_path)))
        await greet(world, world.oauth(store=FileTokenStore(tmp_path)))

        assert 1 == len(world.logins)


@spec("2026-07-28", "basic/authorization/index#refresh-tokens")
async def test_expired_tokens_are_refreshed_after_a_restart_at_the_stored_endpoint(tmp_path: Path) -> None:
    """Incident: a client forgot when its token expires and where it is refreshed (python-sdk 1318, 3240, 3250)."""
    async with login_world() as world:
        world.lifetime = 1
        await greet(world, world.oauth(store=FileTokenStore(tmp_path)))
        world.asked.clear()
        world.lifetime = 3600
        await greet(world, world.oauth(store=FileTokenStore(tmp_path)))

        assert ["POST /token"] == world.asked
        assert ("refresh_token", world.url) == (world.forms[-1]["grant_type"], world.forms[-1]["resource"])
        assert "scope" not in world.forms[-1]


@spec("2025-03-26", "basic/authorization#token-requirements", "0aaf7d41")
@spec("2025-06-18", "basic/authorization#token-requirements", "0aaf7d41")
@spec("2025-11-25", "basic/authorization#token-requirements", "0aaf7d41")
@spec("2026-07-28", "basic/authorization/index#token-requirements", "8dde9469")
async def test_a_token_with_a_lifetime_of_zero_is_sent_with_each_request() -> None:
    async with login_world() as world:
        world.valid["endless"] = []
        world.overrides["/token"] = (200, {}, b'{"access_token": "endless", "token_type": "Bearer", "expires_in": 0}')

        assert "Hello, Ann!" == await greet(world, world.oauth())
        assert ("", {"Bearer endless"}) == (world.bearers[0], set(world.bearers[1:]))


async def test_a_refused_token_is_refreshed_before_a_person_is_asked() -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.revoke()
        await client.call_tool("greet", {"name": "Ann"})

        assert 1 == len(world.logins)


async def test_a_rotated_refresh_token_of_another_program_is_read_again(tmp_path: Path) -> None:
    """Incident: two processes used one refresh token, and both lost it (mcp-remote 325)."""
    async with login_world() as world:
        options: dict[str, Any] = {"store": FileTokenStore(tmp_path)}
        one, two = (
            await connect(world.url, auth=world.oauth(**options)),
            await connect(world.url, auth=world.oauth(**options)),
        )
        async with one, two:
            world.revoke()
            async with anyio.create_task_group() as group:
                group.start_soon(one.call_tool, "greet", {"name": "1"})
                group.start_soon(two.call_tool, "greet", {"name": "2"})

        assert 1 == len(world.logins)
        assert ["authorization_code", "refresh_token"] == [each["grant_type"] for each in world.forms]


@pytest.mark.parametrize("is_refused", [True, False])
async def test_the_refresh_token_of_another_program_is_used_after_its_access_token_has_expired(
    *, is_refused: bool
) -> None:
    async with login_world() as world:
        options: dict[str, Any] = {"store": MemoryTokenStore()}
        world.lifetime = 3600 if is_refused else 1  # the idle program learns that its token has ended, or knows it
        idle = await connect(world.url, auth=world.oauth(**options))
        async with idle:
            world.lifetime = 1  # it counts as expired at once
            world.revoke()
            async with connect(world.url, auth=world.oauth(**options)) as busy:
                await busy.call_tool("greet", {"name": "1"})
            world.revoke()
            world.lifetime = 3600
            await idle.call_tool("greet", {"name": "2"})

        assert 1 == len(world.logins)
        refreshes = [each["refresh_token"] for each in world.forms if each["grant_type"] == "refresh_token"]
        assert len(refreshes) == len({*refreshes})


async def test_the_refresh_token_of_another_program_is_used_again_after_a_refresh_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise LoginFailed("the authorization server is busy")

    async with login_world() as world:
        options: dict[str, Any] = {"store": MemoryTokenStore()}
        async with connect(world.url, auth=world.oauth(**options)) as idle:
            world.lifetime = 1  # it counts as expired at once
            world.revoke()
            async with connect(world.url, auth=world.oauth(**options)) as busy:
                await busy.call_tool("greet", {"name": "1"})
            world.revoke()
            world.lifetime = 3600
            with monkeypatch.context() as patched:
                patched.setattr(access_tokens, "refreshed_tokens", fail)
                with pytest.raises(LoginFailed):
                    await idle.call_tool("greet", {"name": "2"})
            await idle.call_tool("greet", {"name": "3"})

        assert 1 == len(world.logins)
        refreshes = [each["refresh_token"] for each in world.forms if each["grant_type"] == "refresh_token"]
        assert len(refreshes) == len({*refreshes})


async def test_the_own_refresh_token_is_used_if_the_tokens_of_another_program_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with login_world() as world:
        store, issue = MemoryTokenStore(), world._issue

        def issue_without(scopes: list[str]) -> dict[str, Any]:
            return {name: value for name, value in issue(scopes).items() if name != "refresh_token"}

        async with connect(world.url, auth=world.oauth(store=store)) as idle:
            store._documents.clear()
            with monkeypatch.context() as patched:
                patched.setattr(world, "_issue", issue_without)
                async with connect(world.url, auth=world.oauth(store=store)):
                    pass
            (key,) = (each for each in store._documents if each.startswith("tokens"))
            expired = json.loads(store._documents[key]) | {"expires_at": 0}
            await store.save(key, json.dumps(expired).encode())
            world.revoke()
            await idle.call_tool("greet", {"name": "Ann"})

        assert 2 == len(world.logins)


async def test_a_refresh_token_that_could_not_be_stored_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise LoginFailed("the disk is full")

    async with login_world() as world:
        store = MemoryTokenStore()
        world.lifetime = 1  # it counts as expired at once
        async with connect(world.url, auth=world.oauth(store=store)) as client:
            with monkeypatch.context() as patched:
                patched.setattr(store, "save", fail)
                await client.call_tool("greet", {"name": "Ann"})
            await client.call_tool("greet", {"name": "Ann"})

        assert 1 == len(world.logins)


async def test_a_login_of_another_program_is_used_although_the_store_has_failed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise LoginFailed("the disk is full")

    async with login_world() as world:
        store = MemoryTokenStore()
        world.lifetime = 1  # it counts as expired at once
        async with connect(world.url, auth=world.oauth(store=store)):
            pass
        async with connect(world.url, auth=world.oauth(store=store, interactive=False)) as client:
            with monkeypatch.context() as patched:
                patched.setattr(store, "save", fail)
                await client.call_tool("greet", {"name": "Ann"})
            world.revoke()
            world.refreshable.clear()
            world.lifetime = 3600
            async with connect(world.url, auth=world.oauth(store=store)) as other:
                await client.call_tool("greet", {"name": "Ann"})
                await other.call_tool("greet", {"name": "Ann"})

        assert 2 == len(world.logins)


async def test_programs_without_tokens_do_not_use_the_refresh_token_of_another_one_at_once() -> None:
    async with login_world() as world:
        options: dict[str, Any] = {"store": MemoryTokenStore()}
        world.lifetime = 1  # it counts as expired at once
        async with connect(world.url, auth=world.oauth(**options)):
            pass
        one, two = [await connect(world.url, auth=world.oauth(**options, interactive=False)) for _ in range(2)]
        async with one, two:
            world.revoke()
            world.refreshable.clear()
            for each in (one, two):
                with pytest.raises(LoginNeeded):
                    await each.call_tool("greet", {"name": "Ann"})
            async with connect(world.url, auth=world.oauth(**options)):
                pass
            world.revoke()
            world.forms.clear()
            async with anyio.create_task_group() as group:
                group.start_soon(one.call_tool, "greet", {"name": "1"})
                group.start_soon(two.call_tool, "greet", {"name": "2"})

        refreshes = [each["refresh_token"] for each in world.forms]
        assert len(refreshes) == len({*refreshes})


async def test_a_call_that_is_still_open_does_not_keep_others_from_a_refresh() -> None:
    """Incident: a lock was held over a whole request (python-sdk 1326, 2847, 3209, 3382)."""
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        gate = world.gate = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "wait", {})
            await world.waiting.wait()
            world.revoke()
            await client.call_tool("greet", {"name": "Ann"})
            gate.set()

        assert ["authorization_code", "refresh_token"] == [each["grant_type"] for each in world.forms]


async def test_what_a_refresh_asks_for_has_no_scopes_so_that_they_stay() -> None:
    """Incident: a refresh that named scopes, or named none, lost some of them at Entra ID."""
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.needed = ["write"]
        await client.call_tool("greet", {"name": "Ann"})
        world.keeps_scopes = True
        world.revoke()
        await client.call_tool("greet", {"name": "Ann"})

        assert "scope" not in world.forms[-1]
        assert (2, "refresh_token") == (len(world.logins), world.forms[-1]["grant_type"])


async def test_a_refresh_token_that_has_ended_leads_to_a_login() -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.revoke()
        world.refreshable.clear()
        await client.call_tool("greet", {"name": "Ann"})

        assert 2 == len(world.logins)


@spec("2026-07-28", "basic/authorization/index#refresh-tokens", "30364b6f")
@pytest.mark.parametrize("status", [429, 503])
async def test_a_refresh_token_outlives_a_failure_of_its_server(status: int) -> None:
    async with login_world() as world:
        oauth = world.oauth()
        await greet(world, oauth)
        world.revoke()
        world.overrides["/token"] = (status, {}, b'{"error": "temporarily_unavailable"}')
        with pytest.raises(LoginFailed, match=f"answered {status}, temporarily_unavailable; try again later"):
            await greet(world, oauth)
        del world.overrides["/token"]

        assert "Hello, Ann!" == await greet(world, oauth)
        assert 1 == len(world.logins)


@spec("2026-07-28", "server/utilities/caching#cache-scope-field", "ae5ddf4e")
async def test_each_access_token_has_an_authorization_context_of_its_own() -> None:
    async with login_world() as world:
        transport = Http(world.url, auth=world.oauth())
        async with connect(transport) as client:
            first = transport.authorization_context
            world.revoke()
            await client.call_tool("greet", {"name": "Ann"})
            refreshed = transport.authorization_context
            world.revoke()
            world.refreshable.clear()
            await client.call_tool("greet", {"name": "Ann"})

        assert 3 == len({first, refreshed, transport.authorization_context})
        assert 2 == len(world.logins)


async def test_without_a_refresh_token_a_login_follows() -> None:
    async with login_world() as world:
        issue = world._issue
        world._issue = lambda scopes: {**issue(scopes), "refresh_token": None}  # type: ignore[method-assign]
        async with connect(world.url, auth=world.oauth()) as client:
            world.revoke()
            await client.call_tool("greet", {"name": "Ann"})

        assert 2 == len(world.logins)


async def test_a_server_that_takes_no_resource_with_a_refresh_token_is_asked_without() -> None:
    """Incident: Entra ID refuses a refresh that names the resource (python-sdk 2578)."""
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.refusal = "invalid_target"
        world.revoke()
        await client.call_tool("greet", {"name": "Ann"})

        assert 1 == len(world.logins)
        assert [True, False] == ["resource" in each for each in world.forms[1:]]


async def test_a_token_that_is_valid_for_seconds_is_used() -> None:
    async with login_world() as world:
        world.lifetime = 20
        issue = world._issue
        world._issue = lambda scopes: {  # type: ignore[method-assign] # without a refresh token
            name: value for name, value in issue(scopes).items() if name != "refresh_token"
        }
        async with connect(world.url, auth=world.oauth()) as client:
            await client.call_tool("greet", {"name": "Ann"})

        assert 1 == len(world.logins)


async def test_a_token_whose_refresh_is_refused_is_used_until_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    async with login_world() as world:
        world.lifetime = 20  # each request would refresh it
        issue = world._issue
        world._issue = lambda scopes: {**issue(scopes), "refresh_token": "never valid"}  # type: ignore[method-assign]
        async with connect(world.url, auth=world.oauth()) as client:
            await client.call_tool("greet", {"name": "Ann"})
            assert (1, 2) == (len(world.logins), world.asked.count("POST /token"))  # a refused refresh is not repeated

            later = time.time() + 30
            monkeypatch.setattr("time.time", lambda: later)
            await client.call_tool("greet", {"name": "Ann"})
            assert (2, "") == (len(world.logins), world.bearers[-2])


async def test_a_token_that_cannot_be_refreshed_now_is_used_until_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with login_world() as world:
        world.lifetime = 25  # it is refreshed some time before its end
        async with connect(world.url, auth=world.oauth()) as client:
            world.overrides["/token"] = (503, {}, b"")
            await client.call_tool("greet", {"name": "Ann"})
            assert "POST /token" == world.asked[-1]

            later = time.time() + 30
            monkeypatch.setattr("time.time", lambda: later)
            await client.call_tool("greet", {"name": "Ann"})
            world.revoke()
            world.asked.clear()
            with pytest.raises(LoginFailed, match="answered 503"):
                await client.call_tool("greet", {"name": "Ann"})
            assert 1 == world.asked.count("POST /token")  # it is not asked twice for one call


@pytest.mark.parametrize("lifetime", [1, 3600])
async def test_tokens_are_refreshed_where_the_metadata_says_if_their_endpoint_has_moved(lifetime: int) -> None:
    async with login_world() as world:
        world.lifetime = lifetime
        oauth = world.oauth()
        await greet(world, oauth)
        world.revoke()
        world.overrides["/token"] = (404, {}, b"")
        world.metadata["token_endpoint"] = f"{world.origin}/moved/token"

        assert "Hello, Ann!" == await greet(world, oauth)
        assert (1, "refresh_token") == (len(world.logins), world.forms[-1]["grant_type"])


@spec("2026-07-28", f"{REGISTRATION}#authorization-server-binding", "61f83f49", "67621068")
async def test_a_person_can_log_in_elsewhere_if_the_authorization_server_of_expired_tokens_is_gone() -> None:
    async with login_world() as world:
        world.lifetime = 1
        oauth = world.oauth()
        await greet(world, oauth)
        world.revoke()
        world.overrides["/token"] = (502, {}, b"")
        found = {**world.metadata, "issuer": f"{world.origin}/new", "token_endpoint": f"{world.origin}/moved/token"}
        world.resource["authorization_servers"] = [found["issuer"]]
        world.overrides[f"{METADATA}/new"] = (200, {}, json.dumps(found).encode())
        world.metadata["issuer"] = found["issuer"]
        world.lifetime = 3600
        world.forms.clear()

        assert "Hello, Ann!" == await greet(world, oauth)
        assert ["authorization_code"] == [each["grant_type"] for each in world.forms]
        assert 2 == len(world.registrations)


async def test_a_new_token_that_the_server_refuses_ends_the_attempts() -> None:
    async with login_world() as world:
        world._issue = lambda scopes: {"access_token": "never-valid", "token_type": "Bearer"}  # type: ignore[method-assign]
        with pytest.raises(LoginFailed, match="issued for it just now"):
            await greet(world, world.oauth())

        assert 1 == len(world.logins)


@pytest.mark.parametrize("grants", [{"refresh_token"}, {"refresh_token", "authorization_code"}])
async def test_a_person_is_asked_once_if_the_server_refuses_the_token_of_a_refresh(grants: set[str]) -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        token = world._token

        def unusable(form: dict[str, str]) -> tuple[int, dict[str, Any]]:
            status, reply = token(form)
            if form["grant_type"] in grants:
                world.valid.pop(reply["access_token"])
            return status, reply

        world._token = unusable  # type: ignore[method-assign]
        world.revoke()
        for _ in range(3):
            if "authorization_code" in grants:
                with pytest.raises(LoginFailed, match="issued for it just now"):
                    await client.call_tool("greet", {"name": "Ann"})
            else:
                await client.call_tool("greet", {"name": "Ann"})

        assert 2 == len(world.logins)


# --- scopes


@spec("2025-11-25", "basic/authorization#step-up-authorization-flow", "4e2ad739", "7fe07a13")
@spec("2026-07-28", "basic/authorization/index#step-up-authorization-flow", "4f251441", "c0c2b6e8")
async def test_a_call_that_needs_more_scopes_asks_once_and_keeps_the_others() -> None:
    """Incident: a step-up lost the earlier scopes, or only refreshed the token (typescript-sdk 1582)."""
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.needed = ["write"]
        await client.call_tool("greet", {"name": "Ann"})
        await client.call_tool("greet", {"name": "Bob"})

        assert ["read offline_access", "read offline_access write"] == [each["scope"] for each in world.logins]
        assert ["authorization_code", "authorization_code"] == [each["grant_type"] for each in world.forms]


@spec("2026-07-28", "basic/authorization/index#scope-selection-strategy", "fe87d39c")
@pytest.mark.parametrize("has_expired", [False, True])
async def test_a_login_for_new_tokens_asks_for_the_scopes_of_the_last_ones(
    monkeypatch: pytest.MonkeyPatch, *, has_expired: bool
) -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.needed = ["write"]
        await client.call_tool("greet", {"name": "Ann"})
        world.revoke()
        world.refreshable.clear()
        if has_expired:
            later = time.time() + 4000
            monkeypatch.setattr("time.time", lambda: later)
        await client.call_tool("greet", {"name": "Bob"})

        assert 3 == len(world.logins)
        assert world.logins[1]["scope"] == world.logins[2]["scope"]


async def test_earlier_scopes_that_exist_no_longer_are_left_out() -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth(client_id="known")) as client:
        world.needed = ["write"]
        await client.call_tool("greet", {"name": "Ann"})
        world.revoke()
        world.refreshable.clear()
        world.needed = []
        answer = world._response
        world._response = lambda query: (  # type: ignore[method-assign]
            {"error": "invalid_scope"} if "write" in query["scope"] else answer(query)
        )
        await client.call_tool("greet", {"name": "Bob"})

        assert world.logins[0]["scope"] == world.logins[-1]["scope"]


@spec("2025-11-25", "basic/authorization#step-up-authorization-flow", "1f83eef0")
@spec("2026-07-28", "basic/authorization/index#step-up-authorization-flow", "80282eac")
async def test_a_server_that_never_has_enough_scopes_is_not_asked_for_ever() -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.needed = ["write"]
        world._issue = lambda scopes: {"access_token": next(iter(world.valid)), "token_type": "Bearer"}  # type: ignore[method-assign]
        with pytest.raises(HttpRefused):
            await client.call_tool("greet", {"name": "Ann"})

        assert 2 == len(world.logins)


class NamedOnce(LoginWorld):
    """A server that names its metadata with the status 401, but not with 403, and has none at a well-known URL."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        moved = {PRM: "/nothing", "/named": PRM}

        async def elsewhere(message: Any) -> None:
            headers = [(name, value.replace(PRM.encode(), b"/named")) for name, value in message.get("headers", [])]
            await send({**message, "headers": headers} if headers else message)

        await super().__call__({**scope, "path": moved.get(scope.get("path"), scope.get("path"))}, receive, elsewhere)


@spec(
    "2026-07-28",
    "basic/authorization/index#resource-parameter-implementation",
    "6d677454",
    "b28e81a0",
)
async def test_a_login_for_more_scopes_names_the_resource_if_only_the_first_challenge_named_its_metadata() -> None:
    store = MemoryTokenStore()
    async with served(NamedOnce) as world:
        async with connect(world.url, auth=world.oauth(store=store)) as client:
            world.needed = ["write"]
            await client.call_tool("greet", {"name": "Ann"})

            assert [world.url] * 2 == [each.get("resource") for each in world.logins]
            assert [world.url] * 2 == [each.get("resource") for each in world.forms]

        async with connect(world.url, auth=world.oauth(store=store)) as client:  # with the stored tokens
            world.needed = ["admin"]
            with pytest.raises(LoginFailed, match="protected resource metadata"):
                await client.call_tool("greet", {"name": "Ann"})

            assert 2 == len(world.logins)


class ScopeOfEachName(LoginWorld):
    """A server whose tool needs a scope of the name that it is called with."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = await whole(receive) if scope.get("path") == "/mcp" else b""
        if body:
            called = json.loads(body)
            self.needed = [called["params"]["arguments"]["name"]] if called["method"] == "tools/call" else []
            receive = iterating([{"type": "http.request", "body": body, "more_body": False}], receive)
        await super().__call__(scope, receive, send)


def iterating(first: list[dict[str, Any]], then: Any) -> Any:
    async def receive() -> Any:
        return first.pop() if first else await then()

    return receive


async def test_calls_that_need_different_scopes_at_once_each_get_theirs() -> None:
    """A login for another call is no attempt of this one, however many of them it has to wait for."""

    async def slowly(url: str) -> str:
        await anyio.sleep(0.02)
        return await visit(url)

    names = ["a", "b", "c", "d"]
    found: list[str] = []
    async with served(ScopeOfEachName) as world, connect(world.url, auth=world.oauth(visit=slowly)) as client:

        async def call(name: str) -> None:
            result: Any = await client.call_tool("greet", {"name": name})
            found.append(result.content[0].text)

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                for each in names:
                    group.start_soon(call, each)

        assert [f"Hello, {each}!" for each in names] == sorted(found)
        assert 5 == len(world.logins)


async def test_a_403_that_is_not_about_scopes_asks_no_person() -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        world.overrides["/mcp"] = (403, {"www-authenticate": 'Basic realm="proxy"'}, b"blocked")
        with pytest.raises(HttpRefused, match="blocked"):
            await client.call_tool("greet", {"name": "Ann"})

        assert 1 == len(world.logins)


# --- clients and authorization servers


@spec("2025-06-18", "basic/authorization#token-handling", "58e25896")
@spec("2025-11-25", "basic/authorization#token-handling", "58e25896")
@spec("2026-07-28", "basic/authorization/authorization-server-discovery#authorization-server-location", "911bb237")
@spec("2026-07-28", "basic/authorization/client-registration#authorization-server-binding", "61f83f49", "67621068")
@spec("2026-07-28", "basic/authorization/index#token-handling", "a63356dc")
async def test_a_registration_is_used_again_at_its_own_authorization_server(tmp_path: Path) -> None:
    async with login_world() as world, login_world() as other:
        store = FileTokenStore(tmp_path)
        await greet(world, world.oauth(store=store))
        world.revoke()
        world.refreshable.clear()
        other.resource["authorization_servers"] = world.resource["authorization_servers"] = [other.origin]
        with pytest.raises(LoginFailed, match="issued for it just now"):  # it takes no tokens of the other one
            await greet(world, world.oauth(store=store))

        assert (1, 1) == (len(world.registrations), len(other.registrations))
        assert [] == [each for each in other.forms if each["grant_type"] == "refresh_token"]


@spec("2025-11-25", "basic/authorization#preregistration", "96747a75")
@pytest.mark.parametrize("client_id", [None, "given"])
async def test_the_order_of_the_authorization_servers_does_not_matter_once_one_is_used(client_id: str | None) -> None:
    async with login_world() as world, connect(world.url, auth=world.oauth(client_id=client_id)) as client:
        world.revoke()
        world.refreshable.clear()
        world.resource["authorization_servers"].insert(0, f"{world.origin}/other")
        await client.call_tool("greet", {"name": "Ann"})

        assert (2, 0 if client_id else 1) == (len(world.logins), len(world.registrations))


async def test_a_client_registers_again_if_the_authorization_server_no_longer_knows_it() -> None:
    async with login_world() as world:
        oauth = world.oauth()
        await greet(world, oauth)
        world.revoke()
        token = world._token
        world._token = lambda form: (  # type: ignore[method-assign]
            (401, {"error": "invalid_client"}) if form["grant_type"] == "refresh_token" else token(form)
        )

        assert "Hello, Ann!" == await greet(world, oauth)
        assert ["client-1", "client-2"] == [each["client_id"] for each in world.logins]


async def test_a_client_registers_again_after_a_login_page_that_did_not_come_back() -> None:
    """The page may have said that it does not know the client; the authorization server then does not redirect."""

    async def stay(page: str) -> None:
        pages.append(query_of(page)["client_id"])

    pages: list[str] = []
    async with login_world() as world:
        store = MemoryTokenStore()
        await greet(world, world.oauth(store=store))
        world.revoke()
        world.refreshable.clear()
        for _ in range(2):
            with pytest.raises(LoginFailed, match="was not completed"):
                await greet(world, world.oauth(store=store, visit=stay, login_seconds=0.1))

    assert ["client-1", "client-2"] == pages


async def test_a_refresh_authenticates_with_the_secret_that_the_program_has_now() -> None:
    async with login_world() as world:
        options: dict[str, Any] = {"client_id": "c", "issuer": world.origin, "store": MemoryTokenStore()}
        await greet(world, world.oauth(client_secret="old", **options))  # noqa: S106 (of a test)
        world.revoke()
        await greet(world, world.oauth(client_secret="new", **options))  # noqa: S106 (of a test)
        world.revoke()
        await greet(world, world.oauth(**options))

        basic = [b64decode(each.removeprefix("Basic ")) for each in world.authorizations]
        assert ([b"c:old", b"c:new", b"c:new"], 1) == (basic, len(world.logins))


@spec("2026-07-28", "basic/authorization/client-registration#authorization-server-binding", "06ddadce")
@spec("2026-07-28", "basic/authorization/client-registration#pre-registration", "7ce22f2e")
async def test_a_given_client_is_not_used_at_another_authorization_server(tmp_path: Path) -> None:
    async with login_world() as world, login_world() as other:
        store = FileTokenStore(tmp_path)
        oauth = world.oauth(store=store, client_id="mine", client_secret="s3cret")  # noqa: S106 (of a test)
        await greet(world, oauth)
        world.revoke()
        world.resource["authorization_servers"] = [other.origin]
        with pytest.raises(LoginFailed, match="registered with another one") as raised:
            await greet(world, oauth)

        assert [] == other.forms
        assert error_text(raised.value).endswith("run `mcpgen login --client-id ID --issuer ISSUER URL`")


async def test_a_code_is_worth_nothing_to_a_program_that_has_taken_the_port_of_the_redirect() -> None:
    """Incident: with a metadata document, any program of the machine can pretend to be the client."""
    seen: list[str] = []

    async def robbed(page: str) -> str:
        seen.extend((page, await visit(page)))
        return seen[-1]

    async with login_world() as world:
        world.metadata["client_id_metadata_document_supported"] = True
        oauth = world.oauth(client_metadata_url="https://client.example/c.json", visit=robbed)
        await greet(world, oauth)
        verifier = world.forms[0]["code_verifier"]

    assert [] == [each for each in seen if verifier in each]
    assert "S256" == query_of(seen[0])["code_challenge_method"]


@spec("2025-11-25", "basic/authorization#client-id-metadata-documents", "95ce47bf")
@spec("2025-11-25", "basic/authorization#implementation-requirements", "5fa19580")
@spec("2025-11-25", "basic/authorization#overview", "7f5059ed")
@spec("2026-07-28", "basic/authorization/client-registration#client-id-metadata-documents", "fbdf5191")
@spec("2026-07-28", "basic/authorization/client-registration#implementation-requirements", "62255cfc")
@spec("2026-07-28", "basic/authorization/index#overview", "bda58440")
async def test_a_client_metadata_document_is_the_id_where_it_is_supported() -> None:
    async with login_world() as world:
        world.metadata["client_id_metadata_document_supported"] = True
        await greet(world, world.oauth(client_metadata_url="https://client.example/c.json"))

        assert "https://client.example/c.json" == world.logins[0]["client_id"]
        assert [] == world.registrations


@spec(
    "2026-07-28",
    "basic/authorization/client-registration#application-type-and-redirect-uri-constraints",
    "93842c3b",
    "c1234aff",
)
async def test_a_client_registers_again_where_it_may_request_only_the_scopes_of_its_registration() -> None:
    async with login_world() as world:
        world.is_strict = True
        async with connect(world.url, auth=world.oauth(visit=browse)) as client:
            world.needed = ["write"]
            await client.call_tool("greet", {"name": "Ann"})

        scopes = [set(each.get("scope", "").split()) for each in world.registrations]
        first = {"read", "offline_access"}
        assert [set(), first, first | {"write"}] == scopes
        assert 4 == len(world.logins)  # each time, the first one was refused


async def test_a_scope_that_does_not_exist_ends_the_login_after_one_more_registration() -> None:
    async with login_world() as world:
        refusing = world.oauth(
            visit=lambda page: f"http://127.0.0.1/?error=invalid_scope&state={query_of(page)['state']}"
        )
        with pytest.raises(LoginFailed, match="answered with an error: invalid_scope"):
            await connect(world.url, auth=refusing)

        assert 2 == len(world.registrations)


@pytest.mark.parametrize("adds", ["resource", "issuer"])
async def test_a_slash_at_the_end_of_an_issuer_does_not_matter_unless_the_program_names_it(adds: str) -> None:
    """The Python SDK 1.x adds it to the resource metadata."""
    async with login_world() as world:
        if adds == "resource":
            world.resource["authorization_servers"] = [f"{world.origin}/"]
        else:
            world.metadata["issuer"] += "/"
        assert "Hello, Ann!" == await greet(world, world.oauth())

        other = world.resource["authorization_servers"][0]
        assert other != world.metadata["issuer"]
        with pytest.raises(LoginFailed, match="names another one") as raised:
            await greet(world, world.oauth(issuer=other))
        assert "if that one is right, run `mcpgen login --issuer ISSUER URL`" in error_text(raised.value)


async def test_a_client_gets_a_secret_where_no_public_client_may_register() -> None:
    """RFC 8414, section 2: without a list of methods, an authorization server supports client_secret_basic."""
    async with served(ConfidentialWorld) as world:
        assert "Hello, Ann!" == await greet(world, world.oauth())
        assert ["none", "client_secret_basic"] == world.methods
        assert f"Basic {b64encode(b'c:s').decode()}" == world.authorizations[-1]


class ConfidentialWorld(LoginWorld):
    """Registers only clients with a secret, and does not say so."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.methods: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") != "/register":
            await super().__call__(scope, receive, send)
            return
        self.methods.append(json.loads(await whole(receive))["token_endpoint_auth_method"])
        if self.methods[-1] == "none":
            await answer_json(send, 400, {"error": "invalid_client_metadata"})
        else:
            await answer_json(send, 201, {"client_id": "c", "client_secret": "s"})


async def test_a_refused_registration_says_what_to_do() -> None:
    async with login_world() as world:
        world.overrides["/register"] = (400, {}, b'{"error": "invalid_redirect_uri"}')
        with pytest.raises(LoginFailed, match=r"invalid_redirect_uri; register it there, and pass OAuth\(client_id"):
            await greet(world, world.oauth())


@spec("2025-11-25", "basic/authorization#authorization-code-protection", "51dbdffa", "b4400b1d")
@spec(
    "2026-07-28",
    "basic/authorization/security-considerations#authorization-code-protection",
    "a051d37e",
    "cabef9b9",
)
@pytest.mark.parametrize("has_resource_metadata", [True, False])
async def test_a_server_that_does_not_list_pkce_needs_the_word_of_the_program(
    has_resource_metadata: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    """Incident: Entra ID does not list PKCE in its metadata (typescript-sdk 832, 2718)."""
    async with login_world() as world:
        if not has_resource_metadata:
            world.overrides[PRM] = (404, {}, b"")
        del world.metadata["code_challenge_methods_supported"]
        with pytest.raises(LoginFailed, match="assume_pkce"):
            await greet(world, world.oauth())
        assert [] == world.logins

        await greet(world, world.oauth(assume_pkce=True))


@spec("2025-03-26", "basic/authorization#fallbacks-for-servers-without-metadata-discovery", "19372183", "227d9164")
@spec("2025-03-26", "basic/authorization#server-metadata-discovery-headers")
async def test_a_server_of_2025_03_26_has_default_endpoints_and_no_resource() -> None:
    async with login_world() as world:
        for path in (PRM, METADATA):
            world.overrides[path] = (404, {}, b"")
        await greet(world, world.oauth())

        assert "resource" not in world.logins[0]
        assert "resource" not in world.forms[0]
        assert "POST /register" in world.asked


@spec("2025-06-18", "basic/authorization#overview", "230dda47")
@spec("2025-11-25", "basic/authorization#overview", "230dda47")
@spec("2026-07-28", "basic/authorization/index#overview", "c95fadfb")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_client_without_2025_03_26_does_not_log_in_by_its_rules(revision: str) -> None:
    async with login_world() as world:
        world.overrides[PRM] = (404, {}, b"")
        with pytest.raises(LoginFailed, match="or `revisions` has to allow 2025-03-26") as raised:
            await greet(world, world.oauth(), revisions=[revision])

        assert "or `--revision` has to allow 2025-03-26" in error_text(raised.value)
        assert {f"GET {PRM}", "GET /.well-known/oauth-protected-resource"} >= set(world.asked)


@spec("2025-11-25", "basic/authorization#resource-parameter-implementation", "c612ba04")
@spec(
    "2026-07-28",
    "basic/authorization/security-considerations#token-audience-binding-and-validation",
    "4638c2c1",
)
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_client_without_2025_03_26_does_not_refresh_what_its_rules_have_got(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with login_world() as world:
        oauth = world.oauth()
        world.overrides[PRM] = (404, {}, b"")
        world.lifetime = 25  # it is refreshed some time before its end
        await greet(world, oauth)
        del world.overrides[PRM]
        world.forms.clear()
        await greet(world, oauth, revisions=[revision])
        assert [] == world.forms

        world.revoke()
        world.lifetime = 3600
        later = time.time() + 30
        monkeypatch.setattr("time.time", lambda: later)
        await greet(world, oauth, revisions=[revision])

        assert [("authorization_code", world.url)] == [(form["grant_type"], form["resource"]) for form in world.forms]
        assert world.url == world.logins[1]["resource"]


async def test_an_overloaded_server_is_not_taken_for_an_old_one() -> None:
    async with login_world() as world:
        world.overrides[PRM] = (503, {}, b"")
        with pytest.raises(LoginFailed, match="503; try again later"):
            await greet(world, world.oauth())

        assert f"GET {METADATA}" not in world.asked


@spec("2025-03-26", "basic/authorization#overview", "f1221d76")
@pytest.mark.parametrize("status", [429, 503])
async def test_an_overloaded_old_server_is_not_taken_for_one_without_metadata(status: int) -> None:
    async with login_world() as world:
        world.overrides[PRM] = (404, {}, b"")
        world.overrides[METADATA] = (status, {}, b"")
        with pytest.raises(LoginFailed, match=f"answered {status}; try again later"):
            await greet(world, world.oauth())

        assert ([], []) == (world.registrations, world.logins)


@spec("2025-11-25", "basic/authorization#protected-resource-metadata-discovery-requirements", "c154bd6e")
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
    "b318e095",
)
async def test_the_metadata_of_a_resource_is_looked_for_at_the_root_though_another_url_fails() -> None:
    async with login_world() as world:
        world.overrides[PRM] = (503, {}, b"")
        world.overrides[PRM.removesuffix("/mcp")] = (200, {}, json.dumps(world.resource).encode())

        assert "Hello, Ann!" == await greet(world, world.oauth())


@spec("2025-11-25", "basic/authorization#authorization-server-metadata-discovery", "ae789ad9")
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery",
    "b66a2ef6",
)
@pytest.mark.parametrize(
    ("failure", "status", "padding"),
    [("503; try again later", 503, 0), ("names another one", 200, 0), ("sent more than 512 KiB", 200, 600_000)],
)
async def test_metadata_is_looked_for_at_all_urls_though_one_fails_or_has_that_of_another_server(
    failure: str, status: int, padding: int
) -> None:
    async with login_world() as world:
        found = {**world.metadata, "issuer": f"{world.origin}/tenant1"}
        world.resource["authorization_servers"] = [found["issuer"]]
        first, *_, last = urls = [f"{METADATA}/tenant1", f"{OIDC}/tenant1", f"/tenant1{OIDC}"]
        world.overrides[first] = (status, {}, json.dumps(world.metadata).encode().ljust(padding))
        with pytest.raises(LoginFailed, match=failure):
            await greet(world, world.oauth())

        world.asked.clear()
        world.overrides[last] = (200, {}, json.dumps(found).encode())
        world.metadata["issuer"] = found["issuer"]  # that of the redirect from the login page

        assert "Hello, Ann!" == await greet(world, world.oauth())
        assert [f"GET {PRM}", *(f"GET {each}" for each in urls)] == world.asked[:4]


# --- no person, and no secrets


async def test_a_program_without_a_person_is_not_told_to_log_in_where_there_is_no_login_page() -> None:
    async with login_world() as world:
        del world.metadata["authorization_endpoint"]
        with pytest.raises(LoginFailed, match="has no login page; use ClientCredentials"):
            await greet(world, world.oauth(interactive=False))


async def test_without_a_person_a_login_is_needed_and_nothing_is_registered() -> None:
    async with login_world() as world:
        with pytest.raises(LoginNeeded, match="log in once with the same options of OAuth, but with interactive=True"):
            await greet(world, world.oauth(interactive=False))

        assert [] == world.registrations


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({}, "run `mcpgen login https://a/mcp`"),
        ({"store": MemoryTokenStore()}, "log in once with the same options"),
        ({"client_name": "mine"}, "log in once with the same options"),
        ({"client_id": "mine"}, "log in once with the same options"),
        ({"dpop": "on"}, "log in once with the same options"),
    ],
    ids=str,
)
def test_the_advice_is_the_command_if_the_program_uses_its_tokens(options: dict[str, Any], advice: str) -> None:
    oauth = OAuth(interactive=False, **options)

    assert advice in str(LoginNeeded("https://a/mcp", shares_tokens=oauth.shares_tokens))


def test_a_url_whose_query_is_hidden_is_no_argument_of_the_command() -> None:
    assert "`mcpgen login` with the whole URL" in str(LoginNeeded("https://a/mcp?…"))


@pytest.mark.parametrize("challenge", ["", "Bearer"])
async def test_without_a_person_and_an_authorization_server_the_401_itself_is_raised(challenge: str) -> None:
    async with login_world() as world:
        for path in (PRM, METADATA, "/register"):
            world.overrides[path] = (404, {}, b"")
        world.overrides["/mcp"] = (401, {"www-authenticate": challenge} if challenge else {}, b"who are you?")
        with pytest.raises(HttpRefused, match=r"pass Http\(url, auth=bearer\(token\)\), or headers.*who are you"):
            await greet(world, world.oauth(interactive=False))
        with pytest.raises(LoginFailed, match="names no authorization server"):
            await greet(world, world.oauth())


async def test_a_login_that_nobody_ends_fails_after_its_time() -> None:
    async def never(url: str) -> None:
        await anyio.sleep_forever()

    async with login_world() as world:
        with pytest.raises(LoginFailed, match=r"was not completed within 0\.2 seconds"):
            await greet(world, world.oauth(visit=never, login_seconds=0.2))


async def test_an_error_of_the_function_that_shows_the_page_ends_the_login() -> None:
    async def broken(url: str) -> str:
        raise ZeroDivisionError

    async with login_world() as world:
        with pytest.raises(LoginFailed, match="`visit` raised ZeroDivisionError"):
            await greet(world, world.oauth(visit=broken))


async def test_no_secret_is_logged_or_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    async with login_world() as world:
        oauth = world.oauth(client_id="mine", client_secret="s3cret")  # noqa: S106 (of a test)
        async with connect(world.url, auth=oauth) as client:
            tokens = [*world.valid, *world.refreshable]
            world.overrides["/token"] = (400, {}, b'{"error": "server_error"}')
            world.revoke()
            with pytest.raises(LoginFailed) as refused:
                await client.call_tool("greet", {"name": "Ann"})
            shown += [repr(client), repr(oauth), "".join(traceback.format_exception(refused.value))]
        secrets = ["s3cret", *tokens, world.forms[0]["code"], world.forms[0]["code_verifier"], world.logins[0]["state"]]
    shown += [each.getMessage() for each in caplog.records if each.name.startswith("mcpgen")]

    assert [] == [each for each in secrets for text in shown if each in text]


@spec("2025-03-26", "basic/authorization#security-considerations", "70965cf6")
@spec("2025-06-18", "basic/authorization#communication-security", "fba62df9")
@spec("2025-11-25", "basic/authorization#communication-security", "fba62df9")
@spec("2025-11-25", "basic/authorization#implementation-requirements", "22d53e89", "5fa19580")
@spec("2026-07-28", "basic/authorization/client-registration#implementation-requirements", "f87b4037", "62255cfc")
@spec("2026-07-28", "basic/authorization/security-considerations#communication-security", "e2f546f5")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"client_secret": "s"}, "needs `client_id`"),
        ({"client_metadata_url": "http://a.example/c.json"}, "https with a path"),
        ({"client_metadata_url": "https://a.example"}, "https with a path"),
        ({"client_metadata_url": "https:///c.json"}, "https with a path"),
        ({"client_metadata_url": "https://a.example/a b"}, "https with a path"),
        ({"client_metadata_url": "https://a.example/./c.json"}, r"no segment of its path may be \. or \.\."),
        ({"client_metadata_url": "https://a.example/x/../c.json"}, r"no segment of its path may be \. or \.\."),
        ({"client_metadata_url": "https://a.example/x/%2e%2E?y"}, r"no segment of its path may be \. or \.\."),
        ({"client_metadata_url": "https://ann@a.example/c.json"}, "no user name and no fragment"),
        ({"client_metadata_url": "https://a.example/c.json#f"}, "no user name and no fragment"),
        ({"redirect_uri": "http://a.example/callback"}, "`redirect_uri` must be"),
        ({"redirect_uri": "https://"}, "`redirect_uri` must be"),
        ({"redirect_uri": "https:///callback"}, "`redirect_uri` must be"),
        ({"redirect_uri": "http://localhost/call back"}, "`redirect_uri` must be"),
        ({"redirect_uri": "http://localhost/callback#f"}, "`redirect_uri` must be"),
        ({"scopes": "read write"}, r"must be a list, such as \['read', 'write'\]"),
        ({"scopes": ["a b"]}, "not a scope"),
        ({"issuer": "example.com"}, "`issuer` must be the URL"),
        ({"dpop": True}, "`dpop` must be off, auto or on"),
        ({"store": {}}, "`store` must be a TokenStore"),
        ({"login_seconds": 0}, "greater than 0"),
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        OAuth(**options)


def test_auth_is_for_a_url() -> None:
    for target in ("python server.py", Server("s")):
        with pytest.raises(UsageError, match="`auth` is for a URL, but `target` is not a URL; leave `auth` out"):
            connect(target, auth=OAuth(store=MemoryTokenStore()))
    with pytest.raises(UsageError, match="write it into the transport"):
        connect(Http("http://127.0.0.1:1/mcp"), auth=OAuth(store=MemoryTokenStore()))
    connect("http://127.0.0.1:1/mcp", auth=httpx.BasicAuth("a", "b"))
