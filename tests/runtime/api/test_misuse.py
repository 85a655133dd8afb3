"""What people do in the way people do it, and what they are told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Server, UsageError, connect, connect_sync
from mcpgen.runtime.client.era_cache import EraCache
from mcpgen.runtime.errors import UnknownRevision
from mcpgen.runtime.transports.memory import Memory
from mcpgen.testing import connect_as

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

pytestmark = pytest.mark.anyio

server = Server("misused", version="1.0")


@server.tool
def echo(text: str) -> str:
    return text


class Known(Memory):
    """A server whose era is remembered, as a process's is."""

    @property
    def identity(self) -> Hashable | None:
        return "known"


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgen.runtime.api.connect._ERAS", EraCache())


async def test_a_client_in_an_older_revision_points_to_its_methods() -> None:
    with pytest.raises(
        UsageError, match=r"connect_sync\(\) has no option `native_revision`; leave it out, or use connect\(\)"
    ):
        connect_sync(server, native_revision="2025-06-18")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"connect_sync\(\) has no option `x`; the options are [a-z_, ]+, limits$"):
        connect_sync(server, x=1)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"write connect_sync\(Http\(url, headers=…\)\)"):
        connect_sync(server, headers={})  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"connect_as\(\) has no option `x`; the options are (?!.*revision)"):
        connect_as(server, "2025-06-18", x=1)  # type: ignore[call-arg]
    async with connect(server, native_revision="2025-06-18") as client:
        with pytest.raises(AttributeError, match=r"has no `call_tool`; use ClientMethods\(client\)"):
            _ = client.call_tool  # type: ignore[attr-defined]


@pytest.mark.spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@pytest.mark.parametrize("pinned", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_a_client_without_a_choice_teaches_the_next_one_nothing(pinned: str) -> None:
    async with connect(Known(server), revisions=[pinned]) as client:
        assert pinned == client.revision
    async with connect(Known(server)) as client:
        assert "2026-07-28" == client.revision


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"args": {}}, "a request has no option `args`; call_tool(), start_tool() and get_prompt() have `arguments`"),
        ({"timeout": 3}, "a request has no option `timeout`; did you mean `timeout_seconds`?"),
        ({"progress_callback": 3}, "a request has no option `progress_callback`; did you mean `on_progress`?"),
        ({"on_progres": 3}, "a request has no option `on_progres`; did you mean `on_progress`?"),
        ({"task": True}, "a request has no option `task`; call start_tool() to start a tool as a task"),
        (
            {"message": "x"},
            (
                "a request has no option `message`; the options are on_progress, timeout_seconds, meta; arguments of a "
                "tool or prompt go into one dict, such as {'message': …}"
            ),
        ),
        (
            {"title": "x"},
            (
                "a request has no option `title`; the options are on_progress, timeout_seconds, meta; arguments of a "
                "tool or prompt go into one dict, such as {'title': …}"
            ),
        ),
        ({"timeout_seconds": "3"}, "`timeout_seconds` must be a number, not '3'"),
        ({"timeout_seconds": True}, "`timeout_seconds` must be a number, not True"),
        ({"meta": 3}, "`meta` must be a mapping, such as {'com.example/key': 1}, not 3"),
        ({"on_progress": 3}, "`on_progress` must be a function of progress, total and message, not 3"),
        ({"arguments": "dune"}, "`arguments` must be a mapping, such as {'name': 'value'}, not 'dune'"),
    ],
)
async def test_a_request_says_which_of_its_options_is_wrong(options: dict[str, Any], said: str) -> None:
    async with connect(server) as client:
        with pytest.raises(UsageError) as failure:
            await client.call_tool("echo", **options)

        assert said == str(failure.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"env": {}}, "connect() has no option `env`; write connect(Process(command, environment=…))"),
        (
            {"timeout_seconds": 3},
            "connect() has no option `timeout_seconds`; time limits are options of ClientLimits: ",
        ),
        ({"elicitt": None}, "connect() has no option `elicitt`; did you mean `elicit`?"),
        ({"protocol_version": "2025-11-25"}, "connect() has no option `protocol_version`; the options are elicit, "),
        ({"native_revison": None}, "connect() has no option `native_revison`; did you mean `native_revision`?"),
        (
            {"elicit": lambda params: params},
            "`elicit` must be a function that takes params and a context, but <lambda>() takes (params)",
        ),
        ({"roots": lambda: [None]}, "`roots` must be a function that takes a context, but <lambda>() takes ()"),
    ],
)
async def test_connect_says_where_an_option_belongs(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as failure:
        connect(server, **options)

    assert str(failure.value).startswith(said)


async def test_a_connection_that_was_not_awaited_says_so() -> None:
    forgotten: Any = connect(server)

    with pytest.raises(
        AttributeError, match="has no `call_tool`; open it to get the client: write `async with connect"
    ):
        await forgotten.call_tool("echo")


async def test_a_client_is_closed_by_the_block_that_it_is_used_in() -> None:
    async with await connect(server) as client:
        await client.ping()

    assert client._engine.session.failure is not None


def test_a_client_is_neither_used_nor_closed_on_another_loop() -> None:
    async def use() -> None:
        client = await connect(server)
        for action in (client.ping, client.close):
            with pytest.raises(UsageError, match="belongs to another event loop"):
                await anyio.to_thread.run_sync(asyncio.run, action())
        await client.ping()
        await client.close()
        await anyio.to_thread.run_sync(asyncio.run, client.close())  # there is nothing left to close

    anyio.run(use)


async def test_a_command_that_is_a_python_file_is_told_as_python_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.py").touch()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match=r"did you mean 'python server\.py'\?"):
        await connect("server.py")


@pytest.mark.parametrize("revision", ["2025-06-19", ["2025-06-18"]])
def test_a_native_revision_that_is_none_is_named_with_its_argument(revision: Any) -> None:
    with pytest.raises(UnknownRevision) as failure:
        connect(server, native_revision=revision)

    assert str(failure.value).startswith(f"`native_revision` is {revision!r}; the known revisions are 2024-11-05, ")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("missing.py", "there is no file missing.py"),
        (["python server.py"], "write each argument as a separate word, or as a separate item of a list"),
        ("localhost:8000/mcp", "did you mean http://localhost:8000/mcp?"),
        ("[::1]:8000", "did you mean http://[::1]:8000?"),
        ("https:/example.com/mcp", "did you mean https://example.com/mcp?"),
        ("./missing/mcp", "the program, or the interpreter in its first line"),
    ],
)
async def test_a_command_that_is_none_is_told_as_the_one_that_is_meant(command: Any, said: str) -> None:
    with pytest.raises(UsageError, match="cannot be started") as failure:
        await connect(command)

    assert said in str(failure.value)
