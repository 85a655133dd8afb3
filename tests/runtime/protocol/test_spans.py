"""Spans of requests for OpenTelemetry, in programs of their own: importing OpenTelemetry switches them on."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import anyio
import pytest

from mcpgen import Context, Server, connect
from mcpgen.runtime.protocol.spans import has_opentelemetry

pytestmark = pytest.mark.slow

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"

# Our client refuses to send an invalid trace context; others may send one.
UNCHECKED = """
from mcpgen.runtime.protocol import payload_codec
payload_codec.sent_value_fault = lambda _: None
"""

PROGRAM = """
import json, sys
import anyio
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from mcpgen import Context, RequestError, RequestRefused, Server, ToolError, connect

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
server = Server("traced")
seen = []

@server.tool
def echo(text: str) -> str:
    if text == "bad":
        raise ToolError("no")
    if text == "worse":
        raise RequestError(7, "refused")
    return text

@server.tool
async def look(context: Context) -> str:
    seen.append({key: context.meta.get(key) for key in ("traceparent", "baggage")})
    seen.append(dict(baggage.get_all()))
    return "looked"

@server.resource("config://a")
def config() -> str:
    return "a"

async def main():
    async with connect(server, revisions=[sys.argv[1]]) as client:
BODY

anyio.run(main)
print(json.dumps({
    "seen": seen,
    "spans": [
        {
            "name": each.name,
            "kind": each.kind.name,
            "attributes": dict(each.attributes),
            "status": each.status.status_code.name,
            "description": each.status.description,
            "id": format(each.context.span_id, "016x"),
            "trace": format(each.context.trace_id, "032x"),
            "parent": None if each.parent is None else format(each.parent.span_id, "016x"),
            "links": [format(one.context.span_id, "016x") for one in each.links],
        }
        for each in exporter.get_finished_spans()
    ],
}))
"""


def traced(body: str, revision: str = "2026-07-28") -> Any:
    """Run *body* with a client of a server in a program that uses OpenTelemetry; return what it has seen."""
    indented = "\n".join(f"        {line}" for line in body.strip().splitlines())
    program = PROGRAM.replace("BODY", indented)
    done = subprocess.run([sys.executable, "-c", program, revision], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_span_of_a_server_is_a_child_of_that_of_the_client(revision: str) -> None:
    server, client = traced('await client.call_tool("echo", {"text": "hi"})', revision)["spans"][-2:]

    expected = {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": "echo",
        "gen_ai.operation.name": "execute_tool",
    }
    assert ("tools/call echo", "SERVER", "UNSET") == (server["name"], server["kind"], server["status"])
    assert ("tools/call echo", "CLIENT", "UNSET") == (client["name"], client["kind"], client["status"])
    assert (client["id"], client["trace"]) == (server["parent"], server["trace"])
    request_id = server["attributes"].pop("jsonrpc.request.id")
    assert request_id == client["attributes"].pop("jsonrpc.request.id")
    assert expected == server["attributes"] == client["attributes"]


def test_errors_are_noted() -> None:
    found = traced("""
await client.call_tool("echo", {"text": "bad"})
try:
    await client.call_tool("echo", {"text": "worse"})
except RequestRefused:
    pass
""")

    noted = [
        (each["kind"], each["status"], each["description"], each["attributes"]["error.type"])
        for each in found["spans"]
        if "error.type" in each["attributes"]
    ]
    assert [
        ("SERVER", "ERROR", None, "tool_error"),
        ("CLIENT", "ERROR", None, "tool_error"),
        ("SERVER", "ERROR", "refused", "7"),
        ("CLIENT", "ERROR", "refused", "7"),
    ] == noted


def test_a_handler_has_the_context_and_the_baggage_of_its_client() -> None:
    found = traced("""
with trace.get_tracer("test").start_as_current_span("outer"):
    token = context.attach(baggage.set_baggage("user", "alice"))
    await client.call_tool("look")
    context.detach(token)
""")

    spans = {(each["name"], each["kind"]): each for each in found["spans"]}
    client = spans["tools/call look", "CLIENT"]
    assert spans["outer", "INTERNAL"]["id"] == client["parent"]
    meta, in_handler = found["seen"]
    assert f"00-{client['trace']}-{client['id']}-" == meta["traceparent"][:-2]  # the flags follow
    assert "user=alice" == meta["baggage"]
    assert {"user": "alice"} == in_handler


def test_a_caller_can_set_the_parent_and_the_baggage() -> None:
    found = traced(f'await client.call_tool("look", meta={{"traceparent": "{PARENT}", "baggage": "user=bob"}})')

    (server,) = [each for each in found["spans"] if each["kind"] == "SERVER"]
    assert PARENT == f"00-{server['trace']}-{server['parent']}-01"
    assert {"user": "bob"} == found["seen"][1]


@pytest.mark.parametrize("value", ["a=\nFAKE LOG LINE", "a=\x1b[31m", "a=é", f"a={'b' * 8192}"], ids=ascii)
def test_metadata_that_no_header_could_carry_does_not_reach_opentelemetry(value: str) -> None:
    found = traced(f'{UNCHECKED}await client.call_tool("look", meta={{"baggage": {value!r}}})')

    assert {} == found["seen"][1]


def test_an_invalid_parent_is_ignored() -> None:
    found = traced(f'{UNCHECKED}await client.call_tool("look", meta={{"traceparent": "x", "baggage": 1}})')

    assert "tools/call look" in [each["name"] for each in found["spans"] if each["kind"] == "SERVER"]


def test_a_resource_is_named_by_an_attribute_and_not_by_the_span() -> None:
    found = traced('await client.read_resource("config://a")')

    named = {each["kind"]: (each["name"], each["attributes"]["mcp.resource.uri"]) for each in found["spans"]}
    assert dict.fromkeys(("SERVER", "CLIENT"), ("resources/read", "config://a")) == named


def test_a_span_keeps_the_start_of_a_long_name_or_uri() -> None:
    found = traced("""
for send in (lambda: client.call_tool("x" * 100_000), lambda: client.read_resource("config:" + "x" * 100_000)):
    try:
        await send()
    except RequestRefused:
        pass
""")

    texts = [text for each in found["spans"] for text in (each["name"], *each["attributes"].values())]
    assert 1024 + len("tools/call ") == max(map(len, texts))


@pytest.mark.parametrize("revision", REVISIONS)
def test_without_opentelemetry_the_trace_context_passes_unchanged(revision: str) -> None:
    server, seen = Server("plain"), []

    @server.tool
    def look(context: Context[Any]) -> str:
        seen.append([context.meta.get(key) for key in ("traceparent", "tracestate", "baggage")])
        return "ok"

    async def call() -> None:
        async with connect(server, revisions=[revision]) as client:
            await client.call_tool("look", meta={"traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2"})

    anyio.run(call)

    assert not has_opentelemetry()
    assert [[PARENT, "a=1", "b=2"]] == seen
