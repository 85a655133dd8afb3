"""What a document cannot say about what a client answers: whether it is an answer to what was asked.

The same rules hold for the results of requests, up to 2025-11-25, and for the inputs of a retry, from 2026-07-28 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema_rs

from tests.harness.closed_documents import Problem
from tests.harness.declared_capabilities import client_lacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.closed_documents import Json


def of_content(method: str, params: Mapping[str, Json], result: Json, prefix: str) -> Iterator[Problem]:
    """Yield what is wrong with *result*, which stands at *prefix*, as an answer to *method* with *params*."""
    if not isinstance(result, dict):
        return  # the document has said so
    if method == "elicitation/create":
        yield from _elicited(params, result, prefix)
    elif method == "sampling/createMessage":
        yield from _sampled(params, result, prefix)
    elif method == "roots/list":
        yield from _roots(result, prefix)


def undeclared(capabilities: Mapping[str, Json], revision: str, method: str, params: Mapping[str, Json]) -> str | None:
    """Return the capability without which a client does not answer *method* with a result, unless it declared it.

    A client that has not declared tasks answers as if none was asked for (2025-11-25, basic/utilities/tasks, "Task
    Support and Handling"), and context is its own to give or not (schema, `includeContext`).
    """
    rest = {key: each for key, each in params.items() if key not in ("task", "includeContext")}
    return client_lacks(capabilities, revision, method, rest)


def _elicited(params: Mapping[str, Json], result: Mapping[str, Json], prefix: str) -> Iterator[Problem]:
    """Judge an `ElicitResult` (2025-06-18 and later, client/elicitation, "Response Actions"; schema, `content`)."""
    is_form = params.get("mode", "form") == "form"
    if "content" in result and (result.get("action") != "accept" or not is_form):
        yield Problem(f"{prefix}/content", "only an accepted form has content (client/elicitation, Response Actions)")
    elif result.get("action") == "accept" and is_form:
        # Who leaves it out has submitted nothing: that is fine if nothing was required.
        yield from _filled(params.get("requestedSchema"), result.get("content", {}), f"{prefix}/content")


def _filled(schema: Json, content: Json, prefix: str) -> Iterator[Problem]:
    """Judge the content of a form (client/elicitation, "Requested Schema"); formats are annotations."""
    try:
        validator = jsonschema_rs.validator_for(schema, validate_formats=False)
    except (ValueError, TypeError):
        return  # no schema, which is the server's fault
    for error in validator.iter_errors(content):
        pointer = "".join(f"/{each}" for each in error.instance_path)
        yield Problem(prefix + pointer, f"not what the form asks for: {error.message[:300]} (client/elicitation)")


def _sampled(params: Mapping[str, Json], result: Mapping[str, Json], prefix: str) -> Iterator[Problem]:
    """Judge the use of tools in a `CreateMessageResult` (2025-11-25 and 2026-07-28, client/sampling)."""
    uses = _uses(result.get("content"))
    choice = params.get("toolChoice")
    mode = choice.get("mode", "auto") if isinstance(choice, dict) else "auto"
    if uses and (not params.get("tools") or mode == "none"):
        yield Problem(f"{prefix}/content", "the model was not given tools (client/sampling, Tool Choice Modes)")
    if uses and result.get("role") != "assistant":
        yield Problem(f"{prefix}/role", "the assistant uses tools (client/sampling, Message Roles)")
    messages = params.get("messages")
    before = [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
    if mode == "required" and not uses and not any(_uses(each.get("content")) for each in before):
        yield Problem(f"{prefix}/content", "at least one tool has to be used (client/sampling, Tool Choice Modes)")


def _uses(content: Json) -> bool:
    blocks = content if isinstance(content, list) else [content]
    return any(isinstance(each, dict) and each.get("type") == "tool_use" for each in blocks)


def _roots(result: Mapping[str, Json], prefix: str) -> Iterator[Problem]:
    """Judge a `ListRootsResult` (every revision, client/roots, "Root")."""
    roots = result.get("roots")
    for index, each in enumerate(roots if isinstance(roots, list) else ()):
        uri = each.get("uri") if isinstance(each, dict) else None
        if isinstance(uri, str) and not uri.startswith("file://"):
            yield Problem(f"{prefix}/roots/{index}/uri", "a root is a file:// URI (client/roots, Root)")
