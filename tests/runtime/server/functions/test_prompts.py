"""Functions as prompts, and what completes their arguments and the variables of templates."""

from __future__ import annotations

import enum
from datetime import datetime  # noqa: TC003 (functions are registered with it)
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from msgspec import UNSET, Meta, Struct

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.newest import ErrorCode, models
from mcpgen.runtime.server.context import Context  # noqa: TC001 (functions are registered with it)
from mcpgen.runtime.server.functions.resources import ResourceNotFound
from tests.runtime.server.functions.callers import META, Caller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers

pytestmark = pytest.mark.anyio

REVIEW = models.PromptReference(name="review")


class Place(Struct):
    name: str


class Other(Struct):
    name: str


class Tone(enum.Enum):
    KIND = "kind"


def said(text: str, role: Literal["user", "assistant"] = "user") -> models.PromptMessage:
    return models.PromptMessage(role=role, content=models.TextContent(text=text))


@pytest.fixture
def review(catalogue: FunctionHandlers) -> FunctionHandlers:
    @catalogue.prompt
    async def review(
        code: str, lines: Annotated[int, Meta(description="How many.", title="Lines")] = 3, *, ctx: Context
    ) -> str:
        """Review code.

        Args:
            code: What to review.
        """
        return f"{code} {lines!r} {ctx.peer.revision}"

    @catalogue.resource("x://{a}")
    async def at(a: str) -> str:
        return a

    return catalogue


# --- prompts


@pytest.mark.spec("2024-11-05", "server/prompts#prompt")
@pytest.mark.spec("2026-07-28", "server/prompts#prompt")
async def test_a_prompt_is_listed_with_its_arguments(review: FunctionHandlers, caller: Caller) -> None:
    (listed,) = (await caller.prompts()).prompts

    assert listed == models.Prompt(
        name="review",
        description="Review code.",
        arguments=[
            models.PromptArgument(name="code", description="What to review.", required=True),
            models.PromptArgument(name="lines", title="Lines", description="How many.", required=False),
        ],
    )
    assert review.capabilities().prompts == models.ServerCapabilitiesPrompts(list_changed=True)


async def test_arguments_arrive_as_text_and_become_what_they_are_annotated_with(
    review: FunctionHandlers, caller: Caller
) -> None:
    expected = models.GetPromptResult(messages=[said("5 7 2026-07-28")], description="Review code.")

    assert expected == await caller.get("review", {"code": "5", "lines": "7"})
    assert review is caller.catalogue


@pytest.mark.spec("2024-11-05", "server/prompts#security", "3d51cfee")
@pytest.mark.spec("2025-03-26", "server/prompts#security", "3d51cfee")
@pytest.mark.spec("2025-06-18", "server/prompts#security", "3d51cfee")
@pytest.mark.spec("2025-11-25", "server/prompts#security", "3d51cfee")
@pytest.mark.spec("2026-07-28", "server/prompts#security", "3d51cfee")
@pytest.mark.spec("2024-11-05", "server/prompts#error-handling")
@pytest.mark.spec("2025-11-25", "server/prompts#error-handling")
@pytest.mark.spec("2026-07-28", "server/prompts#error-handling")
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("reviw", {}, "Unknown prompt: reviw; did you mean review?"),
        ("nope", {}, "Unknown prompt: nope"),
        ("review", {}, "Invalid arguments for prompt review: Object missing required field `code`"),
        ("review", {"code": "", "x": ""}, "Invalid arguments for prompt review: Object contains unknown field `x`"),
        (
            "review",
            {"code": "", "lines": "x"},
            "Invalid arguments for prompt review: `lines` must be an integer, not",
        ),
    ],
)
async def test_unknown_prompts_and_wrong_arguments_are_invalid_params(
    review: FunctionHandlers, revision: str, name: str, arguments: dict[str, str], expected: str
) -> None:
    with pytest.raises(RequestError) as caught:
        await Caller(review, revision).get(name, arguments)

    assert -32602 == caught.value.code
    assert caught.value.message.startswith(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", [said("hi")]),
        (said("hi", "assistant"), [said("hi", "assistant")]),
        (["a", said("b", "assistant")], [said("a"), said("b", "assistant")]),
        ([], []),
        (models.TextContent(text="x"), [said("x")]),
    ],
    ids=str,
)
async def test_what_a_function_returns_becomes_messages(
    catalogue: FunctionHandlers, caller: Caller, value: Any, expected: list[Any]
) -> None:
    @catalogue.prompt
    def it() -> Any:
        return value

    assert models.GetPromptResult(messages=expected) == await caller.get("it")


