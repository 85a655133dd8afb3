"""The ledger adds up what each kind keeps, however it is counted."""

from __future__ import annotations

from mcpgen.runtime.server.ledger import Ledger


def test_a_kind_is_the_sum_of_its_account_its_quotas_and_its_stores() -> None:
    ledger = Ledger()
    ledger.account("sessions").bytes += 1
    ledger.account("sessions").bytes += 2
    quota = ledger.quota("sessions", max_count=10, max_bytes=100)
    entry = quota.admit("a", 40)
    other = ledger.quota("sessions", max_count=10, max_bytes=100).admit("a", 50)
    ledger.add_store("tasks", lambda: 700)

    assert ledger.by_kind() == {"sessions": 93, "tasks": 700}
    assert ledger.kept_bytes == 793

    assert entry is not None
    assert other is not None
    entry.release()
    other.release()

    assert ledger.by_kind() == {"sessions": 3, "tasks": 700}


def test_an_entry_that_gives_way_is_counted_until_it_is_released() -> None:
    ledger = Ledger()
    quota = ledger.quota("parked requests", max_count=2, max_bytes=100)
    first = quota.admit("a", 30, give_way=lambda: None)
    quota.admit("a", 30)

    assert quota.admit("b", 10)
    assert ledger.kept_bytes == 30 + 30 + 10

    assert first is not None
    first.release()

    assert ledger.kept_bytes == 30 + 10
