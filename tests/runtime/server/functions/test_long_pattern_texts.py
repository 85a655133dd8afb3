"""Texts that a pattern is matched against have limits, because Python's matcher can take hours for a long one."""

from __future__ import annotations

import fractions
import ipaddress
import json
import re
import sys
from collections.abc import Iterable
from decimal import Decimal  # noqa: TC003 (a tool is registered with it)
from pathlib import Path
from typing import Annotated, Any

import anyio
import httpx
import pydantic
import pytest
from msgspec import Meta, Struct, ValidationError
from typing_extensions import TypeAliasType

from mcpgen import Server, UsageError, connect
from mcpgen.runtime.adapt.pattern_texts import pattern_check
from mcpgen.runtime.protocol.failing_fast import failing_fast

Mail = Annotated[str, Meta(pattern=r"[^@]+@[^@]+$")]
Short = Annotated[str, Meta(pattern="^a+$", max_length=100)]
Long = Annotated[str, Meta(pattern="^a+$", max_length=10_000)]


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
}
REFUSAL = "Expected at most 4000 characters in a text that must match a pattern, fewer if there are several such texts"


class Person(Struct):
    text: str = ""
    mail: Mail | None = None
    friends: list[Person] = []
    by_mail: dict[Mail, int] = {}


class Left(Struct, tag="left"):
    mail: Mail = ""
    pair: tuple[Left | Right, Left | Right] | None = None
    next: Left | Right | None = None


class Right(Struct, tag="right"):
    text: str = ""
    mail: Mail = ""
    pair: tuple[Left | Right, Left | Right] | None = None
    next: Left | Right | None = None


class Listed(Struct, array_like=True):
    text: str
    mail: Mail
    rest: list[Listed] = []


def nested(depth: int, inner: object, **members: object) -> object:
    for _ in range(depth):
        inner = {**members, "next": inner}
    return inner


class Node(Struct):
    text: Annotated[str, Meta(max_length=5)]
    nodes: list[Node] = []


@pytest.mark.parametrize(
    ("kind", "value", "refusal"),
    [
        (Mail, "a" * 4000, None),
        (Mail, "a" * 4001, REFUSAL),
        (list[Mail], ["a" * 2000] * 4, None),
        (list[Mail], ["a" * 2000] * 5, REFUSAL),
        (list[Mail], ["a" * 20] * 10_000, None),
        (list[Short], ["a" * 100] * 1601, REFUSAL),
        (Short, "a" * 5000, None),  # msgspec refuses it before it matches the pattern
        (Long, "a" * 10_000, None),
        (list[Long], ["a" * 10_000] * 2, REFUSAL.replace("4000", "10000")),
        (Person, {"text": "a" * 5000, "mail": "a"}, None),
        (Person, {"friends": [{"friends": [{"mail": "a" * 4001}]}]}, REFUSAL),
        (Person, {"by_mail": {"a" * 4001: 1}}, REFUSAL),
        (tuple[int, Mail], [1, "a" * 4001], REFUSAL),
        (tuple[int, Mail], ["a" * 4001, "a"], None),
        (Left, {"mail": "a" * 4001}, REFUSAL),  # the tag of the only class can be missing
        (Left | Right, nested(100, {"type": "right", "mail": "a" * 4001}, type="left"), REFUSAL),
        (Left | Right, nested(100, {"type": "right", "text": "a" * 4001}, type="left"), None),
        (Left | Right, nested(100, {"mail": "a" * 4001}), None),  # msgspec demands the tags
        (Listed, ["a" * 5000, "a", [["a" * 5000, "a"]]], None),
        (Listed, ["a", "a", [["a", "a" * 4001]]], REFUSAL),
        (set[Mail], 5, None),  # of the wrong type, as msgspec says
    ],
)
def test_texts_for_patterns_are_limited_by_the_squares_of_their_lengths(
    kind: Any, value: object, refusal: str | None
) -> None:
    check = pattern_check(kind)
    assert check is not None

    found = None
    try:
        check(value)
    except ValidationError as error:
        found = str(error)

    assert refusal == found


def test_types_without_patterns_need_no_check() -> None:
    assert pattern_check(Node) is None
    assert pattern_check(dict[str, list[int | str]]) is None


