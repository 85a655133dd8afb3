"""What a server returns that is no text: saved under names of ours, and never over what is there."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest

from mcpgen.runtime.cli.client.result_output import ResultOutput, content_lines
from mcpgen.runtime.cli.client.terminal import Screen


def image(media_type: str) -> dict[str, Any]:
    return {"type": "image", "data": base64.b64encode(b"abc").decode(), "mimeType": media_type}


@pytest.mark.parametrize(
    ("media_type", "name"),
    [
        ("image/png", "image-1.png"),
        ("image/jpeg", "image-1.jpg"),
        ("IMAGE/PNG; x=y", "image-1.png"),
        ("../../etc/passwd", "image-1.bin"),
        ("image/\x1b[2J", "image-1.bin"),
        ("", "image-1.bin"),
    ],
)
def test_no_server_chooses_the_name_of_a_file(tmp_path: Path, media_type: str, name: str) -> None:
    list(content_lines([image(media_type)], str(tmp_path / "new")))

    assert [name] == [each.name for each in (tmp_path / "new").iterdir()]


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "image-1.png").write_bytes(b"mine")
    (tmp_path / "image-2.png").symlink_to(tmp_path / "elsewhere")
    list(content_lines([image("image/png")], str(tmp_path)))

    assert b"mine" == (tmp_path / "image-1.png").read_bytes()
    assert not (tmp_path / "elsewhere").exists()
    assert b"abc" == (tmp_path / "image-3.png").read_bytes()


def test_each_file_is_opened_once_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    opened = Path.open

    def noting(self: Path, *args: Any) -> Any:
        tried.append(self.name)
        return opened(self, *args)

    monkeypatch.setattr(Path, "open", noting)
    list(content_lines([image("image/png")] * 50, str(tmp_path)))

    assert tried == [f"image-{number}.png" for number in range(1, 51)]


def test_every_kind_of_content_has_its_line() -> None:
    blocks = [
        {"type": "text", "text": "a\x1b\nb"},
        image("image/\x1bpng"),
        {"type": "audio", "data": "!", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "mem://\x1b", "name": "n", "mimeType": "t", "size": 1, "description": "d"},
        {"type": "resource", "resource": {"uri": "mem://a", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "mem://b", "blob": "YWJj"}},
        {"type": "new", "x": "\x1b"},
    ]

    expected = [
        "a\\x1b\nb",
        "[image, image/\\x1bpng, 3 bytes]",
        "[audio, audio/wav: not valid base64]",
        "→ mem://\\x1b n (t, 1 byte) — d",
        "→ mem://a:",
        "inside",
        "[resource mem://b, unknown type, 3 bytes]",
        '{"type":"new","x":"\\u001b"}',
    ]
    assert expected == list(content_lines(blocks, None))


@pytest.mark.parametrize("content", [[], None, [{"type": "text", "text": ""}]])
def test_a_tool_that_fails_without_a_reason_is_said_to(content: object) -> None:
    written = io.BytesIO()
    err = io.TextIOWrapper(written, encoding="utf-8")
    output = ResultOutput(Screen(io.TextIOWrapper(io.BytesIO())), Screen(err), is_json=False)
    status = output.tool({"isError": True, "content": content}, None)

    err.flush()
    assert (1, "Error: The tool failed, and gave no reason.\n") == (status, written.getvalue().decode())


def test_content_that_cannot_be_saved_has_no_advice_to_save_it() -> None:
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="utf-8")
    screen = Screen(out, is_terminal=True)
    ResultOutput(screen, screen, is_json=False).resource({"contents": [{"uri": "x:a", "blob": "!"}]}, None)

    out.flush()
    assert "[x:a, unknown type, not valid base64]\n" == written.getvalue().decode()


@pytest.mark.parametrize("is_terminal", [False, True])
def test_text_with_a_blob_that_is_null_is_text(*, is_terminal: bool) -> None:
    content = {"uri": "x:a", "text": "tea", "blob": None}
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="utf-8")
    screen = Screen(out, is_terminal=is_terminal)
    ResultOutput(screen, screen, is_json=False).resource({"contents": [content]}, None)

    out.flush()
    assert "tea" == written.getvalue().decode().rstrip("\n")
    assert ["→ x:a:", "tea"] == list(content_lines([{"type": "resource", "resource": content}], None))


class Interrupted(io.RawIOBase):
    """A stream whose writes end early, as a signal can end those of a stream without a buffer."""

    def __init__(self) -> None:
        self.said = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data[:10])
        self.said += part
        return len(part)


def test_nothing_is_lost_if_a_write_ends_early() -> None:
    out = Interrupted()
    Screen(io.TextIOWrapper(out, write_through=True), is_terminal=False).line("x" * 95)  # as with PYTHONUNBUFFERED

    assert b"x" * 95 + b"\n" == out.said
