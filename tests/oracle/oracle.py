"""The comparison of bindings with the document they were generated from.

Two questions per definition. Does every valid instance decode, and encode back to equal JSON? And do decoder and
validator give the same verdict on every mutant, valid or not? Everything is deterministic and in memory, so a failure
can be repeated from its report, which shows the instance and both verdicts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from tests.oracle.instances import Instances
from tests.oracle.mutants import Mutant, Mutations
from tests.oracle.roundtrip import difference
from tests.oracle.validators import Validators, sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.oracle.shapes import Json
    from tests.oracle.subjects import Bindings

# jsonschema looks at every valid instance and at one mutant in this many (jsonschema-rs looks at all of them).
REFERENCE_SAMPLE = 2000
# A report that shows more than this is not read.
SHOWN = 10
_CRASH = "crashed: "

Decode: TypeAlias = "Callable[[bytes], object]"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One mutant on which decoder and validator differ."""

    definition: str
    mutant: Mutant
    data: bytes  # the mutant as JSON
    accepted_by_schema: bool
    decoder: str  # what a caller wrote, e.g. "msgspec.json.decode"
    decode: Decode
    error: str | None  # what the decoder said; None if it accepted

    @property
    def case(self) -> tuple[str, bytes]:
        """What tells the mutant from others; two decoders may disagree on one."""
        return (self.definition, self.data)

    @property
    def is_crash(self) -> bool:
        """Whether the decoder raised something that is no verdict."""
        return self.error is not None and self.error.startswith(_CRASH)

    def __str__(self) -> str:
        """Show everything needed to repeat the case."""
        where = "/".join(str(key) for key in self.mutant.position)
        schema = "accepts" if self.accepted_by_schema else "refuses"
        ours = f"refuses: {self.error}" if self.error else "accepts"
        return (
            f"{self.definition} ({self.mutant.kind} at /{where})\n"
            f"    instance: {self.data.decode()[:1000]}\n"
            f"    the schema {schema}; {self.decoder} {ours}"
        )


@dataclass(slots=True)
class Verdicts:
    """Where another document differs from the one compared, for one definition: the instances and mutants, as JSON."""

    only_other_refuses: list[bytes] = field(default_factory=list)
    only_other_accepts: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """What came out for one revision."""

    instances: int = 0
    mutants: int = 0
    refused: int = 0  # mutants that the schema refuses
    disagreements: list[Disagreement] = field(default_factory=list)
    crossed: list[str] = field(default_factory=list)  # mutants on which the two validators differ
    lossy: list[str] = field(default_factory=list)  # mutants that lose something because an integer is written as 1.0
    other: dict[str, Verdicts] = field(default_factory=dict)  # by definition

    @property
    def disputed(self) -> int:
        """The number of mutants on which a decoder and the schema differ."""
        return len({each.case for each in self.disagreements})

    @property
    def agreement(self) -> float:
        """The share of mutants on which all decoders and the schema agree."""
        return 1 - self.disputed / self.mutants


