"""`call_tool(…, returns=T)` gives the same value under every revision, or an error that says what is wrong."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import attrs
import msgspec
import pydantic
import pytest

from mcpgen import ClientLimits, Server, ToolError, ToolFailed, ToolResult, UnexpectedResult, UsageError, connect
from mcpgen.generated.registry import REVISIONS
from mcpgen.generated.v2026_07_28 import CallToolResult, ImageContent, TextContent
from mcpgen.runtime.client.tool_results import check_type, value_as

pytestmark = pytest.mark.anyio


class Color(enum.Enum):
    RED = "red"


class Note(msgspec.Struct):
    title: str
    due: dt.date
    color: Color = Color.RED


class Loose(msgspec.Struct):
    """A wrapped result would decode as this, because no field is required."""

    title: str = ""


@dataclass
class Point:
    x: int


class Size(TypedDict):
    width: int


NOTE = Note("tea", dt.date(2026, 1, 2))

server = Server("typed", version="1.0")


@server.tool
def note() -> Note:
    return NOTE


@server.tool
def notes() -> list[Note]:
    return [NOTE]


@server.tool
def find(*, exists: bool) -> Note | None:
    return NOTE if exists else None


@server.tool
def loose(*, exists: bool) -> Loose | None:
    return Loose("a") if exists else None


@server.tool
def point() -> Point:
    return Point(1)


@server.tool
def size() -> Size:
    return {"width": 2}


@server.tool
def day() -> dt.date:
    return NOTE.due


@server.tool
def counts() -> dict[str, int]:
    return {"result": 3}


@server.tool
def color() -> Color:
    return Color.RED


@server.tool
def text(word: str | None = "hi") -> str | None:
    return word


@server.tool
def nothing() -> None: ...


@server.tool
def picture() -> list[str | ImageContent]:
    return ["one", ImageContent(data="aGk=", mime_type="image/png"), "two"]


@server.tool
def fail(reason: str) -> Note | CallToolResult:
    if not reason:
        return CallToolResult(content=[], is_error=True)
    raise ToolError(reason)


@pytest.fixture(params=[each.label for each in REVISIONS])
def revision(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(
    ("tool", "arguments", "returns", "expected"),
    [
        ("note", {}, Note, NOTE),
        ("note", {}, Note | None, NOTE),
        ("note", {}, Annotated[Note, msgspec.Meta(extra_json_schema={"examples": [{}]})], NOTE),
        ("notes", {}, list[Note], [NOTE]),
        ("notes", {}, tuple[Note, ...], (NOTE,)),
        ("find", {"exists": True}, Note | None, NOTE),
        ("find", {"exists": False}, Note | None, None),
        ("loose", {"exists": True}, Loose | None, Loose("a")),
        ("loose", {"exists": False}, Loose | None, None),
        ("point", {}, Point, Point(1)),
        ("size", {}, Size, {"width": 2}),
        ("day", {}, dt.date, NOTE.due),
        ("counts", {}, dict[str, int], {"result": 3}),
        ("color", {}, Color, Color.RED),
        ("color", {}, Literal["red"], "red"),
        ("text", {}, str, "hi"),
        ("text", {"word": None}, str | None, None),
        ("text", {"word": "7"}, str, "7"),
        ("nothing", {}, type(None), None),
        ("picture", {}, str, "one\ntwo"),
    ],
)
async def test_a_value_is_rebuilt_alike_under_every_revision(
    revision: str, tool: str, arguments: dict[str, Any], returns: Any, expected: object
) -> None:
    async with connect(server, revisions=[revision]) as client:
        assert expected == await client.call_tool(tool, arguments, returns=returns)


async def test_data_is_the_structured_content_or_else_the_text(revision: str) -> None:
    async with connect(server, revisions=[revision]) as client:
        structured, plain = await client.call_tool("size"), await client.call_tool("picture")

    has_structured = revision >= "2025-06-18"
    assert structured.data == ({"width": 2} if has_structured else '{"width":2}')
    assert (structured.text, plain.text, plain.data) == ('{"width":2}', "one\ntwo", "one\ntwo")
    assert {ToolResult} == {type(structured), type(plain)}


async def test_a_structured_null_is_data() -> None:
    async with connect(server) as client:
        assert {"result": None} == (await client.call_tool("find", {"exists": False})).data
    assert ToolResult(content=[], structured_content=None).data is None


def test_a_result_equals_the_generated_one_with_the_same_content() -> None:
    shown, plain = ToolResult(content=[TextContent(text="a")]), CallToolResult(content=[TextContent(text="a")])

    assert shown == plain
    assert plain == shown
    assert shown != CallToolResult(content=[])
    assert shown != "a"
    assert msgspec.json.encode(plain) == msgspec.json.encode(shown)


async def test_a_tool_that_fails_raises_if_a_type_was_asked_for(revision: str) -> None:
    async with connect(server, revisions=[revision]) as client:
        result = await client.call_tool("fail", {"reason": "no tea"})
        assert (True, "no tea") == (result.is_error, result.text)
        with pytest.raises(ToolFailed, match=r"^the tool 'fail' failed: no tea$") as caught:
            await client.call_tool("fail", {"reason": "no tea"}, returns=Note)
        with pytest.raises(ToolFailed, match=r"^the tool 'fail' failed and gave no reason$"):
            await client.call_tool("fail", {"reason": ""}, returns=Note)

    assert ("fail", result) == (caught.value.tool, caught.value.result)


async def test_text_of_a_server_in_an_error_shows_no_control_characters() -> None:
    async with connect(server) as client:
        with pytest.raises(ToolFailed, match=r"failed: \\x1b\[2J$"):
            await client.call_tool("fail", {"reason": "\x1b[2J"}, returns=Note)


@pytest.mark.parametrize(
    ("tool", "returns", "reason"),
    [
        ("note", Point, "Object missing required field `x`"),
        ("note", int, "Expected `int`, got `object`"),
        ("notes", list[Point], "Object missing required field `x` - at `$[0]`"),
        ("text", int, "Expected `int`, got `str`"),
        ("nothing", Note, "it has neither structured content nor text"),
        ("nothing", str, "it has neither structured content nor text"),
    ],
)
async def test_a_value_of_another_type_is_refused_with_its_place(
    revision: str, tool: str, returns: Any, reason: str
) -> None:
    async with connect(server, revisions=[revision]) as client:
        with pytest.raises(UnexpectedResult) as caught:
            await client.call_tool(tool, returns=returns)

    assert (tool, returns, reason) == (caught.value.tool, caught.value.expected, caught.value.reason)
    assert str(caught.value).startswith(f"the result of the tool {tool!r} is not of the type ")
    assert f": {reason}; change `returns`, or call the tool without it to see the result" in str(caught.value)


@pytest.mark.parametrize("returns", ["Note", Note("a", NOTE.due), object(), type, dict[int, complex]])
async def test_what_is_not_a_type_of_json_is_refused_before_the_tool_is_called(returns: Any) -> None:
    calls: list[None] = []
    counting = Server("counting")

    @counting.tool
    def count() -> None:
        calls.append(None)

    async with connect(counting) as client:
        with pytest.raises(UsageError, match=r"^`returns` is .*, which cannot be read from JSON .*; use a Struct"):
            await client.call_tool("count", returns=returns)

    assert [] == calls


@attrs.define
class Square:
    side: int = 1
    area: int = attrs.field()

    @area.default
    def _of_side(self) -> int:
        return self.side**2


def test_a_class_of_attrs_whose_default_depends_on_other_fields_is_refused() -> None:
    def draw(square: Square) -> str: ...  # type: ignore[empty-body]

    squares = Server("squares")
    with pytest.raises(UsageError, match=r"`square` of .* has no JSON Schema .*takes_self"):
        squares.tool(draw)
    with pytest.raises(UsageError, match=r"`square` of .* arrives as text"):
        squares.prompt(draw)
    with pytest.raises(UsageError, match=r"^`returns` is .*takes_self"):
        check_type(Square)


@pytest.mark.parametrize(
    ("sent", "returns"),
    [
        ("[" + ",".join(["[]"] * 150) + "]", list),
        ("[" + ",".join(["1e300"] * 20) + "]", list),  # slow numbers count as several
        ("{" + ",".join(f'"{number}":1' for number in range(300)) + "}", object),
    ],
)
async def test_a_text_with_too_many_values_is_not_decoded(sent: str, returns: Any) -> None:
    """In the message it is one text, so the limit of the message does not count the values in it."""
    async with connect(texts(sent), limits=ClientLimits(max_values=200)) as client:
        started = await client.start_tool("text")
        for call in (client.call_tool("text", returns=returns), started.result(returns=returns)):
            with pytest.raises(UnexpectedResult, match=r"more than 200 values \(max_values\)"):
                await call


@pytest.mark.parametrize(
    ("sent", "returns", "value"),
    [
        ('["' + "," * 300 + '"]', list, ["," * 300]),
        ("1," * 300, str | list[int], "1," * 300),  # a table
    ],
)
async def test_a_text_with_many_commas_is_read(sent: str, returns: Any, value: object) -> None:
    async with connect(texts(sent), limits=ClientLimits(max_values=200)) as client:
        assert value == await client.call_tool("text", returns=returns)


@pytest.mark.parametrize("content", [{}, {"structured_content": {"result": "\ud800"}}])
async def test_half_of_a_surrogate_pair_is_no_value(content: dict[str, Any]) -> None:
    result = ToolResult(content=[TextContent(text="\ud800")], **content)
    with pytest.raises(UnexpectedResult, match="half of a surrogate pair"):
        value_as("text", result, list, max_values=1000)


def texts(sent: str) -> Server:
    made = Server("texts", version="1.0")

    @made.tool(structured=False)
    def text() -> CallToolResult:
        return CallToolResult(content=[TextContent(text=sent)])

    return made


async def test_a_whole_number_with_a_fraction_of_zero_is_an_integer() -> None:
    """JSON Schema counts 5.0 as an integer, and some servers write it so."""
    sent: list[Any] = [5.0]
    whole = Server("whole", version="1.0")

    @whole.tool(structured=False)
    def number() -> CallToolResult:
        return CallToolResult(content=[], structured_content={"result": sent[0]})

    async with connect(whole) as client:
        assert "5" == repr(await client.call_tool("number", returns=int))
        assert "5.0" == repr(await client.call_tool("number", returns=float))
        assert "5.0" == repr(await client.call_tool("number", returns=object))
        sent[0] = 5.5
        with pytest.raises(UnexpectedResult, match="Expected `int`, got `float`"):
            await client.call_tool("number", returns=int)


@pytest.mark.parametrize(("sent", "times"), [("x", 1), (5.5, 1), (5.0, 2)])
def test_a_wrong_result_is_read_again_only_if_it_has_a_whole_number_with_a_fraction(sent: object, times: int) -> None:
    read: list[object] = []

    class Strict(pydantic.BaseModel):
        number: Annotated[str, pydantic.BeforeValidator(read.append)]

    result = ToolResult(content=[], structured_content={"number": sent, "others": [{"a": 1.5}]})
    with pytest.raises(UnexpectedResult):
        value_as("strict", result, Strict, max_values=1000)

    assert len(read) == times


@pytest.mark.parametrize(("sent", "looks"), [("x", 0), (5.5, 0), (5.0, 1)])
def test_the_values_of_a_wrong_result_are_looked_at_only_if_one_may_be_a_whole_number(
    sent: object, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []

    def whole(value: object) -> object:
        looked.append(value)
        return value

    monkeypatch.setattr("mcpgen.runtime.client.tool_results.whole_numbers", whole)
    result = ToolResult(content=[], structured_content={"number": sent})
    with pytest.raises(UnexpectedResult):
        value_as("wrong", result, dict[str, list[int]], max_values=1000)

    assert len(looked) == looks
