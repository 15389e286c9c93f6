"""`--sign-key`: sign the delivery manifest with a key file, its passphrase from TIC_SIGN_PASSPHRASE."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tic_manifest.cli.wiring import read_person_file
from tic_manifest.model.base import Digest

if TYPE_CHECKING:
    from tic_manifest.formats.statement import Signed
    from tic_manifest.ports import ImageSource

PASSPHRASE = "TIC_SIGN_PASSPHRASE"  # noqa: S105 - the name of a variable


def sign(source: ImageSource, platform: Digest, statement: bytes, key_file: Path) -> Signed | None:
    """The Statement signed; None where the same bytes are attached already, signed by this key.

    Raises PersonError USAGE for a key that cannot be used.
    """
    from tic_manifest.formats.canonical import digest_of
    from tic_manifest.formats.signing import public_of, sign_statement, signers_of
    from tic_manifest.stages.attached import find_attached

    pem, passphrase = read_person_file(key_file), os.environ.get(PASSPHRASE, "").encode() or None
    public = public_of(pem, passphrase, str(key_file))
    known = find_attached(source, [platform], partial(signers_of, [public])).candidates
    one = known.get(digest_of(statement))
    return None if one and one.signers else sign_statement(statement, pem, passphrase, str(key_file))
