"""Functions as tools: what is listed, how arguments arrive, and what becomes of results and failures."""

from __future__ import annotations

import contextvars
import datetime as dt
import enum
import functools
import json
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, cast

import anyio
import jsonschema
import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from mcpgen import Server, connect
from mcpgen.generated.v2025_11_25 import models as older
from mcpgen.runtime.errors import RequestError, UnsupportedByPeer, UsageError
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.context import Context  # noqa: TC001 (functions are registered with it)
from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers
from mcpgen.runtime.server.functions.tools import ToolError
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.runtime.server.functions.callers import META, Caller

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio


class Weather(Struct):
    """How it is outside."""

    celsius: float
    at: dt.datetime | None = None


class Node(Struct):
    children: list[Node] = []


class Pet(Struct, tag=True):
    name: str


class Rock(Struct, tag=True):
    mass: int


@dataclass
class Place:
    name: str


class Options(TypedDict):
    deep: bool


class Color(enum.Enum):
    RED = "red"


def text(result: Any) -> str:
    (block,) = result.content
    return str(block.text)


# --- arguments


async def test_a_tool_is_called_with_its_arguments(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.tool
    async def greet(name: str, *, times: int = 2) -> str:
        return " ".join([f"Hi {name}!"] * times)

    assert models.CallToolResult(content=[models.TextContent(text="Hi Bo! Hi Bo!")]) == await caller.call(
        "greet", {"name": "Bo"}
    )
    assert "Hi Bo!" == text(await caller.call("greet", {"name": "Bo", "times": 1}))


async def test_arguments_become_what_they_are_annotated_with(catalogue: FunctionHandlers, caller: Caller) -> None:
    got: dict[str, Any] = {}

    @catalogue.tool
    async def take(  # noqa: PLR0913, PLR0917 (one of each kind)
        place: Place,
        weather: Weather,
        options: Options,
        color: Color,
        when: dt.date,
        pairs: dict[int, tuple[int, str]],
        anything: object,
        data: bytes,
        pet: Pet | Rock,
        missing: int | UnsetType = UNSET,
    ) -> None:
        got.update(locals())

    await caller.call(
        "take",
        {
            "place": {"name": "here"},
            "weather": {"celsius": 1, "at": "2026-01-01T00:00:00Z"},
            "options": {"deep": True},
            "color": "red",
            "when": "2026-01-02",
            "pairs": {"1": [2, "x"]},
            "anything": [1, {"a": None}],
            "data": "eA==",
            "pet": {"type": "Rock", "mass": 3},
        },
    )
    del got["got"]

    assert got == {
        "place": Place("here"),
        "weather": Weather(1.0, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        "options": {"deep": True},
        "color": Color.RED,
        "when": dt.date(2026, 1, 2),
        "pairs": {1: (2, "x")},
        "anything": [1, {"a": None}],
        "data": b"x",
        "pet": Rock(3),
        "missing": UNSET,
    }


async def test_integers_may_be_written_as_json_schema_allows(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.tool
    async def double(n: int, ns: list[int]) -> str:
        return repr((n, ns))

    assert "(5, [6])" == text(await caller.call("double", {"n": 5.0, "ns": [6.0]}))
    assert (await caller.call("double", {"n": 5.5, "ns": []})).is_error
    assert (await caller.call("double", {"n": 1e300, "ns": []})).is_error
    assert (await caller.call("double", {"n": "5", "ns": []})).is_error


async def test_a_type_whose_schema_is_written_by_hand_takes_no_values(
    catalogue: FunctionHandlers, caller: Caller
) -> None:
    @catalogue.tool
    async def take(it: Annotated[threading.Event, Meta(extra_json_schema={"type": "string"})]) -> None: ...

    result = await caller.call("take", {"it": "x"})

    assert (True, True) == (result.is_error, "A value of the type `Event` cannot be read from JSON" in text(result))


async def test_the_context_is_injected_and_not_in_the_schema(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.tool
    async def whose(a: int, ctx: Context, maybe: Context | None = None, *, last: Annotated[Context, "x"]) -> str:
        return repr([ctx is caller.context, maybe is caller.context, last is caller.context, a])

    (listed,) = (await caller.tools()).tools

    assert ["a"] == list(listed.input_schema["properties"])
    assert "[True, True, True, 1]" == text(await caller.call("whose", {"a": 1}))
    assert (await caller.call("whose", {"a": 1, "ctx": {}})).is_error


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "Object missing required field `count`"),
    ({"count": "x"}, "Expected `int`, got `str` - at `$.count`"),
    ({"count": 0}, "Expected `int` >= 1 - at `$.count`"),
    ({"count": 1, "other": 2}, "Object contains unknown field `other`"),
    ({"count": None}, "Expected `int`, got `null` - at `$.count`"),
]


@pytest.mark.spec("2024-11-05", "server/tools#error-handling")
@pytest.mark.spec("2025-03-26", "server/tools#error-handling")
@pytest.mark.spec("2025-06-18", "server/tools#error-handling")
@pytest.mark.spec("2025-11-25", "server/tools#error-handling")
@pytest.mark.spec("2026-07-28", "server/tools#error-handling")
@pytest.mark.parametrize(("arguments", "reason"), WRONG)
async def test_wrong_arguments_are_answered_as_the_peers_revision_says(
    catalogue: FunctionHandlers, revision: str, arguments: dict[str, Any], reason: str
) -> None:
    @catalogue.tool
    async def order(count: Annotated[int, Meta(ge=1)]) -> str:
        raise AssertionError(count)

    caller = Caller(catalogue, revision)
    expected = f"Invalid arguments for tool order: {reason}"

    if revision in {"2024-11-05", "2025-03-26", "2025-06-18"}:
        with pytest.raises(RequestError) as caught:
            await caller.call("order", arguments)
        assert (-32602, expected, UNSET) == (caught.value.code, caught.value.message, caught.value.data)
    else:
        result = await caller.call("order", arguments)
        assert (True, expected) == (result.is_error, text(result))


async def test_an_error_quotes_little_of_what_it_is_about(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.tool
    async def it() -> None: ...

    assert len(text(await caller.call("it", {"x" * 100_000: 1}))) < 400
    with pytest.raises(RequestError) as caught:
        await caller.call("y" * 100_000)
    assert len(caught.value.message) < 400


@pytest.mark.slow
async def test_arguments_that_are_nested_too_deeply_are_wrong_arguments(
    catalogue: FunctionHandlers, caller: Caller
) -> None:
    @catalogue.tool
    async def climb(tree: Node) -> None: ...

    tree: dict[str, Any] = {}
    for _ in range(100_000):
        tree = {"children": [tree]}
    try:
        assert "Invalid arguments for tool climb: nested too deeply" == text(await caller.call("climb", {"tree": tree}))
    finally:
        while tree:  # one level at a time: the interpreter frees a deep tree recursively
            tree = tree["children"].pop()


@pytest.mark.spec("2024-11-05", "server/tools#error-handling")
@pytest.mark.spec("2026-07-28", "server/tools#error-handling")
async def test_an_unknown_tool_is_an_error_of_the_request_in_every_revision(
    catalogue: FunctionHandlers, revision: str
) -> None:
    with pytest.raises(RequestError) as caught:
        await Caller(catalogue, revision).call("nope")

    assert (-32602, "Unknown tool: nope") == (caught.value.code, caught.value.message)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("pirce", "Unknown tool: pirce; did you mean price?"),
        ("get_price", "Unknown tool: get_price; did you mean price?"),
        ("weather", "Unknown tool: weather"),
        ("", "Unknown tool: "),
        (64 * "p", f"Unknown tool: {64 * 'p'}; did you mean {66 * 'p'}?"),
        (65 * "p", f"Unknown tool: {65 * 'p'}"),  # too long to be compared
    ],
)
async def test_an_unknown_tool_suggests_the_nearest(
    catalogue: FunctionHandlers, caller: Caller, asked: str, told: str
) -> None:
    catalogue.tool(name="price")(returning(int, 1))
    catalogue.tool(name="add")(returning(int, 1))
    catalogue.tool(name=66 * "p")(returning(int, 1))
    with pytest.raises(RequestError) as caught:
        await caller.call(asked)

    assert told == caught.value.message


async def test_an_unknown_name_is_compared_with_a_limited_number_of_tools(
    catalogue: FunctionHandlers, caller: Caller
) -> None:
    for number in range(150):
        catalogue.tool(name=f"{number:03}{'abc' * 15}")(returning(int, 1))

    with pytest.raises(RequestError, match="did you mean 0"):
        await caller.call(f"xyz{'abc' * 15}")
    with pytest.raises(RequestError, match=r"did you mean (?!14)"):
        await caller.call(f"14x{'abc' * 15}")


@pytest.mark.parametrize(
    ("of_server", "of_tool", "is_ignored"),
    [("refuse", None, False), ("ignore", None, True), ("ignore", "refuse", False), ("refuse", "ignore", True)],
)
async def test_unknown_arguments_are_refused_or_ignored(of_server: Any, of_tool: Any, *, is_ignored: bool) -> None:
    server = Server("own", unknown_keys=of_server)

    @server.tool(unknown_keys=of_tool)
    def it(count: int) -> str:
        return str(count)

    async with connect(server) as client:
        (listed,) = (await client.list_tools()).tools
        results = [
            await client.call_tool("it", {"count": 1, **more})
            for more in ({"other": 2}, {"other": {"deep": [1, None]}}, {"other": 1.0, "count": 1.0})
        ]

    assert ("additionalProperties" not in listed.input_schema) is is_ignored
    assert [is_ignored] * 3 == ["1" == text(each) for each in results]
    assert [not is_ignored] * 3 == [each.is_error is True for each in results]


def test_a_policy_for_unknown_arguments_that_is_none_is_refused() -> None:
    reason = "`unknown_keys` is 'drop'; it must be 'refuse' or 'ignore'"
    with pytest.raises(UsageError, match=reason):
        Server("own", unknown_keys="drop")  # type: ignore[arg-type]  # that is what is tried
    with pytest.raises(UsageError, match=reason):
        Server("own").tool(unknown_keys="drop")(lambda: "")  # type: ignore[call-overload]  # that is what is tried


# --- results


BLOCK = models.ImageContent(data="eA==", mime_type="image/png")
FINISHED = models.CallToolResult(content=[], is_error=True)
ASKING = models.InputRequiredResult(request_state="x")


def returning(annotation: Any, value: Any) -> Callable[[], Any]:
    async def it() -> Any:
        return value

    it.__annotations__["return"] = annotation
    return it


@pytest.mark.spec("2025-06-18", "server/tools#structured-content", "caedb576")
@pytest.mark.spec("2025-11-25", "server/tools#structured-content", "caedb576")
@pytest.mark.spec("2025-11-25", "server/tools#output-schema")
@pytest.mark.spec("2026-07-28", "server/tools#structured-content", "caedb576")
@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (Weather, Weather(1.5), {"celsius": 1.5, "at": None}),
        (Place, Place("x"), {"name": "x"}),
        (Options, {"deep": True}, {"deep": True}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[str, object], {"a": [1]}, {"a": [1]}),
        (int, 3, {"result": 3}),
        (bool, True, {"result": True}),
        (float, 1, {"result": 1}),
        (list[str], ["a"], {"result": ["a"]}),
        (list[Weather], [Weather(1)], {"result": [{"celsius": 1, "at": None}]}),
        (Weather | None, None, {"result": None}),
        (Pet | Rock, Rock(1), {"result": {"type": "Rock", "mass": 1}}),
        (Node, Node([Node()]), {"children": [{"children": []}]}),
        (Color, Color.RED, {"result": "red"}),
        (Literal["a", "b"], "a", {"result": "a"}),
        (dt.date, dt.date(2026, 1, 1), {"result": "2026-01-01"}),
        (Annotated[int, Meta(ge=0)], 0, {"result": 0}),
        (Weather | models.InputRequiredResult, Weather(1), {"celsius": 1, "at": None}),
    ],
    ids=str,
)
async def test_what_is_no_text_is_structured_and_as_its_schema_says(
    catalogue: FunctionHandlers, caller: Caller, annotation: Any, value: Any, structured: Any
) -> None:
    catalogue.tool(name="it")(returning(annotation, value))
    (listed,) = (await caller.tools()).tools
    result = await caller.call("it")

    jsonschema.Draft202012Validator.check_schema(listed.output_schema)
    jsonschema.validate(structured, listed.output_schema)
    assert "object" == listed.output_schema["type"]
    assert structured == result.structured_content
    assert structured == json.loads(text(result))
    assert UNSET is result.is_error


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (str, "hi", [models.TextContent(text="hi")]),
        (str | None, None, []),
        (None, None, []),
        (models.ImageContent, BLOCK, [BLOCK]),
        (list[models.ContentBlock], [BLOCK], [BLOCK]),
        (list[str | models.ImageContent], ["hi", BLOCK], [models.TextContent(text="hi"), BLOCK]),
        (str | models.ImageContent, BLOCK, [BLOCK]),
        (tuple[str, models.ImageContent], ("hi", BLOCK), [models.TextContent(text="hi"), BLOCK]),
        (list[models.ContentBlock], [], [models.TextContent(text="[]")]),
        (Any, {"a": 1}, [models.TextContent(text='{"a":1}')]),
        (object, [1], [models.TextContent(text="[1]")]),
    ],
    ids=str,
)
async def test_text_and_blocks_are_content_without_a_schema(
    catalogue: FunctionHandlers, caller: Caller, annotation: Any, value: Any, expected: list[Any]
) -> None:
    catalogue.tool(name="it")(returning(annotation, value))
    (listed,) = (await caller.tools()).tools

    assert UNSET is listed.output_schema
    assert models.CallToolResult(content=expected) == await caller.call("it")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (models.CallToolResult, FINISHED),
        (models.InputRequiredResult, ASKING),
        (models.CallToolResult | models.InputRequiredResult, ASKING),
        (int | models.CallToolResult, FINISHED),
        (int, FINISHED),
        (Weather | models.InputRequiredResult, ASKING),
        (str | models.InputRequiredResult, ASKING),
    ],
    ids=str,
)
async def test_whole_results_pass_as_they_are(
    catalogue: FunctionHandlers, caller: Caller, annotation: Any, value: Any
) -> None:
    catalogue.tool(name="it")(returning(annotation, value))

    assert value is await caller.call("it")


