"""HTTP with one registry: https but on loopback, tokens to their host alone, bounded waits, no surprises.

`requests` would read .netrc, keep cookies and follow redirects with credentials; all three are switched off.
Proxy and CA variables of the environment count. Source: contract, section 3; OCI distribution-spec.
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests
from requests.adapters import HTTPAdapter

from tic_manifest.adapters.http_session import new_session, proxies_for
from tic_manifest.adapters.registry_auth import (
    Challenge,
    Credentials,
    find_credentials,
    may_send,
    read_challenge,
)
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.strict_json import load_json
from tic_manifest.formats.urls import is_loopback, join_url, split_url

TIMEOUT = (10.0, 60.0)
TRIES = 4
MAX_WAIT_SECONDS = 60.0
MAX_REDIRECTS = 5
MAX_TOKEN_BYTES = 1 << 20
BUSY = frozenset({429, 502, 503, 504})


class RegistryHttp:
    """Requests to one repository of one registry. Safe to use from several threads."""

    def __init__(
        self,
        registry: str,
        repository: str,
        environ: Mapping[str, str],
        *,
        actions: str = "pull",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        host = urlsplit(f"//{registry}").hostname or ""
        self._scheme = "http" if is_loopback(host) else "https"
        self._registry, self._repository, self._actions = registry, repository, actions
        there = "registry-1.docker.io" if registry in {"docker.io", "index.docker.io"} else registry
        self.base = f"{self._scheme}://{there}/v2/{repository}"
        self._environ, self._sleep = environ, sleep
        self._session = _session(environ)
        self._authorization = ""
        self._asked = False

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, data: bytes | None = None
    ) -> requests.Response:
        """One request below the repository, or to a URL of the same host; the body is not read yet.

        A busy registry is asked again, as its Retry-After says; a 401 is answered once with a token.
        Redirects are followed, to other hosts without credentials. Raises UnavailableError NETWORK or AUTH.
        """
        url = path if "://" in path else f"{self.base}/{path}"
        answer = self._patient(method, url, headers or {}, data)
        if answer.status_code == 401 and self._authorize(answer):
            answer.close()
            answer = self._patient(method, url, headers or {}, data)
        if answer.status_code in {401, 403}:
            answer.close()
            raise self._refused(answer.status_code)
        return self._follow(method, answer, headers or {})

    def _patient(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None
    ) -> requests.Response:
        for number in range(TRIES):
            last = number == TRIES - 1
            try:
                answer = self._once(method, url, {**headers, **self._secret(url)}, data)
            except (requests.ConnectionError, requests.Timeout) as error:
                if last or not _is_worth_trying(error):
                    raise self._unreachable(error) from None
                self._sleep(0.2 * 2**number)
                continue
            if answer.status_code not in BUSY or last:
                return answer
            answer.close()
            self._sleep(_wait(answer, number))
        raise AssertionError("the loop returns or raises")

    def _once(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None
    ) -> requests.Response:
        try:
            return self._session.request(
                method, url, headers={"Accept-Encoding": "identity", **headers}, data=data, timeout=TIMEOUT,
                allow_redirects=False, stream=True, proxies=proxies_for(url),
            )  # fmt: skip
        except (requests.ConnectionError, requests.Timeout):
            raise
        except requests.RequestException as error:
            raise self._unreachable(error) from None
        except ValueError as error:  # requests reads a Location even where it does not follow it
            raise RefusedError(
                "REGISTRY", "a redirect to an address that no URL can be", where=self._registry,
                actual=type(error).__name__,
            ) from None  # fmt: skip

    def _secret(self, url: str) -> dict[str, str]:
        mine = urlsplit(url).netloc == urlsplit(self.base).netloc
        return {"Authorization": self._authorization} if mine and self._authorization else {}

    def _follow(
        self, method: str, answer: requests.Response, headers: Mapping[str, str]
    ) -> requests.Response:
        for _ in range(MAX_REDIRECTS):
            if method not in {"GET", "HEAD"} or answer.status_code not in {301, 302, 303, 307, 308}:
                return answer
            url = join_url(answer.url or self.base, answer.headers.get("Location", "")) or ""
            answer.close()
            self._check_scheme(url)
            # nothing but the range travels: storage hosts get no token and no Accept
            kept = {name: value for name, value in headers.items() if name.lower() in {"range", "accept"}}
            answer = self._patient(method, url, kept, None)
        answer.close()
        raise RefusedError("REGISTRY", "too many redirects", where=self._registry)

    def _check_scheme(self, url: str) -> None:
        parts = split_url(url) or urlsplit("")
        loopback = self._scheme == "http" and parts.scheme == "http" and is_loopback(parts.hostname or "")
        if parts.scheme != "https" and not loopback:
            raise RefusedError(
                "REGISTRY", "a redirect leaves https", where=self._registry, expected="https",
                actual=parts.scheme or "no scheme",
            )  # fmt: skip

    def _authorize(self, answer: requests.Response) -> bool:
        """Get what the 401 asks for; False where there is nothing more to try."""
        challenge = read_challenge(answer.headers.get("WWW-Authenticate", ""))
        known = find_credentials(self._environ, self._registry, self._repository)
        if challenge.scheme == "basic" and known and not known.identity_token:
            self._authorization = known.basic()
            return True
        if challenge.scheme != "bearer" or not challenge.parameters.get("realm"):
            return False
        token = self._token(challenge, known)
        self._authorization = f"Bearer {token}" if token else ""
        return bool(token)

    def _token(self, challenge: Challenge, known: Credentials | None) -> str:
        realm = challenge.parameters["realm"]
        self._check_scheme(realm)
        known = known if known and may_send(self._registry, realm) else None
        service = {"service": challenge.parameters["service"]} if "service" in challenge.parameters else {}
        query = {**service, "scope": f"repository:{self._repository}:{self._actions}"}
        if known and known.identity_token:
            form = {
                "grant_type": "refresh_token",
                "refresh_token": known.secret,
                "client_id": "tic-manifest",
                **query,
            }
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            answer = self._patient("POST", realm, kind, urlencode(form).encode())
        else:
            secret = {"Authorization": known.basic()} if known else {}
            mark = "&" if "?" in realm else "?"
            answer = self._patient("GET", f"{realm}{mark}{urlencode(query)}", secret, None)
        return _read_token(answer)

    def _refused(self, status: int) -> UnavailableError:
        known = find_credentials(self._environ, self._registry, self._repository)
        return UnavailableError(
            "AUTH", "the registry refused the credentials" if known else "the registry asks for credentials",
            where=f"{self._registry}/{self._repository}", actual=f"HTTP {status}",
            remedy="log in with docker login or podman login, or name the file with REGISTRY_AUTH_FILE",
        )  # fmt: skip

    def _unreachable(self, error: Exception) -> UnavailableError:
        # the words of the exception may hold a token of a redirect, so its kind alone is said
        return UnavailableError(
            "NETWORK", "the registry could not be reached", where=self._registry, actual=type(error).__name__,
            remedy="check the network and run the same command again",
        )  # fmt: skip


def _session(environ: Mapping[str, str]) -> requests.Session:
    session = new_session(environ)
    pool = HTTPAdapter(pool_connections=8, pool_maxsize=16)
    session.mount("https://", pool)
    session.mount("http://", pool)
    return session


def _is_worth_trying(error: Exception) -> bool:
    return not isinstance(error, requests.exceptions.SSLError | requests.exceptions.ProxyError)


def _wait(answer: requests.Response, number: int) -> float:
    """Seconds to wait: Retry-After as seconds or as a date, else growing, never more than a minute."""
    said = answer.headers.get("Retry-After", "")
    if said.isdigit():
        return min(float(said), MAX_WAIT_SECONDS)
    when = email.utils.parsedate_tz(said) if said else None
    if when is not None:
        return max(0.0, min(email.utils.mktime_tz(when) - time.time(), MAX_WAIT_SECONDS))
    return float(0.5 * 2**number)


def _read_token(answer: requests.Response) -> str:
    with answer:
        if answer.status_code != 200:
            return ""
        raw = b""
        for piece in answer.iter_content(1 << 16):
            raw += piece
            if len(raw) > MAX_TOKEN_BYTES:
                return ""
    try:
        data: Any = load_json(raw, "token service")
    except RefusedError:
        return ""
    found = data.get("token") or data.get("access_token") if isinstance(data, dict) else None
    return found if isinstance(found, str) and found.isascii() and found.isprintable() else ""
