"""The bindings of extensions are exact, as those of revisions are."""

from __future__ import annotations

import importlib

import pytest

from mcpgen.codegen.pinned import SchemaRoom
from tests.oracle import disagreements, extensions
from tests.oracle.oracle import SHOWN

pytestmark = pytest.mark.slow

RULES = disagreements.load(disagreements.FILE.read_text(encoding="utf-8"))

vendored = pytest.mark.parametrize("name", extensions.EXTENSIONS)


def own_names(name: str) -> list[str]:
    """Return the definitions of the extension *name* that are not those of its base."""
    door = extensions.door(name)
    base = importlib.import_module(f"mcpgen.generated.v{SchemaRoom().extension_pin(name).base.replace('-', '_')}")
    return [
        each
        for each in extensions.patched(name)["$defs"]
        if hasattr(door, each) and getattr(base, each, None) is not getattr(door, each)
    ]


@vendored
def test_valid_instances_are_valid_and_round_trip(name: str) -> None:
    compared = extensions.comparison(name)
    failures: list[str] = []
    for each in own_names(name):
        instances = list(compared.instances.systematic(each))
        assert all(compared.validators.reference_accepts(each, instance) for instance in instances[:50]), each
        failures += compared.round_trip_failures(each, instances)

    assert not failures, "\n".join(failures[:SHOWN])


@vendored
def test_bindings_agree_with_the_schema_on_every_mutant(name: str) -> None:
    outcome = extensions.comparison(name).run(names=own_names(name))
    uncovered = [str(each) for each in outcome.disagreements if not any(rule.covers(each) for rule in RULES)]

    assert outcome.mutants
    assert not outcome.lossy, "\n".join(outcome.lossy[:SHOWN])
    assert not uncovered, "\n".join(uncovered[:SHOWN])
    assert outcome.crossed == []


@vendored
def test_every_definition_of_the_document_has_a_type(name: str) -> None:
    document = SchemaRoom().extension_document(name)
    door = extensions.door(name)

    assert [] == [each for each in document["$defs"] if not hasattr(door, each)]