def test_a_long_text_for_a_pattern_is_refused_in_all_kinds_of_functions() -> None:
    server = Server("mail")

    @server.tool
    def send(to: Mail) -> None: ...

    @server.tool
    def find(name: str) -> Person:
        return Person(mail=name)

    @server.tool(structured=True)
    def address(name: str) -> Mail:
        return name

    @server.prompt
    def write(to: Mail) -> str:
        return to

    @server.resource("mail:{to}")
    def read(to: Mail) -> str:
        return to

    async def main() -> None:
        async with connect(server) as client:
            long = "a" * 5000
            result = await client.call_tool("send", {"to": long})
            assert "must match a pattern" in result.text
            for tool in ("find", "address"):
                assert not (await client.call_tool(tool, {"name": f"{long[:3000]}@b"})).is_error
                assert (await client.call_tool(tool, {"name": f"{long}@b"})).is_error
            with pytest.raises(Exception, match="must match a pattern"):
                await client.get_prompt("write", {"to": long})
            with pytest.raises(Exception, match="not found"):
                await client.read_resource(f"mail:{long}")

    anyio.run(main)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("send", '{"to": "long", "to": "a@b"}', "a@b"),
        ("count", '{"ids": {"5": "long", "5": 1}}', "1"),
        ("pay", '{"to": "long", "to": "a@b", "euros": 1.10000000000000000000001}', "1.10000000000000000000001"),
    ],
)
def test_only_the_last_of_two_members_of_one_name_is_read(name: str, arguments: str, text: str) -> None:
    """Otherwise the first could be as long as a message."""
    server = Server("mail")

    @server.tool
    def send(to: Mail) -> str:
        return to

    @server.tool
    def count(ids: dict[int, int]) -> str:
        return str(len(ids))

    @server.tool
    def pay(to: Mail, euros: Decimal) -> str:
        return str(euros)

    params: dict[str, object] = {"name": name, "arguments": {}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    content = body.replace('"arguments": {}', f'"arguments": {arguments}')

    async def main() -> None:
        transport = httpx.ASGITransport(server.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            answer = await client.post("/mcp", headers={**HEADERS, "Mcp-Name": name}, content=content)
        assert answer.json()["result"]["content"] == [{"type": "text", "text": text}]

    anyio.run(main)


class Compiled(pydantic.BaseModel):
    mails: list[Annotated[str, pydantic.Field(pattern=re.compile(r"[^@]+@[^@]+"))]] = []
    text: str = ""


class OfPython(pydantic.BaseModel, regex_engine="python-re"):
    mails: list[Annotated[str, pydantic.Field(pattern=r"[^@]+@[^@]+")]] = []
    text: str = ""


class Longer(pydantic.BaseModel):
    mails: list[Annotated[str, pydantic.Field(pattern=re.compile("a"), max_length=5000)]] = []


SharedMail = TypeAliasType("SharedMail", Annotated[str, pydantic.Field(pattern=re.compile(r"[^@]+@[^@]+"))])


class Twice(pydantic.BaseModel):
    mails: list[SharedMail] = []
    more: list[SharedMail] = []  # pydantic's schema refers to a type that occurs twice


class OfPydantic(pydantic.BaseModel):
    mails: list[Annotated[str, pydantic.Field(pattern=r"[^@]+@[^@]+")]] = []


@pytest.mark.parametrize(
    ("model", "value", "refusal"),
    [
        (Compiled, {"mails": ["a@" + "b" * 4000]}, REFUSAL),
        (Compiled, {"mails": ["a@" + "b" * 3000] * 2}, REFUSAL),
        (Compiled, {"mails": ["a@" + "b" * 2000] * 2, "text": "b" * 100_000}, None),
        (OfPython, {"mails": ["a@" + "b" * 4000]}, REFUSAL),
        (OfPython, {"mails": ["a@" + "b" * 2000] * 2, "text": "b" * 100_000}, None),
        (Twice, {"mails": ["a@" + "b" * 4000]}, REFUSAL),
        (Longer, {"mails": ["a" * 5000]}, None),
        (Longer, {"mails": ["a" * 5000] * 2}, REFUSAL.replace("4000", "5000")),
        (Longer, {"mails": ["a" * 5001]}, "at most 5000 characters"),
        (OfPydantic, {"mails": ["a@" + "b" * 100_000] * 2}, None),  # its own matcher takes linear time
    ],
)
def test_patterns_of_pydantic_that_python_matches_have_the_same_limits(
    model: type[pydantic.BaseModel], value: object, refusal: str | None
) -> None:
    read = failing_fast(pydantic.TypeAdapter(model))
    for _ in range(2):  # each value has the whole limit
        if refusal is None:
            read(json.dumps(value).encode())
        else:
            with pytest.raises(ValueError, match=refusal):
                read(json.dumps(value).encode())


def test_a_result_of_pydantic_has_the_same_limit_for_patterns_that_python_matches() -> None:
    server = Server("mail")

    @server.tool
    def constructed(text: str) -> OfPython:
        return OfPython.model_construct(mails=[text])

    @server.tool
    def typed(text: str) -> dict[str, SharedMail | Compiled]:
        return {"mail": text}

    @server.tool
    def addresses(text: str) -> list[ipaddress.IPv4Address | OfPydantic]:
        return [ipaddress.ip_address(text)] * 5001  # type: ignore[list-item]

    async def main() -> None:
        async with connect(server) as client:
            for tool in ("constructed", "typed"):
                assert not (await client.call_tool(tool, {"text": "a@" + "b" * 3000})).is_error
                refused = await client.call_tool(tool, {"text": "a@" + "b" * 4000})
                assert refused.is_error
            assert not (
                await client.call_tool("addresses", {"text": "192.0.2.1"})
            ).is_error  # no limit but for patterns

    anyio.run(main)


@pytest.mark.parametrize(
    ("kind", "texts", "refusal"),
    [
        (ipaddress.IPv6Interface, ["2001:db8::/32"] * 5000, None),
        (ipaddress.IPv6Interface, ["2001:db8::/32"] * 5001, "at most 5000 values of types"),
        (ipaddress.IPv4Address | str, ["192.0.2.1"] * 5001, "at most 5000 values of types"),  # not read as str
        (Path, ["/a"] * 5001, "at most 5000 values of types"),
        (Path, ["a/" * 15] * 5000, None),
        (Path, ["a/" * 390] * 250, "every 16 segments of a path count as one more"),
        (fractions.Fraction, ["1e4299"] * 250, None),
        (fractions.Fraction, ["1e4299"] * 251, "a fraction such as 1/3 counts as 20"),
        (fractions.Fraction, ["1_" * 2001], "at most 4000 characters in a fraction"),
        (Iterable[int], ["1" * 1000], "an array, not a string"),
        (str, ["192.0.2.1"] * 10_000, None),
        (pydantic.AnyUrl, ["https://ä.example/" + "ä" * 10_000] * 1000, None),
        (pydantic.AnyUrl, ["http://" + "一" * 990] * 17, "fewer if there are several such hosts"),
        (pydantic.AnyUrl, [" http:\\\t/" + "%e4%b8%80" * 450], "in a host that is not ASCII"),
        (pydantic.AnyUrl | str, ["http://" + "一" * 4001], "in a host that is not ASCII"),  # not read as str
        (pydantic.MongoDsn, ["mongodb://" + "a," * 5001 + "a"], "in a URL, each host after the first one counts, too"),
    ],
)
def test_values_that_pydantic_reads_in_python_are_limited_in_number(
    kind: object, texts: list[str], refusal: str | None
) -> None:
    """48,000 addresses took 0.8 seconds, a URL of 3.6 MB 2.5, a text for an iterable 0.6, and 650,000 segments 0.7."""
    halves = len(texts) // 2
    adapter: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(list[list[kind]])  # type: ignore[valid-type]  # pyright: ignore[reportInvalidTypeForm]
    read = failing_fast(adapter)
    value = json.dumps([texts[:halves], texts[halves:]]).encode()
    for _ in range(2):
        if refusal is None:
            read(value)
        else:
            with pytest.raises(ValueError, match=refusal):
                read(value)


def test_no_value_is_read_in_python_after_the_last_one_that_is_allowed() -> None:
    """pydantic makes an error of each `ValueError`, and then reads the value as a text: 49,000 took 0.7 seconds."""
    read = failing_fast(pydantic.TypeAdapter(list[str | Path]))
    names: list[str] = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        with pytest.raises(ValueError, match="at most 5000 values of types"):
            read(json.dumps(["a"] * 7000).encode())
    finally:
        sys.setprofile(None)
    assert 5000 < names.count("_count_calls") < 5010  # else 11,000


class Searched(pydantic.BaseModel):
    pattern: re.Pattern[str]


def test_a_tool_cannot_take_a_pattern_of_its_client() -> None:
    """A class of a few characters, such as `(?i)[Ā-\uffff]`, takes 6 ms to compile, and a message can have many."""
    server = Server("search")

    def search(query: list[Searched]) -> str:
        return str(query)

    with pytest.raises(UsageError, match=r"with a `re.Pattern`, and a peer could choose .*; write `str`"):
        server.tool(search)


class Plugin(pydantic.BaseModel):
    runs: list[pydantic.ImportString[object]]


def test_a_tool_imports_no_module_that_its_client_names() -> None:
    server = Server("plugins")

    def run(plugin: Plugin) -> str:
        return str(plugin)

    with pytest.raises(UsageError, match=r"with an `ImportString`, and a peer could choose .*; write `str`"):
        server.tool(run)


def import_string(text: str) -> str:
    return text.strip()


class Script(pydantic.BaseModel):
    name: Annotated[str, pydantic.AfterValidator(import_string)]


def test_a_validator_of_the_author_may_have_the_name_of_one_of_pydantic() -> None:
    server = Server("scripts")

    @server.tool
    def run(script: Script) -> str:
        return script.name

    async def main() -> None:
        async with connect(server) as client:
            assert "a" == (await client.call_tool("run", {"script": {"name": " a"}}, returns=str))

    anyio.run(main)
