"""Write the results of tools, resources and prompts: text as it is, other content as one line about it or as a file."""

from __future__ import annotations

import base64
import binascii
import errno
import mimetypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.terminal_text import as_json, escaped_line, escaped_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcpgen.runtime.cli.client.terminal import Screen

__all__ = ["ResultOutput", "content_lines", "decode_base64"]

# File name extensions by media type. A server's media type itself never becomes part of a file name.
_EXTENSION: Final = re.compile(r"\.[a-z0-9]{1,8}", re.ASCII)
_UNKNOWN_EXTENSION: Final = ".bin"

# For types that `mimetypes` does not know everywhere, or gives an unusual extension.
_EXTENSIONS: Final = {
    "application/json": ".json",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "text/markdown": ".md",
    "text/plain": ".txt",
}

# How many numbers are tried for one file name.
_MAX_FILES: Final = 1000

# The last number of the files of each name that this process has saved: a result can have 10,000 images, and to try all
# numbers for each of them would take minutes.
_last_numbers: Final[dict[tuple[str, str], int]] = {}


class ResultOutput:
    """Write results. Each method returns the exit status.

    Args:
        out: The standard output.
        err: The standard error.
        is_json: Whether to write results as JSON, unchanged.
    """

    def __init__(self, out: Screen, err: Screen, *, is_json: bool) -> None:
        self._out = out
        self._err = err
        self._is_json = is_json

    def tool(self, result: Mapping[str, Any], folder: str | None) -> int:
        """Write the result of a tool. Save binary content in *folder*."""
        has_failed = result.get("isError") is True
        found = result.get("content")  # some servers send null, which the client reads as no content
        blocks = found if is_array(found) else []
        lines = self._lines(blocks, folder)
        if lines is None:
            return 1
        if self._is_json:
            self.json(result)
            return int(has_failed)
        structured = result.get("structuredContent")
        if has_failed and structured is None and not any(map(str.strip, lines)):
            return self.failure("The tool failed, and gave no reason.")
        screen = self._err if has_failed else self._out
        screen.lines(lines)
        if structured is not None and not any(is_object(each) and each.get("type") == "text" for each in blocks):
            screen.line(as_json(structured, is_pretty=screen.is_terminal))
        return int(has_failed)

    def prompt(self, result: Mapping[str, Any], folder: str | None) -> int:
        """Write the messages of a prompt. Save binary content in *folder*."""
        messages = [each for each in result.get("messages", []) if is_object(each)]
        contents = [self._lines([each.get("content")], folder) for each in messages]
        if None in contents:
            return 1
        if self._is_json:
            return self.json(result)
        for number, (message, lines) in enumerate(zip(messages, contents, strict=True)):
            if number:
                self._out.line()
            self._out.line(self._out.paint(f"{escaped_line(message.get('role', ''))}:", "heading"))
            self._out.lines(lines or [])
        return 0

    def resource(self, result: Mapping[str, Any], file: str | None) -> int:
        """Write the content of a resource unchanged; on a terminal, escaped."""
        if self._is_json:
            return self.json(result)
        contents = [each for each in result.get("contents", []) if is_object(each)]
        if file is None and self._out.is_terminal:
            self._out.lines(map(_terminal_content, contents))
            return 0
        return self._write(contents, file)

    def json(self, value: object) -> int:
        """Write *value* as JSON: on one line, or indented on a terminal."""
        self._out.line(as_json(value, is_pretty=self._out.is_terminal))
        return 0

    def failure(self, text: str) -> int:
        """Write an error message."""
        self._err.line(f"{self._err.paint('Error:', 'bad')} {text}")
        return 1

    def _lines(self, blocks: Sequence[Any], folder: str | None) -> list[str] | None:
        """Return content as lines, and save binary content; None if it could not be saved."""
        try:
            return list(content_lines(blocks, folder))
        except OSError as error:
            self.failure(f"Cannot write to folder {escaped_line(folder)}: {error.strerror}.")
            return None

    def _write(self, contents: Sequence[Mapping[str, Any]], file: str | None) -> int:
        whole = bytearray()
        for each in contents:
            text = str(each.get("text", ""))
            data = decode_base64(each["blob"]) if _is_binary(each) else text.encode("utf-8", "replace")
            if data is None:
                return self.failure(f"The content of {escaped_line(each.get('uri', ''))} is not valid base64.")
            whole += data
        if file is None:
            self._out.write_bytes(whole)
            return 0
        try:
            Path(file).write_bytes(whole)
        except OSError as error:
            return self.failure(f"Cannot write {escaped_line(file)}: {error.strerror}.")
        return 0


