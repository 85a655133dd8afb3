"""Functions as resources, fixed and templates."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 (functions are registered with it)
from pathlib import Path  # noqa: TC003 (a function is refused with it)
from typing import TYPE_CHECKING, Any, Literal

import pytest
from msgspec import UNSET, Struct

from mcpgen.runtime.adapt import route
from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.server.context import Context  # noqa: TC001 (functions are registered with it)
from mcpgen.runtime.server.functions.resources import ResourceNotFound
from tests.runtime.server.functions.callers import META, Caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers

pytestmark = pytest.mark.anyio


def refusal(catalogue: FunctionHandlers, uri: str, function: Callable[..., Any], **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        catalogue.resource(uri, **options)(function)
    return str(caught.value)


class Settings(Struct):
    debug: bool


# --- contents


@pytest.mark.spec("2024-11-05", "server/resources#resource-contents")
@pytest.mark.spec("2026-07-28", "server/resources#resource-contents")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", [models.TextResourceContents(uri="x:a", text="hi")]),
        ("", [models.TextResourceContents(uri="x:a", text="")]),
        (b"\x00\xff", [models.BlobResourceContents(uri="x:a", blob="AP8=")]),
        (bytearray(b"x"), [models.BlobResourceContents(uri="x:a", blob="eA==")]),
        (
            Settings(debug=True),
            [models.TextResourceContents(uri="x:a", mime_type="application/json", text='{"debug":true}')],
        ),
        ([], [models.TextResourceContents(uri="x:a", mime_type="application/json", text="[]")]),
        (models.TextResourceContents(uri="x:b", text="b"), [models.TextResourceContents(uri="x:b", text="b")]),
        (
            [models.TextResourceContents(uri="x:b", text="b"), "a"],
            [models.TextResourceContents(uri="x:b", text="b"), models.TextResourceContents(uri="x:a", text="a")],
        ),
    ],
    ids=str,
)
async def test_what_a_function_returns_becomes_contents(
    catalogue: FunctionHandlers, caller: Caller, value: Any, expected: list[Any]
) -> None:
    @catalogue.resource("x:a")
    async def it() -> Any:
        return value

    assert models.ReadResourceResult(contents=expected) == await caller.read("x:a")


@pytest.mark.parametrize(
    "value", [models.ReadResourceResult(contents=[], ttl_ms=5), models.InputRequiredResult(request_state="x")]
)
async def test_whole_results_pass_as_they_are(catalogue: FunctionHandlers, caller: Caller, value: Any) -> None:
    @catalogue.resource("x:a")
    def it() -> Any:
        return value

    assert value is await caller.read("x:a")


async def test_the_media_type_is_the_one_that_was_registered(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.resource("x:a", mime_type="text/markdown", size=2, title="A", annotations=models.Annotations(priority=1))
    async def it() -> str:
        """Say hi."""
        return "hi"

    (listed,) = (await caller.resources()).resources

    assert "text/markdown" == (await caller.read("x:a")).contents[0].mime_type
    assert listed == models.Resource(
        name="it",
        uri="x:a",
        title="A",
        description="Say hi.",
        mime_type="text/markdown",
        size=2,
        annotations=models.Annotations(priority=1),
    )


async def test_nothing_is_no_content(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.resource("x:a")
    async def it() -> None: ...

    with pytest.raises(TypeError, match="returned None, which is no content"):
        await caller.read("x:a")


# --- templates


async def test_values_of_a_template_become_what_they_are_annotated_with(
    catalogue: FunctionHandlers, caller: Caller
) -> None:
    @catalogue.resource("x://{n}/{on}/{day}/{kind}{?flag,tags*}")
    async def it(  # noqa: PLR0913, PLR0917 (one of each kind)
        n: int,
        on: bool,  # noqa: FBT001 (a value in the URI)
        day: dt.date,
        kind: Literal["a", "b"],
        ctx: Context,
        flag: str | None = None,
        tags: list[int] | None = None,
        other: str = "default",
    ) -> str:
        return repr((n, on, day.isoformat(), kind, flag, tags, other, ctx is caller.context))

    async def read(uri: str) -> str:
        return str((await caller.read(uri)).contents[0].text)

    assert "(1, True, '2026-01-02', 'a', None, None, 'default', True)" == await read("x://1/true/2026-01-02/a")
    assert "(1, False, '2026-01-02', 'b', '', [1, 2], 'default', True)" == await read(
        "x://1/0/2026-01-02/b?tags=1&flag=&tags=2"
    )
    for uri in ("x://one/true/2026-01-02/a", "x://1/true/2026-01-02/c", "x://1/true/2026-01-02/a?other=1"):
        with pytest.raises(RequestError, match="Resource not found"):
            await caller.read(uri)


async def test_a_path_is_one_text_or_a_list_as_it_is_annotated(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.resource("text://{/path*}")
    async def joined(path: str) -> str:
        return repr(path)

    @catalogue.resource("list://{/path*}")
    async def listed(path: list[str]) -> str:
        return repr(path)

    @catalogue.resource("numbers://{/path*}")
    async def numbers(path: tuple[int, ...]) -> str:
        return repr(path)

    assert "(1, 2)" == (await caller.read("numbers:///1/2")).contents[0].text
    assert "'a/b'" == (await caller.read("text:///a/b")).contents[0].text
    assert "['a', 'b']" == (await caller.read("list:///a/b")).contents[0].text


async def test_fixed_precedes_template_and_first_precedes_second(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.resource("x://{a}")
    async def first(a: int) -> str:
        return f"first {a}"

    @catalogue.resource("x://{+a}")
    async def second(a: str) -> str:
        return f"second {a}"

    @catalogue.resource("x://1")
    async def fixed() -> str:
        return "fixed"

    assert ["fixed", "first 2", "second b", "second b/c"] == [
        (await caller.read(uri)).contents[0].text for uri in ("x://1", "x://2", "x://b", "x://b/c")
    ]
    assert ["x://{a}", "x://{+a}"] == [each.uri_template for each in (await caller.templates()).resource_templates]
    assert ["x://1"] == [each.uri for each in (await caller.resources()).resources]


@pytest.mark.spec("2026-07-28", "server/resources#error-handling")
async def test_a_resource_that_is_not_found_is_invalid_params_with_its_uri(caller: Caller) -> None:
    with pytest.raises(RequestError) as caught:
        await caller.read("x:nope")

    assert (-32602, "Resource not found", {"uri": "x:nope"}) == (
        caught.value.code,
        caught.value.message,
        caught.value.data,
    )


@pytest.mark.spec("2024-11-05", "server/resources#error-handling")
@pytest.mark.spec("2025-11-25", "server/resources#error-handling")
async def test_a_peer_of_an_earlier_revision_gets_the_code_of_its_own(caller: Caller, revision: str) -> None:
    with pytest.raises(RequestError) as caught:
        await caller.read("x:nope")
    error = {"code": caught.value.code, "message": caught.value.message, "data": caught.value.data}
    adapted = route(NEWEST, revision, "resources/read", "error").adapt(error)

    assert {**error, "code": -32602 if revision == NEWEST else -32002} == adapted.value


# --- what is refused


async def test_uris_and_functions_that_do_not_fit_are_refused(catalogue: FunctionHandlers) -> None:
    async def nothing() -> str: ...  # type: ignore[empty-body]
    async def one(a: str) -> str: ...  # type: ignore[empty-body]
    async def deep(a: dict[str, int]) -> str: ...  # type: ignore[empty-body]
    async def structs(a: list[Settings]) -> str: ...  # type: ignore[empty-body]
    async def unknown_class(a: Path) -> str: ...  # type: ignore[empty-body]
    async def default(a: str = "") -> str: ...  # type: ignore[empty-body]

    expected: list[tuple[str, Any, str]] = [
        ("config", nothing, "with a scheme and a path"),
        ("x:a b", nothing, "is not a URI"),
        ("x:", nothing, "is not a URI"),
        ("x:a", one, "add {a} to the URI"),
        ("x:a", default, "add {a} to the URI"),
        ("x:{a}", nothing, "takes the value of the variable 'a' of 'x:{a}'; add a parameter `a`, or give a "),
        ("x:{b}", one, "takes the value of the variable 'b' of 'x:{b}'; add a parameter `b`, or give a "),
        ("x:{b}/{a}", one, "the variable 'b'"),
        ("x:{b", one, "a { has no }"),
        ("x:b}", nothing, "outside of {…}"),
        ("x:y{?a}", one, "is optional, but parameter `a` of"),
        ("x:y{?a*}", default, "annotate it as list[str]"),
        ("x:{a}", deep, "arrives as text"),
        ("x:{/a*}", structs, "an item of parameter `a` of "),
        ("x:{a}", unknown_class, "use str, a number, bool, "),
    ]

    for uri, function, why in expected:
        assert why in refusal(catalogue, uri, function), uri
    assert "`size` cannot be set" in refusal(catalogue, "x:{a}", one, size=1)
    assert "has no name" in refusal(catalogue, "x:a", nothing, name="")


async def test_a_parameter_that_no_variable_fills_is_refused(catalogue: FunctionHandlers) -> None:
    async def two(a: str, b: str) -> str: ...  # type: ignore[empty-body]

    assert "parameter `b` of" in refusal(catalogue, "x:{a}", two)


async def test_a_decorator_without_a_uri_is_refused(catalogue: FunctionHandlers) -> None:
    with pytest.raises(UsageError, match="`resource` needs a URI"):

        @catalogue.resource  # type: ignore[arg-type]
        def it() -> str: ...  # type: ignore[empty-body]

    with pytest.raises(UsageError, match="`resource` needs a URI"):
        catalogue.resource(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("uri", ["x:a", "x:{a}"])
async def test_a_second_resource_at_a_uri_is_refused(catalogue: FunctionHandlers, uri: str) -> None:
    async def first(a: str) -> str: ...  # type: ignore[empty-body]
    async def second(a: str) -> str: ...  # type: ignore[empty-body]
    async def third() -> str: ...  # type: ignore[empty-body]
    async def fourth() -> str: ...  # type: ignore[empty-body]

    one, two = (first, second) if "{" in uri else (third, fourth)
    catalogue.resource(uri)(one)

    assert f"{two.__name__}()" in refusal(catalogue, uri, two)
    assert f"{one.__name__}()" in refusal(catalogue, uri, two)


@pytest.mark.parametrize("uri", ["x:a", "x:{a}"])
async def test_a_removed_resource_is_gone(catalogue: FunctionHandlers, caller: Caller, uri: str) -> None:
    async def fixed() -> str:
        return "hi"

    async def template(a: str) -> str:
        return a

    catalogue.resource(uri)(template if "{" in uri else fixed)
    assert "resources" in str(catalogue.capabilities())
    catalogue.remove_resource(uri)

    assert UNSET is not catalogue.capabilities().resources  # what was offered once stays offered
    assert [] == (await caller.resources()).resources
    assert [] == (await caller.templates()).resource_templates
    with pytest.raises(ResourceNotFound):
        await caller.read("x:a")
    with pytest.raises(UsageError, match="to remove"):
        catalogue.remove_resource(uri)


async def test_replay_is_asked_of_what_reads_a_uri(catalogue: FunctionHandlers) -> None:
    @catalogue.resource("x:{a}", replay=True)
    async def it(a: str) -> str:
        return a

    def request(uri: str) -> models.ReadResourceRequestParams:
        return models.ReadResourceRequestParams(uri=uri, meta=META)

    assert [True, False] == [catalogue.may_replay("resources/read", request(uri)) for uri in ("x:a", "y:a")]
