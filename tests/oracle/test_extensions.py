"""The bindings of extensions are exact, as those of revisions are."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from mcpgen.codegen.pinned import SchemaRoom
from tests.codegen.packages import build, load
from tests.codegen.verdicts import INTEGER, STRING, obj, ref
from tests.oracle import disagreements, extensions, report
from tests.oracle.oracle import SHOWN, Comparison
from tests.oracle.report import STALE
from tests.oracle.subjects import Bindings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

RULES = disagreements.load(disagreements.FILE.read_text(encoding="utf-8"))

CLOSED = {"additionalProperties": False}

vendored = pytest.mark.parametrize("name", extensions.EXTENSIONS)


@vendored
def test_valid_instances_are_valid_and_round_trip(name: str) -> None:
    compared = extensions.comparison(name)
    failures: list[str] = []
    for each in extensions.own_names(name):
        instances = list(compared.instances.systematic(each))
        assert all(compared.validators.reference_accepts(each, instance) for instance in instances[:50]), each
        failures += compared.round_trip_failures(each, instances)

    assert not failures, "\n".join(failures[:SHOWN])


@vendored
def test_bindings_agree_with_the_schema_on_every_mutant(name: str) -> None:
    outcome = report.outcome(name)
    found = disagreements.problems(outcome.disagreements, RULES, revision=name)
    text = report.FILE.read_text(encoding="utf-8")

    assert outcome.mutants
    assert not outcome.lossy, "\n".join(outcome.lossy[:SHOWN])
    assert not found, "\n".join(found)
    assert outcome.crossed == []
    assert report.row(name) in text, STALE
    assert report.section(name) in text, STALE


def test_members_of_allof_that_forbid_or_share_keys_agree_with_the_schema_on_every_mutant(tmp_path: Path) -> None:
    """The shapes of older documents of the tasks extension, in a document of our own."""
    meta = obj(_meta=obj(token={"anyOf": [STRING, INTEGER]}))
    states = [{**obj(state={"const": name}, id=STRING), "required": ["state", "id"], **CLOSED} for name in "ab"]
    states[1]["properties"]["asked"] = {"type": "object", "additionalProperties": {"anyOf": [{}, {}]}}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "Base": {**meta, "additionalProperties": {}},
            "Envelope": {**obj(method=STRING, params={"type": "object", "additionalProperties": {}})},
            "Params": {"anyOf": [{"allOf": [{"additionalProperties": {}, **meta}, each]} for each in states]},
            "Result": {"allOf": [ref("Base"), states[0]]},
            "Message": {"allOf": [ref("Envelope"), {**obj(params=ref("Params")), "required": ["params"]}]},
            "Narrowed": {"allOf": [ref("Envelope"), {**obj(params={**obj(n=INTEGER), "required": ["n"]})}]},
            "Both": {"allOf": [obj(a=ref("Base")), obj(a={**obj(_meta=obj(n=INTEGER)), "required": ["_meta"]})]},
        },
    }
    package = load(build(document), tmp_path)
    models = importlib.import_module(f"{package.__name__}._support.structs")
    compared = Comparison(document, Bindings(package, open_objects=models.Open))
    outcome = compared.run()

    assert [] == list(compared.round_trips())
    assert [] == [str(each) for each in outcome.disagreements if not any(rule.covers(each) for rule in RULES)]
    assert outcome.mutants > 1000
    assert 0 < outcome.refused < outcome.mutants


@vendored
def test_every_definition_of_the_document_has_a_type(name: str) -> None:
    document = SchemaRoom().extension_document(name)
    door = extensions.door(name)

    assert [] == [each for each in document["$defs"] if not hasattr(door, each)]
