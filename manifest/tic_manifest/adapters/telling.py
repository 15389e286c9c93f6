"""What adapters do, for `-v`: programs that are run and addresses that are asked, without secrets.

Lines go to the logger `tic_manifest.adapters`; nothing is shown unless the command line asks for it.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Sequence
from typing import Any

LOGGER = logging.getLogger("tic_manifest.adapters")

MOST = 4000
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"(?<=[?&])([A-Za-z0-9_.-]+)=[^&\s'\"]+")
_SECRET = re.compile(
    r"(?i)((?:token|secret|password|passphrase|authorization|api-?key)[A-Za-z0-9_-]*)([=: ]+)\S+"
)
_PLAIN = {"direction", "page", "per_page", "ref", "sort", "state"}
"""Names in a query whose values are shown."""


def program(argv: Sequence[str]) -> None:
    """Tell that a program is run; settings that stand on every command line of git are left out."""
    if LOGGER.isEnabledFor(logging.DEBUG):
        LOGGER.debug("run %s", without_secrets(shlex.join(_short(argv))))


def request(method: str, url: str, status: int | None) -> None:
    """Tell that an address was asked, and what it answered."""
    if LOGGER.isEnabledFor(logging.DEBUG):
        LOGGER.debug("%s %s %s", method, without_secrets(url), status if status is not None else "no answer")


def answered(answer: Any, *args: object, **kwargs: object) -> None:
    """A hook of a session of `requests`: the same for every answer that comes."""
    request(str(answer.request.method), str(answer.request.url), answer.status_code)


def without_secrets(text: str) -> str:
    """Text without names and passwords in URLs, values of unknown query parameters, and named secrets."""
    text = _USERINFO.sub("…@", text[:MOST])
    text = _QUERY.sub(lambda found: found[0] if found[1] in _PLAIN else f"{found[1]}=…", text)
    return _SECRET.sub(r"\1\2…", text)


def _short(argv: Sequence[str]) -> list[str]:
    words = list(argv)
    if words[:1] == ["env"]:
        words = words[1:]
        while words[:1] == ["-u"]:
            words = words[2:]
    if words[:1] == ["git"]:
        while len(words) > 2 and words[1] == "-c" and "remote." not in words[2]:
            del words[1:3]
    return words
