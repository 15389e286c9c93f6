"""`build`: the image from the lock alone, without network, as an OCI layout, with log and receipt.

Roots, then one wheel for each pull request, then the image. Every finished part is kept in the store under
the digest of all that it follows from, so a changed pull request builds its own wheel again and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import digest_of, plain
from tic_manifest.model.base import Digest
from tic_manifest.model.lock import EPOCH, DebianRoot, LockedFile, LockedPullRequest
from tic_manifest.model.receipt import Artifact, BuildBody, BuiltWheel, Receipt
from tic_manifest.ports import Built, Clock, Engine, ImageBuild, Layouts, Progress, Roots, SourceGit, Store
from tic_manifest.stages import build_parts as parts
from tic_manifest.stages.build_parts import LABEL, Plan
from tic_manifest.stages.materials import DOCKERFILE
from tic_manifest.stages.session import Session

LAYOUT = "layout"
LOG = "logs/build.log"
LOG_NOW = "logs/build.now.log"
"""Written while building; becomes LOG whole: a build that dies leaves the log of the one that stands."""


@dataclass(frozen=True, kw_only=True)
class BuildBench:
    """What building needs from the outside. `git_for` takes name and URL of a repository."""

    engine: Engine
    store: Store
    roots: Roots
    layouts: Layouts
    git_for: Callable[[str, str], SourceGit]
    clock: Clock
    progress: Progress
    tool_version: str
    free: Callable[[Path], int]


def build(session: Session, bench: BuildBench, *, no_cache: bool = False) -> Receipt:
    """Build what is not built yet; without cache a build that stands is repeated and compared with.

    Raises UnavailableError, RefusedError TREE_MISMATCH.
    """
    known = session.receipt("build")
    stands = known is not None and _stands(session, known, bench)
    if known is not None and stands and not no_cache:
        bench.progress.say("build: finished earlier, nothing to do")
        return known
    started = bench.clock.now()
    scratch = session.work.root / "build"
    shutil.rmtree(scratch, ignore_errors=True)
    parts.folder(scratch)
    try:
        earlier = _set_aside(session, scratch) if stands else None
        plan = _plan(session, scratch, bench, no_cache)
        wheels = tuple(_wheel(pull, plan, session, bench) for pull in session.lock.lock.pull_requests)
        _image(plan, wheels, session, bench)
        receipt = _receipt(session, plan, wheels, bench, started)
        return (
            receipt
            if known is None or earlier is None
            else _compared(receipt, known, earlier, session, bench)
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _stands(session: Session, known: Receipt, bench: BuildBench) -> bool:
    """Whether an earlier build is still there, whole."""
    body = known.body
    if not isinstance(body, BuildBody):
        return False
    found = bench.layouts.whole(session.work.root / LAYOUT, body.index_digest)
    return found is not None and found.platform_digest == known.platform_digest


def _set_aside(session: Session, scratch: Path) -> Path:
    """The layout that stands, kept beside until the build that repeats it is finished."""
    kept = scratch / "earlier"
    shutil.copytree(session.work.root / LAYOUT, kept, copy_function=os.link)
    return kept


def _compared(receipt: Receipt, known: Receipt, kept: Path, session: Session, bench: BuildBench) -> Receipt:
    """The receipt with what the two builds differ in, where the same builder made both."""
    was, body = known.body, receipt.body
    if not isinstance(was, BuildBody) or not isinstance(body, BuildBody) or was.builder != body.builder:
        return receipt
    now = (session.work.root / LAYOUT, body.index_digest)
    again = bench.layouts.compare((kept, was.index_digest), now, bench.progress)
    same = "the same" if again.platform_digest == receipt.platform_digest else "another"
    bench.progress.say(f"build: a second build gives {same} platform manifest")
    return receipt.model_copy(update={"body": body.model_copy(update={"again": again})})


def _plan(session: Session, scratch: Path, bench: BuildBench, no_cache: bool) -> Plan:
    lock = session.lock.lock
    builder = bench.engine.describe()
    parts.check_disk(lock, session.work.root, bench.engine.data_root(), bench.free)
    project = scratch / "project"
    parts.lay_out_project(lock.materials, bench.store, project)
    roots = session.work.root / "store" / "roots"
    scripts = project / "images" / "build"
    base, base_digest = bench.roots.make(lock.base, bench.store, roots, scripts)
    made, made_digest = bench.roots.make(lock.builder, bench.store, roots, scripts)
    log = session.work.root / LOG_NOW
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(f"lock {session.lock.digest}\nbuilder {builder}\n".encode())
    tools = parts.folder(scratch / "tools" / "wheels")
    for one in lock.python.build:
        bench.store.place(f"sha256:{one.sha256}", tools / one.file, one.file)
    return Plan(
        scratch=scratch,
        project=project,
        log=log,
        tools=tools.parent,
        scripts=scripts,
        no_cache=no_cache,
        base=f"oci-layout://{base}@{base_digest}",
        builder=f"oci-layout://{made}@{made_digest}",
        base_layout=base,
        base_digest=base_digest,
        builder_digest=made_digest,
        described=builder,
    )


# --- wheels


def _wheel(pull: LockedPullRequest, plan: Plan, session: Session, bench: BuildBench) -> BuiltWheel:
    """The wheel of a pull request: from the store when it was built from the same inputs before."""
    key = parts.wheel_key(pull, plan, session.lock)
    note = f"store/wheels/{key.removeprefix('sha256:')}.json"
    if not plan.no_cache:
        kept = _kept(session.work.read(note), pull, bench.store)
        if kept is not None:
            bench.progress.say(f"wheel {pull.name}: built earlier from tree {pull.head_tree}")
            return kept
    bench.progress.say(f"wheel {pull.name}: building from tree {pull.head_tree}")
    made = _build_wheel(pull, plan, session, bench)
    with made.open("rb") as stream:
        digest = bench.store.put(stream)
    wheel = BuiltWheel(
        name=pull.name, tree=pull.head_tree, file=made.name, digest=digest, size=made.stat().st_size
    )
    session.work.write(note, json.dumps(plain(wheel)).encode())
    return wheel


def _kept(raw: bytes | None, pull: LockedPullRequest, store: Store) -> BuiltWheel | None:
    if raw is None:
        return None
    try:
        wheel = BuiltWheel.model_validate_json(raw)
    except ValidationError:  # a note of another version: the wheel is built again
        return None
    return wheel if wheel.tree == pull.head_tree and store.path(wheel.digest) is not None else None


def _build_wheel(pull: LockedPullRequest, plan: Plan, session: Session, bench: BuildBench) -> Path:
    source = parts.folder(plan.scratch / f"source-{pull.name}")
    bench.git_for(pull.name, pull.git).export(pull.head, source / "tree")
    given = session.lock.recipe.pull_requests[pull.name]
    precompiled = parts.folder(plan.scratch / f"precompiled-{pull.name}")
    if given.precompiled is not None:
        digest = f"sha256:{given.precompiled.sha256}"
        bench.store.place(digest, precompiled / given.precompiled.wheel, given.precompiled.wheel)
    output = plan.scratch / f"wheel-{pull.name}"
    bench.engine.build(
        ImageBuild(
            dockerfile=plan.project / DOCKERFILE,
            target="wheel",
            labels={},
            epoch=EPOCH,
            kind="local",
            contexts=plan.contexts(source=source, precompiled=precompiled),
            arguments=parts.wheel_arguments(pull, given),
            platform=session.lock.recipe.platform,
            destination=output,
            log=plan.log,
            no_cache=plan.no_cache,
        )
    )
    shutil.rmtree(source)
    found = sorted(output.glob("*.whl"))
    if len(found) != 1:
        raise RefusedError(
            "WHEEL_HASH",
            f"the build of {pull.name} gave no single wheel",
            expected="one wheel",
            actual=", ".join(one.name for one in found) or "none",
        )
    return found[0]


# --- the image


def _image(plan: Plan, wheels: tuple[BuiltWheel, ...], session: Session, bench: BuildBench) -> None:
    lock = session.lock.lock
    folder = parts.folder(plan.scratch / "wheels")
    every = [(one.file, one.digest) for one in (*map(_as_built, lock.python.runtime), *wheels)]
    for file, digest in every:
        bench.store.place(digest, folder / "wheels" / file, file)
    (folder / "requirements.txt").write_text(parts.requirements(every), encoding="utf-8")
    dockerfile = plan.scratch / "Dockerfile"
    template = (plan.project / DOCKERFILE).read_text(encoding="utf-8")
    dockerfile.write_text(parts.dockerfile(template, session.lock.recipe.env), encoding="utf-8")
    bench.progress.say(f"image: installing {len(every)} wheels")
    bench.engine.build(
        ImageBuild(
            dockerfile=dockerfile,
            target="final",
            kind="oci",
            epoch=EPOCH,
            provenance=True,
            log=plan.log,
            contexts=plan.contexts(wheels=folder, parts=parts.agent_and_workers(plan)),
            arguments={},
            labels={LABEL: session.lock.digest, "org.opencontainers.image.base.digest": plan.base_digest},
            platform=session.lock.recipe.platform,
            destination=plan.scratch / LAYOUT,
            no_cache=plan.no_cache,
            recompress=isinstance(lock.base, DebianRoot),
        )
    )
    bench.layouts.restore_base(plan.scratch / LAYOUT, plan.base_layout)
    shutil.rmtree(session.work.root / LAYOUT, ignore_errors=True)
    (plan.scratch / LAYOUT).rename(session.work.root / LAYOUT)


def _as_built(one: LockedFile) -> BuiltWheel:
    return BuiltWheel(name="file", tree="0" * 40, file=one.file, digest=f"sha256:{one.sha256}", size=one.size)


def _receipt(
    session: Session, plan: Plan, wheels: tuple[BuiltWheel, ...], bench: BuildBench, started: str
) -> Receipt:
    built = bench.layouts.read(session.work.root / LAYOUT)
    _check_label(built, session.lock.digest)
    raw = plan.log.read_bytes()
    session.work.write(LOG, raw)
    plan.log.unlink()
    body = BuildBody(
        index_digest=built.index_digest or built.platform_digest,
        config_digest=built.config_digest,
        layers=built.layers,
        base_platform_digest=plan.base_digest,
        wheels=wheels,
        hermetic=parts.hermetic((plan.project / DOCKERFILE).read_text(encoding="utf-8")),
        builder=plan.described,
        command=("docker", "buildx", "build", "--network", "none", "--target", "final"),
        log=Artifact(name=LOG, digest=digest_of(raw), size=len(raw)),
    )
    return Receipt(
        schema_="tic/receipt/v1",
        run_id=session.run_id,
        lock_digest=session.lock.digest,
        platform_digest=built.platform_digest,
        started_at=started,
        finished_at=bench.clock.now(),
        tool_version=bench.tool_version,
        host=bench.engine.host(),
        body=body,
    )


def _check_label(built: Built, lock: Digest) -> None:
    if built.labels.get(LABEL) != lock:
        raise RefusedError(
            "STALE",
            "the image's label names another lock",
            where=LABEL,
            expected=lock,
            actual=built.labels.get(LABEL, "no label"),
            remedy="run tic-manifest build with this lock",
        )
