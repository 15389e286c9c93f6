"""Accepted signers of `verify`: keys of the command line and of the policy, and the policy's identities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tic_manifest.cli.wiring import read_person_file

if TYPE_CHECKING:
    from tic_manifest.formats.signing import PublicKey
    from tic_manifest.formats.statement import Envelope
    from tic_manifest.model.policy import Policy
    from tic_manifest.stages.attached import Signers


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """Names of accepted signers, and who finds out which of them signed; no names ask for no signature."""

    names: list[str]
    signers: Signers | None


def accepted(files: tuple[Path, ...], policy: Policy, policy_file: Path | None) -> Accepted:
    """The signers that count. Raises PersonError for a key or trusted root, UnavailableError TOOL_MISSING."""
    identities = [one for one in policy.signers if one.identity is not None]
    keys = _keys(files, policy)
    checks: list[Signers] = []
    if keys:
        from functools import partial

        from tic_manifest.formats.signing import signers_of

        checks.append(partial(signers_of, keys))
    if identities:
        from tic_manifest.adapters.identities import Identities

        folder = policy_file.parent if policy_file else Path()
        checks.append(Identities(identities, folder / str(policy.trusted_root)))
    names = [*(key.name for key in keys), *(one.label for one in identities)]
    return Accepted(names=names, signers=_all(checks) if checks else None)


def _all(checks: list[Signers]) -> Signers:
    def signers(envelope: Envelope) -> set[str]:
        return set().union(*(check(envelope) for check in checks))

    return signers


def _keys(files: tuple[Path, ...], policy: Policy) -> list[PublicKey]:
    named = [one for one in policy.signers if one.pem is not None]
    if not files and not named:
        return []
    from tic_manifest.formats.signing import read_public_key

    of_policy = [
        read_public_key(str(one.pem).encode(), f"signer {one.name} of the policy", one.label) for one in named
    ]
    return [*of_policy, *(read_public_key(read_person_file(file), str(file)) for file in files)]
