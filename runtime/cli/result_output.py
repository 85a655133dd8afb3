"""What became of a piece of work: where its result goes, and which exit status that makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.cli.content_text import Folder, as_text, decoded
from mcpgen.runtime.cli.terminal_text import as_json, bytes_in_words, escaped_line, escaped_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.runtime.cli.screen import Screen

__all__ = ["Results"]


class Results:
    """Shows results; each of its methods returns an exit status.

    Args:
        out: The standard output.
        err: The standard error.
        is_json: Whether results are written as they came.
    """

    def __init__(self, out: Screen, err: Screen, *, is_json: bool) -> None:
        self._out = out
        self._err = err
        self._is_json = is_json

    def of_tool(self, result: Mapping[str, Any], folder: str | None) -> int:
        """Show what a tool returned; images and the like are saved in *folder*."""
        has_failed = result.get("isError") is True
        blocks = result.get("content", [])
        lines = self._saved(blocks, folder)
        if lines is None:
            return 1
        if self._is_json:
            self.json(result)
            return int(has_failed)
        screen = self._err if has_failed else self._out
        screen.lines(lines)
        structured = result.get("structuredContent")
        if structured is not None and not any(is_object(each) and each.get("type") == "text" for each in blocks):
            screen.line(as_json(structured, is_pretty=screen.is_terminal))
        return int(has_failed)

    def of_prompt(self, result: Mapping[str, Any], folder: str | None) -> int:
        """Show the messages of a prompt; images and the like are saved in *folder*."""
        messages = [each for each in result.get("messages", []) if is_object(each)]
        shows = [self._saved([each.get("content")], folder) for each in messages]
        if None in shows:
            return 1
        if self._is_json:
            return self.json(result)
        for number, (message, lines) in enumerate(zip(messages, shows, strict=True)):
            if number:
                self._out.line()
            self._out.line(self._out.paint(f"{escaped_line(message.get('role', ''))}:", "heading"))
            self._out.lines(lines or [])
        return 0

    def of_resource(self, result: Mapping[str, Any], file: str | None) -> int:
        """Write the content of a resource, exactly unless that is to a terminal."""
        if self._is_json:
            return self.json(result)
        contents = [each for each in result.get("contents", []) if is_object(each)]
        if file is None and self._out.is_terminal:
            self._out.lines(map(_on_terminal, contents))
            return 0
        return self._write(contents, file)

    def json(self, value: object) -> int:
        """Write *value* on one line, or laid out if somebody looks."""
        self._out.line(as_json(value, is_pretty=self._out.is_terminal))
        return 0

    def failure(self, text: str) -> int:
        """Say what is wrong."""
        self._err.line(f"{self._err.paint('Error:', 'bad')} {text}")
        return 1

    def _saved(self, blocks: Sequence[Any], folder: str | None) -> list[str] | None:
        """Return content as lines, of which the rest was saved; None if that could not be done."""
        try:
            return list(as_text(blocks, None if folder is None else Folder(folder)))
        except OSError as error:
            self.failure(f"nothing can be saved in {escaped_line(folder)}: {error.strerror}.")
            return None

    def _write(self, contents: Sequence[Mapping[str, Any]], file: str | None) -> int:
        whole = b""
        for each in contents:
            data = decoded(each["blob"]) if "blob" in each else str(each.get("text", "")).encode("utf-8", "replace")
            if data is None:
                return self.failure(f"the content of {escaped_line(each.get('uri', ''))} is not valid base64.")
            whole += data
        if file is None:
            self._out.write_bytes(whole)
            return 0
        try:
            Path(file).write_bytes(whole)
        except OSError as error:
            return self.failure(f"{escaped_line(file)} cannot be written: {error.strerror}.")
        return 0


def _on_terminal(content: Mapping[str, Any]) -> str:
    if "blob" not in content:
        return escaped_text(str(content.get("text", "")))
    data = decoded(content["blob"])
    size = "not valid base64" if data is None else bytes_in_words(len(data))
    kind = escaped_line(content.get("mimeType") or "no type")
    return f"[{escaped_line(content.get('uri', ''))}, {kind}, {size}; --output FILE writes it]"
