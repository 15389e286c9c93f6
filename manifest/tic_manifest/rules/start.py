"""How an image starts against its base and the recipe: user, entry point, command, folder, variables.

The build adds a PATH and the recipe's variables to what the base says and nothing else (Dockerfile.unified).
Source: issue 4, "expected environment, user, entry point"; rules/image-verify.md C8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tic_manifest.model.oci import ImageConfig
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding

CHECK = "files.start"
FOLDERS = frozenset(
    {
        "/opt/venv/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
    }
)  # fmt: skip
"""Where the build lets programs be found, beside the folders of the base's own PATH."""


def check_start(
    config: ImageConfig, base: ImageConfig, declared: Mapping[str, str], subject: str
) -> list[Finding]:
    """`declared` are variables of recipe and policy by name."""
    return [*_fields(config, base, subject), *_variables(config, base, declared, subject)]


def row_of(found: list[Finding] | None, subject: str) -> Check:
    """The row; None where the config of the base is not in the evidence."""
    if found is None:
        reason = "not in the evidence: the config of the base image"
        return Check(id=CHECK, status=Status.NOT_RUN, subject=subject, reason=reason)
    return check_of(CHECK, found, subject=subject)


def _fields(config: ImageConfig, base: ImageConfig, subject: str) -> Iterator[Finding]:
    pairs: dict[str, tuple[list[str], list[str]]] = {
        "user": ([base.user], [config.user]),
        "entry point": (list(base.entrypoint), list(config.entrypoint)),
        "command": (list(base.cmd), list(config.cmd)),
        "working folder": ([base.working_dir or "/"], [config.working_dir or "/"]),
    }
    for name, (wanted, there) in pairs.items():
        if wanted != there:
            yield finding(
                "ENV_INJECTION/start", Status.FAIL, subject, what=f"the {name} is not that of the base",
                expected=list(wanted), actual=[one[:400] for one in there],
            )  # fmt: skip


def _variables(
    config: ImageConfig, base: ImageConfig, declared: Mapping[str, str], subject: str
) -> Iterator[Finding]:
    known = dict(one.partition("=")[::2] for one in base.env) | dict(declared)
    folders = {*FOLDERS, *known.get("PATH", "").split(":")}
    for entry in config.env:
        name, _, value = entry.partition("=")
        if name == "PATH" and name not in declared:
            odd = [one for one in value.split(":") if one not in folders]
            wrong, expected = bool(odd), ":".join(sorted(folders - {""}))
        else:
            wrong, expected = known.get(name) != value, known.get(name, "")
        if wrong:
            what = "a variable that neither base nor recipe sets to this"
            yield finding(
                "ENV_INJECTION/undeclared", Status.FAIL, subject, what=what, expected=expected or None,
                actual=entry[:400],
            )  # fmt: skip
