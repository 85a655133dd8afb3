"""A quota is shared fairly: the owner that has the most makes room for one that has less."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.server.quota import Entry, Quota
from mcpgen.runtime.server.quota_shares import Share


class Kept:
    """Entries of one quota, which release themselves when they have to give way."""

    def __init__(self, max_count: int = 1000, max_bytes: int = 1000, *, ends_at_once: bool = True) -> None:
        self.quota = Quota(max_count, max_bytes)
        self.ended: list[str] = []
        self.ending: list[Entry] = []
        self._ends_at_once = ends_at_once

    def admit(self, name: str, owner: str, size: int = 1, *, session: str = "") -> Entry | None:
        held: list[Entry] = []

        def give_way() -> None:
            self.ended.append(name)
            self.ending.extend(held)
            if self._ends_at_once:
                held[0].release()

        entry = self.quota.admit(owner, size, session=session, give_way=give_way)
        held.extend([] if entry is None else [entry])
        return entry


def test_one_owner_may_use_all_of_it() -> None:
    kept = Kept(max_count=3)
    assert all(kept.admit(f"a{n}", "a") for n in range(3))
    assert kept.admit("a3", "a") is None, "it has the most, so nothing makes room for it"
    assert kept.ended == []


def test_the_owner_with_the_most_makes_room_until_the_shares_are_equal() -> None:
    kept = Kept(max_count=6)
    for n in range(6):
        kept.admit(f"a{n}", "a")
    assert [kept.admit(f"b{n}", "b") is not None for n in range(4)] == [True, True, True, False]
    assert kept.ended == ["a0", "a1", "a2"], "the oldest end first"
    assert kept.quota.count == 6


def test_bytes_are_shared_as_counts_are() -> None:
    kept = Kept(max_bytes=1000)
    for n in range(10):
        kept.admit(f"a{n}", "a", 100)
    assert kept.admit("b", "b", 250)
    assert kept.ended == ["a0", "a1", "a2"]
    assert kept.quota.kept_bytes == 950
    assert kept.admit("c", "c", 1001) is None, "larger than the whole limit"
    assert kept.admit("c", "c", 900) is None, "then it would have the most"


def test_the_sessions_of_one_owner_share_what_it_has() -> None:
    kept = Kept(max_count=4)
    for n in range(4):
        kept.admit(f"greedy{n}", "a", session="greedy")
    assert kept.admit("modest", "a", session="modest")
    assert kept.ended == ["greedy0"]
    assert kept.admit("greedy4", "a", session="greedy") is None


def test_a_large_entry_does_not_look_at_all_sessions_for_each_one_that_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[Share] = []

    def note(share: Share, what: int) -> int:
        looked_at.append(share)
        return share.amounts[what]

    monkeypatch.setattr(Share, "kept_here", note)
    kept = Kept(max_bytes=1000)
    for n in range(1000):
        kept.admit(f"a{n}", "a", session=str(n))
    assert kept.admit("b", "b", 400)
    assert 400 == len(kept.ended)
    assert 3000 > len(looked_at), "the sessions are looked at once, and each that makes room twice more"


def test_what_cannot_end_early_stays() -> None:
    quota = Quota(2, 1000)
    fixed = [quota.admit("a", 1), quota.admit("a", 1)]
    assert quota.admit("b", 1) is None
    for each in fixed:
        assert each is not None
        each.release()
    assert (quota.count, quota.kept_bytes) == (0, 0)


def test_what_ends_slowly_is_kept_beyond_the_limit_but_only_a_quarter_of_it() -> None:
    kept = Kept(max_count=8, max_bytes=800, ends_at_once=False)
    for n in range(8):
        kept.admit(f"a{n}", "a", 100)
    assert [kept.admit(f"b{n}", "b", 100) is not None for n in range(3)] == [True, True, False]
    assert (kept.quota.bytes, kept.quota.kept_bytes) == (800, 1000)
    kept.ending[0].release()
    assert kept.admit("b2", "b", 100), "one has ended, so another may be asked to end"
    for each in kept.ending:
        each.release()
    assert (kept.quota.leaving_count, kept.quota.leaving_bytes) == (0, 0)


def test_an_entry_that_grows_takes_its_room_from_others_not_from_itself() -> None:
    kept = Kept(max_bytes=1000)
    grows = kept.admit("a", "a", 100)
    assert grows is not None
    for n in range(8):
        kept.admit(f"b{n}", "b", 100)
    assert grows.resize(400)
    assert kept.ended == ["b0", "b1"]
    assert not grows.resize(1001)
    assert (grows.size, kept.quota.bytes) == (400, 1000)
    grows.release()
    grows.release()
    assert not grows.resize(1)
    assert kept.quota.bytes == 600


def test_what_keeps_no_bytes_does_not_end_for_bytes() -> None:
    kept = Kept(max_bytes=100)
    kept.admit("empty", "a", 0)
    kept.admit("full", "a", 100)

    assert kept.admit("b", "b", 10)
    assert kept.ended == ["full"]


def test_the_session_with_the_most_makes_room_for_another_owner() -> None:
    kept = Kept(max_count=4)
    kept.admit("small", "a", session="1")
    for n in range(3):
        kept.admit(f"large{n}", "a", session="2")

    assert kept.admit("b", "b")
    assert kept.ended == ["large0"], "though another entry is older"


def test_an_entry_can_stand_for_several_things() -> None:
    kept = Kept(max_count=10)
    batch = kept.quota.admit("a", 1, count=8)
    assert batch
    assert kept.quota.admit("a", 1, count=3) is None
    assert kept.quota.count == 8

    batch.release()
    assert kept.quota.count == 0
    assert kept.quota.admit("a", 1, count=11) is None, "more than the whole limit"
    assert kept.ended == []


def test_lower_ranks_end_first_and_the_oldest_of_each() -> None:
    quota, ended = Quota(4, 100), list[str]()
    entries = {
        name: quota.admit("a", 1, rank=rank, give_way=lambda name=name: ended.append(name))
        for name, rank in (("busy", 2), ("idle", 1), ("new", 0), ("other", 1))
    }
    entries["idle"].move(1)  # used again
    for each in range(3):
        assert quota.admit("b" if each < 2 else "c", 1)
        entries[ended[-1]].release()

    assert ended == ["new", "other", "idle"]


def test_idle_entries_make_room_for_their_own_owner_and_others_do_not() -> None:
    quota, ended = Quota(2, 100, idle_ranks=1), list[str]()
    idle = quota.admit("a", 1, rank=0, give_way=lambda: ended.append("idle"))
    busy = quota.admit("a", 1, rank=1, give_way=lambda: ended.append("busy"))
    assert quota.admit("a", 1, rank=1)
    assert ended == ["idle"]
    assert quota.admit("a", 1, rank=1) is None

    assert idle
    assert busy
    idle.release()
    busy.move(0)
    assert quota.admit("a", 1, rank=1)
    assert ended == ["idle", "busy"]


@pytest.mark.parametrize(("new", "first"), [(2, "idle"), (3, "new")])
def test_a_few_new_entries_stay_and_a_flood_of_them_gives_way(new: int, first: str) -> None:
    """At the limit, a client that starts two sessions at once could otherwise never finish starting either."""
    quota, ended = Quota(32, 1000, idle_ranks=2), list[str]()
    for name, rank in [*[("new", 0)] * new, *[("idle", 1)] * 28, *[("busy", 2)] * (4 - new)]:
        assert quota.admit("a", 1, rank=rank, give_way=lambda name=name: ended.append(name))

    assert quota.admit("a", 1, rank=0)
    assert ended == [first]


def test_an_owner_that_has_the_most_is_refused_without_a_look_at_its_sessions() -> None:
    """Otherwise each refused request of an attacker with thousands of sessions would take milliseconds."""
    quota, looks = Quota(1000, 10**9), 0
    for each in range(1000):
        quota.admit("a", 1, session=f"{each}", give_way=lambda: None)
    assert quota.admit("a", 1, session="more") is None
    sessions = quota._owners.by_name["a"].sessions

    class Counted(dict[str, Any]):
        def values(self) -> Any:
            nonlocal looks
            looks += 1
            return super().values()

    sessions.by_name = Counted(sessions.by_name)
    for _ in range(100):
        assert quota.admit("a", 1, session="more") is None

    assert looks == 0


def test_what_an_owner_has_at_other_workers_counts_when_owners_are_compared_but_not_against_the_limit() -> None:
    kept = Kept(max_count=4)
    kept.quota.set_elsewhere({"a": (5, 5)})
    kept.admit("a0", "a")
    kept.quota.set_elsewhere({"a": (4, 4), "gone": (9, 9)})
    for n in range(3):
        assert kept.admit(f"b{n}", "b")
    assert kept.quota.count == 4

    assert kept.admit("a1", "a") is None, "it has the most at all workers together"
    assert kept.admit("c0", "c")
    assert kept.ended == ["a0"]
    assert kept.admit("c1", "c"), "an owner with nothing here cannot make room"
    assert kept.ended == ["a0", "b0"]
    assert kept.admit("gone", "gone") is None

    kept.quota.set_elsewhere({})
    assert kept.admit("a2", "a")
    assert kept.ended == ["a0", "b0", "b1"]


def test_an_owner_whose_bytes_are_at_other_workers_does_not_stand_in_the_way_of_others() -> None:
    kept = Kept(max_bytes=100)
    kept.quota.set_elsewhere({"a": (1, 500)})
    kept.admit("empty", "a", 0)
    kept.admit("full", "b", 100)

    assert kept.admit("c", "c", 10)
    assert kept.ended == ["full"]


def test_what_is_told_of_an_owner_is_what_it_has_here() -> None:
    kept = Kept(max_count=10, max_bytes=1000)
    kept.quota.set_elsewhere({"many": (100, 1), "few": (1, 1)})
    for n in range(5):
        kept.admit(f"many{n}", "many")
    large = kept.admit("large", "large", 500)
    kept.admit("few", "few")

    assert kept.quota.large_shares(0.5) == {"many": (5, 5), "large": (1, 500)}
    assert kept.quota.large_shares(0.6) == {}
    assert large
    large.release()
    assert kept.quota.large_shares(0.5) == {"many": (5, 5)}


def test_the_long_name_of_an_owner_is_shortened() -> None:
    kept = Kept(max_count=2)
    long = [f"{'x' * 1000}{each}" for each in range(2)]
    entries = [kept.admit(each, each) for each in long]

    names = {each.owner for each in entries if each}
    assert names == set(kept.quota.large_shares(0.1))
    assert [32, 32] == [len(each) for each in names]
