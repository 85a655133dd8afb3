"""Signatures whose annotations are text, as `from __future__ import annotations` makes them, from wherever they are."""

from __future__ import annotations

import functools
import typing
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.server.context import Context  # noqa: TC001 (functions are registered with it)
from mcpgen.runtime.server.functions.signatures import Signature, read_result, read_signature

if TYPE_CHECKING:
    from decimal import Decimal

    from mcpgen.runtime.server.context import Context as Hidden


class Point(Struct):
    x: int


def refusal(function: Any) -> str:
    with pytest.raises(UsageError) as caught:
        read_signature(function)
    return str(caught.value)


def types(signature: Signature) -> dict[str, Any]:
    return {each.name: each.annotation for each in signature.parameters}


def test_annotations_that_are_text_are_resolved_where_they_were_written() -> None:
    def move(to: Point, ctx: Context, by: typing.Annotated[int | None, "note"] = None) -> list[Point]: ...  # type: ignore[empty-body]

    signature = read_signature(move)

    assert {"to": Point, "by": typing.Annotated[int | None, "note"]} == types(signature)
    assert ("ctx",) == signature.context
    assert list[Point] == read_result(move)


def test_a_decorated_function_is_resolved_in_its_own_module() -> None:
    namespace: dict[str, Any] = {}
    exec(  # noqa: S102 (a decorator of another module, with annotations and names of its own)
        "from __future__ import annotations\nimport functools\n"
        "def decorated(function):\n    @functools.wraps(function)\n    def inner(*args: Nowhere, **kw: Nowhere): ...\n"
        "    return inner",
        namespace,
    )

    @namespace["decorated"]  # type: ignore[untyped-decorator]
    def move(to: Point) -> Point: ...  # type: ignore[empty-body]

    assert ({"to": Point}, Point) == (types(read_signature(move)), read_result(move))


def test_methods_callables_and_partials_leave_out_what_is_bound() -> None:
    class Mover:
        """Moves."""

        def move(self, to: Point) -> None: ...
        @classmethod
        def make(cls, to: Point) -> None: ...
        @staticmethod
        def rest(to: Point) -> None: ...
        def __call__(self, to: Point) -> None: ...

    def move(by: int, to: Point) -> None: ...

    for function in (
        Mover().move,
        Mover.make,
        Mover.rest,
        Mover(),
        functools.partial(move, 1),
        functools.partial(move, by=1),
    ):
        assert {"to": Point} == types(read_signature(function)), function


def test_the_docstring_of_a_callable_is_its_calls_or_its_class() -> None:
    class Mover:
        """Moves."""

        def __call__(self, to: Point) -> None: ...

    def move(to: Point) -> None:
        """Move it.

        Args:
            to: Where to.
        """

    assert "Moves." == read_signature(Mover()).description
    partial = read_signature(functools.partial(move))
    assert ("Move it.", "Where to.") == (partial.description, partial.parameters[0].description)


def test_a_name_that_is_not_there_at_run_time_is_said_with_its_place() -> None:
    def hidden(ctx: Hidden) -> None: ...
    def returning() -> Decimal: ...  # type: ignore[empty-body]

    assert "the annotation 'Hidden' of parameter `ctx` of" in refusal(hidden)
    assert "import its names at run time (not under `if TYPE_CHECKING:`)" in refusal(hidden)
    read_signature(returning)  # which only a tool's schema needs
    with pytest.raises(UsageError, match="the annotation 'Decimal' of the result of"):
        read_result(returning)


def test_whatever_an_annotation_raises_is_said_with_its_place() -> None:
    def wrong(a: typing.Any) -> None: ...

    wrong.__annotations__["a"] = "1 / 0"

    assert "the annotation '1 / 0' of parameter `a` of" in refusal(wrong)
    wrong.__annotations__["a"] = "not python"
    assert "the annotation 'not python' of parameter `a` of" in refusal(wrong)


def test_subclasses_and_unions_of_the_context_count_as_it() -> None:
    def several(a: Context | None, b: typing.Optional[Context], c: typing.Annotated[Context, "x"]) -> None: ...  # noqa: UP045 (as users write it)

    assert (("a", "b", "c"), ()) == (read_signature(several).context, read_signature(several).parameters)
