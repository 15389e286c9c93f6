"""What installers make of a wheel: where its files go, which files they add, what they write into scripts.

Source: packaging.python.org, "Binary distribution format", "Recording installed projects", "Entry points";
the script templates are those of pip 20 to 26 (pip/_internal/operations/install/wheel.py and its distlib).
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

ADDED = frozenset({"INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json"})
"""Files that installers write beside a RECORD; no others."""

_TEMPLATES = (
    """\
import sys
from {module} import {name}
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit({function}())
""",
    """\
import sys
from {module} import {name}
if __name__ == '__main__':
    if sys.argv[0].endswith('.exe'):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit({function}())
""",
    """\
# -*- coding: utf-8 -*-
import re
import sys
from {module} import {name}
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit({function}())
""",
)
_ENTRY = re.compile(r"^\s*(?P<module>[\w.]+)\s*:\s*(?P<function>[\w.]+)\s*(\[.*\])?\s*$")
_GROUPS = ("console_scripts", "gui_scripts")
_BYTECODE = re.compile(r"^(?P<stem>[^/]+)\.cpython-[0-9]+(\.opt-[12])?\.pyc$")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a distribution is installed: its site-packages and the name of its dist-info folder."""

    site: str
    info: str

    @classmethod
    def of(cls, record: str) -> Place:
        """From the path of a RECORD."""
        folder = posixpath.dirname(record)
        return cls(site=posixpath.dirname(folder), info=posixpath.basename(folder))

    @property
    def name(self) -> str:
        """The distribution's name as the folder spells it."""
        return self.info.removesuffix(".dist-info").rpartition("-")[0]

    @property
    def prefix(self) -> str:
        """The environment: three folders above `lib/pythonX.Y/site-packages`."""
        return "/".join(self.site.split("/")[:-3])

    @property
    def scripts(self) -> str:
        """Where scripts go."""
        return posixpath.join(self.prefix, "bin")

    def path_of(self, row: str) -> str:
        """Where a file of the wheel lies, from the root of the image."""
        first, _, rest = row.partition("/")
        kind, _, inner = rest.partition("/")
        if first != f"{self.info.removesuffix('.dist-info')}.data" or not inner:
            return posixpath.normpath(posixpath.join(self.site, row))
        python = posixpath.basename(posixpath.dirname(self.site))
        headers = posixpath.join(self.prefix, "include/site", python, self.name)
        folders = {"scripts": self.scripts, "data": self.prefix, "headers": headers}
        return posixpath.normpath(posixpath.join(folders.get(kind, self.site), inner))

    def shebangs(self) -> Iterator[bytes]:
        """The first lines that name an interpreter of this environment."""
        python = posixpath.basename(posixpath.dirname(self.site))
        for one in dict.fromkeys(("python", "python3", python)):
            yield f"#!/{self.scripts}/{one}\n".encode()


def entry_points(text: str) -> Mapping[str, tuple[str, str]]:
    """Script name to module and function, of both groups, read as importlib.metadata reads them."""
    found: dict[str, tuple[str, str]] = {}
    group = ""
    for line in map(str.strip, text.splitlines()):
        name, _, value = line.partition("=")
        entry = _ENTRY.match(value)
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif group in _GROUPS and entry is not None and not line.startswith("#"):
            found[name.strip()] = entry["module"], entry["function"]
    return found


def entry_scripts(place: Place, text: str) -> dict[str, set[str]]:
    """Path of every script that follows from the entry points, and the sha256 that its text may have."""
    found = {}
    for name, (module, function) in entry_points(text).items():
        path = posixpath.normpath(posixpath.join(place.scripts, name))
        if posixpath.dirname(path) == place.scripts:
            said = {"module": module, "name": function.partition(".")[0], "function": function}
            texts = [one.format(**said).encode() for one in _TEMPLATES]
            found[path] = {_sha256(first + text) for first in place.shebangs() for text in texts}
    return found


def rewritten(place: Place, text: str) -> set[str]:
    """The sha256 that a script of a wheel may have once its first line names the interpreter."""
    _, _, rest = text.encode().partition(b"\n")
    return {_sha256(first + rest) for first in place.shebangs()}


def source_of(bytecode: str) -> str | None:
    """The source that a file of `__pycache__` is loaded for; None for another path (PEP 3147)."""
    folder, name = posixpath.split(bytecode)
    found = _BYTECODE.match(name)
    if found is None or posixpath.basename(folder) != "__pycache__":
        return None
    return posixpath.join(posixpath.dirname(folder), f"{found['stem']}.py")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
