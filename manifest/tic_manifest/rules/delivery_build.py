"""The build as its receipt and the image's own documents show it."""

from __future__ import annotations

from tic_manifest.model.lock import ImageRoot
from tic_manifest.model.oci import JudgedImage
from tic_manifest.model.receipt import BuildBody, Rebuild
from tic_manifest.model.recipe import PullRequest
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding
from tic_manifest.rules.dossier import BUILD_LOG, Dossier
from tic_manifest.rules.version import check_version

REPRODUCIBLE = "build.reproducible"


def judge_build(dossier: Dossier, image: JudgedImage) -> tuple[list[Check], list[Finding]]:
    """Hermetic, on the locked base, each wheel from the tree of its head, the layers those of the receipt."""
    names = [pull.name for pull in dossier.lock.lock.pull_requests]
    body = dossier.build
    again, differ = _again(body, image)
    if body is None:
        missing = ["build.hermetic", "build.layers", *(f"build.{name}" for name in names)]
        rows = [
            Check(id=one, status=Status.NOT_RUN, subject="image", reason="build was not run")
            for one in missing
        ]
        return [*rows, again], []
    hermetic = (
        [] if body.hermetic else [finding("HERMETIC", Status.FAIL, "build", expected=True, actual=False)]
    )
    layers = _layers(dossier, body, image)
    wheels = {name: _wheel(dossier, body, name) for name in names}
    checks = [
        check_of("build.hermetic", hermetic, subject="build"),
        check_of("build.layers", layers, subject="image"),
        *(_row(name, found) for name, found in wheels.items()),
        again,
    ]
    return checks, [*hermetic, *layers, *differ, *(one for found in wheels.values() for one in found)]


def _again(body: BuildBody | None, image: JudgedImage) -> tuple[Check, list[Finding]]:
    """Whether two builds gave one platform manifest; image indexes hold times and are not compared."""
    other = body.again if body else None
    if other is None:
        reason = "no second build was made"
        return Check(id=REPRODUCIBLE, status=Status.NOT_RUN, subject="image", reason=reason), []
    found = [] if other.platform_digest == image.platform_digest else [_differ(other, image)]
    row = check_of(REPRODUCIBLE, found, subject="image")
    reason = found[0].what if found else f"two builds gave platform manifest {image.platform_digest}"
    return row.model_copy(update={"reason": reason}), found


def _differ(other: Rebuild, image: JudgedImage) -> Finding:
    code = "NOT_REPRODUCIBLE"
    if other.diff_ids == image.config.diff_ids and other.config_digest == image.manifest.config.digest:
        code = "LAYER_ENCODING/rebuilt"
    elif other.only_pyc:
        code = "PYC_MTIME"
    paths = [f"layer {one.layer}: {one.path} ({one.kind})" for one in other.differing]
    return finding(
        code, Status.FAIL, "image", expected=image.platform_digest, actual=other.platform_digest,
        evidence={"count": other.count, "paths": paths, "diffIds": list(other.diff_ids)},
    )  # fmt: skip


def _row(name: str, found: list[Finding]) -> Check:
    reason = next((one.what for one in found if not one.note), "")
    return check_of(f"build.{name}", found, subject=name).model_copy(update={"reason": reason})


def _layers(dossier: Dossier, body: BuildBody, image: JudgedImage) -> list[Finding]:
    """The image's layers are those that the receipt names, and begin with the base's."""
    now = [layer.digest for layer in image.manifest.layers]
    found = []
    if list(body.layers) != now:
        found.append(finding("STALE", Status.FAIL, "layers", expected=list(body.layers), actual=list(now)))
    pairs = [("config", image.manifest.config.digest, body.config_digest)]
    base = dossier.lock.lock.base
    if isinstance(base, ImageRoot):
        pairs.append(("base", base.platform_digest, body.base_platform_digest))
    found += [finding("STALE", Status.FAIL, n, expected=a, actual=b) for n, a, b in pairs if a != b]
    found += _log(dossier, body)
    want = list(base.layers) if isinstance(base, ImageRoot) else []
    if want and now[: len(want)] != want:
        found.append(finding("BASE_LAYERS", Status.FAIL, "base", expected=want, actual=now[: len(want)]))
    return found


def _log(dossier: Dossier, body: BuildBody) -> list[Finding]:
    log = dossier.artifact(BUILD_LOG)
    if log is None:
        missing = finding(
            "EVIDENCE_MISSING", Status.INCONCLUSIVE, BUILD_LOG, expected=body.log.digest, actual=None
        )
        return [missing]
    if log.digest == body.log.digest:
        return []
    return [finding("STALE", Status.FAIL, BUILD_LOG, expected=body.log.digest, actual=log.digest)]


def _wheel(dossier: Dossier, body: BuildBody, name: str) -> list[Finding]:
    pull = next(one for one in dossier.lock.lock.pull_requests if one.name == name)
    asked = dossier.lock.recipe.pull_requests[name]
    wheel = next((one for one in body.wheels if one.name == name), None)
    if wheel is None:
        return [finding("TREE_MISMATCH", Status.INCONCLUSIVE, name, expected=pull.head_tree, actual=None)]
    found = []
    if wheel.tree != pull.head_tree:
        found.append(finding("TREE_MISMATCH", Status.FAIL, name, expected=pull.head_tree, actual=wheel.tree))
    return [*found, *check_native(name, asked, pull.merge_base), *check_version(dossier, asked, wheel)]


def check_native(name: str, asked: PullRequest, merge_base: str) -> list[Finding]:
    """Native code taken from a wheel of another commit is not from source (contract, section 5)."""
    given = asked.precompiled
    if given is None or given.commit == merge_base:
        return []
    status = Status.INCONCLUSIVE if given.commit == "unknown" else Status.FAIL
    return [
        finding(
            "NATIVE_NOT_FROM_SOURCE", status, name, expected=merge_base, actual=given.commit,
            evidence={"wheel": given.wheel, "sha256": given.sha256},
        )
    ]  # fmt: skip