@pytest.mark.parametrize(
    "value", [models.GetPromptResult(messages=[], description="x"), models.InputRequiredResult(request_state="x")]
)
async def test_whole_results_pass_as_they_are(catalogue: FunctionHandlers, caller: Caller, value: Any) -> None:
    @catalogue.prompt
    async def it() -> Any:
        return value

    assert value is await caller.get("it")


async def test_what_is_no_message_is_the_servers_failure(catalogue: FunctionHandlers, caller: Caller) -> None:
    @catalogue.prompt
    async def it() -> Any:
        return 3

    with pytest.raises(TypeError, match="returned a value of the type int; return a string"):
        await caller.get("it")


def test_arguments_that_no_text_can_be_are_refused(catalogue: FunctionHandlers) -> None:
    def listed(a: list[str]) -> str: ...  # type: ignore[empty-body]
    def fine(a: Tone, b: Literal["x"], c: float | None, d: bool, e: object, f: Annotated[str, "x"]) -> str: ...  # type: ignore[empty-body]  # noqa: FBT001, PLR0913, PLR0917 (one of each kind)

    def text_or_list(a: str | list[str]) -> str: ...  # type: ignore[empty-body]

    def two_classes(a: list[Place | Other]) -> str: ...  # type: ignore[empty-body]

    for function in (listed, text_or_list, two_classes):
        with pytest.raises(UsageError, match=r"parameter `a` of .* its value arrives as text"):
            catalogue.prompt(function)
    catalogue.prompt(fine)


@pytest.mark.parametrize("annotation", [int, "float"])
def test_a_prompt_whose_annotation_is_no_message_is_refused(catalogue: FunctionHandlers, annotation: object) -> None:
    def count() -> int: ...  # type: ignore[empty-body]

    count.__annotations__["return"] = annotation
    with pytest.raises(UsageError, match=r"the prompt .*count\(\) returns (int|float); return a string, a content"):
        catalogue.prompt(count)


def test_a_second_prompt_of_a_name_is_refused(review: FunctionHandlers) -> None:
    async def other() -> str: ...  # type: ignore[empty-body]

    with pytest.raises(UsageError, match=r"'review' of .*other.* is registered already, by .*review"):
        review.prompt(name="review")(other)
    with pytest.raises(UsageError, match="has no name"):
        review.prompt(name="")(other)


def test_replay_is_asked_of_a_prompt(review: FunctionHandlers) -> None:
    @review.prompt(replay=True)
    async def again() -> str: ...  # type: ignore[empty-body]

    def request(name: str) -> models.GetPromptRequestParams:
        return models.GetPromptRequestParams(name=name, meta=META)

    assert [True, False, False] == [
        review.may_replay("prompts/get", request(each)) for each in ("again", "review", "nope")
    ]


# --- completions


async def test_a_completion_gets_what_is_typed_and_what_is_settled(review: FunctionHandlers, caller: Caller) -> None:
    @review.completion("review", "code")
    def codes(value: str, arguments: dict[str, str], ctx: Context) -> list[str]:
        return [value, *arguments, *arguments.values(), str(ctx is caller.context)]

    @review.completion("x://{a}", "a")
    async def names(value: str) -> Iterator[str]:
        return (each for each in ("ab", "b") if each.startswith(value))

    template = models.ResourceTemplateReference(uri="x://{a}")

    assert ["co", "lines", "3", "True"] == (await caller.complete(REVIEW, "code", "co", lines="3")).values
    assert ["ab"] == (await caller.complete(template, "a", "a")).values


async def test_a_peer_that_settles_nothing_is_completed_all_the_same(review: FunctionHandlers, caller: Caller) -> None:
    @review.completion("review", "code")
    def codes(arguments: dict[str, str]) -> list[str]:
        return [repr(arguments)]

    params = models.CompleteRequestParams(
        ref=REVIEW, argument=models.CompleteRequestParamsArgument(name="code", value=""), meta=META
    )

    assert ["{}"] == (await review.complete(params, caller.context)).completion.values


