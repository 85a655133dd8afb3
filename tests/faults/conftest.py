"""What the tests of faults share."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from mcpgen.generated.registry import REVISIONS
from tests.faults import hostile_server_clients
from tests.faults.shared_http_servers import SHORT, opened, unharmed
from tests.harness import child_programs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from tests.faults.http_server_process import House


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio: what differs between event loops is tested with processes."""
    return "asyncio"


@pytest.fixture(params=[each.label for each in REVISIONS])
def revision(request: pytest.FixtureRequest) -> str:
    """Return each revision that there is."""
    return str(request.param)


@pytest.fixture
def no_process_is_left() -> Generator[None]:
    """See that every process which a client has started, and all that those have started, is gone."""
    yield
    left = child_programs.clear()
    dead = child_programs.own_zombies()
    for pid in dead:  # so that the next test does not find them
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    assert [] == left
    assert [] == dead


@pytest.fixture
async def nothing_is_left(no_process_is_left: None) -> AsyncGenerator[None]:
    """See that there are no more tasks and descriptors than before, and no processes."""
    del no_process_is_left
    before = hostile_server_clients.standing()
    yield
    after = await hostile_server_clients.settled(before)

    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)


@pytest.fixture(scope="module")
def running() -> Generator[House]:
    """Return a server that tests of a module share, in a process of its own; a module may give it other bounds."""
    with opened(**SHORT) as made:
        yield made


@pytest.fixture
def house(running: House) -> Generator[House]:
    """Return that server, and see that it is none the worse afterwards."""
    with unharmed(running):
        yield running
