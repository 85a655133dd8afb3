"""One session's messages never reach another's stream: many sessions do random things at once, and all is marked.

A mark is in everything that a client sends, and thus in everything that is said to it: in the text of tools, of
progress and of log entries, in questions, in the resources that it watches, and in the ids of its requests.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mcpgen.runtime.limits import HttpLimits
from tests.faults.http_applications import attacked_site
from tests.faults.http_faulty_handlers import Guest
from tests.specification.http_server.http_clients import STATELESS, Caller, cancellation, joined, old_joined
from tests.specification.http_server.revision_sets import SESSIONS

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Exchange
    from tests.specification.http_server.http_site import Site

pytestmark = pytest.mark.slow

MARK = re.compile(r"mark-[0-9]+-")
PROGRESS = '"progressToken":"{}"'
ABLE = '{"elicitation":{}}'
LOGS = '"io.modelcontextprotocol/logLevel":"debug"'


class Member:
    """A client that does random things, each with its mark.

    Attributes:
        mark: What nobody else says.
        exchanges: Its own.
    """

    def __init__(self, peer: Caller, number: int, random: Random) -> None:
        self.mark = f"mark-{number}-"
        self.peer = peer
        self.random = random
        self.exchanges: list[Exchange] = []
        self._last = 0

    def call(self, tool: str, **arguments: Any) -> Exchange:
        """Call a tool, in whatever a client may give."""
        self._last += 1
        meta = PROGRESS.format(f"{self.mark}{self._last}")
        meta += f",{LOGS}" if self.peer.is_stateless else ""
        made = self.peer.call(tool, json.dumps(arguments), meta, identity=f"{self.mark}{self._last}")
        self.exchanges.append(made)
        return made

    async def act(self) -> None:
        """Do something."""
        self.random.choice(
            [self._call, self._call, self._call, self._watch, self._listen, self._cancel, self._leave, self._come_back]
        )()
        for _ in range(self.random.randint(0, 3)):
            await checkpoint()

    def _call(self) -> None:
        match self.random.choice(["ask", "echo", "hang_up", "step", "tell", "wait"]):
            case "tell":
                self.call("tell", mark=self.mark, count=self.random.randint(1, 5))
            case "ask" | "hang_up" as tool:
                self.call(tool, mark=self.mark)
            case tool:
                self.call(tool, text=self.mark)

    def _watch(self) -> None:
        if not self.peer.is_stateless:
            self._last += 1
            uri = f'"uri":"note://{self.mark}{self.random.randint(0, 3)}"'
            self.exchanges.append(self.peer.send("resources/subscribe", uri, identity=f"{self.mark}{self._last}"))

    def _listen(self) -> None:
        if self.peer.session is not None:
            self.exchanges.append(self.peer.listen())

    def _cancel(self) -> None:
        if self._last and not self.peer.is_stateless:
            self.peer.post(cancellation(f"{self.mark}{self.random.randint(1, self._last)}"))

    def _leave(self) -> None:
        if self.exchanges and self.peer.revision != "2024-11-05":
            self.random.choice(self.exchanges).leave()

    def _come_back(self) -> None:
        ids = [one for each in self.exchanges if each.is_stream for one in re.findall(rb"id: (\S+)", each.body)]
        if ids and self.peer.session is not None:
            self.exchanges.append(self.peer.listen(self.random.choice(ids).decode()))

    def answer_all(self) -> None:
        """Answer all questions that were asked here."""
        for each in list(self.exchanges):
            for asked in re.findall(rb"data: (\{.*\"elicitation/create\".*\})", each.body):
                identity = json.dumps(json.loads(asked)["id"])
                content = json.dumps({"name": self.mark})
                result = f'{{"action":"accept","content":{content}}}'
                self.peer.post(f'{{"jsonrpc":"2.0","id":{identity},"result":{result}}}'.encode())

    @property
    def heard(self) -> str:
        """All that came to this client."""
        return b"".join(each.body for each in self.exchanges).decode()


async def members(web: Site, seed: int) -> list[Member]:
    """Return clients of every revision."""
    peers: list[Caller] = []
    for revision in [*SESSIONS, STATELESS]:
        peers += [await joined(web, revision, ABLE) for _ in range(3)]
    peers += [await old_joined(web) for _ in range(2)]
    found = [Member(peer, number, Random(seed * 1000 + number)) for number, peer in enumerate(peers)]  # noqa: S311 (no secret)
    for each in found:
        if hasattr(each.peer, "stream"):
            each.exchanges.append(each.peer.stream)
    return found


async def mingle(seed: int) -> None:
    guest = Guest()
    limits = HttpLimits(stream_after_seconds=0.001)
    async with attacked_site(guest.server, fails=True, limits=limits) as web:
        everybody = await members(web, seed)
        chance = Random(seed)  # noqa: S311 (no secret)
        async with anyio.create_task_group() as group:

            async def live(member: Member) -> None:
                for _ in range(25):
                    await member.act()

            for each in everybody:
                group.start_soon(live, each)
            for _ in range(20):
                await checkpoint()
                await guest.server.resource_updated(f"note://{chance.choice(everybody).mark}{chance.randint(0, 3)}")
        for each in everybody:
            each.answer_all()
        await web.quiet()
        guest.gate.set()
        await web.quiet()
        for each in everybody:
            marks = set(MARK.findall(each.heard))
            assert marks <= {each.mark}, f"{each.peer.revision} has heard {marks - {each.mark}}"
        assert 2 * len([each for each in everybody if each.mark in each.heard]) > len(everybody)
        # Two requests with one id, answers to nothing and the like are what clients should not do, and happen here.
        web.overseer.violations.clear()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(
    max_examples=6,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(seed=st.integers(0, 10**6))
def test_no_message_of_one_session_reaches_another(backend: str, seed: int) -> None:
    anyio.run(mingle, seed, backend=backend)
