"""A registered draft can be named wherever a revision can, and changes nothing for a program that does not name it.

Registering holds for a whole process, so each test runs a program of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from mcpgen.codegen.commands import build
from tests.codegen import drafts
from tests.runtime.cli.traced import Traced

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SERVER = """
import mcpgen
import vnext

mcpgen.register(vnext)


class Handlers(vnext.ServerHandlers):
    async def list_tools(self, params, context, /):
        tool = vnext.Tool(name="add", input_schema={"type": "object"}, cost_hint=2)
        return vnext.ListToolsResult(tools=[tool])

    async def call_tool(self, params, context, /):
        return vnext.CallToolResult(content=[vnext.TextContent(text=context.peer.revision)])


server = mcpgen.Server("drafted", version="1", handlers=Handlers(), revisions=["2025-11-25", "2026-07-28", "next"])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the packages `vnext`, which has an adapter, and `valone`, which has none."""
    found = tmp_path_factory.mktemp("project")
    document = drafts.one_field()
    document["$defs"]["Implementation"]["properties"]["contact"] = {"type": "string", "pattern": "[^@]+@[^@]+"}
    (found / "next.json").write_text(json.dumps(document), encoding="utf-8")
    (found / "served.py").write_text(SERVER, encoding="utf-8")
    for label, options in {"next": ["--based-on", drafts.BASE, "--adapters"], "alone": ["--based-on", "none"]}.items():
        arguments = ["--schema", str(found / "next.json"), "--revision", label, "--out", str(found), *options]
        result = CliRunner().invoke(build, arguments)
        assert 0 == result.exit_code, result.output
    return found


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1"}


def run(folder: Path, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        cwd=folder,
        encoding="utf-8",
        env=environment(folder),
        input=text or "",
    )


def said(folder: Path, program: str) -> list[str]:
    """Return the lines that *program* prints; it begins with the imports that most need."""
    head = "import anyio, mcpgen, mcpgen.runtime.adapt, vnext, valone\nfrom mcpgen import Server, connect\n"
    done = run(folder, "-c", head + textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_draft_is_served_to_clients_of_each_revision(folder: Path) -> None:
    lines = said(
        folder,
        """
        from served import server

        async def main():
            for label in ("next", "2026-07-28", "2025-11-25"):
                async with connect(server, revisions=[label]) as client:
                    result = await client.call_tool("add", {})
                    print(client.revision, result.content[0].text)

        anyio.run(main)
        """,
    )

    assert ["next next", "2026-07-28 2026-07-28", "2025-11-25 2025-11-25"] == lines


def test_a_text_that_is_too_long_for_a_pattern_of_the_draft_is_refused(folder: Path) -> None:
    lines = said(
        folder,
        """
        from mcpgen.runtime.transports import memory
        from served import server

        async def main():
            async with memory.wire(server) as wire:
                for length in (3000, 4000):
                    info = {"name": "client", "version": "1", "contact": "a" * length + "@b"}
                    meta = {"protocolVersion": "next", "clientCapabilities": {}, "clientInfo": info}
                    meta = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
                    params = {"name": "add", "_meta": meta}
                    await wire.send({"jsonrpc": "2.0", "id": length, "method": "tools/call", "params": params})
                    answer = await wire.receive()
                    print(answer["id"], answer.get("error", {}).get("message", "served"))

        anyio.run(main)
        """,
    )

    assert "3000 served" == lines[0]
    assert "at most 4000 characters in a text that must match a pattern" in lines[1]


def test_a_client_speaks_the_draft_and_gets_its_types(folder: Path) -> None:
    lines = said(
        folder,
        """
        from served import server

        async def main():
            async with connect(server, revisions=["next"], native_revision="next") as client:
                params = vnext.PaginatedRequestParams(meta=client.meta)
                result = await vnext.ClientMethods(client).list_tools(params)
                print(type(result).__module__, result.tools[0].cost_hint)

        anyio.run(main)
        """,
    )

    assert ["vnext.models 2"] == lines


def test_registering_changes_no_default(folder: Path) -> None:
    program = """
        {register}
        from mcpgen.runtime.protocol.negotiation import selected_revisions
        from mcpgen.runtime.protocol.newest import NEWEST
        from mcpgen.generated.registry import REVISIONS

        server = Server("plain", version="1")

        async def main():
            async with connect(server) as client:
                print(client.revision, client.native_revision)

        anyio.run(main)
        print(NEWEST, selected_revisions(None), [each.label for each in REVISIONS])
        """

    assert said(folder, program.format(register="")) == said(
        folder, program.format(register="assert mcpgen.register('vnext') == mcpgen.register(vnext) == 'next'")
    )


def test_routes_lead_from_each_revision_to_the_draft_and_back(folder: Path) -> None:
    lines = said(
        folder,
        """
        from mcpgen.generated.registry import REVISIONS
        from mcpgen.runtime.adapt import route

        mcpgen.register(vnext)
        for each in REVISIONS:
            down = route("next", each.label, "tools/list", "result")
            tool = {"name": "x", "inputSchema": {"type": "object"}, "costHint": 2}
            there = down.adapt({"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
            back = route(each.label, "next", "tools/list", "result").adapt(there.value)
            print(there.value["tools"], [str(loss.pointer) for loss in there.losses], back.value["ttlMs"])
        """,
    )

    assert len(lines) == 5
    assert all("costHint" not in line.partition("]")[0] and "/tools/0/costHint" in line for line in lines)


def test_a_key_of_the_draft_from_an_older_peer_is_checked(folder: Path) -> None:
    """No step between released revisions knows the key, so only the step to the draft can."""
    lines = said(
        folder,
        """
        from mcpgen.runtime.adapt import route

        mcpgen.register(vnext)
        for hint in (2, "expensive"):
            tool = {"name": "x", "inputSchema": {"type": "object"}, "costHint": hint}
            found = route("2025-03-26", "next", "tools/list", "result").adapt({"tools": [tool]})
            lost = [loss.pointer for loss in found.losses if "cost" in loss.pointer]
            print(found.value["tools"][0].get("costHint"), lost)
        """,
    )

    assert ["2 []", "None ['/tools/0/costHint']"] == lines


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("mcpgen.register('mcpgen.generated.v2025_11_25')", "v2025_11_25, which is part of mcpgen; do not register it"),
        ("mcpgen.register('mcpgen.generated')", "mcpgen.generated, which is part of mcpgen; do not register it"),
        (
            "mcpgen.register('mcpgen.generated.extensions.tasks')",
            "has no bindings of a revision; name a package that `mcpgen build --schema` wrote",
        ),
        ("mcpgen.register('no_such.package')", "there is no package no_such; install it, or add the folder"),
        (
            "mcpgen.register('mcpgen.generated.v2025')",
            "no package mcpgen.generated.v2025; name a package that `mcpgen build --schema` wrote",
        ),
        ("mcpgen.register(vnext); vnext.__name__ = 'other'; mcpgen.register(vnext)", "is taken"),
        (
            "vnext.methods.REVISION = '2025-11-25'; mcpgen.register(vnext)",
            "vnext has the bindings of 2025-11-25; do not register it, but use mcpgen.generated.v2025_11_25",
        ),
        ("Server('x', version='1', revisions=['next'])", "unknown revision 'next'"),
        ("Server('x', version='1', handlers=vnext.ServerHandlers())", "call `mcpgen.register` first"),
        (
            "mcpgen.register(valone); mcpgen.runtime.adapt.route('alone', '2026-07-28', 'tools/list', 'result')",
            "from alone to 2026-07-28: the draft has no adapter",
        ),
        (
            "mcpgen.register(valone); mcpgen.runtime.adapt.definition_route('2025-11-25', 'alone', 'Tool')",
            "from 2026-07-28 to alone: the draft has no adapter",
        ),
    ],
)
def test_a_mistake_is_an_error_that_says_what_to_do(program: str, expected: str, folder: Path) -> None:
    lines = said(folder, f"try:\n    {program}\nexcept mcpgen.McpgenError as error:\n    print(error)\n")

    assert 1 == len(lines)
    assert expected in lines[0]


def test_a_draft_without_an_adapter_is_served_to_its_own_clients(folder: Path) -> None:
    lines = said(
        folder,
        """
        class Handlers(valone.ServerHandlers):
            async def list_tools(self, params, context, /):
                return valone.ListToolsResult(tools=[], result_type="complete", ttl_ms=0, cache_scope="private")

        mcpgen.register(valone)
        server = Server("x", version="1", handlers=Handlers(), revisions=["alone"])

        async def main():
            async with connect(server, revisions=["alone"], native_revision="alone") as client:
                params = valone.PaginatedRequestParams(meta=client.meta)
                print((await valone.ClientMethods(client).list_tools(params)).tools)

        anyio.run(main)
        """,
    )

    assert ["[]"] == lines


def test_an_installed_package_is_found_by_its_label(folder: Path, tmp_path: Path) -> None:
    info = folder / "drafted-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: drafted\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[mcpgen.revisions]\nnext = vnext\nwrong = valone\nnone = json\n", encoding="utf-8"
    )
    program = """
        Server("x", version="1", revisions=["next"])
        Server("x", version="1", handlers=vnext.ServerHandlers(), revisions=["next"])
        for label in ("wrong", "none", "unheard"):
            try:
                Server("x", version="1", revisions=[label])
            except mcpgen.McpgenError as error:
                print(error)
        """
    try:
        lines = said(folder, program)
    finally:
        for each in info.iterdir():
            each.unlink()
        info.rmdir()

    assert "the entry point wrong of mcpgen.revisions leads to valone, whose label is alone" in lines[0]
    assert "the entry point none of mcpgen.revisions leads to json, which has no bindings of a revision" in lines[1]
    assert lines[2].startswith("unknown revision 'unheard'")


COMMAND = ("-m", "mcpgen", "--register", "vnext")


def test_commands_know_a_draft_that_is_registered(folder: Path) -> None:
    inspected = run(folder, *COMMAND, "inspect", "--revision", "next", "served.py")
    adapted = run(
        folder,
        *(*COMMAND, "adapt", "--from", "next", "--to", drafts.BASE, "--method", "tools/call", "--part", "params"),
        text=json.dumps({"name": "x", "_meta": META}),
    )

    assert (0, True) == (inspected.returncode, "next (stateless)" in inspected.stdout), inspected.stderr
    assert drafts.BASE == json.loads(adapted.stdout)["_meta"]["io.modelcontextprotocol/protocolVersion"], adapted.stderr
    assert 2 == run(folder, "-m", "mcpgen", "--register", "json", "inspect", "served.py").returncode
    assert 2 == run(folder, "-m", "mcpgen", "--register", "no.such", "inspect", "served.py").returncode


def test_the_process_of_a_server_knows_a_draft_that_is_registered(folder: Path) -> None:
    (folder / "plain.py").write_text(
        "from mcpgen import Server\nserver = Server('d', revisions=['next', '2026-07-28'])\n", encoding="utf-8"
    )
    inspected = run(folder, *COMMAND, "inspect", "plain.py")

    assert 0 == inspected.returncode, inspected.stderr


def test_a_package_around_drafts_is_refused_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "around" / "vone").mkdir(parents=True)
    (tmp_path / "around" / "__init__.py").touch()
    (tmp_path / "around" / "vone" / "methods.py").touch()
    refused = run(tmp_path, "-m", "mcpgen", "--register", "around", "inspect", "x.py")
    missing = run(tmp_path, "-m", "mcpgen", "--register", "around.vtwo", "inspect", "x.py")

    assert "the package around has no bindings itself; name a package in it: around.vone" in refused.stderr
    assert "there is no package around.vtwo; name a package that is in around: around.vone" in missing.stderr


META = {
    "io.modelcontextprotocol/protocolVersion": "next",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}


def test_a_trace_checks_messages_of_a_registered_draft(folder: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    found = []
    for command in (COMMAND, ("-m", "mcpgen")):
        server = ("--", sys.executable, "-m", "mcpgen", "serve", "served.py")
        trace = (sys.executable, *command, "trace")
        with closing(Traced(*server, command=trace, cwd=folder, env=environment(folder))) as traced:
            traced.write(json.dumps(request).encode() + b"\n")
            traced.line()
            found.append(traced.end()[2])
    known, unknown = found

    assert "ListToolsResult" in known
    assert "unknown to mcpgen" not in known
    assert "unknown to mcpgen" in unknown
