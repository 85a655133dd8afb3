"""Where an address leads, and what may mislead about it."""

from __future__ import annotations

import pytest

from mcpgen.runtime.cli.client.url_report import check_url


@pytest.mark.spec("2025-11-25", "client/elicitation#safe-url-handling", "b1b1694c")
@pytest.mark.spec("2026-07-28", "client/elicitation#safe-url-handling", "b1b1694c")
@pytest.mark.parametrize(
    ("url", "host", "warning"),
    [
        ("https://bank.example@evil.example/x", "evil.example", "text before the @ ('bank.example')"),
        ("https://bank.example:443@evil.example:444/", "evil.example:444", "text before the @"),
        ("https://bank.example\\@evil.example/", "bank.example", "backslash"),
        ("https://evil.example\\.bank.example/", "evil.example", "backslash"),
        ("https:evil.example", "evil.example", ""),
        ("https:///evil.example/", "evil.example", ""),
        ("https://\u0430pple.example/", "xn--pple-43d.example", "Its real name in DNS is xn--pple-43d.example"),
        ("https://xn--pple-43d.example/", "xn--pple-43d.example", "\u0430pple.example"),
        ("https://xn--abc-.example/", "xn--abc-.example", "a part that begins with xn--, but is not valid"),
        ("https://xn--a.example/", "xn--a.example", "a part that begins with xn--, but is not valid"),
        ("https://bank\u3002example/", "bank.example", "can look like others"),
        ("https://b%61nk.example/", "bank.example", "escapes"),
        ("https://bank.exa\tmple/", "bank.example", "invisible or that a browser removes"),
        ("https://bank.example/\u202egnp.exe", "bank.example", "invisible or that a browser removes"),
        ("http://bank.example/", "bank.example", "is not encrypted"),
        ("javascript:alert(1)", "", "is not a web page"),
        ("https://", "", "has no host"),
        ("https://2130706433/", "2130706433", "is an IP address"),
        ("https://0x7f.1/", "0x7f.1", "is an IP address"),
        ("https://[::1]:80/", "::1:80", "is an IP address"),
        ("https://[x/", "", "is not valid"),
        ("https://bank.example:99999/", "", "is not valid"),
        ("https://xn--" + "a" * 2000 + "/", "xn--" + "a" * 996, "longer than any name in DNS: it has 2,004 characters"),
        ("https://" + "\u0430" * 2000 + "/", "\u0430" * 1000, "longer than any name in DNS"),
    ],
)
def test_the_host_is_the_one_that_a_browser_takes_and_oddities_are_told(url: str, host: str, warning: str) -> None:
    found = check_url(url)

    assert host == found.host
    assert any(warning in each for each in found.warnings) or (not warning and not found.warnings)


def test_an_ordinary_address_raises_no_warning() -> None:
    url = "https://login.bank.example/path?state=a%20b#c"

    assert (url, "login.bank.example", ()) == check_url(url)


def test_an_address_is_shown_on_one_line_without_controls() -> None:
    assert (
        "https://x.example/\\x1b[2K\\nhost     bank.example"
        == check_url("https://x.example/\x1b[2K\nhost     bank.example").text
    )


def test_a_host_with_escaped_controls_is_shown_without_them() -> None:
    found = check_url("https://%1b%5b2J.caf\u00e9.example/")

    assert found.host == "\\x1b[2J.xn--caf-dma.example"
    assert all(each.isprintable() for each in found.warnings)
