"""What became of each reading: judged, kept in ``readings.json``, and counted.

A *reading* is one kind, in one revision, by one SDK. It is *common* if two other SDKs take the kind in that revision.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tests.interop.sloppy.kinds import REVISIONS, client_kinds, matches, server_kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.interop.sloppy.kinds import Kind

__all__ = [
    "ENOUGH",
    "OURS",
    "OTHERS",
    "Key",
    "Verdict",
    "common",
    "judge_answer",
    "judge_outcome",
    "reason_for",
    "reasons",
    "stored",
    "write",
]

HERE = Path(__file__).parent
STORED = HERE / "readings.json"
OURS = "mcpgen"
OTHERS = ("Python SDK 1.30", "Python SDK 2.3", "TypeScript SDK 1.32", "TypeScript SDK 2.4")
MESSAGE_CHARS = 160
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):\d+")  # another one in each run
ENOUGH = 2  # so many others have to take a kind before we must


class Key(NamedTuple):
    """A reading: which side is sloppy, how, in which revision, and who reads."""

    side: str
    kind: str
    revision: str
    reader: str


class Verdict(NamedTuple):
    """What became of a reading: ``takes``, ``refuses``, ``hangs`` or ``wrong``; and the message, if there is one."""

    outcome: str
    message: str = ""


def judge_outcome(kind: Kind, line: Mapping[str, Any]) -> Verdict:
    """Judge what a reader says of a sloppy server."""
    found, failure = line["found"], line["failure"]
    expected = json.loads(kind.sees)
    if matches(expected, found, some=kind.some) and (not failure or "error" in expected):
        return Verdict("takes")
    if failure.startswith("hangs: "):
        return Verdict("hangs", failure.removeprefix("hangs: "))
    if kind.exchange == "question" and not failure and "refused: " in str(found):
        return Verdict("refuses", found["ask"]["content"][0]["text"].removeprefix("refused: "))
    shown = {key: found.get(key) for key in expected}
    return Verdict("refuses", failure) if failure else Verdict("wrong", json.dumps(shown)[:200])


def judge_answer(kind: Kind, answer: Mapping[str, Any]) -> Verdict:
    """Judge the last answer that a sloppy client got."""
    result = answer.get("result")
    is_refused = "error" in answer or (isinstance(result, dict) and result.get("isError"))
    if not is_refused and matches(json.loads(kind.sees), answer, some=True):
        return Verdict("takes")
    return Verdict("refuses" if is_refused else "wrong", json.dumps(answer.get("error", result))[:200])


def stored() -> dict[Key, Verdict]:
    """Return the readings of all SDKs, as they were last read."""
    found: dict[Key, Verdict] = {}
    known = {"server": server_kinds(), "client": client_kinds()}
    for side, kinds in json.loads(STORED.read_text(encoding="utf-8")).items():
        for name, readers in kinds.items():
            revisions = known[side][name].revisions if name in known[side] else ()
            for reader, runs in readers.items():
                for since, until, *verdict in runs:
                    among = [each for each in revisions if since <= each <= until]
                    found |= {Key(side, name, each, reader): Verdict(*verdict) for each in among}
    return found


def write(results: Mapping[Key, Verdict]) -> None:
    """Keep *results*, and what is kept of other readings.

    Revisions with the same outcome share a line, and the message of the first.
    """
    whole = {**(stored() if STORED.exists() else {}), **results}
    text = []
    for side, kinds in (("server", server_kinds()), ("client", client_kinds())):
        rows = []
        for kind in kinds.values():
            cells = {each: _runs(side, kind, each, whole) for each in (OURS, *OTHERS)}
            rows.append(",\n".join(f"  {json.dumps(each)}: {json.dumps(runs)}" for each, runs in cells.items() if runs))
        named = [f"{json.dumps(name)}: {{\n{row}\n}}" for name, row in zip(kinds, rows, strict=True)]
        text.append(f'"{side}": {{\n' + ",\n".join(named) + "\n}")
    STORED.write_text("{\n" + ",\n".join(text) + "\n}\n", encoding="utf-8", newline="\n")


def _runs(side: str, kind: Kind, reader: str, results: Mapping[Key, Verdict]) -> list[list[str]]:
    """Return the outcomes of one reader: the first and the last revision that have it, the outcome, and the message."""
    runs: list[list[str]] = []
    for revision in kind.revisions:
        verdict = results.get(Key(side, kind.name, revision, reader))
        if verdict is None:
            continue
        if runs and runs[-1][2] == verdict.outcome:
            runs[-1][1] = revision
        else:
            message = ADDRESS.sub(r"\1:PORT", " ".join(verdict.message.split()))[:MESSAGE_CHARS]
            runs.append([revision, revision, verdict.outcome, *([message] if message else [])])
    return runs


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why we refuse kinds, in some revisions or in all."""

    side: str
    kinds: list[str]
    revisions: tuple[str, ...] = REVISIONS
    reason: str


@cache
def reasons() -> list[Reason]:
    """Return the written reasons for refusals."""
    table = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))
    return msgspec.convert(table["reason"], list[Reason])


def reason_for(key: Key) -> str | None:
    """Return the written reason to refuse what *key* names."""
    for each in reasons():
        if each.side == key.side and key.kind in each.kinds and key.revision in each.revisions:
            return each.reason
    return None


def is_common(key: Key, results: Mapping[Key, Verdict]) -> bool:
    """Return whether enough others take what *key* names. The controls do not count."""
    kinds: Any = {"server": server_kinds(), "client": client_kinds()}
    takers = [each for each in OTHERS if results.get(key._replace(reader=each), Verdict("")).outcome == "takes"]
    return len(takers) >= ENOUGH and not kinds[key.side][key.kind].is_control


def common(results: Mapping[Key, Verdict]) -> dict[Key, Verdict]:
    """Return our readings of what at least two others take."""
    return {key: verdict for key, verdict in results.items() if key.reader == OURS and is_common(key, results)}


def faults(results: Mapping[Key, Verdict]) -> list[str]:
    """Say where our reader does not do what it must.

    It takes what two others take, unless a written reason refuses it; and it does what ``ours`` says of the kind.
    """
    shared = common(results)
    kinds: Any = {"server": server_kinds(), "client": client_kinds()}
    found = []
    for key, verdict in results.items():
        if key.reader == OURS and reason_for(key) is None:
            decided = kinds[key.side][key.kind].ours or ("takes" if key in shared else verdict.outcome)
            if (decided == "takes") != (verdict.outcome == "takes"):
                found.append(f"{key.side} {key.kind}, {key.revision}: {verdict.outcome}: {verdict.message}")
    return found
