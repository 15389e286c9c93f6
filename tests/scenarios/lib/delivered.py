"""A whole delivery in a layout and in the scenario's registry, with real digests; scenarios spoil parts of it.

Run as the library of a `make`: it works in the current folder and writes `vars.json`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "kit"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "unit"))
import archives
import deliveries as d
import observations
from layouts import Edit, Layout, digest_of, layers_of
from push import push
from quiet import Quiet
from statements import descriptor
from tic_manifest.adapters.attach import attach
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.adapters.layout_compare import compare
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.git_ids import object_id, tree_id
from tic_manifest.formats.lock import LoadedLock, read_lock
from tic_manifest.formats.signing import sign_statement
from tic_manifest.formats.tree_listing import listing_bytes
from tic_manifest.formats.wheel_records import records_bytes
from tic_manifest.model.lock import ImageRoot
from tic_manifest.model.oci import JudgedImage
from tic_manifest.model.receipt import BuiltWheel, ProbeBody, ValidateBody, WorkerRun
from tic_manifest.model.wheels import WheelRecord
from tic_manifest.rules.source_evidence import WHEELS
from tic_manifest.stages.assemble import Earlier, assemble
from tic_manifest.stages.attached import head_statement
from tic_manifest.stages.verify_image import read_image

__all__ = ["Delivered", "Layout", "archives", "digest_of", "layers_of"]
POLICY = """schema: tic/policy/v1
out_of_scope: [{names}]
"""


class _Clock:
    def now(self) -> str:
        return d.WHEN


class Delivered:
    """The layout `layout`; `image` and `index` are descriptors as plain JSON data."""

    def __init__(self, folder: str = "layout", lock: LoadedLock | None = None, **image: Any) -> None:
        self.lock = lock or d.lock()
        self.more: dict[str, bytes] = {}
        """Evidence beside what every delivery has, by name."""
        self.body: dict[str, Any] = {}
        """What the body of the build's receipt says in place of the usual."""
        self.probes: dict[str, dict[str, Any]] = {}
        """Observations by role; see `observed`."""
        self.validated: dict[str, Any] = {}
        """Fields of the validation's receipt in place of the usual."""
        self.layout = Layout(Path(folder).absolute())
        self.images = [self.make(**image)]
        self.vars: dict[str, str] = {}
        self.files: dict[str, bytes] = {}

    @property
    def image(self) -> dict[str, Any]:
        return self.images[0]

    def make(
        self,
        architecture: str = "amd64",
        env: tuple[str, ...] = ("PATH=/usr/bin",),
        edit: Edit = bytes,
        encoding: str = "gzip",
        files: Sequence[Mapping[str, bytes]] = (),
        start: Mapping[str, Any] | None = None,
        variant: str | None = None,
    ) -> dict[str, Any]:
        """A platform manifest that bears the lock's label; `start` are further keys of its run settings."""
        labels = {"org.tic-manifest.lock": self.lock.digest}
        return self.layout.image(
            encoding, architecture=architecture, env=env, edit=edit, labels=labels, files=files, start=start,
            variant=variant,
        )  # fmt: skip

    def add(self, architecture: str, variant: str | None = None, **image: Any) -> dict[str, Any]:
        """Another platform of the image index."""
        self.images.append(self.make(architecture, variant=variant, **image))
        if variant:
            self.images[-1]["platform"]["variant"] = variant
        return self.images[-1]

    def close(self, edit: Edit = bytes) -> dict[str, Any]:
        """Write the image index, with an attestation child as BuildKit adds it."""
        self.index = self.layout.index([*self.images, self.layout.attestation(self.image)], edit)
        self.layout.save(self.index, "latest")
        return self.index

    def evidence(self, which: int = 0, **receipts: Any) -> dict[str, bytes]:
        """All evidence of the delivery of one platform; `receipts` changes fields of the build receipt."""
        image = self.judged(which)
        rollout, trainer = d.scores("rollout", -1.0, -2.0), d.scores("trainer", -1.0, -2.0)
        runs = (d.run("rollout", rollout), d.run("trainer", trainer, needs=("rollout",)))
        body = d.build_body(
            index_digest=image.index_digest, config_digest=image.manifest.config.digest,
            layers=tuple(layer.digest for layer in image.manifest.layers), **self.body,
        )  # fmt: skip
        platform = {"platform_digest": image.platform_digest}
        files = {
            "lock.json": self.lock.raw, "build.log": b"log", "approval.json": d.approval(self.lock),
            "receipts/build.json": d.receipt(self.lock, body, **(platform | receipts)),
            "receipts/probe.json": d.receipt(self.lock, ProbeBody(runs=tuple(self._probed())), **platform),
            "receipts/validate.json": d.receipt(
                self.lock, ValidateBody(runs=runs), **(platform | self.validated)
            ),
        }  # fmt: skip
        for name, one in (("rollout", rollout), ("trainer", trainer)):
            files |= {f"runs/{name}/{file}": data for file, data in one.items()}
        probes = {
            f"runs/probe_{role}/probe.json": json.dumps(one).encode() for role, one in self.probes.items()
        }
        return files | probes | self.more

    def _probed(self) -> list[WorkerRun]:
        return [
            d.run(f"probe_{role}", {"probe.json": json.dumps(one).encode()}, role=role, command=(role,))
            for role, one in self.probes.items()
        ]

    def judged(self, which: int = 0) -> JudgedImage:
        read = read_image(LayoutSource(self.layout.root), self.index["digest"])
        digest = self.images[which]["digest"]
        return next(one for one in read.images if one.platform_digest == digest)

    def statement(self, files: Mapping[str, bytes], which: int = 0, *, supersede: bool = True) -> bytes:
        """The delivery manifest that follows from evidence, superseding what is attached already."""
        image = self.judged(which)
        head = head_statement(LayoutSource(self.layout.root), image.platform_digest) if supersede else None
        earlier = Earlier(digest=head.digest, raw=head.raw, statement=head.value) if head else None
        return assemble(files, image, earlier, _Clock(), "0").statement

    def attach(
        self,
        statement: bytes,
        files: Mapping[str, bytes],
        which: int = 0,
        *,
        key: bytes | None = None,
        index: bool = True,
    ) -> None:
        signed = sign_statement(statement, key, None, "key") if key else None
        about = descriptor(self.index) if index else None
        attach(self.layout.root, descriptor(self.images[which]), about, statement, dict(files), signed=signed)

    def repeats(self, earlier: Delivered) -> None:
        """Say in the build's receipt what a build without cache of the same lock found in an earlier one."""
        places = [(one.layout.root, one.index["digest"]) for one in (earlier, self)]
        self.body["again"] = compare(places[0], places[1], Quiet())

    def deliver(self, *, key: bytes | None = None, which: int = 0, **receipts: Any) -> bytes:
        """Assemble and attach; the bytes of the delivery manifest."""
        self.files = self.evidence(which, **receipts)
        made = self.statement(self.files, which)
        self.attach(made, self.files, which, key=key)
        return made

    def policy(self, *names: str, **more: Any) -> None:
        """Write `policy.yaml`: what this small delivery never measures is out of scope, and said to be so."""
        unmeasured = ("gate.alpha", "probe", "full_zero_update", "theta0_2", "performance", *names)
        Path("policy.yaml").write_text(POLICY.format(names=", ".join(unmeasured)))

    def save(self, **more: str) -> None:
        """Push what the layout holds, and write the values that `command.json` and `expect.json` use."""
        push(self.layout.root, f"{os.environ['REGISTRY']}/v2/team/image")
        config = json.loads(self.layout.path(self.image["digest"]).read_bytes())["config"]["digest"]
        told = {
            "image": self.image["digest"], "index": self.index["digest"], "config": config,
            "layer": layers_of(self.layout, self.image)[1]["digest"],
            "fallback": self.image["digest"].replace(":", "-"),
        }  # fmt: skip
        Path("vars.json").write_text(json.dumps(told | more))


