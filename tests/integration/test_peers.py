"""Other tools read what we attach, carry it unbroken, and we read what they attach (contract, section 6).

Tools: cosign, oras, skopeo, crane, from `scripts/engine install`; a missing one is named in the skip.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

sys.path.insert(0, str(Path(__file__).parents[1] / "scenarios" / "lib"))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from delivered import Delivered, new_key, push
from scenarios.httpd import Request, Server
from scenarios.registry import Registry
from scenarios.reply import Reply

SCRIPT = Path(__file__).parents[2] / "scripts" / "registry"
KIND = "https://tic-manifest.dev/delivery/v1"
COPY = ["skopeo", "copy", "-q", "--all", "--src-tls-verify=false", "--dest-tls-verify=false"]


def need(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; scripts/engine install {' '.join(missing)}")


def run(*argv: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(one) for one in argv], capture_output=True, text=True, check=False, env=os.environ | (env or {})
    )
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


class Bench:
    """A signed delivery in a layout and in a registry of Debian's packages."""

    def __init__(self, registry: str, folder: Path) -> None:
        self.registry, self.folder = registry, folder
        private, self.public = new_key()
        (folder / "key.pub").write_bytes(self.public)
        os.chdir(folder)
        self.made = Delivered()
        self.made.close()
        self.made.deliver(key=private)
        self.made.policy()
        self.name = self.repository("team/image")
        push(self.made.layout.root, f"http://{registry}/v2/{folder.name}/team/image")
        self.index, self.image = self.made.index["digest"], self.made.image["digest"]
        self.tags = [one.replace(":", "-") for one in (self.image, self.index)]

    def repository(self, name: str) -> str:
        return f"{self.registry}/{self.folder.name}/{name}"

    def verify(
        self, reference: str, key: str = "key.pub", env: dict[str, str] | None = None
    ) -> dict[str, Any]:
        argv = ["verify", "--output", "json", "--policy", "policy.yaml", "--key", key, reference]
        done = subprocess.run(
            [sys.executable, "-m", "tic_manifest", *argv], capture_output=True, check=False,
            env=os.environ | (env or {}),
        )  # fmt: skip
        report: dict[str, Any] = json.loads(done.stdout)
        return report


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("registry") / "root"
    up = subprocess.run([SCRIPT, "up", "--root", root], capture_output=True, text=True, check=False)
    if up.returncode == 3:
        pytest.skip(f"no registry here: {up.stderr.strip()}")
    assert up.returncode == 0, up.stderr
    yield up.stdout.split()[-1].removeprefix("http://")
    subprocess.run([SCRIPT, "down", "--root", root], check=True, capture_output=True)


@pytest.fixture
def bench(registry: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path_factory.getbasetemp())
    return Bench(registry, tmp_path_factory.mktemp("peers"))


def said(report: dict[str, Any]) -> set[str]:
    return {one["code"] for one in report["findings"] if not one["note"]}


COSIGN = ["cosign", "cosign-3"]
"""The cosign of Debian 13 (2.5) and that of the release after it (3.1), beside each other."""


@pytest.mark.parametrize("cosign", COSIGN)
def test_cosign_accepts_our_attestation_for_platform_and_index(bench: Bench, cosign: str) -> None:
    need(cosign)
    for digest in (bench.image, bench.index):
        out = run(
            cosign, "verify-attestation", "--key", "key.pub", "--insecure-ignore-tlog=true", "--offline",
            "--allow-http-registry", "--type", KIND, f"{bench.name}@{digest}",
        )  # fmt: skip
        assert '"payloadType":"application/vnd.in-toto+json"' in out


def without_log(cosign: str) -> list[str]:
    """How each version is told to use no transparency log: 3.1 wants services named, and here there are none."""
    if cosign == "cosign":
        return ["--tlog-upload=false"]
    Path("no-services.json").write_text(
        '{"mediaType":"application/vnd.dev.sigstore.signingconfig.v0.2+json","rekorTlogConfig":{},"tsaConfig":{}}'
    )
    return ["--signing-config", "no-services.json"]


@pytest.mark.parametrize("cosign", COSIGN)
def test_we_accept_an_attestation_that_cosign_made(bench: Bench, cosign: str) -> None:
    need(cosign)
    secret = {"COSIGN_PASSWORD": "test"}
    run(cosign, "generate-key-pair", env=secret)
    statement = json.loads(bench.made.statement(bench.made.files, supersede=False))
    Path("predicate.json").write_text(json.dumps(statement["predicate"]))
    for digest in (bench.image, bench.index):
        run(
            cosign, "attest", "--yes", "--key", "cosign.key", *without_log(cosign), "--allow-http-registry",
            "--predicate", "predicate.json", "--type", KIND, f"{bench.name}@{digest}", env=secret,
        )  # fmt: skip
    report = bench.verify(f"{bench.name}@{bench.image}", "cosign.pub")
    assert report["authenticity"].startswith("signed by key sha256:"), report["findings"]
    assert report["outcome"] == "pass", report["findings"]


