"""The rules of the extension's specification, and the list of the tests that check them.

``python -m tests.specification.tasks.rules tasks.md`` compares a text with ``rules.toml``: it prints the MUSTs that the
list does not have, and the digests of the list that the text does not have. The list has no sentences of the text.
"""

from __future__ import annotations

import re
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import msgspec

__all__ = ["MODULES", "Rule", "digests", "rules"]

HERE = Path(__file__).parent
MODULES = {
    "client": "tests.specification.tasks.test_client_rules",
    "faults": "tests.faults.test_task_faults",
    "http": "tests.specification.tasks.test_http_rules",
    "server": "tests.specification.tasks.test_server_rules",
    "tasks": "tests.runtime.server.test_extension_tasks",
    "waits": "tests.runtime.client.test_tool_tasks",
}


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sentence with MUST or MUST NOT.

    Attributes:
        digest: Of the sentence; see `digests`.
        section: Its heading, as an anchor.
        about: What it demands, in our words.
        tests: The tests that check it: a key of `MODULES`, and the function.
    """

    digest: str
    section: str
    about: str
    tests: list[str]


def rules() -> list[Rule]:
    """Return the list."""
    table = tomllib.loads((HERE / "rules.toml").read_text(encoding="utf-8"))
    return msgspec.convert(table["rule"], list[Rule])


def digests(text: str) -> dict[str, tuple[str, str]]:
    """Return the section and the words of each sentence of *text* with a MUST, by its digest."""
    section, found = "", dict[str, tuple[str, str]]()
    for line in text.splitlines():
        if line.startswith("#") and line.lstrip("# ") not in {"Request", "Response"}:  # parts of the section before
            section = re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for sentence in re.split(r"(?<=[.:])\s+(?=[A-Z`*])", line.strip()):
            if re.search(r"\bMUST\b", sentence):
                found[sha256(f"{section}\n{sentence}".encode()).hexdigest()[:12]] = section, sentence
    return found


def main() -> None:
    """Compare a text with the list."""
    found, listed = digests(Path(sys.argv[1]).read_text(encoding="utf-8")), {each.digest for each in rules()}
    for digest, (section, sentence) in found.items():
        if digest not in listed:
            sys.stdout.write(f"not listed: {digest} #{section}: {sentence}\n")
    sys.stdout.write("".join(f"not in the text: {each}\n" for each in sorted(listed - found.keys())))


if __name__ == "__main__":
    main()