async def test_a_function_without_annotation_of_its_result_may_return_anything(
    catalogue: FunctionHandlers, caller: Caller
) -> None:
    @catalogue.tool
    async def it(kind: str):  # type: ignore[no-untyped-def]  # noqa: ANN202 (what is tested)
        return {"text": "hi", "none": None, "json": {"a": 1}}[kind]

    assert ["hi"] == [each.text for each in (await caller.call("it", {"kind": "text"})).content]
    assert [] == (await caller.call("it", {"kind": "none"})).content
    assert '{"a":1}' == text(await caller.call("it", {"kind": "json"}))


@pytest.mark.parametrize("value", [b"x", [BLOCK, 3]], ids=str)
async def test_a_result_that_cannot_be_sent_is_a_failure(
    catalogue: FunctionHandlers, caller: Caller, value: Any
) -> None:
    catalogue.tool(name="it")(returning(Any, value))
    result = await caller.call("it")

    assert (True, "The tool it failed.") == (result.is_error, text(result))


async def test_structured_can_be_asked_for_and_declined(catalogue: FunctionHandlers, caller: Caller) -> None:
    catalogue.tool(name="asked", structured=True)(returning(str, "hi"))
    catalogue.tool(name="declined", structured=False)(returning(int, 3))
    asked, declined = (await caller.tools()).tools

    assert {"result": "hi"} == (await caller.call("asked")).structured_content
    assert {"result": {"type": "string"}} == asked.output_schema["properties"]
    assert models.CallToolResult(content=[models.TextContent(text="3")]) == await caller.call("declined")
    assert UNSET is declined.output_schema


