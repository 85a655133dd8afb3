"""The diff of the released revisions says what the specification's changelogs say."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from functools import cache

import msgspec
import pytest

from mcpgen.codegen.adapters.rule_coverage import compare_vendored
from mcpgen.codegen.build import pinned_source
from mcpgen.codegen.diff import Edition, compare, edition, mirrored
from mcpgen.codegen.diff.model import Diff
from mcpgen.codegen.pinned import SchemaRoom

REVISIONS = SchemaRoom().revisions
PAIRS = list(itertools.permutations(REVISIONS, 2))
A, B, C, D, E = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"


@cache
def released(revision: str) -> Edition:
    return edition(pinned_source(SchemaRoom(), revision), vendored=True)


@cache
def diff(old: str, new: str) -> Diff:
    return compare(released(old), released(new))


# What each changelog says about the schema, as kind and id; what it says about transports and authorization is no
# matter of the schema.
CHANGELOGS = {
    (A, B): {
        "batching": ["definition-added JSONRPCBatchRequest", "arm-added JSONRPCMessage[JSONRPCBatchResponse]"],
        "tool annotations": ["definition-added ToolAnnotations", "key-added Tool.annotations"],
        "message of progress": ["key-added ProgressNotificationParams.message"],
        "audio": [
            "definition-added AudioContent",
            "arm-added ContentBlock[AudioContent]",
            "arm-added SamplingMessageContentBlock[AudioContent]",
        ],
        "completions capability": [
            "key-added ServerCapabilities.completions",
            "capability-changed client completion/complete",
        ],
    },
    (B, C): {
        "batching removed": [
            "definition-removed JSONRPCBatchRequest",
            "arm-removed JSONRPCMessage[JSONRPCBatchRequest]",
        ],
        "structured output": ["key-added Tool.outputSchema", "key-added CallToolResult.structuredContent"],
        "elicitation": [
            "request-added server elicitation/create",
            "definition-added ElicitRequest",
            "key-added ClientCapabilities.elicitation",
        ],
        "resource links": ["definition-added ResourceLink", "arm-added ContentBlock[ResourceLink]"],
        "_meta": [f"key-added {name}._meta" for name in ("Tool", "Prompt", "Resource", "TextContent", "Root")],
        "context of completion": ["key-added CompleteRequestParams.context"],
        "title": [f"key-added {name}.title" for name in ("Tool", "Prompt", "Resource", "Implementation")],
        "not in the changelog": ["definition-renamed ResourceTemplateReference"],
    },
    (C, D): {
        "icons": [f"key-added {name}.icons" for name in ("Tool", "Resource", "ResourceTemplate", "Prompt")],
        "ElicitResult and EnumSchema": [
            "arm-added ElicitResult.content{}[list[string]]",
            "definition-kind-changed EnumSchema",
            "definition-added TitledSingleSelectEnumSchema",
            "definition-added UntitledMultiSelectEnumSchema",
        ],
        "url elicitation": [
            "definition-added ElicitRequestURLParams",
            "definition-kind-changed ElicitRequestParams",
            "notification-added server notifications/elicitation/complete",
            "error-added -32042",
            "type-changed ClientCapabilities.elicitation",
        ],
        "sampling with tools": [
            "key-added CreateMessageRequestParams.tools",
            "key-added CreateMessageRequestParams.toolChoice",
            "arm-added SamplingMessageContentBlock[ToolUseContent]",
            "arm-added SamplingMessage.content[list[SamplingMessageContentBlock]]",
        ],
        "tasks": [
            *(
                f"request-added {side} tasks/{verb}"
                for side in ("client", "server")
                for verb in ("get", "list", "result")
            ),
            "notification-added client notifications/tasks/status",
            "key-added CallToolRequestParams.task",
            "key-added Tool.execution",
            "task-result-changed client tools/call",
        ],
        "description of implementations": ["key-added Implementation.description"],
        "defaults": [f"key-added {name}.default" for name in ("StringSchema", "NumberSchema")],
        "not in the changelog": [
            "definition-renamed JSONRPCErrorResponse",
            "definition-renamed JSONRPCResultResponse",
            "definition-kind-changed JSONRPCResponse",
            "requiredness-changed CancelledNotificationParams.requestId",
        ],
    },
    (D, E): {
        "stateless": [
            "era-changed era",
            "request-removed client initialize",
            "notification-removed client notifications/initialized",
            "key-added RequestMetaObject.io.modelcontextprotocol/protocolVersion",
            "key-added RequestMetaObject.io.modelcontextprotocol/clientCapabilities",
            "key-added RequestMetaObject.io.modelcontextprotocol/clientInfo",
            "definition-added ResultMetaObject",
            "definition-added UnsupportedProtocolVersionError",
        ],
        "server/discover": ["request-added client server/discover"],
        "subscriptions/listen": [
            "request-added client subscriptions/listen",
            "request-removed client resources/subscribe",
            "request-removed client resources/unsubscribe",
            "notification-added server notifications/subscriptions/acknowledged",
        ],
        "removed": [
            "request-removed client ping",
            "request-removed server ping",
            "request-removed client logging/setLevel",
            "notification-removed client notifications/roots/list_changed",
            "key-added RequestMetaObject.io.modelcontextprotocol/logLevel",
        ],
        "tasks moved out": ["request-removed client tasks/result", "key-removed Tool.execution"],
        "multi round-trip requests": [
            *(
                f"carrier-changed server {name}"
                for name in ("roots/list", "sampling/createMessage", "elicitation/create")
            ),
            *(f"result-changed client {name}" for name in ("tools/call", "prompts/get", "resources/read")),
            "key-added CallToolRequestParams.inputResponses",
        ],
        "resultType": [
            f"key-added {name}.resultType" for name in ("CallToolResult", "CompleteResult", "ListToolsResult")
        ],
        "extensions": [f"key-added {name}.extensions" for name in ("ClientCapabilities", "ServerCapabilities")],
        "caching": [
            f"key-added {name}.{key}"
            for name in ("ListToolsResult", "ListPromptsResult", "ListResourcesResult", "ReadResourceResult")
            for key in ("ttlMs", "cacheScope")
        ],
        "resource not found": ["error-removed -32002"],
        "any JSON Schema": [
            "key-removed ToolOutputSchema.type",
            "type-changed CallToolResult.structuredContent",
        ],
        "elicitationId removed": [
            "notification-removed server notifications/elicitation/complete",
            "key-removed ElicitRequestURLParams.elicitationId",
        ],
        "error codes": [
            *(f"error-added {code}" for code in (-32020, -32021, -32022)),
            "definition-added HeaderMismatchError",
        ],
        "deprecated": [f"definition-deprecated {name}" for name in ("Root", "SamplingMessage", "LoggingLevel")],
    },
}


@pytest.mark.parametrize(
    ("pair", "topic"),
    [pytest.param(pair, topic, id=f"{pair[1]}-{topic}") for pair in CHANGELOGS for topic in CHANGELOGS[pair]],
)
def test_what_the_changelog_says_is_in_the_diff(pair: tuple[str, str], topic: str) -> None:
    found = {f"{each.kind} {each.id}" for each in diff(*pair).changes}

    assert [] == [expected for expected in CHANGELOGS[pair][topic] if expected not in found]


def test_the_smallest_step_is_known_completely() -> None:
    assert 15 == len(diff(A, B).changes)


def counts(old: str, new: str, prefix: str) -> tuple[int, int]:
    kinds = [each.kind for each in diff(old, new).changes]
    return kinds.count(f"{prefix}-added"), kinds.count(f"{prefix}-removed")  # type: ignore[arg-type]  # every prefix that is passed makes a Kind


@pytest.mark.parametrize(
    ("old", "new", "requests", "notifications"),
    [
        # Requests of clients: 13, 13, 13, 17, 10; of servers: 3, 3, 4, 8, 0 (the last ones went inside results);
        # notifications of clients: 4, 4, 4, 5, 1; of servers: 7, 7, 7, 9, 8.
        (A, B, (0, 0), (0, 0)),
        (B, C, (1, 0), (0, 0)),
        (C, D, (8, 0), (3, 0)),
        (D, E, (2, 9 + 5), (1, 4 + 2)),
    ],
)
def test_messages_add_up(old: str, new: str, requests: tuple[int, int], notifications: tuple[int, int]) -> None:
    assert requests == counts(old, new, "request")
    assert notifications == counts(old, new, "notification")


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_renames_of_the_revisions_are_the_known_ones(old: str, new: str) -> None:
    known = {
        ("ResourceReference", "ResourceTemplateReference"),
        ("JSONRPCError", "JSONRPCErrorResponse"),
        ("JSONRPCResponse", "JSONRPCResultResponse"),
    }
    renamed = [each for each in diff(old, new).changes if each.kind == "definition-renamed"]

    assert {tuple(sorted((each.old.name, each.new.name))) for each in renamed if each.old and each.new} <= known


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_does_not_differ_from_itself(revision: str) -> None:
    assert () == diff(revision, revision).changes


@pytest.mark.parametrize(("old", "new"), list(itertools.combinations(REVISIONS, 2)))
def test_the_way_back_is_the_mirror_image(old: str, new: str) -> None:
    assert mirrored(diff(old, new)) == diff(new, old)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_every_pointer_leads_somewhere_in_the_patched_document(old: str, new: str) -> None:
    for revision in (old, new):
        document = pinned_source(SchemaRoom(), revision).patched()
        sites = [each.old if revision == old else each.new for each in diff(old, new).changes]
        for pointer in {site.pointer for site in sites if site}:
            found: object = document
            for token in pointer.split("/")[1:]:
                key = token.replace("~1", "/").replace("~0", "~")
                found = found[int(key)] if isinstance(found, list) else found[key]  # type: ignore[index]  # a pointer leads through containers


def test_json_carries_everything() -> None:
    encoded = msgspec.json.encode(diff(C, D))

    assert diff(C, D) == msgspec.json.decode(encoded, type=Diff)


@pytest.mark.parametrize("seed", ["1", "2"])
@pytest.mark.slow
def test_the_seed_of_hashes_does_not_matter(seed: str) -> None:
    command = [sys.executable, "-c", "from mcpgen.cli import main; main()", "diff", C, E, "--format", "json"]
    done = subprocess.run(
        command, check=True, capture_output=True, encoding="utf-8", env=os.environ | {"PYTHONHASHSEED": seed}
    )

    assert compare_vendored(C, E, list(map(released, REVISIONS))) == msgspec.json.decode(done.stdout, type=Diff)