@pytest.mark.spec("2024-11-05", "server/utilities/completion#completion-results")
@pytest.mark.spec("2026-07-28", "server/utilities/completion#completion-results")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, (0, 0, False)),
        ([], (0, 0, False)),
        (["a"] * 100, (100, 100, False)),
        (["a"] * 101, (100, 101, True)),
        (models.CompleteResultCompletion(values=["a"]), (1, UNSET, UNSET)),
        (models.CompleteResultCompletion(values=["a"], total=9, has_more=True), (1, 9, True)),
        (models.CompleteResultCompletion(values=["a"] * 101), (100, 101, True)),
        (models.CompleteResultCompletion(values=["a"] * 101, total=900), (100, 900, True)),
        (
            models.CompleteResult(completion=models.CompleteResultCompletion(values=["a"] * 101, total=101)),
            (100, 101, True),
        ),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_an_answer_holds_a_hundred_values_and_says_how_many_there_are(
    review: FunctionHandlers, caller: Caller, value: Any, expected: Any
) -> None:
    @review.completion("review", "code")
    def codes() -> Any:
        return value

    found = await caller.complete(REVIEW, "code", "")

    assert expected == (len(found.values), found.total, found.has_more)


async def test_an_argument_that_nothing_completes_has_no_values(review: FunctionHandlers, caller: Caller) -> None:
    @review.completion("review", "code")
    def codes() -> list[str]:
        return ["x"]

    expected = models.CompleteResultCompletion(values=[], total=0, has_more=False)

    assert expected == await caller.complete(REVIEW, "lines", "")


@pytest.mark.spec("2024-11-05", "server/utilities/completion#implementation-considerations", "2a53906d")
@pytest.mark.spec("2025-03-26", "server/utilities/completion#implementation-considerations", "2a53906d")
@pytest.mark.spec("2025-06-18", "server/utilities/completion#implementation-considerations", "2a53906d")
@pytest.mark.spec("2025-11-25", "server/utilities/completion#implementation-considerations", "2a53906d")
@pytest.mark.spec("2026-07-28", "server/utilities/completion#implementation-considerations", "2a53906d")
@pytest.mark.spec("2024-11-05", "server/utilities/completion#security", "02d66b5c")
@pytest.mark.spec("2025-03-26", "server/utilities/completion#security", "02d66b5c")
@pytest.mark.spec("2025-06-18", "server/utilities/completion#security", "02d66b5c")
@pytest.mark.spec("2025-11-25", "server/utilities/completion#security", "02d66b5c")
@pytest.mark.spec("2026-07-28", "server/utilities/completion#security", "02d66b5c")
@pytest.mark.spec("2025-11-25", "server/utilities/completion#error-handling")
@pytest.mark.spec("2026-07-28", "server/utilities/completion#error-handling")
@pytest.mark.parametrize(
    ("reference", "argument", "message"),
    [
        (models.PromptReference(name="nope"), "code", "Unknown reference: nope"),
        (models.PromptReference(name="x://{a}"), "a", "Unknown reference: x://{a}"),
        (models.ResourceTemplateReference(uri="review"), "code", "Unknown reference: review"),
        (REVIEW, "nope", "Unknown argument: nope"),
    ],
    ids=str,
)
async def test_what_is_not_there_cannot_be_completed(
    review: FunctionHandlers, caller: Caller, reference: Any, argument: str, message: str
) -> None:
    assert review is caller.catalogue
    with pytest.raises(RequestError) as caught:
        await caller.complete(reference, argument, "")

    assert (-32602, message) == (caught.value.code, caught.value.message)


@pytest.mark.spec("2025-06-18", "server/utilities/completion#security", "02d66b5c")
@pytest.mark.spec("2025-11-25", "server/utilities/completion#security", "02d66b5c")
@pytest.mark.spec("2026-07-28", "server/utilities/completion#security", "02d66b5c")
async def test_an_earlier_argument_that_is_not_there_is_refused(review: FunctionHandlers, caller: Caller) -> None:
    @review.completion("review", "code")
    def codes(arguments: dict[str, str]) -> list[str]:
        return list(arguments)

    assert ["lines"] == (await caller.complete(REVIEW, "code", "", lines="1")).values
    with pytest.raises(RequestError) as caught:
        await caller.complete(REVIEW, "code", "", lines="1", nope="x")

    assert (-32602, "Unknown argument: nope") == (caught.value.code, caught.value.message)