@pytest.mark.parametrize("annotation", [bytes, bytes | None, bytearray, Annotated[bytes, "x"]], ids=str)
def test_bytes_are_refused_at_registration(catalogue: FunctionHandlers, annotation: Any) -> None:
    with pytest.raises(UsageError, match=r"return Image\(data\), Audio\(data\) or File\(data\)"):
        catalogue.tool(name="it")(returning(annotation, b""))


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Any, "annotate it, or remove `structured=True`"),
        (models.CallToolResult, "has content blocks instead of a value, so it has no output schema"),
        (list[models.ContentBlock], "has content blocks instead of a value, so it has no output schema"),
    ],
    ids=str,
)
def test_structured_cannot_be_asked_for_without_a_type(catalogue: FunctionHandlers, annotation: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        catalogue.tool(name="it", structured=True)(returning(annotation, None))


@pytest.mark.parametrize(
    "annotation", [older.CallToolResult, list[older.ContentBlock], older.TextContent | str], ids=str
)
def test_types_of_another_revision_are_refused_at_registration(catalogue: FunctionHandlers, annotation: Any) -> None:
    with pytest.raises(UsageError, match=r"of mcpgen\.generated\..*; import it from mcpgen\.generated\.v2026_07_28 "):
        catalogue.tool(name="it")(returning(annotation, None))


def test_a_result_that_has_no_schema_is_refused_at_registration(catalogue: FunctionHandlers) -> None:
    with pytest.raises(UsageError, match=r"the result of .* has no JSON Schema"):
        catalogue.tool(name="it")(returning(Place | Weather, None))


@pytest.mark.spec("2025-11-25", "server/tools#output-schema")
@pytest.mark.parametrize(
    ("annotation", "value"),
    [(int, "x"), (Weather, Weather(cast("Any", "x"))), (Weather, None)],
    ids=str,
)
async def test_a_result_that_breaks_its_schema_is_an_error_that_keeps_its_values_from_the_client(
    catalogue: FunctionHandlers, caller: Caller, caplog: pytest.LogCaptureFixture, annotation: Any, value: Any
) -> None:
    catalogue.tool(name="it")(returning(annotation, value))
    result = await caller.call("it")

    assert (True, UNSET) == (result.is_error, result.structured_content)
    assert text(result) == "The result of the tool it does not fit its output schema."
    assert "the result of " in caplog.text
    assert "it() is not of its annotated type: Expected" in caplog.text


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (str, 4711, "Expected `str`, got `int`"),
        (str, {"secret": 4711}, "Expected `str`, got `dict`"),
        (str, None, "Expected `str`, got `None`"),
        (str, [4711, "a"], "Expected `str`, got `list of int, str`"),
        (str | None, 4711, "Expected `str | None`, got `int`"),
        (None, "4711", "Expected `None`, got `str`"),
        (Annotated[str, Meta(max_length=3)], "4711", "Expected `str` of length <= 3"),
        (models.TextContent, "4711", "Expected `TextContent`, got `str`"),
        (models.CallToolResult, "4711", "Expected `CallToolResult`, got `str`"),
        (list[models.ContentBlock], {"secret": 4711}, "got `dict`"),
        (list[models.TextContent], [models.TextContent(text="a"), "4711"], "got `list of TextContent, str`"),
    ],
    ids=str,
)
async def test_a_result_that_breaks_an_annotation_without_a_schema_is_an_error_without_its_values(
    catalogue: FunctionHandlers, caplog: pytest.LogCaptureFixture, annotation: Any, value: Any, reason: str
) -> None:
    catalogue.tool(name="it")(returning(annotation, value))
    result = await Caller(catalogue).call("it")

    assert (True, UNSET) == (result.is_error, result.structured_content)
    assert text(result) == "The result of the tool it does not have the type that it declares."
    assert "it() is not of its annotated type: " in caplog.text
    assert reason in caplog.text
    assert "4711" not in caplog.text


