"""Where a forge really answers: a map outside the recipe, so no machine's address reaches lock or report.

Source of the rule: contract, section 5 (demo and test recipes name their forge `https://forge.invalid/…`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tic_manifest.errors import PersonError, TicError
from tic_manifest.formats.strict_json import load_json

VARIABLE = "TIC_FORGE_MAP"


@dataclass(frozen=True)
class ForgeMap:
    """URL prefixes of the recipe to URL prefixes that answer. An empty map changes nothing."""

    prefixes: Mapping[str, str]

    def there(self, url: str) -> str:
        """The URL to ask, for a URL of the recipe."""
        return _replaced(url, self.prefixes.items())

    def here(self, text: str) -> str:
        """Text as it may be shown: addresses of the machine turned back into those of the recipe."""
        for named, real in self.prefixes.items():
            text = text.replace(real.rstrip("/"), named.rstrip("/"))
        return text


def read_forge_map(environ: Mapping[str, str]) -> ForgeMap:
    """The map named by $TIC_FORGE_MAP; empty where the variable is not set. Raises PersonError USAGE."""
    name = environ.get(VARIABLE, "")
    if not name:
        return ForgeMap({})
    try:
        data = load_json(Path(name).read_bytes(), name, max_bytes=1 << 20)
    except (OSError, TicError) as error:
        raise PersonError("USAGE", f"the file of {VARIABLE} cannot be read", where=name) from error
    pairs = data.items() if isinstance(data, dict) else [("", None)]
    if not all(isinstance(value, str) and key and value for key, value in pairs):
        raise PersonError(
            "USAGE",
            f"the file of {VARIABLE} is no map",
            where=name,
            expected='{"https://forge.invalid": "URL"}',
        )
    return ForgeMap(dict(data))


def _replaced(url: str, prefixes: object) -> str:
    for prefix, real in sorted(prefixes, key=lambda pair: -len(pair[0])):  # type: ignore[call-overload]
        named = prefix.rstrip("/")
        if url == named or url.startswith((named + "/", named + "?")):
            return str(real.rstrip("/") + url[len(named) :])
    return url