@pytest.mark.parametrize("value", ["text", 3, [3]])
async def test_what_is_no_list_of_texts_is_the_servers_failure(
    review: FunctionHandlers, caller: Caller, value: Any
) -> None:
    @review.completion("review", "code")
    def codes() -> Any:
        return value

    with pytest.raises(TypeError):
        await caller.complete(REVIEW, "code", "")


def test_completions_of_nothing_are_refused(review: FunctionHandlers) -> None:
    def codes(value: str) -> list[str]: ...  # type: ignore[empty-body]
    def others(value: str) -> list[str]: ...  # type: ignore[empty-body]
    def wrong(typed: str) -> list[str]: ...  # type: ignore[empty-body]

    with pytest.raises(UsageError, match=r"'reviw' to complete; .*; registered: review, .*x://\{a\}"):
        review.completion("reviw", "code")
    with pytest.raises(UsageError, match="`reference` must be a string, not function"):
        review.completion(codes, "code")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'review' has no argument 'cod'; it has code, lines"):
        review.completion("review", "cod")
    with pytest.raises(UsageError, match=r"parameter `typed` of .* gets no value"):
        review.completion("review", "code")(wrong)
    review.completion("review", "code")(codes)
    with pytest.raises(
        UsageError,
        match=r"is registered already, by .*; register it once, or, if there are two functions, remove one of them",
    ):
        review.completion("review", "code")(codes)
    with pytest.raises(UsageError, match=r"is registered already, by .*; remove one of them"):
        review.completion("review", "code")(others)


def test_two_functions_of_one_name_are_told_apart_in_the_advice(review: FunctionHandlers) -> None:
    def made(reply: str) -> Callable[[], str]:
        def inner() -> str:
            return reply

        return inner

    review.prompt(made("a"))
    with pytest.raises(UsageError, match=r"; register it once, or, if there are two functions, rename one of them$"):
        review.prompt(made("b"))


def test_a_completion_whose_parameters_have_other_types_is_refused(review: FunctionHandlers) -> None:
    def number(value: int) -> list[str]: ...  # type: ignore[empty-body]
    def items(arguments: list[str]) -> list[str]: ...  # type: ignore[empty-body]
    def wider(value: str | None, arguments: object) -> list[str]: ...  # type: ignore[empty-body]

    with pytest.raises(UsageError, match=r"parameter `value` of .* gets a str; write `value: str`"):
        review.completion("review", "code")(number)
    with pytest.raises(UsageError, match=r"parameter `arguments` of .* gets a dict\[str, str\]; write"):
        review.completion("review", "code")(items)
    review.completion("review", "code")(wider)


def test_a_completion_goes_with_what_it_completes(review: FunctionHandlers) -> None:
    def codes(value: str) -> list[str]: ...  # type: ignore[empty-body]

    review.completion("review", "code")(codes)
    review.completion("x://{a}", "a")(codes)
    assert {} == review.capabilities().completions
    review.remove_prompt("review")
    review.remove_resource("x://{a}")

    assert {} == review._registry.completions
    with pytest.raises(UsageError, match="there is no prompt 'review' to remove"):
        review.remove_prompt("review")


@pytest.mark.parametrize("text", ["253402300800", "\ud800"])
async def test_a_text_that_python_cannot_convert_is_refused_like_others(
    review: FunctionHandlers, caller: Caller, text: str
) -> None:
    """The conversion to a date after the year 9999 raised a ValueError of Python: an internal error, in the log."""

    @review.prompt
    def since(begin: datetime) -> str:
        return str(begin)

    @review.resource("x://since/{begin}", scopes=["read"])
    def listed(begin: datetime) -> str:
        return str(begin)

    with pytest.raises(RequestError, match=r"^Invalid arguments for prompt since: ") as refused:
        await caller.get("since", {"begin": text})
    assert refused.value.code == ErrorCode.INVALID_PARAMS
    with pytest.raises(ResourceNotFound):
        await caller.read("x://since/253402300800")
    assert review.scopes("resources/read", "x://since/253402300800") == frozenset()
