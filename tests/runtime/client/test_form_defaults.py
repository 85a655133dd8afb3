"""The default of a form's field is sent where the user leaves the field out of an `ElicitResult`, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen import Context, Server, connect
from mcpgen.generated.v2026_07_28 import ElicitResult
from mcpgen.runtime.client.form_answers import find_mismatch

pytestmark = pytest.mark.anyio

FORM = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 42},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "gift": {"type": "boolean", "default": False},
        "name": {"type": "string"},
    },
    "required": ["size"],
}

server = Server("tailor")


@server.tool
async def measure(ctx: Context) -> dict[str, Any]:
    form = await ctx.elicit("Your size?", FORM)
    return {"action": form.action, "content": form.content}


@server.tool
async def sign_in(ctx: Context) -> str:
    return await ctx.elicit_url("Please sign in.", "https://example.com/sign-in")


@pytest.mark.spec("2025-11-25", "client/elicitation#requested-schema", "6275fcc2")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ElicitResult(action="accept"), {"size": 42, "color": "red", "gift": False}),
        (ElicitResult(action="accept", content={"size": 1}), {"size": 1, "color": "red", "gift": False}),
        (
            ElicitResult(action="accept", content={"color": "blue", "gift": True, "name": "x"}),
            {"size": 42, "color": "blue", "gift": True, "name": "x"},
        ),
        (ElicitResult(action="decline"), None),
        (ElicitResult(action="cancel"), None),
    ],
)
async def test_what_the_user_leaves_out_has_its_default(
    revision: Any, answer: ElicitResult, expected: dict[str, Any] | None
) -> None:
    async with connect(server, revisions=[revision], elicit=lambda params, context: answer) as client:
        result = await client.call_tool("measure", returns=dict[str, Any])

    assert {"action": answer.action, "content": expected} == result


@pytest.mark.spec("2025-11-25", "client/elicitation#user-interaction-model", "550a3ff3")
@pytest.mark.spec("2026-07-28", "client/elicitation#user-interaction-model", "550a3ff3")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_dict_is_sent_as_the_user_has_reviewed_it(revision: Any) -> None:
    answer = {"action": "accept", "content": {"size": 1}}
    async with connect(server, revisions=[revision], elicit=lambda params, context: answer) as client:
        result = await client.call_tool("measure", returns=dict[str, Any])

    assert answer == result


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_one_function_may_answer_forms_and_pages(revision: Any) -> None:
    def answer(params: Any, context: Any) -> ElicitResult:
        return ElicitResult(action="accept")

    async with connect(server, revisions=[revision], elicit=answer, elicit_url=answer) as client:
        action = await client.call_tool("sign_in", returns=str)

    assert "accept" == action


@pytest.mark.parametrize(
    ("revision", "reason"),
    [
        ("2025-03-26", "the client's revision has no such request"),
        ("2025-06-18", "2025-06-18 has no URL elicitation, only forms."),
    ],
)
async def test_a_page_that_the_revision_of_the_client_cannot_ask_for_says_why(revision: Any, reason: str) -> None:
    async with connect(server, revisions=[revision]) as client:
        result = await client.call_tool("sign_in")

    assert f"The tool needs elicitation/create, which cannot be sent to this client: {reason}" == result.text


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_number_of_400_digits_fits_a_form(kind: str) -> None:
    schema = {"properties": {"count": {"type": kind, "default": 10**400}}}

    assert find_mismatch({"count": 10**400}, schema) is None
    assert find_mismatch({"count": float("inf")}, schema) is not None
