"""A revision that does not exist, and a copy of the package to add it to.

``2099-01-01`` is 2026-07-28 with one of everything that a revision may bring: new optional keys, a new content arm, a
method that went, definitions with new names, keys that became required or are called something else, an error code.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from mcpgen.codegen.pinned import SchemaRoom

OLD = "2026-07-28"
NEW = "2099-01-01"
CHANGES = "codegen/changes/v2026_07_28_to_v2099_01_01.py"

_ENTRY = "from mcpgen.cli import main; main()"
_LITTER = shutil.ignore_patterns("__pycache__", ".*")


class Copy:
    """The package in a folder of its own, which is its own checkout too: commands that run there write to it."""

    def __init__(self, folder: Path) -> None:
        """Copy what is installed or linked into *folder*, links resolved."""
        self.folder = folder
        self.root = folder / "mcpgen"
        shutil.copytree(Path(str(files("mcpgen"))), self.root, ignore=_LITTER)
        mark = self.root / ".package" / "mcpgen" / "__init__.py"
        mark.parent.mkdir(parents=True)
        mark.touch()

    def mcpgen(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run the command of the copy, in the copy."""
        return self.python("-c", _ENTRY, *map(str, arguments))

    def python(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the copy of the package instead of the one under test."""
        ours = ("COVERAGE", "MCPGEN", "PYTEST")  # a copy is neither measured nor part of this run
        env = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        env |= {"PYTHONPATH": str(self.folder), "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"} | variables
        command = [sys.executable, *arguments]
        return subprocess.run(command, check=False, capture_output=True, cwd=self.root, encoding="utf-8", env=env)

    def contents(self, *rooms: str) -> dict[str, bytes]:
        """Return what the files of *rooms* hold, all if there are none named."""
        found = [path for room in rooms or ("",) for path in (self.root / room).rglob("*")]
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in found
            if path.is_file() and "__pycache__" not in path.parts
        }

    def declare(self, text: str) -> None:
        """Write the declared changes of the step to the revision."""
        (self.root / CHANGES).write_text(text, encoding="utf-8")

    def vendor(self) -> subprocess.CompletedProcess[str]:
        """Add the revision to the schema room."""
        file = self.folder / "schema.json"
        file.write_text(json.dumps(document()), encoding="utf-8")
        done = self.mcpgen("schema", "add", NEW, file)
        (self.root / "schema" / NEW / "overlay.toml").write_text(overlay(), encoding="utf-8")
        return done


def document() -> dict[str, Any]:
    """Return the document of the revision."""
    found = copy.deepcopy(SchemaRoom().document(OLD))
    definitions: dict[str, Any] = found["$defs"]  # type: ignore[assignment] # it is a document of ours
    _new_keys(definitions)
    _required(definitions)
    _renamed_key(definitions)
    _video(definitions)
    _no_completion(definitions)
    definitions["Root"]["properties"]["writable"] = {"type": "boolean"}
    return _replaced(found, {"Annotations": "Hints", "Root": "Folder"})


def text() -> str:
    """Return the document of the revision as the text of a file."""
    return json.dumps(document())


def findings_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the differences without a declared change that a build with ``--json`` reported."""
    found = json.loads(done.stdout)["diagnostics"]
    return [each for each in found if "no declared change covers" in each["message"]]


def own_overlay() -> str:
    """Return what is to say about the revision as a draft, where the knowledge about its base applies."""
    return '[[errors]]\ncode = -32050\nname = "TOO_MUCH"\ntext = "The server has no time for this."\n'


def overlay() -> str:
    """Return the overlay of the revision: what is still wrong with the document."""
    text = SchemaRoom().overlay_bytes(OLD) or b""
    lines = [line for line in text.decode("utf-8").splitlines() if "/CompleteResult/" not in line]
    renamed = ['  "Folder",' if line == '  "Root",' else line for line in lines]
    error = ["[[errors]]", "code = -32050", 'name = "TOO_MUCH"', 'text = "The server has no time for this."']
    return "\n".join([*renamed, "", *error, ""])


def _new_keys(definitions: dict[str, Any]) -> None:
    owner = {"type": "object", "properties": {"name": {"type": "string"}, "since": {"type": "integer"}}}
    added: dict[str, dict[str, Any]] = {
        "Tool": {"badge": {"type": "string"}, "cover": {"$ref": "#/$defs/Icon"}},
        "Prompt": {"labels": {"type": "array", "items": {"enum": ["new", "old"], "type": "string"}}},
        "Resource": {"owner": owner | {"required": ["name"]}},
        "CallToolResult": {"costs": {"type": "object", "additionalProperties": {"type": "number"}}},
        "ModelPreferences": {"haste": {"type": "number", "minimum": 0, "maximum": 1}},
    }
    for name, properties in added.items():
        definitions[name]["properties"] |= properties


def _required(definitions: dict[str, Any]) -> None:
    definitions["Tool"]["required"].append("description")
    definitions["PromptArgument"]["properties"]["secret"] = {"type": "boolean"}
    definitions["PromptArgument"]["required"].append("secret")


def _renamed_key(definitions: dict[str, Any]) -> None:
    properties = definitions["ProgressNotificationParams"]["properties"]
    properties["note"] = properties.pop("message")


def _video(definitions: dict[str, Any]) -> None:
    video = definitions["VideoContent"] = copy.deepcopy(definitions["AudioContent"])
    video["properties"]["type"]["const"] = "video"
    video["properties"]["seconds"] = {"type": "number"}
    unions = [definitions[name] for name in ("ContentBlock", "SamplingMessageContentBlock")]
    unions += [definitions[name]["properties"]["content"] for name in ("CreateMessageResult", "SamplingMessage")]
    for union in unions:
        union["anyOf"].insert(3, {"$ref": "#/$defs/VideoContent"})


def _no_completion(definitions: dict[str, Any]) -> None:
    gone = ["CompleteRequest", "CompleteRequestParams", "CompleteResult", "CompleteResultResponse"]
    gone += ["PromptReference", "ResourceTemplateReference"]
    for name in gone:
        del definitions[name]
    for union in ("ClientRequest", "ServerResult"):
        arms = definitions[union]["anyOf"]
        arms[:] = [arm for arm in arms if arm["$ref"].rpartition("/")[2] not in gone]
    del definitions["ServerCapabilities"]["properties"]["completions"]


def _replaced(document: dict[str, Any], renames: dict[str, str]) -> dict[str, Any]:
    """Return *document* with other names for some of its definitions."""

    def replaced(value: Any) -> Any:
        match value:
            case {"$ref": str() as reference}:
                head, _, name = reference.rpartition("/")
                return {"$ref": f"{head}/{renames.get(name, name)}"}
            case dict():
                return {key: replaced(inner) for key, inner in value.items()}
            case list():
                return [replaced(inner) for inner in value]
        return value

    found = replaced(document)
    return {**found, "$defs": {renames.get(name, name): inner for name, inner in found["$defs"].items()}}
