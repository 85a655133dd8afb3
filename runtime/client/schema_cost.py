"""The cost of validating a value against an untrusted JSON Schema, computed before the validator runs.

Theory of operation. A validator visits a subschema once for each path that leads there, and paths multiply: thirty
small definitions, each ``anyOf`` the next one twice, make a billion visits of one number. The server chooses schema and
value, so we count the visits first, in a graph of the subschemas:

* A schema that is not recursive has a *weight*: its size with all references written out. It bounds the visits of one
  place, and weight times size of the value bounds all of them.
* Otherwise, the visits are counted in a walk through the value, equal ones together, so that the walk stays short.

Validators recurse, and a native stack is not guarded, so the length of a path is limited, too. The graph refuses what
it cannot follow: references that leave the document, and subschemas with an ``$id``, which can redirect references.

Spec:
    2026-07-28, basic/index, "$ref Resolution" and "Composition-Keyword Resource Use".
"""

from __future__ import annotations

from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from msgspec import Struct

from mcpgen.runtime.adapt.json_pointer import ABSENT, is_array, is_object, look_up, tokens_of
from mcpgen.runtime.client.keyword_cost import REREAD_UNITS, REREADS, LongNumbers, keyword_cost, list_of, map_of
from mcpgen.runtime.limits import MAX_SCHEMA_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["SchemaGraph", "SchemaRefused", "SchemaTooCostly"]

MAX_SUBSCHEMAS: Final = 5000
"""The largest number of subschemas. The largest output schemas in use have a few hundred."""

MAX_IN_PLACE: Final = 64
"""The longest chain of subschemas for the same value, such as `$ref` to `$ref`.

A chain of 1000 crashed the process when the check ran in a thread.
"""

MAX_NESTING: Final = 2000
"""The largest product of the depth of the value and the longest such chain. 8000 crashed on a small stack."""

MAX_PATTERNS: Final = 100
"""The largest number of different patterns. Each takes some milliseconds to compile, and a megabyte."""

MAX_UNITS: Final = 20_000_000
"""The largest cost of one check. A unit takes 5 to 20 ns, and 50 ns for the worst patterns (measured)."""
MAX_EXPLAINED_UNITS: Final = 4_000_000  # likewise, for reporting where a value is wrong: this checks it again
MAX_STEPS: Final = 300_000
"""The largest number of steps in which the cost is counted. Each takes about a microsecond."""

MAX_COPIES: Final = 4_000_000
"""The largest number of bytes that the errors of one check may copy."""

MAX_EXPLAINED_NESTING: Final = 256
"""As `MAX_NESTING`, but for reporting where a value is wrong.

Reporting needs more stack than a check, and the time for it grows with the square of the nesting.
"""

_IN_PLACE = ("not", "if", "then", "else")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE_MAPS = ("dependentSchemas", "dependencies")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANYTHING: Final[dict[str, Any]] = {}

# For `unevaluated…`, validators evaluate again: 2.7 times for each level (measured).
_UNEVALUATED_FACTOR = 3


class SchemaRefused(Exception):  # noqa: N818 (it says what happened)
    """The schema cannot be used; the text says why."""


class SchemaTooCostly(Exception):  # noqa: N818 (it says what happened)
    """Checking the value would cost too much; the text says why."""


class _Node(Struct, eq=False):
    """One subschema, and the subschemas that are visited after it. A list may name a node more than once."""

    cost: int
    pattern: bool
    key_patterns: int
    rereads: bool  # whether it has one of `REREADS`
    is_unevaluated: bool  # each member of the value is looked up in all subschemas for the value
    same_place: list[_Node] = []
    properties: dict[str, _Node] = {}  # by name
    additional: list[_Node] = []  # for properties that are not in `properties`
    pattern_properties: list[_Node] = []  # for the value of any property
    items: list[_Node] = []  # for any item
    property_names: list[_Node] = []  # for the names of properties
    rank: int = 0

    def children(self) -> Iterator[_Node]:
        """Yield the subschemas for parts of the value."""
        yield from self.properties.values()
        yield from self.additional
        yield from self.pattern_properties
        yield from self.items
        yield from self.property_names

    @property
    def has_properties(self) -> bool:
        return bool(self.properties or self.additional or self.pattern_properties or self.property_names)

    def of_property(self, name: str) -> Iterator[_Node]:
        """Yield the subschemas for the value of a property, possibly more than apply."""
        named = self.properties.get(name)
        if named is not None:
            yield named
        else:
            yield from self.additional
        yield from self.pattern_properties


