"""What adapters are tested with: the payloads of each revision, and valid instances of them.

A *subject* is one part of one method's messages, or one definition that engines adapt by itself. Its instances come
from the generator of the oracle test: first the systematic ones, so that a failure is small, then random ones, every
other one of them with keys that are foreign to its revision or unknown to all (``injections``).
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

from mcpgen.codegen import ir
from mcpgen.codegen.build import pinned_source
from mcpgen.codegen.diff import edition
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.generated import registry
from tests.adapters import closed, injections
from tests.adapters.correspondence import Document, local
from tests.oracle.instances import Instances
from tests.oracle.mutants import Mutations
from tests.oracle.subjects import patched
from tests.oracle.validators import Validators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcpgen.codegen.methods import Method
    from tests.oracle.shapes import Json, Schema

Part = Literal["params", "result", "notification", "error", "definition"]

INSTANCES = int(os.environ.get("MCPGEN_FUZZ", "200"))
"""How many instances each subject is tested with; `nox -s fuzz` takes 10,000."""

# Drawing them takes as long as adapting them once, but 10,000 of everything do not fit into memory. And so many mutants
# are the most that is made: different ones become rare.
MOST_REMEMBERED = 1_000

_BY_URL = {"mode": "url", "message": "", "url": "https://example.com", "elicitationId": ""}
# What errors of one revision or another carry, and what none does.
ERROR_DATA: tuple[Json, ...] = (
    {"uri": "file:///x"},
    {"elicitations": [_BY_URL], "x-unknown": 1},
    {"elicitations": []},
    {"requested": "1", "supported": []},
    {"requiredCapabilities": {"sampling": {}}},
    None,
    "x",
    [_BY_URL],
    {"elicitations": None},
)

# Results that ask for input, or promise a result, beside the one that is meant.
PROVISIONAL = ("/InputRequiredResult", "/CreateTaskResult")

# What engines adapt outside of messages, and what nests in so many messages that it deserves instances of its own.
DEFINITIONS = (
    "Annotations",
    "AudioContent",
    "ClientCapabilities",
    "ContentBlock",
    "EmbeddedResource",
    "ImageContent",
    "Implementation",
    "ModelPreferences",
    "PrimitiveSchemaDefinition",
    "Prompt",
    "PromptMessage",
    "Resource",
    "ResourceLink",
    "ResourceTemplate",
    "ResourceTemplateReference",
    "Root",
    "SamplingMessage",
    "SamplingMessageContentBlock",
    "ServerCapabilities",
    "TextContent",
    "Tool",
    "ToolAnnotations",
)


@dataclass(frozen=True, slots=True)
class Subject:
    """One payload type, in any revision.

    Attributes:
        name: The method, or the definition by the name that the newest revision has for it.
        sender: Who sends the request or notification; nothing for a definition.
    """

    part: Part
    name: str
    sender: Literal["client", "server", ""] = ""

    def __str__(self) -> str:
        """Name it briefly."""
        return f"{self.name} {self.part}" + (f" ({self.sender})" if self.sender == "server" else "")

    @property
    def key(self) -> str:
        """The name of the definition that the documents below give it."""
        return f"{self.part} {self.name} {self.sender}".strip().replace("/", ".").replace(" ", "-")


class Payloads:
    """The subjects of one revision: their schemas, instances and types."""

    def __init__(self, revision: str) -> None:
        """Read the documents of *revision*."""
        self.revision = revision
        self._document = Document(revision)
        door = registry.revision(revision).bindings()
        self._models: Any = door.models
        self._methods: Any = door.methods
        read = edition(pinned_source(SchemaRoom(), revision), vendored=True)
        self.kinds: dict[tuple[str, str], str] = {(each.name, each.sender): each.kind for each in read.methods}
        self._read = read.schema
        self.schemas = dict(self._messages(read.methods)) | dict(self._definitions())
        self.plain = Validators(self._extended(patched(revision)))
        self.closed = Validators(self._extended(closed.closed(revision)))
        self._instances: dict[Subject, list[Json]] = {}
        self._mutations = Mutations(patched(revision))
        self._sources = (
            Instances(self._extended(injections.spoken(revision), favoured=9)),
            Instances(self._extended(injections.injected(revision), favoured=9)),
        )

    def _messages(self, methods: tuple[Method, ...]) -> Iterator[tuple[Subject, Schema]]:
        for method in methods:
            properties = self._document.properties(self._document.definition(method.definition))
            params: Schema = {"type": "object"}
            if "params" in properties:  # in place, so that it is closed as the document around it
                params = {"$ref": "#/" + "/".join(map(str, properties["params"].pointer))}
            if method.kind == "notification":
                yield Subject("notification", method.name, method.sender), params
                continue
            yield Subject("params", method.name, method.sender), params
            yield Subject("error", method.name, method.sender), self._reference("Error")
            if method.result is not None:
                arms = [method.result, *([ir.Named(name=method.task_result)] if method.task_result else [])]
                yield Subject("result", method.name, method.sender), self._schema(*arms)

    def _definitions(self) -> Iterator[tuple[Subject, Schema]]:
        for name in DEFINITIONS:
            if (called := local(self.revision, name)) is not None:
                yield Subject("definition", name), self._reference(called)

    def _schema(self, *refs: ir.TypeRef) -> Schema:
        """Return the schema of a result, which is one of *refs*."""
        if len(refs) > 1:
            return {"anyOf": [self._schema(ref) for ref in refs]}
        (ref,) = refs
        if isinstance(ref, ir.Named) and ref.name in self._document.names:
            return self._reference(ref.name)
        if isinstance(found := self._read.resolve(ref), ir.Union):
            return self._schema(*found.arms)
        raise ValueError(f"{self.revision}: a result that is no definition: {ref}")

    def _reference(self, name: str) -> Schema:
        return {"$ref": f"#/{self._document.section}/{name}"}

    def _extended(self, document: Mapping[str, Any], *, favoured: int = 1) -> dict[str, Any]:
        """Return *document* with a definition for each subject.

        Args:
            document: Of this revision.
            favoured: How often the final type of a result is named among its types. The others are mostly for engines
                to translate.
        """
        section = self._document.section
        added: dict[str, Schema] = {}
        for subject, schema in self.schemas.items():
            _, *keys = schema.get("$ref", "").split("/")
            # The generator of instances knows references to definitions only; anything deeper is moved up.
            added[subject.key] = _at(document, keys) if len(keys) > 2 else schema
            if subject.part == "result" and "anyOf" in schema:
                arms = sorted(schema["anyOf"], key=lambda arm: arm["$ref"].endswith(PROVISIONAL))
                added[subject.key] = {"anyOf": [*arms[:1] * favoured, *arms[1:]]}
        return {**document, section: {**document[section], **added}}

    def local_name(self, subject: Subject) -> str:
        """Return what this revision calls the definition *subject*."""
        return local(self.revision, subject.name) or subject.name

    def instances(self, subject: Subject) -> list[Json]:
        """Return the instances of *subject*: valid, distinct, the same ones every time, the smallest first."""
        if (known := self._instances.get(subject)) is None:
            known = list(islice(self._drawn(subject), INSTANCES))
            if INSTANCES <= MOST_REMEMBERED:
                self._instances[subject] = known
        return known

    def mutants(self, subject: Subject) -> Iterator[Json]:
        """Yield values that this revision does not allow as *subject*, each an instance with one thing changed."""
        seen: set[object] = set()
        instances = self.instances(subject)[:MOST_REMEMBERED]
        mutants = (each.value for value in instances for each in self._mutations.of(value, seen))
        invalid = (each for each in mutants if not self.plain.accepts(subject.key, each))
        yield from islice(invalid, min(INSTANCES, MOST_REMEMBERED))

    def clean(self, subject: Subject, value: Json) -> bool:
        """Whether *value* has no key that is foreign to this revision."""
        return self.closed.accepts(subject.key, value)

    def _drawn(self, subject: Subject) -> Iterator[Json]:
        seen: set[int] = set()
        rng = random.Random(f"{self.revision} {subject}")  # noqa: S311  (repeatable on purpose)
        plain, injected = self._sources
        # Half of them at most: some definitions have thousands, and what they leave out is as important.
        candidates = chain(
            self._errors() if subject.part == "error" else (),
            islice(plain.systematic(subject.key), INSTANCES // 2),
            islice(injected.systematic(subject.key), INSTANCES // 4),
            (source.random(subject.key, rng) for _ in range(INSTANCES * 20) for source in self._sources),
        )
        for value in candidates:
            text = json.dumps(value)
            if hash(text) not in seen and self.plain.accepts(subject.key, value):
                seen.add(hash(text))
                yield json.loads(text)

    def _errors(self) -> Iterator[Json]:
        """Yield errors of every code of this revision, with the data of any of them, and with wrong data."""
        for code in sorted(closed.codes(self.revision)):
            yield {"code": code, "message": ""}
            yield from ({"code": code, "message": "x", "data": data} for data in ERROR_DATA)

    def decoder(self, subject: Subject) -> Callable[[bytes], object]:
        """Return how the bindings of this revision decode *subject*."""
        target = self._type(subject)
        return lambda data: self._models.decode(data, target)

    def _type(self, subject: Subject) -> Any:
        if subject.part in {"definition", "error"}:
            return getattr(self._models, "Error" if subject.part == "error" else self.local_name(subject))
        side = subject.sender.upper()
        if subject.part == "notification":
            return getattr(self._methods, f"{side}_NOTIFICATIONS")[subject.name].params
        tables = [getattr(self._methods, f"{side}_REQUESTS")]
        tables += [self._methods.INPUT_REQUESTS] if subject.sender == "server" else []
        (method,) = [table[subject.name] for table in tables if subject.name in table]
        return method.params if subject.part == "params" else method.result


@cache
def payloads(revision: str) -> Payloads:
    """Return the payloads of *revision*, read once."""
    return Payloads(revision)


def _at(document: Any, keys: list[str]) -> Any:
    for key in keys:
        document = document[key]
    return document