@pytest.mark.parametrize(
    ("annotation", "value", "shown"),
    [(int, "4711", None), (int, 3, "3"), (Weather, None, None), (list[int], [1], "[1]")],
    ids=str,
)
async def test_a_result_is_checked_without_structured_content_too(
    catalogue: FunctionHandlers, caller: Caller, annotation: Any, value: Any, shown: str | None
) -> None:
    catalogue.tool(name="it", structured=False)(returning(annotation, value))
    result = await caller.call("it")

    assert UNSET is result.structured_content
    expected = shown or "The result of the tool it does not have the type that it declares."
    assert (expected, shown is None) == (text(result), result.is_error is True)


class Line(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float | models.ImageContent, 3),
        (tuple[models.TextContent, ...], (models.TextContent(text="3"),)),
        (list[str | models.ImageContent], ["3"]),
        (models.TextContent | None, None),
        (list[models.TextContent | dict[str, int]], [{"a": 3}]),
        (models.TextContent, models.CallToolResult(content=[])),
        (Any, 3),
        (str, Line("3")),
    ],
    ids=str,
)
async def test_a_result_of_its_annotated_type_is_sent(
    catalogue: FunctionHandlers, caller: Caller, annotation: Any, value: Any
) -> None:
    catalogue.tool(name="it")(returning(annotation, value))

    assert (await caller.call("it")).is_error is not True