class Comparison:
    """One document against the bindings generated from it."""

    def __init__(
        self, document: Mapping[str, Any], bindings: Bindings, *, shaped: Mapping[str, Any] | None = None
    ) -> None:
        """Prepare the validators of *document*; *shaped* is what instances are made from, if it is another document."""
        self.instances = Instances(shaped or document)
        self.validators = Validators(document)
        self._mutations = Mutations(shaped or document)
        self._bindings = bindings

    def round_trips(self) -> Iterator[str]:
        """Yield a report for each valid instance that the bindings refuse, or do not give back as it was."""
        for name in self.instances.names:
            yield from self.round_trip_failures(name, self.instances.systematic(name))

    def round_trip_failures(self, name: str, instances: Iterable[Json]) -> Iterator[str]:
        """Yield a report for each of *instances* of *name* that does not come back as it was."""
        decoders = self._bindings.decoders(name)
        for instance in instances:
            data = encoded(instance)
            for way, decode in decoders.items():
                if problem := self._round_trip(instance, data, decode):
                    yield f"{name} ({way})\n    instance: {data.decode()[:1000]}\n    {problem}"

    def _round_trip(self, instance: Json, data: bytes, decode: Decode) -> str | None:
        try:
            returned = msgspec.json.encode(decode(data))
        except Exception as error:  # noqa: BLE001  (whatever it is, it belongs into the report beside the instance)
            return f"{type(error).__name__}: {error}"
        return difference(instance, json.loads(returned))

    def mutants(self, name: str, instances: Iterable[Json] | None = None) -> Iterator[tuple[Mutant, bytes]]:
        """Yield the distinct mutants of *instances*, all systematic ones by default, with their JSON."""
        seen: set[object] = set()
        texts: set[bytes] = set()
        for instance in self.instances.systematic(name) if instances is None else instances:
            for mutant in self._mutations.of(instance, seen):
                data = encoded(mutant.value)
                if data not in texts:
                    texts.add(data)
                    yield mutant, data

    def disagreements(self, name: str, instances: Iterable[Json]) -> Iterator[Disagreement]:
        """Yield the mutants of *instances* on which a decoder and the schema differ."""
        decoders = self._bindings.decoders(name)
        for mutant, data in self.mutants(name, instances):
            accepted = self.validators.accepts(name, mutant.value)
            yield from _disputes(name, mutant, data, decoders, accepted=accepted)

    def run(self, other: Validators | None = None, *, names: Iterable[str] | None = None) -> Outcome:
        """Ask validators and decoders about every mutant of every definition.

        Args:
            other: Validators of another document, whose verdicts on instances and mutants are recorded too.
            names: These definitions only.
        """
        outcome = Outcome()
        for name in self.instances.names if names is None else names:
            self._run(name, outcome, other if other is not None and name in other.names else None)
        return outcome

    def _run(self, name: str, outcome: Outcome, other: Validators | None) -> None:
        decoders = self._bindings.decoders(name)
        verdicts = outcome.other[name] = Verdicts()
        for instance in self.instances.systematic(name):
            outcome.instances += 1
            if other and not other.accepts(name, instance):
                verdicts.only_other_refuses.append(encoded(instance))
        for mutant, data in self.mutants(name):
            accepted = self.validators.accepts(name, mutant.value)
            outcome.mutants += 1
            outcome.refused += not accepted
            outcome.disagreements += _disputes(name, mutant, data, decoders, accepted=accepted)
            if accepted and mutant.kind == "integral float":
                outcome.lossy += self._losses(name, mutant, data, decoders)
            if sampled(data, REFERENCE_SAMPLE) and accepted != self.validators.reference_accepts(name, mutant.value):
                outcome.crossed.append(f"{name}: {data.decode()[:1000]}")
            if other and accepted != other.accepts(name, mutant.value):
                (verdicts.only_other_refuses if accepted else verdicts.only_other_accepts).append(data)

    def _losses(self, name: str, mutant: Mutant, data: bytes, decoders: Mapping[str, Decode]) -> Iterator[str]:
        """Yield a report for each way in which *mutant* is accepted, and keeps less than it does with an integer."""
        whole = json.loads(
            data, parse_float=lambda text: int(number) if (number := float(text)).is_integer() else number
        )
        for way, decode in decoders.items():
            if verdict(decode, data) is not None or self._round_trip(whole, encoded(whole), decode) is not None:
                continue
            if problem := self._round_trip(json.loads(data), data, decode):
                yield f"{name} ({way})\n    instance: {data.decode()[:1000]}\n    {problem}"


def _integer_if_it_is_one(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _disputes(
    name: str, mutant: Mutant, data: bytes, decoders: Mapping[str, Decode], *, accepted: bool
) -> Iterator[Disagreement]:
    for way, decode in decoders.items():
        error = verdict(decode, data)
        if accepted == (error is not None):
            yield Disagreement(name, mutant, data, accepted, way, decode, error)


def encoded(value: Json) -> bytes:
    """Return *value* as compact JSON."""
    return msgspec.json.encode(value)


def verdict(decode: Decode, data: bytes) -> str | None:
    """Return why *decode* refuses *data*, None if it accepts."""
    try:
        decode(data)
    except msgspec.DecodeError as error:  # the base of ValidationError
        return str(error) or type(error).__name__
    except Exception as error:  # noqa: BLE001  (a crash is a finding, not the end of the run)
        return f"{_CRASH}{type(error).__name__}: {error}"
    return None
