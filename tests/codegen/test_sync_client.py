"""The blocking client, derived from sources with each construct that a client may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpgen.codegen.sync_client import SYNC_CLIENT, generate_sync_client
from tests.codegen.packages import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

BASE = '''
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

if TYPE_CHECKING:
    from mcpgen.x import Changes, Level


class Helper:
    async def hidden(self) -> None: ...


class BaseClient:
    @property
    def revision(self) -> str:
        """The revision."""
        return ""

    async def close(self) -> None: ...

    async def request(self, method: Any, params: Any = UNSET, /) -> Any:
        """Send. ``ClientMethods(client)`` calls this."""

    def listen(self, *, tools: bool = False) -> Changes:
        """Listen within an ``async with`` block; write ``async for``."""

    async def level(self, level: Level) -> None: ...

    async def _private(self) -> None: ...
'''
CLIENT = '''
from typing import TypeVar, Unpack, overload
from collections.abc import AsyncIterator

from mcpgen.y import Options, T, Tool


class Client(BaseClient):
    @property
    def methods(self) -> object: ...

    @overload
    async def call(self, name: str, /, *, returns: None = None, **options: Unpack[Options]) -> Tool: ...
    @overload
    async def call(self, name: str, /, *, returns: type[T], **options: Unpack[Options]) -> T: ...
    async def call(self, name: str, /, *, returns: object = None, **options: Unpack[Options]) -> object:
        """Call."""

    def tools(self, *names: str) -> AsyncIterator[Tool]:
        """Iterate."""
'''
GROUP = '''
from mcpgen.z import Failure, T, Tool


class ClientGroup:
    @property
    def clients(self) -> dict[str, Client]: ...

    @property
    def failures(self) -> list[Failure]:
        """The failures."""

    async def close(self) -> None: ...

    async def everything(self) -> AsyncIterator[Tool]:
        """Iterate over all."""
        yield
'''


@pytest.fixture
def source(tmp_path: Path) -> str:
    sources = {
        "runtime/client/base_client.py": BASE,
        "runtime/api/client.py": CLIENT,
        "runtime/api/hosts/client_group.py": GROUP,
    }
    for path, text in sources.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return generate_sync_client(tmp_path)[SYNC_CLIENT]


@pytest.mark.parametrize(
    "expected",
    [
        "    @property\n    def revision(self) -> str:",
        "        return self._client.revision\n",
        "    def request(self, method: Any, params: Any = UNSET, /) -> Any:\n",
        "        return self._thread.run(lambda: self._client.request(method, params))\n",
        '        """Send."""\n',
        "    def listen(self, *, tools: bool = False) -> SyncChanges:\n",
        '        """Listen within a ``with`` block; write ``for``."""\n',
        "        return SyncChanges(self._thread, self._client.listen(tools=tools))\n",
        "    def level(self, level: Level) -> None:\n",
        "        return self._thread.run(lambda: self._client.level(level))\n",
        "    @overload\n    def call(self, name: str, /, *, returns: type[T], **options: Unpack[Options]) -> T: ...\n",
        "        return self._thread.run(lambda: self._untyped.call(name, returns=returns, **options))\n",
        "    def tools(self, *names: str) -> Iterator[Tool]:\n",
        "        return self._thread.iterate(self._client.tools(*names))\n",
        "from msgspec import UNSET\nfrom typing import overload\n",
        "    from collections.abc import Iterator\n",
        "    from mcpgen.x import Level\n",
        "    from mcpgen.y import Options\n    from mcpgen.z import Failure, T, Tool\n",
        'class SyncGroupMethods(BlockingClient["ClientGroup"]):\n',
        "    def failures(self) -> list[Failure]:\n",
        "    def everything(self) -> Iterator[Tool]:\n",
        "        return self._thread.iterate(self._client.everything())\n",
    ],
)
def test_each_construct_has_a_blocking_form(source: str, expected: str) -> None:
    assert expected in source


@pytest.mark.parametrize(
    "absent", ["async ", "await ", "hidden", "_private", "def close", "def methods", "def clients"]
)
def test_nothing_else_is_derived(source: str, absent: str) -> None:
    assert absent not in source


@pytest.mark.slow
def test_the_module_in_the_runtime_is_up_to_date() -> None:
    found = (CHECKOUT / "runtime" / "api" / SYNC_CLIENT).read_text(encoding="utf-8")

    assert {SYNC_CLIENT: found} == generate_sync_client(CHECKOUT)


def test_a_checkout_without_a_client_has_none(tmp_path: Path) -> None:
    assert {} == generate_sync_client(tmp_path)
