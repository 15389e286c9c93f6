"""One kind of HTTP session: proxy and CA variables of the environment count, .netrc and cookies do not.

Source: contract, section 3 ("Tokens").
"""

from __future__ import annotations

from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests

from tic_manifest.adapters import telling
from tic_manifest.formats.urls import is_loopback, split_url

_DIRECT = {"http": None, "https": None, "all": None}


def new_session(environ: Mapping[str, str]) -> requests.Session:
    """A session. REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE, which requests reads, win over SSL_CERT_FILE."""
    session = requests.Session()
    session.auth = _no_auth
    session.hooks["response"].append(telling.answered)
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    if environ.get("SSL_CERT_FILE"):
        session.verify = environ["SSL_CERT_FILE"]
    return session


def proxies_for(url: str) -> dict[str, Any]:
    """What `requests` is given as proxies: none for a literal loopback address, else the environment's.

    Registries speak plain HTTP on loopback alone; through a proxy it would leave the machine.
    """
    parts = split_url(url)
    return dict(_DIRECT) if parts is not None and is_loopback(parts.hostname or "") else {}


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
