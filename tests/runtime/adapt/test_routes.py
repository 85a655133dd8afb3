"""Routes: how they are composed, what they check, and what they raise."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from mcpgen.generated.adapters import Losses
from mcpgen.generated.registry import REVISIONS
from mcpgen.generated.registry import UnknownRevision as RegistrysUnknownRevision
from mcpgen.runtime.adapt import Adapted, Loss, Route, Router, definition_route, route
from mcpgen.runtime.errors import (
    AdaptationError,
    InvalidPayload,
    UnknownDefinition,
    UnknownMethod,
    UnknownRevision,
    UsageError,
)
from tests.runtime.adapt.fake_steps import FIRST, SECOND, THIRD, FakeLadder, router

LABELS = [each.label for each in REVISIONS]


def fake(source: str, target: str, method: str, part: Any = "params", sender: Any = None) -> Route:
    return router().route(source, target, method, part, sender)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


# Composing


def test_steps_are_taken_in_order() -> None:
    assert {"_meta": {"trace": ["up one", "up two"]}} == fake(FIRST, THIRD, "prompts/list").adapt({}).value


def test_a_step_that_only_drops_foreign_keys_is_needed_at_the_beginning_alone() -> None:
    found = fake(FIRST, THIRD, "tools/list")

    assert {"_meta": {"trace": ["up one"]}} == found.adapt({}).value
    assert 1 == len(found.steps)


def test_a_route_to_the_same_revision_loads_no_step_and_changes_nothing() -> None:
    ladder = FakeLadder()
    found = Router(ladder).route(FIRST, FIRST, "tools/list", "params", None)
    value = {"cursor": "a", "foreign": 1}

    assert found.is_identity
    assert [] == ladder.loaded
    assert value is found.adapt(value).value
    assert value is found.adapt_valid(value, Losses())


def test_an_identity_still_checks() -> None:
    with pytest.raises(InvalidPayload):
        fake(FIRST, FIRST, "tools/list").adapt({"cursor": 1})


def test_a_route_whose_steps_do_nothing_is_an_identity() -> None:
    found = fake(FIRST, SECOND, "resources/list")
    value = {"cursor": "a"}

    assert found.is_identity
    assert value is found.adapt(value).value


def test_only_the_steps_on_the_way_are_loaded() -> None:
    ladder = FakeLadder()
    Router(ladder).route(SECOND, THIRD, "tools/list", "params", None)

    assert ["two"] == ladder.loaded


def test_a_route_is_made_once() -> None:
    made = router()

    assert made.route(FIRST, THIRD, "tools/list", "params", None) is made.route(
        FIRST, THIRD, "tools/list", "params", None
    )
    assert route(*LABELS[:2], "tools/list", "params") is route(*LABELS[:2], "tools/list", "params")


def test_a_notification_has_a_route() -> None:
    found = fake(FIRST, SECOND, "notifications/initialized", "notification")

    assert {"_meta": {"trace": ["up one"]}} == found.adapt({}).value


def test_a_definition_goes_by_the_name_that_each_revision_has_for_it() -> None:
    found = router().definition_route(FIRST, THIRD, "Implementation")

    assert ("Implementation", "Implementation") == (found.definition, found.target_definition)
    assert "Thing" == router().definition_route(FIRST, SECOND, "Implementation").target_definition
    assert ["up one", "up two"] == found.adapt({"name": "a", "version": "1"}).value["_meta"]["trace"]


def test_an_error_is_checked_as_an_error() -> None:
    found = fake(FIRST, SECOND, "tools/list", "error")

    assert {"code": -1, "message": "no"} == found.adapt({"code": -1, "message": "no", "foreign": 1}).value
    with pytest.raises(InvalidPayload, match=r"an error of tools/list is not valid in 2024-11-05 at /code: "):
        found.adapt({"code": "x", "message": "no"})


# Losses and refusals


def test_losses_say_where_why_and_at_which_step() -> None:
    adapted = fake(SECOND, FIRST, "prompts/list").adapt({"cursor": "a"})

    loss = Loss(pointer="/cursor", step="2025-03-26 to 2024-11-05", reason="no cursors", severity="dropped")
    assert Adapted(value={}, losses=(loss,)) == adapted


def test_the_input_is_never_changed() -> None:
    value = {"cursor": "a", "_meta": {"x": [1]}}
    before = msgspec.json.encode(value)
    fake(SECOND, FIRST, "prompts/list").adapt(value, keep=True)

    assert before == msgspec.json.encode(value)


@pytest.mark.parametrize("way", ["adapt", "adapt_valid"])
def test_a_refusal_names_step_place_reason_service_and_what_was_lost_before(way: str) -> None:
    found = fake(SECOND, FIRST, "resources/list")
    with pytest.raises(AdaptationError) as caught:
        found.adapt({"cursor": "a"}) if way == "adapt" else found.adapt_valid({"cursor": "a"}, Losses())

    error = caught.value
    assert ("2025-03-26 to 2024-11-05", "/cursor") == (error.step, error.pointer)
    assert ("no cursors at all", "input") == (error.reason, error.service)
    assert ["/before"] == [each.pointer for each in error.losses]
    assert str(error) == (
        "the message cannot be adapted from 2025-03-26 to 2024-11-05 at /cursor: no cursors at all "
        "(docs/losses.md, service 'input', says what mcpgen's clients and servers do instead)"
    )


def test_a_method_that_the_target_lacks_has_no_route() -> None:
    with pytest.raises(AdaptationError, match="nobody pings") as caught:
        fake(FIRST, SECOND, "logging/setLevel")

    assert ("2024-11-05 to 2025-03-26", "negotiation") == (caught.value.step, caught.value.service)


def test_a_method_may_be_gone_for_one_sender() -> None:
    assert fake(FIRST, SECOND, "ping", "params", "server").is_identity
    assert fake(FIRST, SECOND, "ping").is_identity
    with pytest.raises(AdaptationError):
        fake(FIRST, SECOND, "ping", "params", "client")


def test_senders_that_go_at_different_steps_leave_nobody() -> None:
    with pytest.raises(AdaptationError) as caught:
        fake(FIRST, THIRD, "ping")

    assert "2025-03-26 to 2025-06-18" == caught.value.step


def test_a_method_that_a_step_does_not_know_has_no_route() -> None:
    with pytest.raises(AdaptationError, match="in 2024-11-05, prompts/get has no part 'params'") as caught:
        fake(FIRST, SECOND, "prompts/get")

    assert caught.value.service is None


def test_a_message_without_an_error_is_one_that_is_asked_inside_a_result() -> None:
    with pytest.raises(AdaptationError) as caught:
        fake(FIRST, SECOND, "resources/templates/list", "error")

    assert "input" == caught.value.service


def test_a_definition_without_counterpart_has_no_route() -> None:
    with pytest.raises(AdaptationError, match="2025-06-18 has no definition that corresponds to Tool"):
        router().definition_route(SECOND, THIRD, "Tool")


# Wrong usage


@pytest.mark.parametrize(("source", "target"), [("2024-11-06", FIRST), (FIRST, "2024-11-06"), ("", "")])
def test_an_unknown_revision_is_wrong_usage_and_what_the_registry_calls_unknown(source: str, target: str) -> None:
    with pytest.raises(UnknownRevision, match="the known revisions are 2024-11-05, ") as caught:
        route(source, target, "tools/list", "params")

    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, RegistrysUnknownRevision)
    with pytest.raises(UnknownRevision):
        definition_route(source, target, "Tool")


def test_a_revision_without_steps_is_unknown_to_a_ladder() -> None:
    with pytest.raises(UnknownRevision):
        fake(FIRST, "2026-07-28", "tools/list")


@pytest.mark.parametrize(
    ("method", "part", "sender", "says"),
    [
        ("tools/lst", "params", None, "has no request 'tools/lst'; the known ones are completion/complete, "),
        (
            "tools/list",
            "notification",
            None,
            r"has no notification 'tools/list' \(it is a request from a client; its parts are ",
        ),
        ("tools/list", "params", "server", r"'tools/list' from a server \(it is a request from a client\); the known "),
        (
            "notifications/cancelled",
            "result",
            None,
            r"\(it is a notification from a client or server; its part is `notification`\); the known ones are ",
        ),
    ],
)
def test_an_unknown_method_lists_those_that_would_do(method: str, part: Any, sender: Any, says: str) -> None:
    with pytest.raises(UnknownMethod, match=says):
        route(FIRST, SECOND, method, part, sender=sender)


@pytest.mark.parametrize(("part", "sender"), [("body", None), ("params", "peer")])
def test_parts_and_senders_are_those_that_there_are(part: Any, sender: Any) -> None:
    with pytest.raises(UsageError, match=r"body|peer"):
        route(FIRST, SECOND, "tools/list", part, sender=sender)


@pytest.mark.parametrize("name", ["Tol", "decode", "__all__"])
def test_an_unknown_definition_is_wrong_usage(name: str) -> None:
    with pytest.raises(UnknownDefinition, match=f"2024-11-05 has no definition '{name}'"):
        definition_route(FIRST, SECOND, name)


def test_an_unknown_definition_is_compared_with_those_that_there_are() -> None:
    with pytest.raises(UnknownDefinition, match="did you mean Tool"):
        definition_route(FIRST, SECOND, "Tol")


# Bad values

NESTED_IN = {
    "arguments": {"name": "a", "arguments": {"x": "HERE"}},
    "metadata": {"name": "a", "_meta": {"x": "HERE"}},
    "an unknown key": {"name": "a", "unknown": "HERE"},
    "a typed key": {"name": "HERE"},
}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("place", NESTED_IN)
@pytest.mark.parametrize("depth", [10_000, 100_000])
@pytest.mark.slow
def test_what_is_nested_too_deeply_is_refused(place: str, depth: int, keep: bool) -> None:  # noqa: FBT001
    value = {
        key: nested(depth) if found == "HERE" else {"x": nested(depth)} if isinstance(found, dict) else found
        for key, found in NESTED_IN[place].items()
    }
    for target in (LABELS[-2], LABELS[0]):
        with pytest.raises(InvalidPayload, match="nested too deeply"):
            route(LABELS[-2], target, "tools/call", "params").adapt(value, keep=keep)


def test_what_holds_itself_is_nested_too_deeply() -> None:
    value: dict[str, Any] = {"name": "a"}
    value["arguments"] = value
    with pytest.raises(InvalidPayload, match="nested too deeply"):
        route(LABELS[-2], LABELS[0], "tools/call", "params").adapt(value)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("depth", [100, 300, 600, 900, 1500, 3000, 6000])
def test_whatever_depth_is_adapted_comes_out_whole(depth: int, keep: bool) -> None:  # noqa: FBT001
    value = {"name": "a", "task": {"ttl": 1}, "arguments": {"x": nested(depth)}}
    try:
        adapted = route("2025-11-25", LABELS[0], "tools/call", "params").adapt(value, keep=keep)
    except InvalidPayload as error:
        assert "nested too deeply" in error.reason  # noqa: PT017
    else:
        assert value["arguments"] is adapted.value["arguments"]


def test_a_step_that_recurses_too_far_is_no_crash() -> None:
    found = fake(FIRST, SECOND, "completion/complete")
    with pytest.raises(InvalidPayload, match="nested too deeply"):
        found.adapt({"argument": {"name": "a", "value": "b"}, "ref": {"type": "ref/prompt", "name": "a"}})
    with pytest.raises(InvalidPayload, match="nested too deeply"):
        found.adapt_valid({}, Losses())


def test_ten_megabytes_are_adapted() -> None:
    block = {"type": "text", "text": "x" * 1000}
    value = {"content": [block] * 10_000}
    adapted = route(LABELS[-2], LABELS[0], "tools/call", "result").adapt(value, keep=True)

    assert value == adapted.value
    assert () == adapted.losses


def test_a_fault_after_ten_megabytes_is_found() -> None:
    value = {"content": [*[{"type": "text", "text": "x" * 1000}] * 10_000, {"type": "text"}]}
    with pytest.raises(InvalidPayload) as caught:
        route(LABELS[-2], LABELS[0], "tools/call", "result").adapt(value)

    assert "/content/10000" == caught.value.pointer


# The real routes


@pytest.mark.parametrize("source", LABELS)
@pytest.mark.parametrize("target", LABELS)
def test_there_is_a_way_for_tools_from_everywhere_to_everywhere(source: str, target: str) -> None:
    tools = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
    stateless = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    adapted = route(source, target, "tools/list", "result").adapt(tools | (stateless if source == "2026-07-28" else {}))

    assert tools | (stateless if target == "2026-07-28" else {}) == adapted.value


def test_a_request_may_be_answered_with_a_task() -> None:
    task = {"taskId": "1", "status": "working", "createdAt": "2025-11-25T00:00:00Z", "ttl": None}
    task["lastUpdatedAt"] = task["createdAt"]
    found = route("2025-11-25", "2025-11-25", "tools/call", "result")

    assert {"task": task} == found.adapt({"task": task}).value
    with pytest.raises(InvalidPayload, match="content"):
        found.adapt({})


def modules_after(program: str) -> list[str]:
    """Return the revisions and steps that are loaded after *program* ran."""
    source = f"{program}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", source], check=True, capture_output=True, encoding="utf-8")
    return [name for name in json.loads(done.stdout) if name.startswith("mcpgen.generated.") and ".v2" in name]


def test_importing_the_runtime_loads_no_revision_and_no_step() -> None:
    assert [] == modules_after("import mcpgen.runtime, mcpgen.runtime.adapt, mcpgen.runtime.cli.adapt_command")


def test_a_route_loads_its_source_and_its_steps_and_nothing_else() -> None:
    program = "from mcpgen.runtime.adapt import route; route('2025-03-26', '2024-11-05', 'tools/list', 'params')"
    loaded = {name.split(".")[2] + name.partition(".adapters.")[2] for name in modules_after(program)}

    assert {"v2025_03_26", "adaptersv2024_11_05_to_v2025_03_26"} == loaded