def test_oras_shows_what_is_attached(bench: Bench) -> None:
    need("oras")
    out = run("oras", "discover", "--plain-http", f"{bench.name}@{bench.image}")
    assert "application/vnd.dev.sigstore.bundle.v0.3+json" in out
    assert "application/vnd.tic-manifest.evidence.v1" in out
    local = run("oras", "discover", "--oci-layout", f"layout@{bench.index}")
    assert "application/vnd.dev.sigstore.bundle.v0.3+json" in local


@pytest.mark.parametrize("there", ["registry", "layout"])
def test_skopeo_carries_image_and_fallback_tags(bench: Bench, there: str) -> None:
    need("skopeo")
    target = f"docker://{bench.repository('copy/skopeo')}" if there == "registry" else "oci:copied"
    place = bench.repository("copy/skopeo") if there == "registry" else "oci:copied"
    run(*COPY, f"docker://{bench.name}@{bench.index}", f"{target}:latest")
    alone = bench.verify(f"{place}@{bench.index}")
    assert (alone["exitCode"], said(alone)) == (3, {"DELIVERY_MISSING"})
    assert "skopeo copy --all" in alone["findings"][0]["remedy"]
    for tag in bench.tags:
        run(*COPY, f"docker://{bench.name}:{tag}", f"{target}:{tag}")
    assert bench.verify(f"{place}@{bench.index}")["outcome"] == "pass"
    assert bench.verify(f"{place}@{bench.image}")["outcome"] == "pass"


@pytest.mark.parametrize("there", ["registry", "layout"])
def test_oras_carries_everything(bench: Bench, there: str) -> None:
    need("oras")
    target = bench.repository("copy/oras") if there == "registry" else "carried"
    kind = "--to-plain-http" if there == "registry" else "--to-oci-layout"
    run("oras", "cp", "-r", "--from-plain-http", kind, f"{bench.name}@{bench.index}", f"{target}:latest")
    place = target if there == "registry" else f"oci:{target}"
    assert bench.verify(f"{place}@{bench.index}")["outcome"] == "pass"


@pytest.mark.parametrize("tool", ["skopeo", "oras"])
def test_a_layout_goes_into_a_registry(bench: Bench, tool: str) -> None:
    """The other direction: a carried layout is pushed, and keeps the verdict there."""
    need(tool)
    there = bench.repository(f"pushed/{tool}")
    if tool == "oras":
        run(
            "oras",
            "cp",
            "-r",
            "--from-oci-layout",
            "--to-plain-http",
            f"layout@{bench.index}",
            f"{there}:latest",
        )
    else:
        for tag in ("latest", *bench.tags):
            run(*COPY, f"oci:layout:{tag}", f"docker://{there}:{tag}")
    for digest in (bench.index, bench.image):
        assert bench.verify(f"{there}@{digest}")["outcome"] == "pass"


def test_the_commands_of_the_guide_carry_everything(bench: Bench) -> None:
    """Each block of docs/verify.md that copies, run as it stands: afterwards the verdict is there as well."""
    need("skopeo", "oras")
    shutil.copytree("layout", ".tic/layout")
    blocks = [block for block in guide_blocks() if any(line.startswith(CARRIES) for line in block)]
    assert len(blocks) == 3
    for number, block in enumerate(blocks):
        there = bench.repository(f"guide/{number}")
        for line in block:
            run(*spelled_out(bench, line, there))
        report = bench.verify(f"{there}@{bench.index}")
        assert report["outcome"] == "pass", (block, report["findings"])


@pytest.mark.parametrize("stops_at", [1, 4, 9])
def test_a_push_that_dies_leaves_no_tag_and_the_same_command_goes_on(
    bench: Bench, tmp_path: Path, stops_at: int
) -> None:
    need("oras")
    store, puts = Registry(tmp_path / "store", tmp_path), 0

    def answer(request: Request) -> Any:
        nonlocal puts
        puts += request.method == "PUT"
        return Reply(403) if request.method == "PUT" and puts == stops_at else store.answer(request)

    server = Server(answer)
    try:
        there = f"{server.address}/team/image"
        push_it = ["oras", "cp", "-r", "--concurrency", "1", "--from-oci-layout", "--to-plain-http"]
        push_it += [f"layout@{bench.index}", f"{there}:delivered"]
        assert subprocess.run(push_it, capture_output=True, check=False).returncode != 0
        assert (
            requests.get(f"http://{server.address}/v2/team/image/manifests/delivered", timeout=9).status_code
            == 404
        )
        run(*push_it)
        assert run("oras", "resolve", "--plain-http", f"{there}:delivered").strip() == bench.index
        assert bench.verify(f"{there}@{bench.index}")["outcome"] == "pass"
    finally:
        server.close()