class SchemaGraph:
    """The subschemas of one document.

    Attributes:
        patterns: Its different patterns.
        in_place: The longest path at one place.
        weight: Its size with all references written out; None if it is recursive, or a path is too long.
    """

    def __init__(self, schema: dict[str, Any], *, id_key: str = "$id") -> None:
        """Read *schema*, in a dialect whose schemas are identified by *id_key*.

        Raises:
            SchemaRefused: It is too large, refers to another document, or refers to itself without end.
        """
        self._document = schema
        self._id_key = id_key
        self._anchors: dict[str, dict[str, Any]] = {}
        self.patterns: set[str] = set()
        self._survey()
        self._nodes: dict[int, _Node] = {}
        self._unread: list[tuple[dict[str, Any], _Node]] = []
        self._branches = False
        self._root = self._node(schema)
        while self._unread:
            self._read(*self._unread.pop())
        nodes = list(self._nodes.values())
        self._has_patterns = any(node.pattern or node.key_patterns for node in nodes)
        self._rereads = any(node.rereads for node in nodes)
        self.in_place: int = _longest_in_place(nodes)
        self.weight: int | None
        self.weight, self._longest = _weight(nodes, self._root)
        self._reached: dict[_Node, list[tuple[_Node, int]]] = {}

    def admit(self, value: object, size: int, numbers: LongNumbers, *, text_units: int, longest: int | None) -> bool:
        """Check that *value* may be validated. Return whether the validator may also collect errors.

        The JSON of *value* has *size* bytes, and these long *numbers*. A pattern costs *text_units* for each character
        of a text, which may have *longest* characters. Each alternative that fails makes an error with a copy.

        Raises:
            SchemaTooCostly: Validating would cost too much.
        """
        rate = text_units if self._has_patterns else 1
        most = max(rate, REREAD_UNITS) if self._rereads else rate
        is_usual = not numbers.count and (longest is None or size <= longest)
        if self.weight is not None and is_usual and self.weight * size * most <= MAX_UNITS:
            nesting, copies, units = self._longest, self.weight * size, 0  # the bound is far above the cost
        else:
            walk = _Walk(self, rate, longest, numbers)
            walk.walk(self._root, value)
            nesting, copies, units = walk.depth * self.in_place, walk.most_visits * walk.depth * size, walk.units
        may_copy = copies <= MAX_COPIES or not self._branches
        return may_copy and nesting <= MAX_EXPLAINED_NESTING and units <= MAX_EXPLAINED_UNITS

    def reach(self, start: _Node, count: Callable[[int, int], None]) -> list[tuple[_Node, int]]:
        """Return the subschemas that are visited at one place after *start*, and how often; *count* the steps."""
        known = self._reached.get(start)
        if known is None:
            visits: dict[_Node, int] = defaultdict(int, {start: 1})
            seen = {start}
            stack = [start]
            while stack:
                places = stack.pop().same_place
                count(1 + len(places), 0)
                fresh = {node for node in places if node not in seen}
                seen.update(fresh)
                stack.extend(fresh)
            for node in sorted(seen, key=lambda each: each.rank):
                for other in node.same_place:
                    visits[other] += visits[node]
            known = self._reached[start] = list(visits.items())
        return known

    def _survey(self) -> None:
        """Check the whole document, also the parts that are no schemas: references can lead there."""
        stack: list[tuple[Any, int]] = [(self._document, 1)]
        while stack:
            value, depth = stack.pop()
            if depth > MAX_SCHEMA_DEPTH:
                raise SchemaRefused(f"it is nested more than {MAX_SCHEMA_DEPTH} levels deep")
            if is_object(value):
                self._count_patterns(value)
                if value is not self._document:
                    self._refuse_scope(value)
                for name in ("$anchor", "$dynamicAnchor"):
                    if isinstance(value.get(name), str) and self._anchors.setdefault(value[name], value) is not value:
                        raise SchemaRefused(f"two objects in it have the same anchor, {value[name][:100]!r}")
                stack.extend((each, depth + 1) for each in value.values() if is_object(each) or is_array(each))
            elif is_array(value):
                stack.extend((each, depth + 1) for each in value if is_object(each) or is_array(each))

    def _count_patterns(self, value: dict[str, Any]) -> None:
        if isinstance(pattern := value.get("pattern"), str):
            self.patterns.add(pattern)
        self.patterns.update(map_of(value.get("patternProperties")))
        if len(self.patterns) > MAX_PATTERNS:
            raise SchemaRefused(f"it has more than {MAX_PATTERNS} different patterns")

    def _refuse_scope(self, value: dict[str, Any]) -> None:
        if isinstance(value.get(self._id_key), str):
            raise SchemaRefused(f"an object in it has an `{self._id_key}` of its own, {value[self._id_key][:100]!r}")
        if isinstance(value.get("$schema"), str) and value["$schema"] != self._document.get("$schema"):
            raise SchemaRefused(f"an object in it has another `$schema`, {value['$schema'][:100]!r}")

    def _node(self, schema: dict[str, Any]) -> _Node:
        node = self._nodes.get(id(schema))
        if node is None:
            lacks, keys = schema.keys().isdisjoint, len(schema.get("patternProperties", ()))
            node = _Node(keyword_cost(schema), "pattern" in schema, keys, not lacks(REREADS), not lacks(_UNEVALUATED))
            self._nodes[id(schema)] = node
            if len(self._nodes) > MAX_SUBSCHEMAS:
                raise SchemaRefused(f"it has more than {MAX_SUBSCHEMAS} subschemas")
            self._unread.append((schema, node))
        return node

    def _all(self, values: Iterable[Any]) -> list[_Node]:
        return [self._node(each) for each in values if is_object(each)]  # true and false cost nothing

    def _read(self, schema: dict[str, Any], node: _Node) -> None:
        # The keywords of all dialects: to count what the validator ignores is safe, the reverse is not.
        self._branches = self._branches or "anyOf" in schema or "oneOf" in schema
        node.same_place += self._all(schema.get(name) for name in _IN_PLACE)
        for name in _IN_PLACE_LISTS:
            node.same_place += self._all(list_of(schema.get(name)))
        for name in _IN_PLACE_MAPS:
            node.same_place += self._all(map_of(schema.get(name)).values())
        node.same_place += [self._resolve(schema[name]) for name in _REFERENCES if isinstance(schema.get(name), str)]
        node.same_place *= _UNEVALUATED_FACTOR if node.is_unevaluated else 1
        node.properties = {
            name: self._node(each) for name, each in map_of(schema.get("properties")).items() if is_object(each)
        }
        node.additional = self._all(schema.get(name) for name in ("additionalProperties", "unevaluatedProperties"))
        node.pattern_properties = self._all(map_of(schema.get("patternProperties")).values())
        node.property_names = self._all([schema.get("propertyNames")])
        for name in ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"):
            held = schema.get(name)
            node.items += self._all(held if is_array(held) else [held])

    def _resolve(self, reference: str) -> _Node:
        own = self._document.get(self._id_key)
        local = reference
        if isinstance(own, str) and own and reference.startswith(own.rstrip("#")):
            local = reference[len(own.rstrip("#")) :]
        if local and not local.startswith("#"):
            raise SchemaRefused(f"it refers to another document, {reference[:100]!r}; mcpgen does not download schemas")
        found: Any = ABSENT
        try:
            fragment = unquote(local[1:], errors="strict")
            if not fragment or fragment.startswith("/"):
                found = look_up(self._document, tokens_of(fragment))
            else:
                found = self._anchors.get(fragment, ABSENT)
        except UnicodeDecodeError:
            pass
        if isinstance(found, bool):
            return self._node(_ANYTHING)
        if not is_object(found):
            raise SchemaRefused(f"it refers to {reference[:100]!r}, but has no schema there")
        return self._node(found)


