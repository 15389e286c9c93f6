"""`build` with an engine that only notes what it is asked: what is built again, what is kept, what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.layout_read import LayoutReader
from tic_manifest.adapters.store import FileStore
from tic_manifest.adapters.work import WorkFolder
from tic_manifest.cli.measuring import built
from tic_manifest.errors import PersonError, RefusedError, UnavailableError
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.lock import recipe_data, recipe_digest
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.lock import DebianRoot, Lock, LockedFile, LockedPullRequest, LockedPython
from tic_manifest.model.receipt import BuildBody, Host, Receipt
from tic_manifest.ports import ImageBuild
from tic_manifest.stages.build import BuildBench, build
from tic_manifest.stages.materials import keep, materials_of
from tic_manifest.stages.session import Session, open_session

from tests.kit.layouts import Layout

RECIPE = """schema: tic/recipe/v1
name: example
base: {{debian: {{suite: bookworm, packages: [python3]}}}}
forge: {{api: "https://forge.invalid/api/v3"}}
python: {{version: "3.11"}}
pull_requests:
  alpha: {{url: "https://forge.invalid/d/alpha/pull/1", target: {{owner: d, branch: main}}, base: {a}, head: {a}}}
  beta: {{url: "https://forge.invalid/d/beta/pull/1", target: {{owner: d, branch: main}}, base: {b}, head: {b}}}
