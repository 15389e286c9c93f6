"""Smart HTTP for bare repositories through `git http-backend`, read only."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from scenarios.gitrepo import isolated
from scenarios.httpd import Answer, Request, Stream
from scenarios.reply import Reply

_SUFFIXES = ("/info/refs", "/git-upload-pack", "/git-receive-pack", "/HEAD")
# GitHub serves partial clones and any object that it still has, by its full name.
_SETTINGS = {
    "safe.directory": "*",
    "uploadpack.allowFilter": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "protocol.version": "2",
}

Find = Callable[[str], Path | None]


def is_git(request: Request) -> bool:
    """Whether the path is one of git's own protocol."""
    path = request.path
    return path.endswith(_SUFFIXES) and (
        ".git/" in path or "service=git-" in request.query or "/git-" in path
    )


def serve(request: Request, find: Find) -> Answer:
    """Answer with the repository that `find` gives for `owner/name` or `name` (without `.git`)."""
    suffix = next(one for one in _SUFFIXES if request.path.endswith(one))
    repository = find(request.path[: -len(suffix)].strip("/").removesuffix(".git"))
    if repository is None:
        return Reply(404, b"Repository not found.\n", {"Content-Type": "text/plain"})
    if "receive-pack" in request.target:
        return Reply(403, b"this server is read only\n", {"Content-Type": "text/plain"})
    return _backend(request, repository, suffix)


def _backend(request: Request, repository: Path, suffix: str) -> Answer:
    process = subprocess.Popen(
        ["git", "http-backend"],
        env=_environment(request, repository, suffix),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout
    try:
        process.stdin.write(request.body)
        process.stdin.close()
    except BrokenPipeError:
        pass  # the backend has answered without reading; its answer says why
    headers: dict[str, str] = {}
    while (line := process.stdout.readline().strip()) and len(headers) < 64:
        key, _, value = line.decode("latin-1").partition(":")
        headers[key] = value.strip()
    status = int(headers.pop("Status", "200").split()[0]) if headers else 500
    return Stream(status, headers, process.stdout, lambda: _end(process))


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout
    process.stdout.close()
    process.wait()


def _environment(request: Request, repository: Path, suffix: str) -> dict[str, str]:
    settings: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for index, (key, value) in enumerate(_SETTINGS.items()):
        settings |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return (
        isolated()
        | settings
        | {
            "GIT_PROJECT_ROOT": str(repository.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{repository.name}{suffix}",
            "REQUEST_METHOD": request.method,
            "QUERY_STRING": request.query,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
        }
    )
