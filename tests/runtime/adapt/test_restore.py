"""What is kept on the way down comes back on the way up, whatever others did to the message meanwhile."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from mcpgen.runtime.adapt import Adapted, Route, definition_route, route
from mcpgen.runtime.adapt.stash import KEY, MAX_STASH_BYTES, Edit, Stash, put_stash
from mcpgen.runtime.errors import InvalidPayload
from tests.runtime.adapt.fake_steps import FIRST, SECOND, router

OLD, NEW = "2024-11-05", "2026-07-28"
TOOL = {
    "title": "Search files",
    "name": "search",
    "icons": [{"src": "https://example.com/i.png"}],
    "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
    "x-unknown": {"deep": [1]},
}
TOOLS = {
    "ttlMs": 60_000,
    "tools": [TOOL, {**TOOL, "name": "find", "title": "Find"}],
    "cacheScope": "public",
    "_meta": {"com.example/a": 1},
    "resultType": "complete",
}


def down(method: str = "tools/list", part: Any = "result") -> Route:
    return route(NEW, OLD, method, part)


def up(method: str = "tools/list", part: Any = "result") -> Route:
    return route(OLD, NEW, method, part)


def kept(value: Any = TOOLS, method: str = "tools/list", part: Any = "result") -> Any:
    adapted = down(method, part).adapt(value, keep=True)
    assert adapted.kept
    return json.loads(json.dumps(adapted.value))  # the wire is between us


def stash_of(message: Any, holder: str = "_meta") -> Any:
    return message[holder][KEY][NEW]


def said(adapted: Adapted) -> list[str]:
    return [each.reason for each in adapted.losses if KEY.replace("/", "~1") in each.pointer]


def test_what_was_kept_comes_back_with_its_keys_in_order_and_nothing_is_lost() -> None:
    adapted = up().adapt(kept())

    assert json.dumps(TOOLS) == json.dumps(adapted.value)
    assert (True, ()) == (adapted.restored, adapted.losses)


def test_what_the_peer_sees_is_what_it_sees_without_a_stash() -> None:
    message = kept()
    del message["_meta"][KEY]

    assert message == down().adapt(TOOLS).value


def test_keeping_reports_the_same_losses() -> None:
    assert down().adapt(TOOLS).losses == down().adapt(TOOLS, keep=True).losses


def test_a_message_that_loses_nothing_carries_no_stash() -> None:
    adapted = route("2025-11-25", "2025-06-18", "tools/list", "params").adapt({"cursor": "a"}, keep=True)

    assert Adapted(value={"cursor": "a"}) == adapted


def test_metadata_that_was_only_made_for_the_stash_goes_with_it() -> None:
    value = {key: found for key, found in TOOLS.items() if key != "_meta"}

    assert json.dumps(value) == json.dumps(up().adapt(kept(value)).value)


@pytest.mark.parametrize("data", [{"uri": "file:///a", "x": 1}, {}, None])
def test_errors_keep_in_their_data(data: Any) -> None:
    error = {"code": -32602, "message": "no", **({} if data is None else {"data": data})}
    there, back = (route(*pair, "resources/read", "error") for pair in ((NEW, OLD), (OLD, NEW)))
    adapted = there.adapt(error, keep=True)

    assert error == back.adapt(json.loads(json.dumps(adapted.value))).value


def test_an_error_with_other_data_keeps_nothing() -> None:
    adapted = route(SECOND, FIRST, "tools/list", "error").adapt({"code": 1, "message": "", "data": "text"}, keep=True)

    assert not adapted.kept


def test_a_definition_without_metadata_keeps_nothing() -> None:
    value = {"name": "a", "title": "A", "version": "1"}
    adapted = definition_route("2025-06-18", "2025-03-26", "Implementation").adapt(value, keep=True)

    assert ({"name": "a", "version": "1"}, False) == (adapted.value, adapted.kept)


def test_a_stash_where_the_schema_has_no_metadata_belongs_to_somebody_else() -> None:
    value = {"name": "a", "version": "1", "_meta": {KEY: {"2025-06-18": {"edits": [{"at": "/title", "value": "x"}]}}}}
    adapted = definition_route("2025-03-26", "2025-06-18", "Implementation").adapt(value)

    assert Adapted(value=value) == adapted


def test_what_is_larger_than_the_limit_is_not_kept() -> None:
    value = {**TOOLS, "tools": [{**TOOL, "title": "x" * MAX_STASH_BYTES}]}
    adapted = down().adapt(value, keep=True)

    assert not adapted.kept
    assert down().adapt(value).value == adapted.value


# Keys that the revision does not define


def test_a_stash_brings_back_no_foreign_key() -> None:
    value = {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}]}
    there, back = (route(*pair, "tools/list", "result") for pair in (("2025-06-18", OLD), (OLD, "2025-06-18")))
    value["tools"][0]["title"] = "A"
    adapted = there.adapt(value, keep=True)
    del value["tools"][0]["execution"]

    assert adapted.kept
    assert json.dumps(value) == json.dumps(back.adapt(adapted.value).value)


def test_a_foreign_key_that_the_target_admits_does_not_come_back() -> None:
    value = {"tools": [{"name": "a", "title": "A", "inputSchema": {"type": "object"}}]}
    there, back = (
        route(*pair, "tools/list", "result") for pair in (("2025-03-26", "2025-06-18"), ("2025-06-18", "2025-03-26"))
    )
    adapted = there.adapt(value, keep=True)

    assert "A" == adapted.value["tools"][0]["title"]
    assert "title" not in back.adapt(adapted.value).value["tools"][0]


# Others change the message


def test_what_was_not_touched_comes_back() -> None:
    message = kept()
    message["tools"][1]["description"] = "new"
    adapted = up().adapt(message)

    assert TOOL == adapted.value["tools"][0]
    assert "title" not in adapted.value["tools"][1]
    assert ("new", 60_000) == (adapted.value["tools"][1]["description"], adapted.value["ttlMs"])
    assert [reason for reason in said(adapted) if "has changed" in reason]


def test_items_that_moved_do_not_get_what_belongs_to_others() -> None:
    message = kept()
    message["tools"].reverse()
    adapted = up().adapt(message)

    assert ["find", "search"] == [each["name"] for each in adapted.value["tools"]]
    assert all("title" not in each for each in adapted.value["tools"])
    assert said(adapted)


def test_items_that_were_removed_stay_away() -> None:
    message = kept()
    message["tools"].pop()
    adapted = up().adapt(message)

    assert [TOOL] == adapted.value["tools"]
    assert said(adapted)


def test_a_stash_for_another_message_is_stale() -> None:
    message = kept({**TOOLS, "tools": [{**TOOL, "name": "other"}]})
    message["_meta"] = kept()["_meta"]
    adapted = up().adapt(message)

    assert "title" not in adapted.value["tools"][0]
    assert said(adapted)
    assert KEY not in json.dumps(adapted.value)


# Others forge


def forged(edits: list[dict[str, Any]], **more: Any) -> Adapted:
    message = kept()
    message["_meta"][KEY][NEW] = {"edits": edits, **more}
    adapted = up().adapt(message)
    assert KEY not in json.dumps(adapted.value)
    return adapted


@pytest.mark.parametrize(
    "edits",
    [
        [{"at": "/tools", "value": []}],
        [{"at": "/_meta/com.example~1a", "value": 2}],
        [{"at": "/nextCursor", "value": "evil", "index": 0}],
        [{"at": "/nextCursor", "value": 1, "index": 0}],
        [{"at": "/requestState", "value": "foreign", "index": 0}],
        [{"at": "", "value": {}}],
        [{"at": "/ttlMs", "value": "not a number"}],
        [{"at": "/\ud83d\ude00", "value": 1}],
    ],
    ids=json.dumps,
)
def test_a_forged_edit_changes_nothing_that_the_peer_could_have_said(edits: list[dict[str, Any]]) -> None:
    without = kept()
    del without["_meta"][KEY]
    adapted = forged(edits)

    assert up().adapt(without).value == adapted.value
    assert said(adapted)
    assert not adapted.restored


@pytest.mark.parametrize("raw", [1, {}, {"edits": "x"}, {"edits": [{"at": "x"}]}, None])
def test_a_malformed_stash_is_a_loss_and_nothing_else(raw: Any) -> None:
    message = kept()
    message["_meta"][KEY][NEW] = raw
    adapted = up().adapt(message)

    assert ["the stash of lost values is malformed"] == said(adapted)
    assert KEY not in json.dumps(adapted.value)


def test_a_truncated_stash_restores_what_is_left_of_it() -> None:
    message = kept()
    whole = stash_of(message)["edits"]
    message["_meta"][KEY][NEW]["edits"] = [each for each in whole if each["at"] != "/tools/0/title"]
    adapted = up().adapt(message)

    assert "title" not in adapted.value["tools"][0]
    assert "Find" == adapted.value["tools"][1]["title"]


def test_a_stash_that_is_nested_too_deeply_is_no_crash() -> None:
    value: Any = 1
    for _ in range(300):
        value = [value]
    assert said(forged([{"at": "/ttlMs", "value": value}]))


@pytest.mark.parametrize("depth", [10_000, 100_000])
@pytest.mark.slow
def test_a_stash_that_is_nested_deeper_than_python_goes_makes_the_message_invalid(depth: int) -> None:
    message = kept()
    for _ in range(depth):
        message["_meta"][KEY][NEW] = [message["_meta"][KEY][NEW]]
    with pytest.raises(InvalidPayload, match="nested too deeply"):
        up().adapt(message)


def test_a_forged_edit_cannot_bring_in_a_key_of_another_revision() -> None:
    message = {"tools": [], "_meta": {KEY: {"2025-06-18": {"edits": [{"at": "/ttlMs", "value": 1, "index": 0}]}}}}
    adapted = route(OLD, "2025-06-18", "tools/list", "result").adapt(message)

    assert {"tools": [], "_meta": {}} == adapted.value
    assert ["the stash of lost values does not belong to this message, so no value was restored"] == said(adapted)


def test_a_stash_that_is_not_json_is_no_crash() -> None:
    message = kept()
    stash_of(message)["edits"] = [{"at": "/nextCursor", "value": float("nan")}]

    assert said(up().adapt(message))


# Several revisions


def test_a_stash_for_another_revision_stays_where_it_is() -> None:
    message = kept()
    adapted = route(OLD, "2025-11-25", "tools/list", "result").adapt(message)

    assert message["_meta"] == adapted.value["_meta"]
    assert not adapted.restored
    assert [] == said(adapted)


def test_a_message_may_be_kept_twice_and_restored_twice() -> None:
    middle = "2025-06-18"
    one = route(NEW, middle, "tools/list", "result").adapt(TOOLS, keep=True)
    two = route(middle, OLD, "tools/list", "result").adapt(one.value, keep=True)
    assert one.kept
    assert two.kept
    three = route(OLD, middle, "tools/list", "result").adapt(two.value)
    four = route(middle, NEW, "tools/list", "result").adapt(three.value)

    assert json.dumps(one.value) == json.dumps(three.value)
    assert json.dumps(TOOLS) == json.dumps(four.value)


def test_a_stash_that_goes_home_by_a_revision_that_could_have_said_more_is_not_believed() -> None:
    middle = route(OLD, "2025-11-25", "tools/list", "result").adapt(kept()).value
    adapted = route("2025-11-25", NEW, "tools/list", "result").adapt(middle)

    assert ["the stash of lost values does not belong to this message, so no value was restored"] == said(adapted)
    assert KEY not in json.dumps(adapted.value)
    assert all("title" not in each for each in adapted.value["tools"])


def test_the_same_revision_leaves_every_stash_alone() -> None:
    message = copy.deepcopy(kept())

    assert message == route(OLD, OLD, "tools/list", "result").adapt(message).value


# With fake steps: a way back that is missing


def test_nothing_is_kept_where_there_is_no_way_back() -> None:
    found = router().route(FIRST, SECOND, "notifications/initialized", "notification", None)
    adapted = found.adapt({}, keep=True)

    assert not adapted.kept


def test_nothing_is_kept_where_the_target_has_no_method_of_that_name() -> None:
    found = router().route("2025-06-18", SECOND, "elicitation/create", "params", None)
    value = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "foreign": 1}

    assert not found.adapt(value, keep=True).kept


def test_nothing_is_restored_where_there_is_no_way_back() -> None:
    message = put_stash({}, "_meta", SECOND, Stash(edits=[Edit(at="/x", value=1)]))
    adapted = router().route(FIRST, SECOND, "notifications/initialized", "notification", None).adapt(message)

    assert (False, 1) == (adapted.restored, len(adapted.losses))
    assert {"_meta": {"trace": ["up one"]}} == adapted.value


def test_a_declared_key_that_a_step_drops_is_kept() -> None:
    there = router().route(SECOND, FIRST, "prompts/list", "params", None)
    adapted = there.adapt({"cursor": "a", "foreign": 1}, keep=True)

    assert adapted.kept
    assert "cursor" in json.dumps(adapted.value["_meta"])


def test_a_foreign_key_that_a_step_drops_is_not_kept() -> None:
    adapted = router().route(SECOND, FIRST, "tools/list", "params", None).adapt({"foreign": 1}, keep=True)

    assert "foreign" not in json.dumps(adapted.value)