"""
FILES = {
    "Dockerfile.unified": b"FROM base AS final\nRUN --network=none x\n# @recipe-env@\n",
    "images/agent/probe_agent.py": b"agent",
    "images/build/wheel.py": b"wheel",
    "images/workers/mini/one.py": b"worker",
}


def oid(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


@dataclass
class FakeEngine:
    """Writes a wheel for a wheel and a layout for an image; `label` spoils the label."""

    asked: list[str] = field(default_factory=list)
    label: str | None = None
    fail: str = ""

    def describe(self) -> str:
        return "fake 1"

    def host(self) -> Host:
        return Host(machine="x86_64", cpu_model="fake", cpu_flags=(), kernel="1")

    def data_root(self) -> Path | None:
        return None

    def build(self, request: ImageBuild) -> None:
        tree = request.arguments.get("TREE", "")
        self.asked.append(f"{request.target} {tree}".strip())
        if self.fail and self.fail in self.asked[-1]:
            raise UnavailableError("ENGINE_FAILED", "no")
        if request.target == "wheel":
            assert (Path(request.contexts["source"]) / "tree" / "file").read_text() == tree
            request.destination.mkdir()
            (request.destination / f"p{tree[:6]}-1-py3-none-any.whl").write_text(tree)
            return
        assert request.kind == "oci"
        self._image(request)

    def _image(self, request: ImageBuild) -> None:
        layout = Layout(request.destination)
        below, first = layout.layer({"lib/libc": b"c" * 100}, "zstd")
        own, second = layout.layer(
            {"opt/x": Path(request.contexts["wheels"], "requirements.txt").read_bytes()}
        )
        label = self.label or request.labels["org.tic-manifest.lock"]
        config = layout.config([first, second], labels={"org.tic-manifest.lock": label})
        layout.save(layout.manifest(config, [below, own]))


class Roots:
    """One base for all."""

    def make(self, root: Any, store: Any, folder: Path, scripts: Path) -> tuple[Path, str]:
        layout = folder / "base"
        if not layout.exists():
            made = Layout(layout)
            below, first = made.layer({"lib/libc": b"c" * 100}, "zstd")
            made.save(made.manifest(made.config([first]), [below]))
        return layout, LayoutReader().read(layout).platform_digest


class Git:
    """Every commit's tree is one file that holds the tree's id."""

    def __init__(self, trees: Mapping[str, str]) -> None:
        self._trees = trees

    def export(self, commit: str, target: Path) -> str:
        target.mkdir()
        (target / "file").write_text(self._trees[commit])
        return self._trees[commit]


class Clock:
    def now(self) -> str:
        return "2026-01-01T00:00:00Z"


class Quiet:
    def say(self, text: str) -> None: ...

    def step(self, name: str, total: int | None = None) -> AbstractContextManager[Any]:
        return nullcontext()


class World:
    """A work folder, an engine, and locks that are made for heads."""

    def __init__(self, root: Path) -> None:
        self.work = WorkFolder(root)
        self.store = FileStore(root / "store")
        self.engine = FakeEngine()
        self.trees: dict[str, str] = {}
        self.free = 1 << 50

    def session(self, alpha: str = "a1", beta: str = "b1") -> Session:
        recipe = read_recipe(RECIPE.format(a=oid(alpha), b=oid(beta)).encode(), "r.yaml")
        keep(FILES, self.store)
        self.trees |= {oid(one): oid(f"tree {one}") for one in (alpha, beta)}
        root = DebianRoot(
            suite="bookworm",
            architecture="amd64",
            packages=(LockedFile(name="p", version="1", file="p.deb", sha256="0" * 64, size=1000),),
        )
        lock = Lock(
            schema_="tic/lock/v1", recipe_digest=recipe_digest(recipe), recipe=recipe_data(recipe),
            pull_requests=tuple(self.pull(name, head) for name, head in (("alpha", alpha), ("beta", beta))),
            base=root, builder=root, python=LockedPython(version="3.11", runtime=(), build=()),
            materials=materials_of(FILES),
        )  # fmt: skip
        self.work.write("lock.json", canonical_bytes(lock))
        return open_session(self.work)

    def pull(self, name: str, head: str) -> LockedPullRequest:
        commit, tree = oid(head), oid(f"tree {head}")
        return LockedPullRequest(
            name=name, row=name, url=f"https://forge.invalid/d/{name}/pull/1", number=1, git="g", owner="d", repo=name,
            branch="main", base=commit, base_tree=tree, head=commit, head_tree=tree, merge_base=commit, merge_tree=tree,
        )  # fmt: skip

    def build(self, session: Session, **more: Any) -> Receipt:
        self.engine.asked.clear()
        bench = BuildBench(
            engine=self.engine, store=self.store, roots=Roots(), layouts=LayoutReader(),  # type: ignore[arg-type]
            git_for=lambda name, url: Git(self.trees), clock=Clock(), progress=Quiet(),  # type: ignore[arg-type,return-value]
            tool_version="0", free=lambda place: self.free,
        )  # fmt: skip
        receipt = build(session, bench, **more)
        session.keep(receipt)
        return receipt

    def asked(self) -> Sequence[str]:
        return [
            one.replace(oid("tree a1"), "a1").replace(oid("tree a2"), "a2").replace(oid("tree b1"), "b1")
            for one in self.engine.asked
        ]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "work")


def test_a_wheel_for_each_pull_request_then_the_image(world: World) -> None:
    receipt = world.build(world.session())
    assert world.asked() == ["wheel a1", "wheel b1", "final"]
    body = receipt.body
    assert isinstance(body, BuildBody)
    assert body.hermetic
    assert [(one.name, one.tree) for one in body.wheels] == [
        ("alpha", oid("tree a1")),
        ("beta", oid("tree b1")),
    ]
    found = LayoutReader().read(world.work.root / "layout")
    assert (receipt.platform_digest, body.layers) == (found.platform_digest, found.layers)
    assert not (world.work.root / "build").exists()


def test_a_build_that_stands_is_not_done_again(world: World) -> None:
    session = world.session()
    first = world.build(session)
    assert world.build(session) == first
    assert world.asked() == []


def test_a_changed_pull_request_builds_its_own_wheel_and_no_other(world: World) -> None:
    world.build(world.session())
    world.build(world.session(alpha="a2"))
    assert world.asked() == ["wheel a2", "final"]


def test_a_damaged_layer_is_noticed_and_built_again(world: World) -> None:
    session = world.session()
    first = world.build(session)
    assert isinstance(first.body, BuildBody)
    blob = world.work.root / "layout/blobs/sha256" / first.body.layers[-1].removeprefix("sha256:")
    blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    assert world.build(session).platform_digest == first.platform_digest
    assert world.asked() == ["final"]


def test_without_cache_everything_is_built_again(world: World) -> None:
    session = world.session()
    first = world.build(session)
    second = world.build(session, no_cache=True)
    assert second.platform_digest == first.platform_digest
    assert world.asked() == ["wheel a1", "wheel b1", "final"]
    assert isinstance(first.body, BuildBody) and first.body.again is None
    assert isinstance(second.body, BuildBody) and second.body.again is not None
    assert (second.body.again.platform_digest, second.body.again.count) == (first.platform_digest, 0)


def test_a_failed_wheel_keeps_those_that_are_finished(world: World) -> None:
    session = world.session()
    world.engine.fail = oid("tree b1")
    with pytest.raises(UnavailableError):
        world.build(session)
    assert session.receipt("build") is None
    assert not (world.work.root / "layout").exists()
    world.engine.fail = ""
    world.build(session)
    assert world.asked() == ["wheel b1", "final"]


def test_an_image_whose_label_names_another_lock_is_refused(world: World) -> None:
    world.engine.label = "sha256:" + "0" * 64
    with pytest.raises(RefusedError) as caught:
        world.build(world.session())
    assert caught.value.code == "STALE"


def test_too_little_disk_is_said_with_the_number_before_anything_is_asked(world: World) -> None:
    session = world.session()
    world.free = 10
    with pytest.raises(UnavailableError) as caught:
        world.build(session)
    assert caught.value.code == "DISK_FULL"
    assert "bytes" in caught.value.expected
    assert caught.value.actual == "10 bytes"
    assert world.asked() == []


def test_a_digest_says_which_image_wherever_the_reference_says_it_lies(world: World) -> None:
    session = world.session()
    receipt = world.build(session)
    assert isinstance(receipt.body, BuildBody)
    for digest in (receipt.platform_digest, receipt.body.index_digest):
        for place in ("registry.example/team/image", f"oci:{world.work.root}/layout", "[::1]:5000/x"):
            assert built(session, f"{place}@{digest}") == receipt
    assert built(session, None) == receipt
    for text, code in (
        (f"registry.example/team/image@sha256:{'0' * 64}", "NOT_CLEAN"),
        ("registry.example/team/image:latest", "MUTABLE_REF"),
    ):
        with pytest.raises(PersonError) as caught:
            built(session, text)
        assert (caught.value.code, caught.value.exit_code) == (code, 2)
