"""Servers that say odd things of themselves, or refuse all: a client agrees on a revision, or leaves soon."""

from __future__ import annotations

import json

import pytest

from mcpgen import InvalidPayload, NoCommonRevision, RequestRefused
from tests.faults.hostile_server_clients import NEW, OLD, PATIENT, Stopwatch, attacked, judged, words
from tests.patience import BUSY_SECONDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]

DISCOVERED: dict[str, object] = {
    "no revision": {"supportedVersions": []},
    "unknown revisions": {"supportedVersions": ["2099-01-01", "x"]},
    "thousands of revisions": {"supportedVersions": [f"x{number}" for number in range(40_000)]},
    "a revision of 1 MB": {"supportedVersions": ["x" * 1_000_000]},
    "terminal codes": {"supportedVersions": ["\x1b[2J\x07"]},
}
NO_DISCOVERY: dict[str, object] = {
    "revisions that are numbers": {"supportedVersions": [1]},
    "revisions that are text": {"supportedVersions": NEW},
    "revisions that are null": {"supportedVersions": None},
    "capabilities that are a list": {"capabilities": []},
    "capabilities that are null": {"capabilities": None},
    "tools that are true": {"capabilities": {"tools": True}},
    "instructions that are a number": {"instructions": 1},
    "metadata that is a list": {"_meta": []},
    "a server that is text": {"_meta": {"io.modelcontextprotocol/serverInfo": "x"}},
    "another result": {"resultType": "input_required", "inputRequests": {}},
    "a time that is text": {"ttlMs": "x"},
}


@pytest.mark.parametrize("case", DISCOVERED)
async def test_a_server_without_a_revision_in_common_is_left_with_a_short_error(case: str) -> None:
    code = f"answer(asked(), discovered(**json.loads({json.dumps(DISCOVERED[case])!r})))\nignore_all()"
    if case in ("thousands of revisions", "a revision of 1 MB"):  # too long for a command
        versions = '["x%d" % n for n in range(40_000)]' if "thousands" in case else '["x" * 1_000_000]'
        code = f"answer(asked(), discovered(supportedVersions={versions}))\nignore_all()"
    # A probe that times out leads to `initialize`, which such a server answers with something else.
    for revision in (NEW, None):
        with pytest.raises(NoCommonRevision) as caught:
            async with attacked(code, revision, limits=PATIENT):
                pass

        assert len(str(caught.value)) < 2000
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("case", NO_DISCOVERY)
@pytest.mark.slow
async def test_a_discovery_that_is_not_valid_is_none(case: str) -> None:
    code = f"answer(asked(), discovered(**json.loads({json.dumps(NO_DISCOVERY[case])!r})))\n"
    with pytest.raises(InvalidPayload):
        async with attacked(code + "ignore_all()", NEW, limits=PATIENT):
            pass
    async with attacked(code + "greet()\nserve()", None, limits=PATIENT) as client:
        assert ("2025-11-25", "ok") == (client.revision, words(await client.call_tool("x")))


async def test_known_revisions_among_thousands_are_found() -> None:
    code = """
    answer(asked(), discovered(supportedVersions=[f"x{n}" for n in range(20_000)] + [STATELESS] * 1000))
    serve()
    """
    async with attacked(code, None, limits=PATIENT) as client:
        assert (NEW, "ok") == (client.revision, words(await client.call_tool("x")))


INITIALIZED: dict[str, object] = {
    "a revision that does not exist": {"protocolVersion": "2099-01-01"},
    "a revision that was not offered": {"protocolVersion": "2024-11-05"},
    "a revision without a handshake": {"protocolVersion": NEW},
    "a revision that is a number": {"protocolVersion": 20250618},
    "a revision that is null": {"protocolVersion": None},
    "an empty revision": {"protocolVersion": ""},
    "terminal codes": {"protocolVersion": "\x1b[2J\x07"},
    "capabilities that are a list": {"capabilities": []},
    "capabilities that are null": {"capabilities": None},
    "tools that are true": {"capabilities": {"tools": True}},
    "no server": {"serverInfo": None},
    "a server without a name": {"serverInfo": {"version": "1"}},
    "a server with a number as its name": {"serverInfo": {"name": 1, "version": "1"}},
    "instructions that are a list": {"instructions": []},
}


@pytest.mark.parametrize("case", INITIALIZED)
async def test_an_initialize_result_that_is_not_valid_ends_the_conversation(case: str) -> None:
    more = json.dumps(INITIALIZED[case])
    code = f"answer(asked('initialize'), {{**initialized({OLD!r}), **json.loads({more!r})}})\nserve()"
    with pytest.raises((InvalidPayload, NoCommonRevision)) as caught:
        async with judged(code, OLD, limits=PATIENT):
            pass

    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


async def test_an_unknown_revision_of_1_mb_is_reported_in_short() -> None:
    code = f"answer(asked('initialize'), {{**initialized({OLD!r}), 'protocolVersion': 'x' * 1_000_000}})\nserve()"
    with pytest.raises(NoCommonRevision) as caught:
        async with attacked(code):
            pass

    assert len(str(caught.value)) < 1000


ERRORS: dict[str, str] = {
    "nothing": "",
    "null": ", data=None",
    "a list": ", data=[]",
    "no list": ", data={'supported': 'x'}",
    "an empty list": ", data={'supported': [], 'requested': 'x'}",
    "unknown ones": ", data={'supported': ['x'], 'requested': 'x'}",
    "thousands": ", data={'supported': [f'x{n}' for n in range(40_000)], 'requested': 'x'}",
    "long ones": ", data={'supported': ['x' * 1_000_000], 'requested': 'x'}",
    "what was refused": ", data={'supported': [STATELESS], 'requested': STATELESS}",
}


@pytest.mark.parametrize("revision", [OLD, NEW, None])
@pytest.mark.parametrize(
    ("code", "data"),
    [*((-32022, each) for each in ERRORS), *((each, "nothing") for each in (-32020, -32021, -32600, -32601, 0, 1))],
)
@pytest.mark.slow
async def test_a_server_that_refuses_everything_is_left_soon(data: str, code: int, revision: str | None) -> None:
    with Stopwatch() as watch, pytest.raises((NoCommonRevision, RequestRefused)) as caught:
        async with attacked(f"while True:\n    refuse(asked(), {code}{ERRORS[data]})", revision, limits=PATIENT):
            pass

    assert len(str(caught.value)) < 2000
    assert watch.seconds < BUSY_SECONDS


async def test_messages_of_1_mb_are_not_lost_and_not_shown() -> None:
    async with attacked("greet()\nrefuse(asked(), 1, 'x' * 1_000_000)\nserve()") as client:
        with pytest.raises(RequestRefused) as caught:
            await client.call_tool("x")

        assert "x" * 1_000_000 == caught.value.message