async def _later() -> int:
    return 1


@dataclass
class Reading:
    x: float


class Handle:
    """A class that JSON has no form for."""


@pytest.mark.parametrize(
    ("make", "logged"),
    [
        (_later, "it() returned a coroutine; await it"),
        (lambda: (each for each in "ab"), "it() returned a generator; return a list"),
        (lambda: map(str, "ab"), "it() returned a value of the type map, which is not a list; return a list"),
        ({"a": 1}.keys, "it() returned a value of the type dict_keys, which is not a list; return a list"),
        (
            lambda: float("nan"),
            "it() returned nan, which JSON cannot express; return a finite number, or None where that is allowed",
        ),
        (lambda: "\ud800", "it() returned a value of the type str that cannot be written as JSON: 'utf-8' codec can't"),
        (lambda: [1, {"a": (Reading(x=float("-inf")),)}], "it() returned -inf at /1/a/0/x, which JSON cannot express"),
        (
            Handle,
            "it() returned a value of the type Handle that cannot be written as JSON: msgspec cannot encode the type",
        ),
    ],
)
async def test_a_value_that_cannot_be_sent_is_named_in_the_log_and_not_to_the_client(
    caplog: pytest.LogCaptureFixture, make: Callable[[], object], logged: str
) -> None:
    for annotation in (int, str, Any, list[int]):
        catalogue = FunctionHandlers()

        async def it() -> Any:
            return make()

        it.__annotations__["return"] = annotation
        catalogue.tool(it)
        result = await Caller(catalogue).call("it")

        assert (True, "The tool it failed.") == (result.is_error, text(result))
        assert logged in caplog.text
        caplog.clear()


