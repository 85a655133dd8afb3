"""The blocking group does what the asynchronous one does, and its clients share its thread."""

from __future__ import annotations

import inspect
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import (
    ClientGroup,
    NoServerConnected,
    SyncClient,
    SyncClientGroup,
    TransportClosed,
    UsageError,
    connect_sync,
)

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
from mcpgen import Server

server = Server("one")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

@server.resource("one:text")
def text() -> str:
    return "text"
"""


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "one.py").write_text(SERVER, encoding="utf-8")
    arguments = ["-P", "-m", "mcpgen", "serve", str(tmp_path / "one.py")]
    one = {"command": sys.executable, "args": arguments}
    return {"mcpServers": {"a": one, "b": one, "broken": {"command": "no-such-program"}}}


def test_it_has_each_method_of_a_group_with_its_signature() -> None:
    public = {name for name in dir(ClientGroup) if not name.startswith("_")}

    assert public == {name for name in dir(SyncClientGroup) if not name.startswith("_")}
    for name in public - {"close"}:
        mine, theirs = getattr(SyncClientGroup, name), getattr(ClientGroup, name)
        assert mine.__doc__ == theirs.__doc__
        if not isinstance(theirs, property):
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(theirs).parameters)


@pytest.mark.slow
def test_requests_wait_for_their_results_and_no_thread_is_left(config: dict[str, Any]) -> None:
    before = set(threading.enumerate())
    with connect_sync(config) as group:
        assert isinstance(group, SyncClientGroup)
        assert ["a_add", "b_add"] == [each.name for each in group.tools()]
        assert 3 == group.call_tool("b_add", {"a": 1, "b": 2}, returns=int)
        assert ["broken"] == list(group.failures)
        assert "<SyncClientGroup of 'a', 'b', 'broken'; not connected: 'broken'>" == repr(group)
        assert isinstance(group["a"], SyncClient)
        assert 3 == group["a"].call_tool("add", {"a": 1, "b": 2}, returns=int)
        assert ["a", "b"] == list(group.clients)
        with pytest.raises(TransportClosed, match="the server 'broken' is not connected"):
            group["broken"]
        with pytest.raises(UsageError, match="the group has no server 'c'"):
            group["c"]

    assert set(threading.enumerate()) <= before  # those of earlier tests may end meanwhile


@pytest.mark.slow
def test_a_client_that_is_closed_leaves_the_others_open(config: dict[str, Any]) -> None:
    with connect_sync(config) as group:
        group["a"].close()

        assert 3 == group.call_tool("b_add", {"a": 1, "b": 2}, returns=int)
        with pytest.raises(TransportClosed):
            group.call_tool("a_add", {"a": 1, "b": 2})
    with pytest.raises(TransportClosed):
        group["b"].ping()


def test_a_failed_start_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with pytest.raises(NoServerConnected):
        connect_sync({"mcpServers": {"a": {"command": "no-such-program"}}})

    assert set(threading.enumerate()) <= before  # those of earlier tests may end meanwhile
