"""What a registry may do wrong on the wire: each fault that goes away is none, each that stays is named."""

from __future__ import annotations

import email.utils
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.blobs import read_blobs
from tic_manifest.adapters.registry import RegistrySource
from tic_manifest.adapters.registry_http import MAX_WAIT_SECONDS, RegistryHttp
from tic_manifest.formats.reference import parse_reference
from tic_manifest.stages.verify import Options, Tools, verify

sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from quiet import Quiet
from scenarios.httpd import Request, Server
from scenarios.reply import Reply
from test_registry import REPO, Bench, agree, bench, codes  # noqa: F401 - the fixture

Answer = dict[str, Any]


def size(bench: Bench) -> int:  # noqa: F811
    return bench.layout.path(bench.layer).stat().st_size


def closing(**headers: str) -> Answer:
    return {"headers": {**headers, "Connection": "close"}}


ONCE: list[tuple[str, Callable[[int], list[Answer]]]] = [
    ("a delay", lambda n: [{"delay_ms": 300}]),
    ("429 with Retry-After", lambda n: [{"status": 429, "headers": {"Retry-After": "0"}}, {}]),
    ("502 then 504", lambda n: [{"status": 502, "headers": {"Retry-After": "0"}},
                                {"status": 504, "headers": {"Retry-After": "0"}}, {}]),
    ("no byte, then all", lambda n: [{"reset": True}, {}]),
    ("an early end, twice", lambda n: [{"truncate": 10}, {"truncate": 10}, {}]),
    ("a Content-Length that is too long", lambda n: [closing(**{"Content-Length": str(n + 9)}) | {"truncate": n}, {}]),
    ("a Content-Length that is too short", lambda n: [closing(**{"Content-Length": str(n - 9)}), {}]),
    ("a range that is ignored", lambda n: [{"truncate": 50}, {"status": 200, "body_from": "layer"}]),
]  # fmt: skip


@pytest.mark.parametrize("answers", [row[1] for row in ONCE], ids=[row[0] for row in ONCE])
def test_a_fault_that_goes_away(bench: Bench, tmp_path: Path, answers: Callable[[int], list[Answer]]) -> None:  # noqa: F811
    shutil.copy(bench.layout.path(bench.layer), tmp_path / "layer")
    bench.script(**{f"GET blobs/{bench.layer}": answers(size(bench)), f"HEAD blobs/{bench.layer}": [{}]})
    assert bench.judge().outcome.value == "pass"


def ranged(text: str, status: int = 206) -> Answer:
    return {"status": status, "headers": {"Content-Range": text}, "body": "x" * 40}


ALWAYS: list[tuple[str, list[Answer]]] = [
    ("the rest from another place", [{"truncate": 50}, ranged("bytes 0-39/40")]),
    ("a rest without a range", [{"truncate": 50}, {"status": 206, "body": "x" * 40}]),
    ("a rest that is gone", [{"truncate": 50}, {"status": 404}]),
    ("a range that cannot be", [{"truncate": 50}, {"status": 416}]),
]


@pytest.mark.parametrize("answers", [row[1] for row in ALWAYS], ids=[row[0] for row in ALWAYS])
def test_a_rest_that_is_none_is_never_joined_to_what_came(bench: Bench, answers: list[Answer]) -> None:  # noqa: F811
    bench.script(**{f"GET blobs/{bench.layer}": answers, f"HEAD blobs/{bench.layer}": [{}]})
    report = bench.judge()
    assert (report.exit_code, codes(report)) == (1, {"BLOB_DIGEST"})
    [found] = [one for one in report.findings if one.code == "BLOB_DIGEST"]
    assert found.evidence["bytesRead"] == 50, "the bytes of the first answer alone"


@pytest.mark.parametrize("length", [-1, 1])
def test_a_length_that_head_lies_about(bench: Bench, length: int) -> None:  # noqa: F811
    told = {"headers": {"Content-Length": str(size(bench) + length)}}
    bench.script(**{f"HEAD blobs/{bench.layer}": [told], f"GET blobs/{bench.layer}": [{}]})
    assert "DESCRIPTOR_SIZE" in codes(bench.judge(depth="identity"))


def test_without_head_the_length_comes_from_a_range(bench: Bench) -> None:  # noqa: F811
    total = size(bench)
    one = {"status": 206, "headers": {"Content-Range": f"bytes 0-0/{total}"}, "body": "x"}
    bench.script(**{f"HEAD blobs/{bench.layer}": [{"status": 405}], f"GET blobs/{bench.layer}": [one, {}]})
    assert bench.source().length(bench.layer) == total


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("7", 7.0, 7.0),
        ("86400", MAX_WAIT_SECONDS, MAX_WAIT_SECONDS),
        ("", 0.5, 0.5),
        ("soon", 0.5, 0.5),
        ("-5", 0.5, 0.5),
        ("in 20 s", 15.0, 20.0),
        ("long ago", 0.0, 0.0),
    ],
)
def test_a_busy_registry_is_given_the_time_that_it_asks_for(said: str, least: float, most: float) -> None:
    dates = {"in 20 s": 20, "long ago": -3600}
    header = email.utils.formatdate(time.time() + dates[said], usegmt=True) if said in dates else said
    answers = [Reply(429, headers={"Retry-After": header} if header else {}), Reply(200, b"{}")]
    server = Server(lambda _: answers.pop(0))
    waited: list[float] = []
    try:
        http = RegistryHttp(server.address, "team/app", {}, sleep=waited.append)
        with http.request("GET", "manifests/latest") as answer:
            assert answer.status_code == 200
    finally:
        server.close()
    assert len(waited) == 1 and least <= waited[0] <= most


def test_a_registry_on_the_loopback_of_ipv6(bench: Bench) -> None:  # noqa: F811
    def answer(request: Request) -> Any:
        assert request.headers["host"].startswith("[::1]:")
        return bench.registry.answer(request)

    try:
        server = Server(answer, host="::1")
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    try:
        reference = parse_reference(f"{server.address}/{REPO}@{bench.index['digest']}")
        source = RegistrySource(str(reference.registry), REPO, {})
        tools = Tools(reader=read_blobs, judge=agree, progress=Quiet())
        assert verify(source, reference, Options(), tools).outcome.value == "pass"
    finally:
        server.close()
