"""What a program passes as ``auth`` of `Http`: how a client gets its tokens.

`OAuth` asks a person. The others are for programs that act for themselves. These classes only hold the choices; the
tokens belong to each connection, and to the `TokenStore`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.auth.assertions import client_assertion, import_jwt
from mcpgen.runtime.http.client.auth.address_guard import is_loopback_url
from mcpgen.runtime.http.client.auth.token_store import FileTokenStore, MemoryTokenStore, TokenStore
from mcpgen.runtime.http.client.http_exchange import import_httpx
from mcpgen.runtime.protocol.argument_checks import check_flags, check_numbers, check_parameters, check_texts
from mcpgen.runtime.protocol.value_syntax import uri_fault

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.address import Address

__all__ = [
    "Assertion",
    "ClientCredentials",
    "Credentials",
    "Dpop",
    "JwtAssertion",
    "OAuth",
    "Visit",
    "client_key",
    "tokens_key",
]

Dpop: TypeAlias = Literal["off", "auto", "on"]
"""Whether tokens are bound to a key: never, if the server demands it, or always."""

Visit: TypeAlias = Callable[[str], Awaitable[str | None] | str | None]
"""A function that gets the URL of the login page, and returns the URL to which the browser was redirected at the end.

It returns None if the redirect goes to this machine, where the client waits for it.
"""

Assertion: TypeAlias = Callable[[str, str], Awaitable[str] | str]
"""A function that gets the issuer and the resource, and returns a JWT for them."""

_COMMANDS: Final = "mcpgen"
"""The name under which the commands store tokens."""

_LOGIN_SECONDS: Final = 300.0
_ISSUER: Final = re.compile(r"https?://[\x21-\x7e]+")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749, section 3.3


class OAuth:
    """Let a person log in, with the authorization code flow: ``Http(url, auth=OAuth())``.

    The client finds the authorization server of the MCP server, gets a client id there, and opens the login page in the
    browser. It stores the tokens, refreshes them, and requests more scopes when a call needs them.

    Args:
        client_id: The client's id, if it was registered in advance.
        client_secret: The secret of that client, if it has one.
        client_metadata_url: The https URL of the client's own metadata document. It is the id of the client at
            authorization servers that support such documents.
        client_name: The name of the client. The login page shows it if the client registers itself. Clients of the same
            name share stored tokens; the default is that of the commands, such as ``mcpgen login``.
        scopes: The scopes to request. By default, those that the server asks for.
        issuer: The authorization server that must be used. By default, the first one that the server names.
        redirect_uri: Where the login page redirects to. By default, a free port of 127.0.0.1.
        visit: Opens the login page; see `Visit`. By default, the browser of the user.
        interactive: Whether a person may be asked. Without, only stored tokens are used, and `LoginNeeded` is raised.
        store: Where tokens are kept. By default, a `FileTokenStore`.
        dpop: Whether tokens are bound to a key: ``off``, ``auto`` (if the server demands it) or ``on``.
        login_seconds: How long a person has for the login.
        assume_pkce: Go on if the authorization server does not say that it supports PKCE.

    Raises:
        UsageError: An argument is wrong, or httpx is not installed.
    """

    def __init__(  # noqa: PLR0913 (all are options)
        self,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        client_metadata_url: str | None = None,
        client_name: str = _COMMANDS,
        scopes: Sequence[str] | None = None,
        issuer: str | None = None,
        redirect_uri: str | None = None,
        visit: Visit | None = None,
        interactive: bool = True,
        store: TokenStore | None = None,
        dpop: Dpop = "auto",
        login_seconds: float = _LOGIN_SECONDS,
        assume_pkce: bool = False,
    ) -> None:
        import_httpx()
        _check_client(client_id, client_secret)
        check_texts(client_metadata_url=client_metadata_url, client_name=client_name, redirect_uri=redirect_uri)
        check_flags(interactive=interactive, assume_pkce=assume_pkce)
        check_numbers(login_seconds=login_seconds)
        if visit is not None and not callable(visit):
            raise UsageError(f"`visit` must be a function that gets the URL of the login page, not {visit!r}")
        if visit is not None:
            check_parameters("visit", visit, "the URL of the login page", 1)
        if client_metadata_url is not None and not _is_document(client_metadata_url):
            raise UsageError(
                "`client_metadata_url` must be a URL of https with a path, such as https://example.com/client.json; "
                "it must have no user name and no fragment, and no segment of its path may be . or .."
            )
        if redirect_uri is not None and not _is_redirect(redirect_uri):
            raise UsageError(
                "`redirect_uri` must be a URL of https, or of http at localhost, 127.0.0.1 or [::1]; "
                "it must have a host and no fragment"
            )
        if isinstance(cast("object", store), type) or not isinstance(cast("object", store), TokenStore | None):
            raise UsageError(f"`store` must be a TokenStore, such as FileTokenStore(folder), not {store!r}")
        if not login_seconds > 0:
            raise UsageError(f"`login_seconds` must be greater than 0, not {login_seconds!r}")
        self.client_id: Final = client_id
        self.client_secret: Final = client_secret
        self.client_metadata_url: Final = client_metadata_url
        self.client_name: Final = client_name
        self.scopes: Final = _checked_scopes(scopes)
        self.issuer: Final = _checked_issuer(issuer)
        self.redirect_uri: Final = redirect_uri
        self.visit: Final = visit
        self.interactive: Final = interactive
        self.store: Final[TokenStore] = FileTokenStore() if store is None else store
        self.dpop: Final = _checked_dpop(dpop)
        self.login_seconds: Final = login_seconds
        self.assume_pkce: Final = assume_pkce

    def __repr__(self) -> str:
        return f"OAuth(client_id={self.client_id!r}, scopes={self.scopes!r}, store={self.store!r})"

    @property
    def shares_tokens(self) -> bool:
        """Whether the program uses the tokens that ``mcpgen login`` stores, if it is run without options."""
        is_default = isinstance(self.store, FileTokenStore) and self.store.is_default
        return is_default and self.client_name == _COMMANDS and self.client_id is None and self.dpop != "on"


class ClientCredentials:
    """Get tokens for the program itself: ``Http(url, auth=ClientCredentials("my-service", secret=…))``.

    Args:
        client_id: The id of the client, which was registered in advance.
        secret: Its secret. Give this or *private_key*.
        private_key: Its private key, as PEM. The client then authenticates with a signed JWT (``private_key_jwt``).
        algorithm: The algorithm of that signature.
        scopes: The scopes to request. By default, those that the server asks for.
        issuer: The authorization server that has registered the client. Give it: the client does not send its
            credentials to another one. By default, the first one that the server names. If the server names another
            one later, `LoginFailed` is raised.
        dpop: Whether tokens are bound to a key: ``off``, ``auto`` (if the server demands it) or ``on``.

    Raises:
        UsageError: An argument is wrong, or a package is not installed.
    """

    def __init__(  # noqa: PLR0913 (all are options)
        self,
        client_id: str,
        *,
        secret: str | None = None,
        private_key: str | None = None,
        algorithm: str = "ES256",
        scopes: Sequence[str] | None = None,
        issuer: str | None = None,
        dpop: Dpop = "auto",
    ) -> None:
        import_httpx()
        check_texts(client_id=client_id, secret=secret, private_key=private_key)
        if not client_id:
            raise UsageError("`client_id` is empty; the authorization server gives it when the client is registered")
        if secret is None and private_key is None:
            raise UsageError("ClientCredentials needs `secret` or `private_key`; pass one of them")
        if secret is not None and private_key is not None:
            raise UsageError("ClientCredentials has both `secret` and `private_key`; pass only one of them")
        if private_key is not None:  # an assertion that is not sent, since a login is too late for a wrong key
            client_assertion(client_id=client_id, audience="", key=private_key, algorithm=algorithm, now=0)
        self.client_id: Final = client_id
        self.client_secret: Final = secret
        self.private_key: Final = private_key
        self.algorithm: Final = algorithm
        self.scopes: Final = _checked_scopes(scopes)
        self.issuer: Final = _checked_issuer(issuer)
        self.bindings: Final = MemoryTokenStore()  # see bindings.py
        self.dpop: Final = _checked_dpop(dpop)

    def __repr__(self) -> str:
        return f"ClientCredentials({self.client_id!r}, scopes={self.scopes!r})"


class JwtAssertion:
    """Exchange a JWT of another issuer for tokens: the identity of a workload, or of an enterprise user.

    Args:
        assertion: A plain or async function that gets the issuer and the resource, and returns the JWT. `IdJag` is one.
        client_id: The id of the client at the authorization server; None if the JWT is enough.
        client_secret: Its secret, if it has one.
        scopes: The scopes to request. By default, those that the server asks for.
        issuer: The authorization server that must be used. By default, the first one that the server names. With
            `client_id`, `LoginFailed` is raised if the server names another one later.
        dpop: Whether tokens are bound to a key: ``off``, ``auto`` (if the server demands it) or ``on``.

    Raises:
        UsageError: An argument is wrong, or httpx is not installed.
    """

    def __init__(  # noqa: PLR0913 (all are options)
        self,
        assertion: Assertion,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        scopes: Sequence[str] | None = None,
        issuer: str | None = None,
        dpop: Dpop = "auto",
    ) -> None:
        import_httpx()
        if not callable(assertion):
            raise UsageError("`assertion` must be a function of the issuer and the resource that returns a JWT")
        _check_client(client_id, client_secret)
        self.assertion: Final = assertion
        self.client_id: Final = client_id
        self.client_secret: Final = client_secret
        self.scopes: Final = _checked_scopes(scopes)
        self.issuer: Final = _checked_issuer(issuer)
        self.bindings: Final = MemoryTokenStore()  # see bindings.py
        self.dpop: Final = _checked_dpop(dpop)

    def __repr__(self) -> str:
        return f"JwtAssertion({self.assertion!r}, client_id={self.client_id!r})"


Credentials: TypeAlias = OAuth | ClientCredentials | JwtAssertion
"""How a client gets its tokens."""


def _check_client(client_id: str | None, client_secret: str | None) -> None:
    check_texts(client_id=client_id, client_secret=client_secret)
    if client_id == "":
        raise UsageError("`client_id` is empty; leave it out if the client is not registered")
    if client_secret is not None and client_id is None:
        raise UsageError("`client_secret` needs `client_id`; pass both")


def _checked_scopes(scopes: Any) -> tuple[str, ...] | None:  # noqa: ANN401 (any object that a caller passes)
    if scopes is None:
        return None
    if isinstance(scopes, str):
        raise UsageError(f"`scopes` must be a list, such as {scopes.split()!r}, not a str")
    if not isinstance(cast("object", scopes), Iterable):
        raise UsageError(f"`scopes` must be a list, such as ['a', 'b'], not {scopes!r}")
    for each in scopes:
        if not isinstance(each, str) or not _SCOPE.fullmatch(each):
            raise UsageError(f'`scopes` has {each!r}, which is not a scope; use visible ASCII without spaces, " and \\')
    return tuple(scopes)


def _checked_issuer(issuer: str | None) -> str | None:
    check_texts(issuer=issuer)
    if issuer is not None and not _ISSUER.fullmatch(issuer):
        raise UsageError("`issuer` must be the URL of an authorization server, such as https://login.example.com")
    return issuer


def _checked_dpop(dpop: Dpop) -> Dpop:
    if dpop not in get_args(Dpop):
        raise UsageError(f"`dpop` must be off, auto or on, not {dpop!r}")
    if dpop == "on":
        import_jwt("DPoP")
    return dpop


def _is_redirect(url: str) -> bool:
    """Return whether a login page may redirect to *url*.

    Spec:
        2025-03-26, basic/authorization, "Security Considerations"; RFC 6749, section 3.1.2: no fragment.
    """
    if uri_fault(url) is not None or "#" in url:
        return False
    if url.startswith("https://"):
        return url[len("https://") :][:1] not in ("", "/", "?", ":")
    return url.startswith("http://") and is_loopback_url(url) and "@" not in url


def _is_document(url: str) -> bool:
    """Return whether *url* can be the id of a client.

    Spec:
        OAuth Client ID Metadata Document (draft 00), section 3: a path, without dot segments; no fragment or user.
    """
    if uri_fault(url) is not None or not url.startswith("https://") or "#" in url:
        return False
    host, _, path = url.removeprefix("https://").partition("?")[0].partition("/")
    # RFC 3986, section 6.2.2: %2E is a dot, too.
    segments = re.sub("%2[Ee]", ".", path).split("/")
    return host[:1] not in ("", ":") and "@" not in host and path != "" and not {".", ".."} & set(segments)


def client_key(oauth: OAuth, issuer: str) -> str:
    """Return the key of the client that has registered itself at *issuer*."""
    return f"client {issuer} {oauth.client_name} {oauth.redirect_uri or ''}"


def tokens_key(credentials: Credentials, address: Address) -> str:
    """Return the key of the tokens for the server at *address*."""
    name = credentials.client_name if isinstance(credentials, OAuth) else ""
    return f"tokens {name} {address.url}"