class _Walk:
    """A walk through one value."""

    def __init__(self, graph: SchemaGraph, rate: int, longest_text: int | None, numbers: LongNumbers) -> None:
        self._graph = graph
        self._rate = rate
        self._numbers, self._factor = numbers, numbers.factor
        self._longest_text = longest_text
        self._deepest = MAX_NESTING // graph.in_place
        self.depth = 1
        self.most_visits = 1
        self.units = 0
        self._steps = 0

    def walk(self, root: _Node, value: object) -> None:
        stack: list[tuple[object, dict[_Node, int], int]] = [(value, {root: 1}, 1)]
        while stack:
            place, starts, depth = stack.pop()
            self.depth = max(self.depth, depth)
            if depth > self._deepest:
                raise SchemaTooCostly("the content is nested too deeply to check against this schema")
            visits = self._visits(starts, len(place) if is_object(place) or is_array(place) else 0)
            rereads = sum(times for node, times in visits.items() if node.rereads)
            if rereads and not is_object(place):
                self._count(0, rereads * self._numbers.reread_units(place))
            if isinstance(place, str):
                self._read_text(place, sum(times for node, times in visits.items() if node.pattern))
            elif is_object(place):
                stack.extend((*each, depth + 1) for each in self._properties(place, visits))
            elif is_array(place):
                below: dict[_Node, int] = defaultdict(int)
                for node, times in visits.items():
                    for other in node.items:
                        below[other] += times
                if below:
                    self._count(len(place), 0)
                    stack.extend((each, below, depth + 1) for each in place)

    def _visits(self, starts: Mapping[_Node, int], members: int) -> dict[_Node, int]:
        """Return the subschemas that are visited at a place, and how often, if validation enters it with *starts*."""
        visits: dict[_Node, int] = defaultdict(int)
        for start, times in starts.items():
            found = self._graph.reach(start, self._count)
            self._count(len(found), 0)
            for node, each in found:
                visits[node] += times * each
        for node, times in visits.items():
            reached = len(self._graph.reach(node, self._count)) if node.is_unevaluated else 0
            self._count(reached, times * (node.cost + members * reached))
        self.most_visits = max(self.most_visits, sum(visits.values()))
        return visits

    def _properties(
        self, place: dict[str, Any], visits: Mapping[_Node, int]
    ) -> Iterator[tuple[object, dict[_Node, int]]]:
        nodes = [(node, times) for node, times in visits.items() if node.has_properties]
        patterns = sum(times * node.key_patterns for node, times in nodes)
        for name, value in place.items():
            self._count(len(nodes), 0)
            self._read_text(name, patterns)
            below: dict[_Node, int] = defaultdict(int)
            names: dict[_Node, int] = defaultdict(int)
            for node, times in nodes:
                for other in node.of_property(name):
                    below[other] += times
                for other in node.property_names:
                    names[other] += times
            if below:
                yield value, below
            if names:
                yield name, names

    def _read_text(self, text: str, times: int) -> None:
        if times:
            if self._longest_text is not None and len(text) > self._longest_text:
                why = "the schema has a `pattern` with lookaround or backreferences"
                raise SchemaTooCostly(f"a string in it has more than {self._longest_text} characters, and {why}")
            self._count(0, times * (1 + len(text)) * self._rate)

    def _count(self, steps: int, units: int) -> None:
        self._steps += steps
        self.units += units * self._factor
        if self._steps > MAX_STEPS or self.units > MAX_UNITS:
            raise SchemaTooCostly("the content is too large to check against this schema")


