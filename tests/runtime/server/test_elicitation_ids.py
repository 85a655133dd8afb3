"""Which clients got the id of an elicitation by URL."""

from __future__ import annotations

from mcpgen.runtime.server.elicitation_ids import _MAX_ENTRIES, ElicitationIds


def test_the_oldest_ids_are_forgotten_and_several_clients_may_get_the_same_one() -> None:
    ids = ElicitationIds()
    ids.add("first", "ann")
    ids.add("shared", "ann")
    ids.add("shared", "bob")
    ids.add("shared", "bob")

    assert [True, True, False] == [
        ids.is_of_others(*each) for each in (("first", "bob"), ("shared", "eve"), ("no", "ann"))
    ]
    assert not ids.is_of_others("shared", "ann")

    for number in range(_MAX_ENTRIES - 2):
        ids.add(f"id {number}", "eve")

    assert not ids.is_of_others("first", "bob")
    assert not ids.is_of_others("shared", "bob")
    assert _MAX_ENTRIES == len(ids._asked)
