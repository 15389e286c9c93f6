"""One HTTP exchange with a forge: bounded, never redirected, a token only where it belongs.

Source of the token rules: contract, section 3. `requests` would read .netrc and follow redirects with
credentials on its own; both are switched off here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import requests

from tic_manifest.adapters.http_session import new_session
from tic_manifest.errors import UnavailableError
from tic_manifest.formats.urls import is_loopback

MAX_BODY = 32 << 20
REFUSED = {401, 403, 404}
"""What a forge answers to those who may not see something."""

KEPT_HEADERS = (
    "content-type",
    "date",
    "etag",
    "link",
    "location",
    "retry-after",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
)
"""What a recording keeps of an answer's headers; nothing else is looked at."""


@dataclass(frozen=True)
class RawAnswer:
    """An answer as it came: status, the headers we read (lower case), the whole body."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Exchange(Protocol):
    """Asks, or replays, one GET."""

    def get(self, url: str, headers: Mapping[str, str]) -> RawAnswer:
        """Raises UnavailableError NETWORK, TIMEOUT or BAD_RESPONSE where there is no answer."""


class HttpExchange:
    """Real HTTP through one session. `environ` is the user's environment: proxies, CA files, tokens.

    `login` gives a token, or "", for a URL that refused a question without one.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        timeout_seconds: float = 30.0,
        login: Callable[[str], str] = lambda url: "",
    ) -> None:
        self._environ = environ
        self._login = login
        self._timeout = timeout_seconds
        self._session = new_session(environ)

    def get(self, url: str, headers: Mapping[str, str]) -> RawAnswer:
        """One GET; the body is read to the end, up to 32 MiB. Asks again with the login where refused."""
        token = token_for(self._environ, url)
        answer = self._once(url, headers, token)
        found = self._login(url) if answer.status in REFUSED and not token else ""
        return self._once(url, headers, found) if found else answer

    def _once(self, url: str, headers: Mapping[str, str], token: str) -> RawAnswer:
        secret = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with self._session.get(
                url,
                headers={**headers, **secret},
                timeout=(min(self._timeout, 10.0), self._timeout),
                allow_redirects=False,
                stream=True,
            ) as answer:
                return _read(answer)
        except requests.RequestException as error:
            raise _no_answer(error) from None
        except ValueError:  # requests reads a Location even where it does not follow it
            raise _bad("a redirect to an address that no URL can be") from None


def token_for(environ: Mapping[str, str], url: str) -> str:
    """The token that was set for the origin of a URL, or "". Never sent in clear but to loopback."""
    api = environ.get("GITHUB_API_URL") or "https://api.github.com"
    enterprise = environ.get("GH_HOST", "")
    pairs = [(api, environ.get("GITHUB_TOKEN", ""))]
    if enterprise:
        pairs.append((f"https://{enterprise}", environ.get("GH_ENTERPRISE_TOKEN", "")))
    if urlsplit(url).scheme != "https" and not is_loopback(urlsplit(url).hostname or ""):
        return ""
    return next((token for there, token in pairs if token and origin(there) == origin(url)), "")


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of a URL, defaults filled in."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), port


def _read(answer: requests.Response) -> RawAnswer:
    body = bytearray()
    for piece in answer.iter_content(1 << 16):
        body += piece
        if len(body) > MAX_BODY:
            raise _bad(f"an answer of more than {MAX_BODY} bytes")
    kept = {name: answer.headers[name] for name in KEPT_HEADERS if name in answer.headers}
    return RawAnswer(answer.status_code, kept, bytes(body))


def _no_answer(error: requests.RequestException) -> UnavailableError:
    # the words of the exception hold the address, which must not reach a report
    kind = type(error).__name__
    if isinstance(error, requests.Timeout):
        return UnavailableError("TIMEOUT", "the forge did not answer in time", actual=kind, remedy=_AGAIN)
    if isinstance(error, requests.exceptions.ProxyError | requests.exceptions.SSLError):
        return UnavailableError("NETWORK", "the forge cannot be reached", actual=kind, remedy=_AGAIN)
    cut = ("reset", "aborted", "Remote end closed", "IncompleteRead", "prematurely")
    if isinstance(
        error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError
    ) or any(word in str(error) for word in cut):
        return _bad("the connection ended within the answer")
    return UnavailableError("NETWORK", "the forge cannot be reached", actual=kind, remedy=_AGAIN)


_AGAIN = "check the network and run the same command again"


def _bad(actual: str) -> UnavailableError:
    return UnavailableError(
        "BAD_RESPONSE",
        "the forge's answer cannot be used",
        actual=actual,
        remedy="run the same command again",
    )
