"""Values with a syntax of their own: the reason says what a valid one looks like."""

from __future__ import annotations

from mcpgen.runtime.protocol.value_syntax import page_url_fault


def test_the_url_of_a_page_must_be_ascii() -> None:
    """Browsers take other URLs, so "it is not a URL" would be a riddle."""
    assert "it is not a URL in ASCII, such as https://example.com/page" == page_url_fault("https://exämple.com/in")
    assert page_url_fault("https://xn--exmple-cua.com/in") is None
