"""The local registry: what is pushed is what is pulled, and every fault can be seen."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from scenarios.httpd import Server
from scenarios.registry import Registry
from scenarios.script import Script

BLOB = b"layer bytes " * 1000
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Registry, str]]:
    (tmp_path / "work").mkdir()
    registry = Registry(tmp_path / "registry", tmp_path / "work")
    server = Server(registry.answer)
    yield registry, server.url
    server.close()


def _push(url: str, data: bytes = BLOB) -> str:
    start = requests.post(f"{url}/v2/team/image/blobs/uploads/", timeout=20)
    where = url + start.headers["Location"]
    requests.patch(where, data=data[:100], timeout=20)
    requests.patch(where, data=data[100:], timeout=20)
    assert requests.put(f"{where}?digest={_digest(data)}", timeout=20).status_code == 201
    return f"{url}/v2/team/image/blobs/{_digest(data)}"


def _put(url: str, value: dict[str, Any], reference: str = "") -> tuple[requests.Response, str]:
    body = json.dumps(value).encode()
    where = f"{url}/v2/team/image/manifests/{reference or _digest(body)}"
    return requests.put(where, data=body, headers={"Content-Type": MANIFEST}, timeout=20), _digest(body)


def test_a_blob_comes_back_whole_and_in_part(served: tuple[Registry, str]) -> None:
    where = _push(served[1])
    assert requests.get(where, timeout=20).content == BLOB
    assert requests.head(where, timeout=20).headers["Content-Length"] == str(len(BLOB))
    part = requests.get(where, headers={"Range": "bytes=5000-"}, timeout=20)
    assert (part.status_code, part.content) == (206, BLOB[5000:])


def test_a_wrong_digest_is_refused(served: tuple[Registry, str]) -> None:
    where = f"{served[1]}/v2/team/image/blobs/uploads/?digest=sha256:{'0' * 64}"
    assert requests.post(where, data=BLOB, timeout=20).status_code == 400
    assert _put(served[1], {"a": 1}, f"sha256:{'0' * 64}")[0].status_code == 400


def test_documents_by_tag_and_digest_and_their_referrers(served: tuple[Registry, str]) -> None:
    url = f"{served[1]}/v2/team/image"
    _, image = _put(served[1], {"schemaVersion": 2}, "latest")
    told, referrer = _put(served[1], {"artifactType": "a/b", "subject": {"digest": image}})
    assert told.headers["OCI-Subject"] == image
    assert requests.get(f"{url}/manifests/latest", timeout=20).headers["Docker-Content-Digest"] == image
    assert requests.get(f"{url}/tags/list", timeout=20).json()["tags"] == ["latest"]
    for query, wanted in (("", [referrer]), ("?artifactType=a/b", [referrer]), ("?artifactType=c", [])):
        rows = requests.get(f"{url}/referrers/{image}{query}", timeout=20).json()["manifests"]
        assert [row["digest"] for row in rows] == wanted


@pytest.mark.parametrize("path", ["/v2/x/blobs/sha256:00", "/v2/x/manifests/none", "/v2/x/tags/list", "/v1/"])
def test_what_is_not_there_is_404(path: str, served: tuple[Registry, str]) -> None:
    assert requests.get(served[1] + path, timeout=20).status_code == 404


def test_faults(served: tuple[Registry, str], tmp_path: Path) -> None:
    registry, url = served
    where = _push(url)
    path = where.removeprefix(url)
    (tmp_path / "work" / "other").write_bytes(b"other bytes")
    registry.script = Script({
        f"GET {path}": [{"truncate": 500}, {"reset": True}, {"reset": 300}, {"delay_ms": 300}, {"body_from": "other"},
                        {"status": 503}],
    })  # fmt: skip
    for _ in range(3):
        with pytest.raises(requests.exceptions.RequestException):
            requests.get(where, timeout=20)
    start = time.monotonic()
    assert requests.get(where, timeout=20).content == BLOB
    assert time.monotonic() - start >= 0.25
    assert requests.get(where, timeout=20).content == b"other bytes"
    assert [requests.get(where, timeout=20).status_code for _ in range(2)] == [503, 503]


def test_no_body_comes_from_outside_the_work_folder(served: tuple[Registry, str]) -> None:
    served[0].script = Script({"GET /v2/": [{"body_from": "../registry"}]})
    assert requests.get(f"{served[1]}/v2/", timeout=20).status_code == 500


def test_head_follows_a_scripted_get_and_takes_nothing_from_it(
    served: tuple[Registry, str], tmp_path: Path
) -> None:
    registry, url = served
    (tmp_path / "work" / "index.json").write_text(json.dumps({"mediaType": MANIFEST}))
    registry.script = Script({"GET /v2/a/b/manifests/x": [{"body_from": "index.json"}, {"status": 404}]})
    for method, status in (("HEAD", 200), ("HEAD", 200), ("GET", 200), ("HEAD", 404)):
        answer = requests.request(method, f"{url}/v2/a/b/manifests/x", timeout=20)
        assert answer.status_code == status
        assert status == 404 or answer.headers["Content-Type"] == MANIFEST
