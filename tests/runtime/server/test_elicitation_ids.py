"""Which clients got the id of an elicitation by URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcpgen.runtime.server.cluster.worker_messages import ElicitationAsked
from mcpgen.runtime.server.elicitation_ids import _MAX_ENTRIES, ElicitationIds

if TYPE_CHECKING:
    from mcpgen.runtime.server.cluster.worker import ClusterWorker


def test_the_oldest_ids_are_forgotten_and_several_clients_may_get_the_same_one() -> None:
    ids = ElicitationIds()
    ids.add("first", "ann", "ann")
    ids.add("shared", "ann", "ann")
    ids.add("shared", "bob", "bob")
    ids.add("shared", "bob", "bob")

    assert [True, True, False] == [
        ids.is_of_others(*each) for each in (("first", "bob"), ("shared", "eve"), ("no", "ann"))
    ]
    assert not ids.is_of_others("shared", "ann")

    for number in range(_MAX_ENTRIES - 2):
        ids.add(f"id {number}", "eve", "eve")

    assert not ids.is_of_others("first", "bob")
    assert not ids.is_of_others("shared", "bob")
    assert _MAX_ENTRIES == len(ids._asked)


def test_other_workers_are_told_of_an_id_in_the_share_of_its_owner() -> None:
    sent: list[tuple[object, str]] = []

    class Worker:
        def on(self, *_: Any) -> None:
            pass

        def send_later(self, _worker: None, message: ElicitationAsked, *, owner: str = "") -> None:
            sent.append((message, owner))

    ids = ElicitationIds()
    ids.share_with(cast("ClusterWorker", Worker()))
    ids.add("first", "session 1", "ann")

    assert [(ElicitationAsked("first", "session 1"), "ann")] == sent