CARRIES = ("skopeo copy", "oras cp")


def guide_blocks() -> list[list[str]]:
    """The lines of each code block of the guide, without comments."""
    text = (Path(__file__).parents[2] / "docs" / "verify.md").read_text()
    blocks = text.split("```")[1::2]
    return [
        [line.partition(" #")[0].strip() for line in block.splitlines() if line.strip()] for block in blocks
    ]


def spelled_out(bench: Bench, line: str, there: str) -> list[str]:
    """A line of the guide with its places filled in, over plain HTTP as the registry is on loopback."""
    for word, value in {
        "HEX_OF_PLATFORM": bench.image[7:], "HEX_OF_INDEX": bench.index[7:], "sha256:INDEX": bench.index,
        "SRC": bench.name, "DST:TAG": f"{there}:delivered", "DST": there,
    }.items():  # fmt: skip
        line = line.replace(word, value)
    argv = line.split()
    if argv[0] == "skopeo":
        return [*COPY, *argv[3:]]
    if argv[0] == "oras":
        plain = [f"--{side}-plain-http" for side in ("from", "to") if f"--{side}-oci-layout" not in argv]
        return [*argv[:2], *plain, *argv[2:]]
    return [sys.executable, "-m", "tic_manifest", *argv[1:]]


def test_the_engine_loads_the_delivered_layout_and_keeps_its_digests(bench: Bench) -> None:
    """What is attached does not disturb `docker load`; what it saves again is the same image, read as an archive."""
    need("docker")
    script = Path(__file__).parents[2] / "scripts" / "engine"
    run(script, "up")
    env = dict(re.findall(r"(DOCKER_HOST)=['\"]?([^'\"\s]+)", run(script, "env")))
    run("tar", "-C", "layout", "-cf", "layout.tar", ".")
    run("docker", "load", "-q", "-i", "layout.tar", env=env)
    try:
        assert (
            run("docker", "image", "inspect", "--format", "{{.Id}}", bench.index, env=env).strip()
            == bench.index
        )
        run("docker", "save", "-o", "saved.tar", bench.index, env=env)
    finally:
        run("docker", "rmi", "-f", bench.index, env=env)
    for digest in (bench.index, bench.image):
        report = bench.verify(f"docker-archive:saved.tar@{digest}")
        assert said(report) == {"DELIVERY_MISSING"}, report["findings"]
        rows = {row["id"]: row["status"] for row in report["checks"]}
        assert rows["image.documents"] == rows["image.bytes"] == "pass"


def test_an_archive_that_skopeo_wrote_holds_the_manifest_that_the_engine_makes_of_it(bench: Bench) -> None:
    need("skopeo")
    run("skopeo", "copy", "-q", "oci:layout:latest", "docker-archive:old.tar:team/image:latest")
    report = bench.verify(f"docker-archive:old.tar@{bench.image}")
    assert report["exitCode"] == 1 and "MANIFEST_DIGEST" in said(report)
    [told] = [one["what"] for one in report["findings"] if one["note"]]
    config = json.loads(bench.made.layout.path(bench.image).read_bytes())["config"]["digest"]
    assert "re-encoded copy" in told and config in told


def test_a_mirror_of_registries_conf_answers_for_a_registry_that_is_gone(bench: Bench) -> None:
    host, _, path = bench.name.partition("/")
    Path("registries.conf").write_text(
        f'[[registry]]\nlocation = "gone.invalid"\n[[registry.mirror]]\nlocation = "{host}"\n'
    )
    env = {"CONTAINERS_REGISTRIES_CONF": str(Path("registries.conf").absolute())}
    assert bench.verify(f"gone.invalid/{path}@{bench.index}", env=env)["outcome"] == "pass"
    assert bench.verify(f"gone.invalid/{path}@{bench.index}")["exitCode"] == 3


def test_crane_agrees_on_the_platform_manifest(bench: Bench) -> None:
    need("crane")
    assert run("crane", "digest", "--platform", "linux/amd64", f"{bench.name}:latest").strip() == bench.image
    run("crane", "validate", "--remote", f"{bench.name}@{bench.image}")
