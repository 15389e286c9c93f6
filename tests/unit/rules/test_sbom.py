"""The SBOM: valid by CycloneDX's own schema, the same bytes each time, and nothing but what the lock says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deliveries as d
import pytest
from tic_manifest.adapters.attach import attach
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.lock import read_lock
from tic_manifest.model.delivery import SBOM_FILE, SBOM_TYPE
from tic_manifest.model.lock import DebianRoot, ImageRoot, LockedFile, LockedPython
from tic_manifest.model.receipt import BuiltWheel
from tic_manifest.model.verdict import State, Status
from tic_manifest.rules.delivery import judge_evidence
from tic_manifest.rules.dossier import Dossier, read_dossier
from tic_manifest.rules.sbom import judge_sbom, sbom_bytes

WHEEL = BuiltWheel(
    name="alpha", tree="d" * 40, file="Alpha_x-1.2+local-py3-none-any.whl", digest=d.digest("wheel"), size=3
)


def file(name: str, version: str, where: str) -> LockedFile:
    return LockedFile(name=name, version=version, file=where, sha256=d.sha(where), size=7)


def dossier(count: int = 2, base: Any = None, **more: bytes) -> Dossier:
    """A delivery whose image holds `count` distributions, three Debian packages and one built wheel."""
    loaded = d.lock()
    runtime = tuple(
        file(f"Dist_{n}.x", f"1.{n}+cpu", f"Dist_{n}.x-1.{n}+cpu-py3-none-any.whl") for n in range(count)
    )
    root = base or DebianRoot(
        suite="bookworm", architecture="amd64",
        packages=(
            file("libc6", "2.36-9+deb12u10", "libc6_2.36-9+deb12u10_amd64.deb"),
            file("adduser", "3.134", "adduser_3.134_all.deb"), file("zlib1g", "1:1.2.13.dfsg-1", "zlib1g_1%3a1.2.13.dfsg-1_amd64.deb"),
        ),
    )  # fmt: skip
    python = LockedPython(
        version="3.11", runtime=runtime, build=(file("setuptools", "70", "setuptools-70.whl"),)
    )
    lock = read_lock(
        canonical_bytes(loaded.lock.model_copy(update={"python": python, "base": root})), "lock.json"
    )
    body = d.build_body(wheels=(WHEEL,))
    return read_dossier({"lock.json": lock.raw, "receipts/build.json": d.receipt(lock, body), **more})


def components(made: bytes | None) -> dict[str, dict[str, Any]]:
    assert made is not None
    return {one["purl"]: one for one in json.loads(made)["components"]}


def valid(made: bytes | None) -> None:
    json_validation = pytest.importorskip(
        "cyclonedx.validation.json", reason="cyclonedx-python-lib is not installed"
    )
    from cyclonedx.schema import SchemaVersion

    assert made is not None
    assert json_validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(made.decode()) is None


IMAGE = ImageRoot(
    reference="registry.example:5000/team/Base@" + d.digest("base"), index_digest=None, platform_digest=d.digest("base"),
    config_digest=d.digest("c"), layers=(d.digest("l"),),
)  # fmt: skip


@pytest.mark.parametrize(
    "base", [None, IMAGE, IMAGE.model_copy(update={"reference": "oci:some/Dir@" + d.digest("base")})]
)
def test_it_is_valid_by_the_published_schema(base: Any) -> None:
    made = sbom_bytes(dossier(base=base))
    valid(made)
    spoiled = json.loads(made or b"")
    spoiled["components"][0]["type"] = "thing"
    with pytest.raises(AssertionError):
        valid(json.dumps(spoiled).encode())


def test_it_holds_every_distribution_package_and_built_wheel_and_no_build_tool() -> None:
    found = components(sbom_bytes(dossier()))
    assert set(found) == {
        "pkg:pypi/dist-0-x@1.0%2Bcpu", "pkg:pypi/dist-1-x@1.1%2Bcpu",
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64&distro=bookworm",
        "pkg:deb/debian/adduser@3.134?arch=all&distro=bookworm",
        "pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?arch=amd64&distro=bookworm",
        "pkg:generic/alpha-x@1.2%2Blocal?vcs_url=git%2Bhttps%3A%2F%2Fforge.invalid%2Fdemo%2Falpha.git%40" + "b" * 40,
    }  # fmt: skip
    wheel = found["pkg:pypi/dist-0-x@1.0%2Bcpu"]
    assert wheel["hashes"] == [{"alg": "SHA-256", "content": d.sha("Dist_0.x-1.0+cpu-py3-none-any.whl")}]
    built = next(one for purl, one in found.items() if purl.startswith("pkg:generic"))
    assert built["pedigree"]["commits"] == [
        {"uid": "b" * 40, "url": "https://forge.invalid/demo/alpha/pull/1"}
    ]
    assert (
        built["externalReferences"][0]["type"] == "vcs"
        and "b" * 40 in built["externalReferences"][0]["comment"]
    )
    assert built["hashes"][0]["content"] == d.sha("wheel")


def test_a_base_image_is_named_and_its_content_is_not_claimed() -> None:
    made = sbom_bytes(dossier(base=IMAGE))
    base = next(one for one in components(made).values() if one["type"] == "container")
    assert base["version"] == d.digest("base") and "repository_url=registry.example%3A5000" in base["purl"]
    assert json.loads(made or b"")["compositions"][0]["aggregate"] == "incomplete"


def test_equal_evidence_gives_equal_bytes_without_a_time() -> None:
    one, two = sbom_bytes(dossier()), sbom_bytes(dossier())
    assert one == two and b"timestamp" not in (one or b"")
    other = sbom_bytes(dossier(3))
    serials = [json.loads(raw or b"")["serialNumber"] for raw in (one, other)]
    assert serials[0] != serials[1] and serials[0].startswith("urn:uuid:")


def test_a_thousand_distributions_stay_small_and_every_reference_is_unique() -> None:
    made = sbom_bytes(dossier(1000))
    valid(made)
    assert made is not None and len(made) <= 8 << 20
    refs = [one["bom-ref"] for one in json.loads(made)["components"]]
    assert len(refs) == len(set(refs)) == 1004


@pytest.mark.parametrize(
    "spoil", [lambda raw: raw.replace(b"dist-0-x", b"dist-0-y"), lambda raw: raw + b"\n", lambda raw: b"{}"]
)
def test_an_sbom_that_does_not_follow_is_a_fail(spoil: Any) -> None:
    whole = dossier()
    made = sbom_bytes(whole) or b""
    (check,), found = judge_sbom(read_dossier({**whole.files, SBOM_FILE: made}))
    assert (check.status, found) == (Status.PASS, [])
    (check,), found = judge_sbom(read_dossier({**whole.files, SBOM_FILE: spoil(made)}))
    assert (check.status, [one.code for one in found]) == (Status.FAIL, ["SBOM_MISMATCH"])


def test_none_at_all_is_not_run_and_out_of_scope_unless_it_is_asked_for() -> None:
    whole = dossier()
    judged = judge_evidence(whole, d.image(whole.lock))
    row = next(one for one in judged.checks if one.id == "delivery.sbom")
    assert (row.status, row.state) == (Status.NOT_RUN, State.OUT_OF_SCOPE)
    assert not [one for one in judged.findings if one.subject == "delivery.sbom"]


def test_a_wheel_of_no_pull_request_is_listed_without_a_commit() -> None:
    loaded = d.lock()
    body = d.build_body(wheels=(WHEEL.model_copy(update={"name": "other"}),))
    made = sbom_bytes(read_dossier({"lock.json": loaded.raw, "receipts/build.json": d.receipt(loaded, body)}))
    valid(made)
    assert any(purl == "pkg:generic/alpha-x@1.2%2Blocal" for purl in components(made))


def test_it_is_attached_as_an_artifact_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    sys.path.insert(0, str(Path(__file__).parents[2] / "scenarios" / "lib"))
    from delivered import Delivered
    from quiet import Quiet
    from tic_manifest.adapters.blobs import read_blobs
    from tic_manifest.formats.reference import parse_reference
    from tic_manifest.rules.delivery import judge_delivery
    from tic_manifest.stages.verify import Options, Tools, verify

    def judged() -> tuple[dict[str, str], set[str]]:
        tools = Tools(reader=read_blobs, judge=judge_delivery, progress=Quiet())
        report = verify(
            LayoutSource(made.layout.root),
            parse_reference(f"oci:layout@{made.index['digest']}"),
            Options(),
            tools,
        )
        states = {one.id: one.status.value for one in report.checks}
        return states, {one.code for one in report.findings}

    monkeypatch.chdir(tmp_path)
    made = Delivered()
    made.close()
    files = made.evidence()
    files[SBOM_FILE] = sbom_bytes(read_dossier(files)) or b""
    made.attach(made.statement(files), files)
    about = LayoutSource(made.layout.root).referrers(made.image["digest"]).entries
    assert [one.artifact_type for one in about].count(SBOM_TYPE) == 1
    states, codes = judged()
    assert states["delivery.sbom"] == "pass" and "FOREIGN_ARTIFACT" not in codes
    files[SBOM_FILE] = files[SBOM_FILE].replace(b"alpha", b"gamma")
    made.attach(made.statement(files), files)
    states, codes = judged()
    assert states["delivery.sbom"] == "fail" and "SBOM_MISMATCH" in codes


def test_an_sbom_of_another_tool_is_listed_and_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    sys.path.insert(0, str(Path(__file__).parents[2] / "scenarios" / "lib"))
    from delivered import Delivered
    from statements import descriptor
    from tic_manifest.stages.attached import find_attached

    monkeypatch.chdir(tmp_path)
    made = Delivered()
    made.close()
    made.deliver()
    attach(
        made.layout.root, descriptor(made.image), None, b"not a statement of ours", {SBOM_FILE: b"not JSON"}
    )
    found = find_attached(LayoutSource(made.layout.root), [made.image["digest"]])
    assert [(one.code, one.actual) for one in found.foreign_sboms()] == [("FOREIGN_ARTIFACT", SBOM_TYPE)]