PROBED = """workers:
  probe_rollout: {stage: probe, role: rollout, command: [rollout]}
"""


def observed(edit: Callable[[dict[str, Any]], object] = dict, recipe: bytes = d.RECIPE) -> Delivered:
    """A delivery whose rollout was probed; `edit` spoils the observation."""
    t = Delivered(lock=d.lock(recipe.replace(b"workers:\n", PROBED.encode())))
    report = observations.clean_report()
    edit(report)
    t.probes["rollout"] = report
    return t


def built(file: str, tree: str = "d" * 40) -> BuiltWheel:
    """The wheel of the pull request `alpha`, as the build's receipt names it."""
    return BuiltWheel(name="alpha", tree=tree, file=file, digest=d.digest("wheel"), size=3)


SITE = "opt/venv/lib/python3.11/site-packages"


def wheel(files: Mapping[str, bytes], name: str = "alpha") -> dict[str, bytes]:
    """The files of an installed distribution, with its RECORD, by path from the root."""
    info = f"{name}-1.dist-info"
    rows = [_row(path, data) for path, data in files.items()]
    record = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    return {f"{SITE}/{path}": data for path, data in files.items()} | {f"{SITE}/{info}/RECORD": record}


def _row(path: str, data: bytes) -> str:
    text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={text},{len(data)}"


def new_key() -> tuple[bytes, bytes]:
    """A private and a public PEM of an ECDSA P-256 key made now."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    key = generate_private_key(SECP256R1())
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    spki = form.PublicFormat.SubjectPublicKeyInfo
    return private, key.public_key().public_bytes(form.Encoding.PEM, spki)


def head_of(tree: Mapping[str, bytes]) -> tuple[str, str, bytes]:
    """A commit, its tree and the listing that travels as evidence."""
    rows = [("100644", object_id(b"blob", data), path.encode()) for path, data in tree.items()]
    root = tree_id(rows)
    who = "A <a@example.com> 1767225600 +0000"
    raw = f"tree {root}\nauthor {who}\ncommitter {who}\n\nhead\n".encode()
    return object_id(b"commit", raw), root, listing_bytes(raw, rows)


def relocked(commit: str, tree: str, recipe: bytes = d.RECIPE) -> LoadedLock:
    """The lock of the usual recipe with a real head."""
    made = d.lock(recipe.replace(b"b" * 40, commit.encode()))
    [pull] = made.lock.pull_requests
    pulls = (pull.model_copy(update={"head_tree": tree, "merge_tree": tree}),)
    return read_lock(canonical_bytes(made.lock.model_copy(update={"pull_requests": pulls})), "lock.json")


def record_of(wheel: BuiltWheel, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The evidence that holds the RECORD of a wheel."""
    record = "\n".join(_row(path, data) for path, data in files.items()) + "\n"
    made = WheelRecord(file=wheel.file, sha256=wheel.digest.removeprefix("sha256:"), record=record)
    return {WHEELS: records_bytes([made])}


def on_base(name: str, layers: Sequence[str]) -> LoadedLock:
    """The lock of the usual recipe on an image by digest."""
    made = d.lock().lock
    root = ImageRoot(
        reference=f"{name}@{d.digest('base')}", index_digest=None, platform_digest=d.digest("base"),
        config_digest=d.digest("base config"), layers=tuple(layers),
    )  # fmt: skip
    return read_lock(canonical_bytes(made.model_copy(update={"base": root})), "lock.json")