async def test_a_list_that_ends_in_a_generator_is_named_in_the_log(
    catalogue: FunctionHandlers, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    @catalogue.tool
    def half() -> list[Any]:
        return [1, (each for each in "ab")]

    assert text(await caller.call("half")) == "The tool half failed."
    assert "half() returned a value of the type list that cannot be written as JSON: msgspec cannot" in caplog.text
    assert "builtins.generator" in caplog.text


# --- failures


@pytest.mark.spec("2024-11-05", "server/tools#error-handling")
@pytest.mark.spec("2026-07-28", "server/tools#error-handling")
@pytest.mark.parametrize("grouped", [False, True])
async def test_a_tool_error_is_a_result_for_the_model(
    catalogue: FunctionHandlers, caller: Caller, *, grouped: bool
) -> None:
    @catalogue.tool
    async def fail() -> int:
        error = ToolError("The date is in the past.")
        raise ExceptionGroup("of a task group", [error]) if grouped else error

    assert models.CallToolResult(
        content=[models.TextContent(text="The date is in the past.")], is_error=True
    ) == await caller.call("fail")


async def test_a_tool_error_without_a_text_gets_one(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.tool
    async def fail() -> int:
        raise ToolError

    assert "The tool fail failed." == text(await caller.call("fail"))


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize(
    "error",
    [ValueError("secret"), SystemExit(3), StopIteration(), ExceptionGroup("secret", [ValueError(), KeyError()])],
)
async def test_any_other_failure_says_nothing_but_is_logged(
    catalogue: FunctionHandlers,
    caller: Caller,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
    *,
    asynchronous: bool,
) -> None:
    def fail() -> int:
        raise error

    async def fail_later() -> int:
        raise error

    catalogue.tool(name="fail")(fail_later if asynchronous else fail)
    with anyio.fail_after(PATIENCE_SECONDS):
        result = await caller.call("fail")

    assert (True, "The tool fail failed.") == (result.is_error, text(result))
    assert "Traceback" in caplog.text
    assert logging.ERROR == caplog.records[-1].levelno


@pytest.mark.parametrize(
    "error",
    [
        RequestError(-32000, "Busy", {"after": 3}),
        UnsupportedByPeer(revision="x", what="elicitation/create", reason="no"),
    ],
)
async def test_answers_of_the_protocol_pass_through(
    catalogue: FunctionHandlers, caller: Caller, error: Exception
) -> None:
    @catalogue.tool
    async def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await caller.call("fail")

    assert error is caught.value


async def test_a_cancelled_tool_is_cancelled(catalogue: FunctionHandlers, caller: Caller) -> None:
    ended = False

    @catalogue.tool
    async def hang() -> None:
        nonlocal ended
        try:
            await anyio.sleep_forever()
        finally:
            ended = True

    with anyio.fail_after(BUSY_SECONDS), anyio.move_on_after(0.01) as scope:
        await caller.call("hang")

    assert (True, True) == (ended, scope.cancelled_caught)


# --- the kinds of functions


async def test_a_plain_function_runs_in_a_thread_with_the_callers_context_variables(
    catalogue: FunctionHandlers, caller: Caller
) -> None:
    user = contextvars.ContextVar[str]("user")
    user.set("bo")

    @catalogue.tool
    def where() -> str:
        return f"{user.get()} {threading.current_thread() is threading.main_thread()}"

    assert "bo False" == text(await caller.call("where"))


async def test_a_plain_function_does_not_hold_up_the_others(catalogue: FunctionHandlers, caller: Caller) -> None:
    let_go = threading.Event()

    @catalogue.tool
    def block() -> str:
        return str(let_go.wait(PATIENCE_SECONDS))

    @catalogue.tool
    async def release() -> None:
        let_go.set()

    results: list[Any] = []

    async def call_block() -> None:
        results.append(await caller.call("block"))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(call_block)
            await caller.call("release")

    assert ["True"] == [text(each) for each in results]


async def test_a_hanging_plain_function_is_abandoned_when_it_is_cancelled(
    catalogue: FunctionHandlers, caller: Caller
) -> None:
    let_go = threading.Event()

    @catalogue.tool
    def hang() -> None:
        let_go.wait(PATIENCE_SECONDS)

    with anyio.fail_after(BUSY_SECONDS), anyio.move_on_after(0.01) as scope:
        await caller.call("hang")
    let_go.set()

    assert scope.cancelled_caught


def shouting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def shout(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return shout


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 1

    async def add(self, n: int) -> str:
        return str(self.count + n)

    def __call__(self, n: int) -> str:
        return str(self.count + n)


class AsyncCounter:
    async def __call__(self, n: int) -> str:
        return str(1 + n)


async def add(n: int, m: int) -> str:
    """Add them."""
    return str(n + m)


def add_plainly(n: int, m: int) -> str:
    return str(n + m)


@pytest.mark.parametrize(
    "function",
    [
        functools.partial(add, m=1),
        functools.partial(add_plainly, m=1),
        functools.partial(functools.partial(add, m=1)),
        Counter().add,
        Counter(),
        AsyncCounter(),
        functools.partial(AsyncCounter()),
        shouting(Counter().add),
        shouting(Counter()),
    ],
    ids=[
        "partial",
        "partial of a plain function",
        "partial of a partial",
        "method",
        "object",
        "object with an async call",
        "partial of an object",
        "decorated method",
        "decorated object",
    ],
)
async def test_whatever_can_be_called_can_be_a_tool(catalogue: FunctionHandlers, caller: Caller, function: Any) -> None:
    catalogue.tool(name="it")(function)
    (listed,) = (await caller.tools()).tools

    assert {"n": {"type": "integer"}} == listed.input_schema["properties"]
    assert "3" == text(await caller.call("it", {"n": 2}))


async def test_what_a_partial_binds_cannot_be_given(catalogue: FunctionHandlers, caller: Caller) -> None:
    catalogue.tool(name="it", description="Add one.")(functools.partial(add, m=1))

    result = await caller.call("it", {"n": 1, "m": 100})

    assert (True, "Invalid arguments for tool it: Object contains unknown field `m`") == (result.is_error, text(result))


# --- what is listed


@pytest.mark.spec("2025-11-25", "server/tools#tool")
async def test_a_definition_has_what_it_was_given(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.tool(
        name="other.name",
        title="A title",
        description="Not the docstring.",
        annotations=models.ToolAnnotations(read_only_hint=True),
        icons=[models.Icon(src="https://x/i.png")],
        meta={"x/y": 1},
    )
    async def it() -> str:
        """Say nothing."""
        return ""

    (listed,) = (await caller.tools()).tools

    assert json.loads(msgspec.json.encode(listed)) == {
        "name": "other.name",
        "title": "A title",
        "description": "Not the docstring.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "https://x/i.png"}],
        "_meta": {"x/y": 1},
    }


async def test_a_decorator_returns_the_function_unchanged(catalogue: FunctionHandlers) -> None:
    async def it() -> None: ...

    assert it is catalogue.tool(it)
    assert it is catalogue.tool(name="b")(it)
    catalogue.remove_tool("it")
    assert it is catalogue.tool()(it)


@pytest.mark.spec("2025-11-25", "server/tools#tool-names", "a6bb7a50")
@pytest.mark.spec("2026-07-28", "server/tools#tool-names", "a6bb7a50")
async def test_a_second_tool_of_a_name_is_refused_and_both_are_named(catalogue: FunctionHandlers) -> None:
    async def first() -> None: ...
    async def second() -> None: ...

    catalogue.tool(name="it")(first)
    with pytest.raises(UsageError) as caught:
        catalogue.tool(name="it")(second)

    assert "first()" in str(caught.value)
    assert "second()" in str(caught.value)


async def test_a_removed_tool_is_gone_and_its_name_is_free(catalogue: FunctionHandlers, caller: Caller) -> None:
    async def it() -> None: ...

    catalogue.tool(it)
    catalogue.remove_tool("it")

    assert [] == (await caller.tools()).tools
    with pytest.raises(RequestError, match="Unknown tool: it"):
        await caller.call("it")
    with pytest.raises(UsageError, match="there is no tool 'it' to remove"):
        catalogue.remove_tool("it")
    catalogue.tool(it)


async def test_replay_is_asked_of_what_was_registered(catalogue: FunctionHandlers) -> None:
    @catalogue.tool(replay=True)
    async def again() -> None: ...

    @catalogue.tool
    async def once() -> None: ...

    def request(name: str) -> models.CallToolRequestParams:
        return models.CallToolRequestParams(name=name, meta=META)

    assert [True, False, False] == [
        catalogue.may_replay("tools/call", request(each)) for each in ("again", "once", "nope")
    ]
    assert not catalogue.may_replay("tools/list", models.PaginatedRequestParams(meta=META))
