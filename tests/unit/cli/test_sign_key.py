"""`--sign-key`: signed once, not again with the same key, and a passphrase from the environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tic_manifest.adapters.attach import attach
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.cli.signing import PASSPHRASE, sign
from tic_manifest.errors import PersonError

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import Layout
from statements import EVIDENCE, delivery, descriptor


def test_a_delivery_is_signed_once_by_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(tmp_path / "layout")
    image = descriptor(layout.image())
    layout.save(layout.image())
    raw = delivery(image.digest, None, EVIDENCE)
    attach(layout.root, image, None, raw, EVIDENCE)
    hide = form.BestAvailableEncryption(b"secret")
    pem = Ed25519PrivateKey.generate().private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, hide)
    key = tmp_path / "key.pem"
    key.write_bytes(pem)
    monkeypatch.delenv(PASSPHRASE, raising=False)
    with pytest.raises(PersonError):
        sign(LayoutSource(layout.root), image.digest, raw, key)
    monkeypatch.setenv(PASSPHRASE, "secret")
    signed = sign(LayoutSource(layout.root), image.digest, raw, key)
    assert signed is not None
    attach(layout.root, image, None, raw, EVIDENCE, signed=signed)
    assert sign(LayoutSource(layout.root), image.digest, raw, key) is None
    assert not [path for path in layout.root.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]
