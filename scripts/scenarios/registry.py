"""A local OCI registry: push and pull, tags, referrers; faults as `registry.json` says."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from scenarios.httpd import Answer, Request
from scenarios.reply import Reply, json_reply, scripted
from scenarios.script import Script, whole

DIGEST = re.compile(r"^sha256:[0-9a-f]{64}$")
INDEX = "application/vnd.oci.image.index.v1+json"
_PATH = re.compile(
    r"^/v2/(?P<repo>[a-z0-9][a-z0-9._/-]*?)/(?P<kind>manifests|blobs/uploads|blobs|tags|referrers)(?:/(?P<last>[^/]*))?$"
)


class Registry:
    """Content below `root`, a folder that the registry owns; files named by `body_from` lie in `work`."""

    def __init__(self, root: Path, work: Path, script: Script | None = None) -> None:
        self._root, self._work = root, work
        self.script = script or Script(None)
        self._documents: dict[tuple[str, str], tuple[bytes, str]] = {}
        self._tags: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()
        self._kinds: Mapping[str, Callable[[Request, str, str], Reply]] = {
            "manifests": self._document,
            "blobs": self._blob,
            "blobs/uploads": self._upload,
            "tags": self._tag_list,
            "referrers": self._referrers,
        }
        (root / "blobs").mkdir(parents=True, exist_ok=True)

    def answer(self, request: Request) -> Answer:
        """The answer to one request."""
        told = self.script.take(request.method, request.target, None)
        if told is None and request.method == "HEAD":
            told = self.script.head(request.target)
        if told is not None and whole(told):
            return _typed(scripted(told, None, self._work), request.path)
        with self._lock:
            reply = self._route(request)
        return reply if told is None else scripted(told, reply, self._work)

    def _route(self, request: Request) -> Reply:
        if request.path in ("/v2", "/v2/"):
            return json_reply(200, {}, {"Docker-Distribution-API-Version": "registry/2.0"})
        found = _PATH.match(request.path)
        if not found:
            return _error(404, "NAME_UNKNOWN")
        return self._kinds[found["kind"]](request, found["repo"], found["last"] or "")

    def _document(self, request: Request, repo: str, reference: str) -> Reply:
        if request.method == "PUT":
            return self._put_document(request, repo, reference)
        digest = reference if DIGEST.match(reference) else self._tags.get((repo, reference), "")
        if (repo, digest) not in self._documents:
            return _error(404, "MANIFEST_UNKNOWN")
        if request.method == "DELETE":
            del self._documents[(repo, digest)]
            return Reply(202)
        body, media_type = self._documents[(repo, digest)]
        return Reply(200, body, {"Content-Type": media_type, "Docker-Content-Digest": digest})

    def _put_document(self, request: Request, repo: str, reference: str) -> Reply:
        digest = _digest(request.body)
        if DIGEST.match(reference):
            if reference != digest:
                return _error(400, "DIGEST_INVALID")
        else:
            self._tags[(repo, reference)] = digest
        media_type = request.headers.get("content-type", "")
        self._documents[(repo, digest)] = (request.body, media_type)
        told = {"Location": f"/v2/{repo}/manifests/{digest}", "Docker-Content-Digest": digest}
        subject = _field(request.body, "subject")
        if isinstance(subject, dict) and isinstance(subject.get("digest"), str):
            told["OCI-Subject"] = subject["digest"]
        return Reply(201, headers=told)

    def _blob(self, request: Request, repo: str, digest: str) -> Reply:
        path = self._file(digest)
        if not DIGEST.match(digest) or not path.is_file():
            return _error(404, "BLOB_UNKNOWN")
        told = {
            "Content-Type": "application/octet-stream",
            "Docker-Content-Digest": digest,
            "Accept-Ranges": "bytes",
        }
        wanted = re.match(r"^bytes=(\d+)-$", request.headers.get("range", ""))
        size, start = path.stat().st_size, int(wanted[1]) if wanted else 0
        if not wanted:
            return Reply(200, file=path, headers=told)
        if start >= size:
            return Reply(416, headers={"Content-Range": f"bytes */{size}"})
        return Reply(
            206,
            file=path,
            offset=start,
            headers={**told, "Content-Range": f"bytes {start}-{size - 1}/{size}"},
        )

    def _upload(self, request: Request, repo: str, session: str) -> Reply:
        query = {key: values[0] for key, values in parse_qs(request.query).items()}
        if request.method == "POST" and self._file(query.get("mount", "-")).is_file():
            return self._stored(repo, query["mount"])
        if request.method == "POST" and "digest" not in query:
            return self._started(repo, uuid.uuid4().hex, 0)
        part = self._part(session or uuid.uuid4().hex)
        with part.open("ab") as stream:
            stream.write(request.body)
        if request.method == "PATCH":
            return self._started(repo, session, part.stat().st_size)
        return self._finish(repo, part, query.get("digest", ""))

    def _started(self, repo: str, session: str, size: int) -> Reply:
        told = {"Location": f"/v2/{repo}/blobs/uploads/{session}", "Range": f"0-{max(size - 1, 0)}"}
        return Reply(202, headers={**told, "Docker-Upload-UUID": session})

    def _finish(self, repo: str, part: Path, digest: str) -> Reply:
        with part.open("rb") as stream:
            actual = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
        if actual != digest:
            part.unlink()
            return _error(400, "DIGEST_INVALID")
        part.replace(self._file(digest))
        return self._stored(repo, digest)

    def _stored(self, repo: str, digest: str) -> Reply:
        return Reply(201, headers={"Location": f"/v2/{repo}/blobs/{digest}", "Docker-Content-Digest": digest})

    def _tag_list(self, request: Request, repo: str, last: str) -> Reply:
        tags = sorted(tag for name, tag in self._tags if name == repo)
        return json_reply(200, {"name": repo, "tags": tags}) if tags else _error(404, "NAME_UNKNOWN")

    def _referrers(self, request: Request, repo: str, subject: str) -> Reply:
        wanted = parse_qs(request.query).get("artifactType", [""])[0]
        rows = [row for row in self._referring(repo, subject) if wanted in ("", row.get("artifactType"))]
        told = {"Content-Type": INDEX} | ({"OCI-Filters-Applied": "artifactType"} if wanted else {})
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": rows}
        return replace(json_reply(200, index), headers=told)

    def _referring(self, repo: str, subject: str) -> list[dict[str, Any]]:
        rows = []
        for (name, digest), (body, media_type) in self._documents.items():
            told = _field(body, "subject")
            if name == repo and isinstance(told, dict) and told.get("digest") == subject:
                row = {"mediaType": media_type, "digest": digest, "size": len(body)}
                kind = _field(body, "artifactType") or (_field(body, "config") or {}).get("mediaType")
                extra = {"artifactType": kind, "annotations": _field(body, "annotations")}
                rows.append(row | {key: value for key, value in extra.items() if value})
        return rows

    def _file(self, digest: str) -> Path:
        return self._root / "blobs" / re.sub(r"[^0-9a-f]", "_", digest.removeprefix("sha256:"))

    def _part(self, session: str) -> Path:
        return self._root / re.sub(r"[^0-9a-f]", "_", session)


def _typed(reply: Reply, path: str) -> Reply:
    """A document from a file says its own media type, where the script does not."""
    if reply.file is None or "/manifests/" not in path or "Content-Type" in reply.headers:
        return reply
    kind = _field(reply.file.read_bytes(), "mediaType")
    return replace(reply, headers={**reply.headers, "Content-Type": kind}) if isinstance(kind, str) else reply


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _field(body: bytes, name: str) -> Any:
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value.get(name) if isinstance(value, dict) else None


def _error(status: int, code: str) -> Reply:
    return json_reply(status, {"errors": [{"code": code, "message": code.lower().replace("_", " ")}]})
