"""The gate's receipt: the facts, bound to a lock and the run of one delivery."""

from __future__ import annotations

from tic_manifest.model.base import Digest
from tic_manifest.model.gate import GateFacts
from tic_manifest.model.receipt import GateBody, Host, Receipt


def gate_receipt(
    lock: Digest, run_id: str, facts: GateFacts, times: tuple[str, str], version: str, host: Host
) -> Receipt:
    """`times` are start and end, UTC. No verdict is in it: `rules.gate.judge` derives it again."""
    return Receipt(
        schema_="tic/receipt/v1",
        run_id=run_id,
        lock_digest=lock,
        platform_digest=None,
        started_at=times[0],
        finished_at=times[1],
        tool_version=version,
        host=host,
        body=GateBody(facts=facts),
    )