def _is_binary(content: Mapping[str, Any]) -> bool:
    """Return whether *content* has a blob; text may have any value under that key, such as null."""
    return isinstance(content.get("blob"), str)


def _terminal_content(content: Mapping[str, Any]) -> str:
    if not _is_binary(content):
        return escaped_text(str(content.get("text", "")))
    data = decode_base64(content["blob"])
    size = "not valid base64" if data is None else f"{size_text(len(data))}; use --output FILE to save it"
    kind = escaped_line(content.get("mimeType") or "unknown type")
    return f"[{escaped_line(content.get('uri', ''))}, {kind}, {size}]"


def _save(folder: str, data: bytes, kind: str, media_type: object) -> Path:
    """Write *data* to a new file in *folder*, and return its path. The folder is created if it does not exist.

    File names never come from a server, and existing files are never overwritten.

    Raises:
        OSError: The file cannot be written.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    extension = _extension(media_type)
    name = folder, f"{kind}{extension}"
    for number in range(_last_numbers.get(name, 0) + 1, _MAX_FILES):
        _last_numbers[name] = number
        path = Path(folder) / f"{kind}-{number}{extension}"
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
        return path
    what = f"it already has {_MAX_FILES - 1:,} files named {kind}-…{extension}; choose another folder"
    raise FileExistsError(errno.EEXIST, what, folder)


def _extension(media_type: object) -> str:
    plain_type = str(media_type or "").partition(";")[0].strip().lower()
    found = _EXTENSIONS.get(plain_type) or mimetypes.guess_extension(plain_type) or _UNKNOWN_EXTENSION
    return found if _EXTENSION.fullmatch(found) else _UNKNOWN_EXTENSION


def decode_base64(text: object) -> bytes | None:
    """Decode *text*; return None if it is not base64."""
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        return None


def content_lines(blocks: Sequence[Any], folder: str | None) -> Iterator[str]:
    """Yield the content blocks of a result or a message as lines.

    Raises:
        OSError: Binary content cannot be saved in *folder*.
    """
    for block in blocks:
        if not is_object(block):
            continue
        match block.get("type"):
            case "text":
                yield escaped_text(str(block.get("text", "")))
            case "image" | "audio" as kind:
                yield _binary_line(kind, block.get("data"), block.get("mimeType"), "", folder)
            case "resource_link":
                yield _link_line(block)
            case "resource" if is_object(block.get("resource")):
                yield from _resource_lines(block["resource"], folder)
            case _:
                yield as_json(block, is_pretty=False)


def _link_line(link: Mapping[str, Any]) -> str:
    facts = [escaped_line(link["mimeType"])] if link.get("mimeType") else []
    size = link.get("size")
    facts += [size_text(size)] if isinstance(size, int) else []
    name = link.get("title") or link.get("name") or ""
    description = f" — {escaped_line(link['description'])}" if link.get("description") else ""
    detail = f" ({', '.join(facts)})" if facts else ""
    return f"→ {escaped_line(link.get('uri', ''))} {escaped_line(name)}{detail}{description}"


def _resource_lines(resource: Mapping[str, Any], folder: str | None) -> Iterator[str]:
    uri, media_type = escaped_line(resource.get("uri", "")), resource.get("mimeType")
    if _is_binary(resource):
        yield _binary_line("resource", resource["blob"], media_type, uri, folder)
        return
    yield f"→ {uri}{f' ({escaped_line(media_type)})' if media_type else ''}:"
    yield escaped_text(str(resource.get("text", "")))


def _binary_line(kind: str, data: object, media_type: object, uri: str, folder: str | None) -> str:
    """Return one line about binary content, and save it if there is a *folder*."""
    label = f"{kind} {uri}".rstrip()
    content = decode_base64(data)
    if content is None:
        return f"[{label}, {escaped_line(media_type or 'unknown type')}: not valid base64]"
    size = size_text(len(content))
    saved = "" if folder is None else f", saved as {escaped_line(_save(folder, content, kind, media_type))}"
    return f"[{label}, {escaped_line(media_type or 'unknown type')}, {size}{saved}]"
