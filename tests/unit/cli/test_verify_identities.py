"""Identities in a policy: the real sigstore library on bundles and a trusted root of our own making, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sigstore", reason="tic-manifest[sigstore] is not installed")
sys.path.insert(0, str(Path(__file__).parents[2] / "scenarios" / "lib"))
from delivered import Delivered
from sigstore_world import World
from statements import descriptor
from tic_manifest.adapters.attach import attach
from tic_manifest.formats.statement import Signed

WHO, ISSUER = "release@example.invalid", "https://issuer.invalid"
LABEL = f"{WHO} (issuer {ISSUER})"
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "sigstore":
            raise ImportError("No module named 'sigstore'")
sys.meta_path.insert(0, Blocked())
"""
NO_SOCKETS = """
import socket
def refuse(*_, **__):
    raise AssertionError("a socket was opened")
socket.socket.connect = refuse
socket.create_connection = refuse
socket.getaddrinfo = refuse
"""
Verify = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Delivered:
    monkeypatch.chdir(tmp_path)
    one = Delivered()
    one.close()
    one.files = one.evidence()
    return one


def put(made: Delivered, bundle: bytes, statement: bytes) -> None:
    envelope = json.dumps(json.loads(bundle)["dsseEnvelope"]).encode()
    signed = Signed(bundle=bundle, envelope=envelope)
    attach(
        made.layout.root, descriptor(made.image), descriptor(made.index), statement, made.files, signed=signed
    )


def policy(made: Delivered, world: World, who: str = WHO, issuer: str = ISSUER) -> None:
    made.policy()
    Path("trusted_root.json").write_bytes(world.trusted_root())
    text = Path("policy.yaml").read_text()
    signers = f"signers:\n  - {{identity: {who}, issuer: '{issuer}'}}\ntrusted_root: trusted_root.json\n"
    Path("policy.yaml").write_text(text + signers)


def verify(made: Delivered, guard: str = NO_SOCKETS) -> tuple[int, dict[str, Any], str]:
    argv = [
        "verify",
        "--offline",
        "--policy",
        "policy.yaml",
        "--output",
        "json",
        f"oci:layout@{made.index['digest']}",
    ]
    code = guard + "from tic_manifest.__main__ import main\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def codes(report: dict[str, Any]) -> set[str]:
    return {one["code"] for one in report["findings"] if not one["note"]}


def test_a_listed_identity_passes_and_is_named(made: Delivered, world: World) -> None:
    statement = made.statement(made.files)
    put(made, world.bundle(statement, WHO, ISSUER), statement)
    policy(made, world)
    code, report, said = verify(made)
    assert (code, codes(report)) == (0, set()), said
    assert report["authenticity"] == f"signed by {LABEL}"


@pytest.mark.parametrize(
    ("who", "issuer"),
    [("other@example.invalid", ISSUER), (WHO, "https://other.invalid"), ("https://ci.invalid/x@ref", ISSUER)],
)
def test_a_good_signature_by_somebody_else_is_an_identity_fail_that_names_who(
    made: Delivered, world: World, who: str, issuer: str
) -> None:
    statement = made.statement(made.files)
    put(made, world.bundle(statement, who, issuer), statement)
    policy(made, world)
    code, report, said = verify(made)
    assert (code, codes(report) >= {"IDENTITY"}) == (1, True), said
    found = next(one for one in report["findings"] if one["code"] == "IDENTITY")
    assert (found["expected"], found["actual"]) == ([LABEL], [f"unlisted identity {who}"])
    assert report["authenticity"] == "no accepted signature"


def _other_world(world: World, statement: bytes) -> bytes:
    return World().bundle(statement, WHO, ISSUER)


def _other_payload(world: World, statement: bytes) -> bytes:
    return world.bundle(statement.replace(b"}", b" }", 1), WHO, ISSUER, payload=statement)


def _no_log(world: World, statement: bytes) -> bytes:
    data = json.loads(world.bundle(statement, WHO, ISSUER))
    data["verificationMaterial"]["tlogEntries"] = []
    return json.dumps(data).encode()


def _other_time(world: World, statement: bytes) -> bytes:
    data = json.loads(world.bundle(statement, WHO, ISSUER))
    data["verificationMaterial"]["tlogEntries"][0]["integratedTime"] = "1900000000"
    return json.dumps(data).encode()


def _bad_certificate(world: World, statement: bytes) -> bytes:
    data = json.loads(world.bundle(statement, WHO, ISSUER))
    data["verificationMaterial"]["certificate"]["rawBytes"] = "AAAA"
    return json.dumps(data).encode()


@pytest.mark.parametrize("spoil", [_other_world, _other_payload, _no_log, _other_time, _bad_certificate])
def test_what_the_trusted_root_does_not_prove_never_passes(
    made: Delivered, world: World, spoil: Callable[[World, bytes], bytes]
) -> None:
    statement = made.statement(made.files)
    put(made, spoil(world, statement), statement)
    policy(made, world)
    code, report, said = verify(made)
    assert code == 1 and "IDENTITY" in codes(report), said


def test_without_the_library_identities_are_inconclusive_in_plain_words(
    made: Delivered, world: World
) -> None:
    statement = made.statement(made.files)
    put(made, world.bundle(statement, WHO, ISSUER), statement)
    policy(made, world)
    code, report, said = verify(made, BLOCK)
    assert (code, report["exitCode"], codes(report)) == (3, 3, {"TOOL_MISSING"})
    assert "this installation cannot check them" in said and "tic-manifest[sigstore]" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("signers: [{identity: a@b.invalid}]", "identity and issuer"),
        ("signers: [{name: x, identity: a@b.invalid, issuer: i, pem: p}]", "identity and issuer"),
        ("signers: [{identity: a@b.invalid, issuer: i}]", "trusted_root"),
        ("signers: [{identity: a@b.invalid, issuer: i}]\ntrusted_root: policy.yaml", "trusted root"),
        ("signers: [{identity: a@b.invalid, issuer: i}]\ntrusted_root: gone.json", "trusted root"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_an_error_of_a_person(
    made: Delivered, text: str, words: str
) -> None:
    made.deliver()
    Path("policy.yaml").write_text(f"schema: tic/policy/v1\n{text}\n")
    code, _, said = verify(made)
    assert code == 2 and words in said, said
