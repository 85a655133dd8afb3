"""What the adapters between the released revisions make of messages that know nothing of a later one.

Run as a module it prints that as JSON, so that two builds of the package can be compared.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from mcpgen.runtime import adapt
from mcpgen.runtime.errors import AdaptationError
from tests.adapters.injections import spoken
from tests.adapters.sixth import OLD
from tests.adapters.subjects import payloads
from tests.oracle.instances import Instances
from tests.oracle.subjects import REVISIONS

EACH = 25


def outcomes() -> dict[str, list[Any]]:
    """Return what becomes of plain instances of each payload, all steps up and all steps down."""
    found: dict[str, list[Any]] = {}
    for source, target in ((REVISIONS[0], OLD), (OLD, REVISIONS[0])):
        ours = payloads(source)
        instances = Instances(ours._extended(spoken(source)))
        for subject in ours.schemas:
            if subject.part == "definition":
                continue
            values = [json.loads(json.dumps(each)) for each in islice(instances.systematic(subject.key), EACH)]
            way = (source, target, subject.name, subject.part)
            found[f"{source} {subject}"] = [_outcome(way, subject.sender or None, value) for value in values]
    return found


def _outcome(way: Any, sender: Any, value: Any) -> Any:
    try:
        adapted = adapt.route(*way, sender=sender).adapt(value)
    except AdaptationError as error:
        return str(error)
    return [adapted.value, *map(repr, adapted.losses)]


if __name__ == "__main__":
    print(json.dumps(outcomes()))  # noqa: T201 (it is what the module is for)
