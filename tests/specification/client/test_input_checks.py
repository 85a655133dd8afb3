"""What a server may not ask for, and what a client may not answer, beyond the types of messages."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mcpgen import InvalidPayload, UsageError, connect
from mcpgen.generated import registry
from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import LABELS, STATELESS, everywhere, since, spec
from tests.specification.client.scripted_server import complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

# Each request of a server is made in both ways: as a request in a session, and as required input of a stateless server.
with_tools = pytest.mark.parametrize("revision", since("2025-11-25"))


async def asked(own: Any, revision: str, method: str, params: object = None) -> Any:
    """Ask the client for input. Return its answer, or the error; a stateless server learns of no error."""
    if revision not in STATELESS:
        said = await own.wire.ask("s1", method, params)
        return said["result"] if "result" in said else said["error"]["code"]
    request = {"method": method, **({} if params is None else {"params": params})}
    errand, call = await own.asked(own.client.call_tool("x"))
    own.wire.result(call, {"resultType": "input_required", "inputRequests": {"k": request}})
    said = await own.wire.rest()
    if not said:
        with pytest.raises((InvalidPayload, UsageError)) as failure:
            await errand.outcome()
        return failure.type
    own.wire.result(said[0], complete(revision, content=[]))
    await errand.outcome()
    return said[0]["params"]["inputResponses"]["k"]


# --- messages of sampling

USES = [{"type": "tool_use", "id": each, "name": "weather", "input": {}} for each in ("t1", "t2")]
RESULTS = [{"type": "tool_result", "toolUseId": each, "content": []} for each in ("t1", "t2")]
TEXT = {"type": "text", "text": "Hm."}


def says(content: object, role: str = "user") -> dict[str, object]:
    return {"role": role, "content": content}


async def sampled(revision: str, *messages: object) -> Any:
    def sample(*_: Any) -> models.CreateMessageResult:
        return models.CreateMessageResult(role="assistant", content=models.TextContent(text="Rain."), model="m")

    async with opened(revision, sample=sample, capabilities={"sampling": {"tools": {}}}) as own:
        return await asked(own, revision, "sampling/createMessage", {"messages": list(messages), "maxTokens": 10})


@spec("2025-11-25", "client/sampling#tool-use-and-result-balance")
@spec("2025-11-25", "client/sampling#tool-result-messages")
@with_tools
@pytest.mark.parametrize(
    "messages",
    [
        [says(TEXT), says(USES, "assistant"), says(RESULTS)],
        [says([TEXT, *USES], "assistant"), says(RESULTS[::-1]), says(TEXT, "assistant")],
        [says(USES[0], "assistant"), says(RESULTS[0]), says(USES[1], "assistant"), says(RESULTS[1])],
    ],
)
async def test_messages_in_which_each_tool_call_has_its_result_are_sampled(messages: Any, revision: str) -> None:
    assert "Rain." == (await sampled(revision, *messages))["content"]["text"]


@spec("2025-11-25", "client/sampling#tool-use-and-result-balance", "00a7a128")
@spec("2025-11-25", "client/sampling#error-handling", "8c3bd2c8")
@with_tools
@pytest.mark.parametrize(
    "messages",
    [
        [says(USES, "assistant"), says(RESULTS[0])],
        [says(USES, "assistant"), says(RESULTS[0]), says(RESULTS[1])],
        [says(USES[0], "assistant"), says(TEXT), says(RESULTS[0])],
        [says(USES[0], "assistant"), says(RESULTS[0], "assistant")],
        [says(TEXT), says(USES, "assistant")],
        [says([USES[0], USES[0]], "assistant"), says(RESULTS[0])],
    ],
    ids=["a result is missing", "in two messages", "late", "of the assistant", "no message follows", "two of one id"],
)
async def test_a_tool_call_without_its_result_in_the_next_message_is_refused(messages: Any, revision: str) -> None:
    assert (InvalidPayload if revision in STATELESS else -32602) == await sampled(revision, *messages)


@spec("2025-11-25", "client/sampling#tool-result-messages", "54dd25b3")
@spec("2025-11-25", "client/sampling#error-handling", "d8a6c848")
@with_tools
async def test_tool_results_mixed_with_other_content_are_refused(revision: str) -> None:
    found = await sampled(revision, says(USES[0], "assistant"), says([RESULTS[0], TEXT]))

    assert (InvalidPayload if revision in STATELESS else -32602) == found


@spec("2025-11-25", "schema#toolresultcontent", "cf7217ef")
@with_tools
async def test_a_tool_result_without_a_tool_call_is_refused(revision: str) -> None:
    found = await sampled(revision, says(USES[0], "assistant"), says(RESULTS))

    assert (InvalidPayload if revision in STATELESS else -32602) == found


# --- URLs


async def visited(revision: str, url: str) -> Any:
    shown: list[str] = []

    def visit(params: Any, _: Any) -> models.ElicitResult:
        shown.append(params.url)
        return models.ElicitResult(action="accept")

    async with opened(revision, elicit_url=visit) as own:
        more = {} if revision in STATELESS else {"elicitationId": "e1"}
        page = {"mode": "url", "message": "Sign in.", "url": url, **more}
        return await asked(own, revision, "elicitation/create", page), shown


@spec("2025-11-25", "client/elicitation#safe-url-handling")
@spec("2025-11-25", "client/elicitation#url-mode-elicitation-requests", "fd5361eb")
@with_tools
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "not a url",
        "https://",
        "http://[::1",
        "https://h:x/",
        "//h/a",
        "https://a.example\\@b.example/",  # a browser opens a.example, other readers take it for b.example
    ],
)
async def test_a_user_is_shown_no_url_that_a_browser_does_not_open_with_http(url: str, revision: str) -> None:
    refused = InvalidPayload if revision in STATELESS else -32602

    assert (refused, []) == await visited(revision, url)


@spec("2025-11-25", "client/elicitation#safe-url-handling")
@with_tools
@pytest.mark.parametrize(
    ("url", "is_warned_of"),
    [
        ("https://example.com/in", False),
        ("http://127.0.0.1:80/in", False),
        ("http://[::1]/in", False),
        ("http://localhost/in", False),
        ("http://example.com/in", True),
    ],
)
async def test_a_url_without_https_is_logged_unless_it_is_of_this_machine(
    url: str, *, is_warned_of: bool, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcpgen.session")

    assert ({"action": "accept"}, [url]) == await visited(revision, url)
    assert is_warned_of == ("without HTTPS" in caplog.text)


# --- roots

BAD_ROOTS = pytest.mark.parametrize(
    "uri",
    [
        "https://example.com/a",
        "nonsense",
        "/home",
        "file:/home",
        "file://",
        "file:///a/../../etc",
        "file:///a/%2e%2E/etc",
        "file:///a%2f..%5cetc",
        "file:///a/..",
        "file://../etc",
        "file://%2e%2e/etc",
        "file:///%252e%252e/etc",
        "file:///a?b=/../etc",
        "file:///a#/../etc",
        "file:///a?b",
        "file:///a b",
        "file:///a\n",
        "file:///\u00e9",
        "file:///%zz",
        "FILE:///a",
    ],
)


@spec("2025-11-25", "client/roots#root", "a399bd41")
@spec("2025-11-25", "client/roots#security-considerations", "33f0915c")
@everywhere
@BAD_ROOTS
async def test_a_root_is_a_file_and_does_not_lead_out_of_its_folder(uri: str, revision: str) -> None:
    refused = UsageError if revision in STATELESS else -32603
    async with opened(revision, roots=lambda _: [models.Root(uri=uri)]) as own:
        assert refused == await asked(own, revision, "roots/list")
    with pytest.raises(UsageError, match="a root must"):
        connect(["any"], roots=[models.Root(uri=uri)])


@spec("2025-11-25", "client/roots#root", "a399bd41")
@spec("2025-11-25", "client/roots#security-considerations", "33f0915c")
@everywhere
async def test_roots_of_handlers_of_each_native_revision_are_checked(revision: str) -> None:
    # Only a client of the newest native revision has `call_tool`.
    for native_revision in STATELESS if revision in STATELESS else LABELS:
        bindings = registry.revision(native_revision).bindings()

        typed = bindings.models.ListRootsResult(roots=[bindings.models.Root(uri="file:///a/../b")])
        for answer in (typed, {"roots": [{"uri": "file:///a/../b"}]}):

            async def list_roots(own: Any, params: Any, context: Any, answer: Any = answer) -> Any:
                del own, params, context
                return answer

            handlers = type("Handlers", (bindings.client.ClientHandlers,), {"list_roots": list_roots})()
            async with opened(revision, native_revision=native_revision, handlers=handlers) as own:
                assert (UsageError if revision in STATELESS else -32603) == await asked(own, revision, "roots/list")


@spec("2025-11-25", "client/roots#root")
@everywhere
@pytest.mark.parametrize(
    "uri", ["file:///", "file:///home/..a/b..", "file://host/share", "file:///C:/a%20b", "file:///a%25b"]
)
async def test_roots_that_are_files_are_sent(uri: str, revision: str) -> None:
    async with opened(revision, roots=[models.Root(uri=uri)]) as own:
        assert {"roots": [{"uri": uri}]} == await asked(own, revision, "roots/list")


# --- forms

FIELDS = {
    "text": {"type": "string", "minLength": 2, "maxLength": 4},
    "mail": {"type": "string", "format": "email"},
    "day": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "date-time"},
    "page": {"type": "string", "format": "uri"},
    "count": {"type": "integer", "minimum": 1, "maximum": 9},
    "share": {"type": "number", "minimum": 0.5},
    "yes": {"type": "boolean"},
    "choice": {"type": "string", "enum": ["a", "b"]},
    "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
    "some": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
    "others": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
}


async def filled_in(revision: str, content: Any, required: list[str], fields: Any = FIELDS) -> Any:
    form = {"message": "?", "requestedSchema": {"type": "object", "properties": fields, "required": required}}
    more = {"mode": "form"} if revision in STATELESS else {}

    def elicit(*_: Any) -> models.ElicitResult:
        return models.ElicitResult(action="accept", content=content)

    async with opened(revision, elicit=elicit) as own:
        return await asked(own, revision, "elicitation/create", {**form, **more})


DIALECT = "https://json-schema.org/draft/2020-12/schema"


@spec("2025-11-25", "basic/index#implementation-requirements", "eb3922d8")
@spec("2026-07-28", "basic/index#implementation-requirements", "eb3922d8")
@with_tools
@pytest.mark.parametrize(
    ("dialect", "is_supported"),
    [
        (DIALECT, True),
        ("http://json-schema.org/draft-07/schema#", True),
        ("http://json-schema.org/draft-03/schema#", False),
        ("https://example.com/dialect", False),
        (f"{DIALECT}\n", False),
        ("", False),
    ],
)
async def test_a_form_in_a_dialect_that_is_not_supported_is_refused(
    dialect: str,
    is_supported: bool,  # noqa: FBT001 (a column of the table)
    revision: str,
) -> None:
    shown: list[object] = []

    def elicit(params: Any, _context: object) -> models.ElicitResult:
        shown.append(params)
        return models.ElicitResult(action="accept", content={"text": "abc"})

    form = {"$schema": dialect, "type": "object", "properties": {"text": {"type": "string"}}}
    async with opened(revision, elicit=elicit) as own:
        said = await asked(own, revision, "elicitation/create", {"message": "?", "requestedSchema": form})

    refused = InvalidPayload if revision in STATELESS else -32602
    assert ({"action": "accept", "content": {"text": "abc"}} if is_supported else refused) == said
    assert is_supported == bool(shown)


FITS = {
    "text": "abc",
    "mail": "a@example.com",
    "day": "2025-11-25",
    "time": "2025-11-25T10:30:00Z",
    "page": "https://example.com",
    "count": 5,
    "share": 0.5,
    "yes": False,
    "choice": "b",
    "titled": "a",
    "some": ["a", "b"],
    "others": [],
}


@spec("2025-11-25", "client/elicitation#form-mode-security", "ff59997f")
@with_tools
@on_both_loops
async def test_an_answer_that_fits_its_form_is_sent(revision: str) -> None:
    assert {"action": "accept", "content": FITS} == await filled_in(revision, FITS, ["text"])
    assert {"action": "accept", "content": {}} == await filled_in(revision, {}, [])


@spec("2025-11-25", "client/elicitation#form-mode-security", "ff59997f")
@with_tools
@pytest.mark.parametrize(
    "content",
    [
        {},
        {"text": 5},
        {"text": "a"},
        {"text": "abcde"},
        {"mail": "example.com"},
        {"day": "25.11.2025"},
        {"time": "noon"},
        {"page": "example"},
        {"count": "notanint"},
        {"count": 0},
        {"count": 10},
        {"count": 1.5},
        {"count": True},
        {"share": 0.25},
        {"yes": 1},
        {"choice": "c"},
        {"titled": "A"},
        {"some": []},
        {"some": ["a", "a", "b"]},
        {"some": ["c"]},
        {"some": "a"},
        {"others": ["A"]},
    ],
    ids=str,
)
async def test_an_answer_that_does_not_fit_its_form_is_not_sent(content: Any, revision: str) -> None:
    found = await filled_in(revision, content, sorted(content) or ["text"])

    assert (UsageError if revision in STATELESS else -32603) == found


@spec("2025-06-18", "client/elicitation#security-considerations", "ba98ca37")
@pytest.mark.parametrize("content", [{}, {"text": 5}, {"text": "abc", "count": 10}])
async def test_the_first_revision_with_forms_checks_answers_too(content: Any) -> None:
    fields = {key: FIELDS[key] for key in ("text", "count")}

    assert -32603 == await filled_in("2025-06-18", content, ["text"], fields)
    assert {"action": "accept", "content": {"text": "abc"}} == await filled_in(
        "2025-06-18", {"text": "abc"}, ["text"], fields
    )