def _longest_in_place(nodes: Iterable[_Node]) -> int:
    """Rank *nodes* so that each comes before those that it leads to at one place. Return the longest path."""
    try:
        order = list(TopologicalSorter({node: set(node.same_place) for node in nodes}).static_order())
    except CycleError:
        raise SchemaRefused("one of its `$ref`s leads back to itself, so checking a value would never end") from None
    longest: dict[_Node, int] = {}
    for rank, node in enumerate(order):
        node.rank = -rank
        longest[node] = 1 + max((longest[other] for other in node.same_place), default=0)
    most = max(longest.values())
    if most > MAX_IN_PLACE:
        raise SchemaRefused(
            f"it has a chain of more than {MAX_IN_PLACE} subschemas for the same value (`$ref`, `allOf`, …)"
        )
    return most


def _weight(nodes: Iterable[_Node], root: _Node) -> tuple[int | None, int]:
    """Return the cost of *root* with all references written out (None if recursive), and the longest path."""
    try:
        order = list(TopologicalSorter({node: {*node.same_place, *node.children()} for node in nodes}).static_order())
    except CycleError:
        return None, 0
    weights: dict[_Node, int] = {}
    longest: dict[_Node, int] = {}
    for node in order:
        weights[node] = node.cost + sum(weights[other] for other in (*node.same_place, *node.children()))
        longest[node] = 1 + max((longest[other] for other in (*node.same_place, *node.children())), default=0)
    return (weights[root] if longest[root] <= MAX_NESTING else None), longest[root]
