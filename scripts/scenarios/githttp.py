"""Smart HTTP for bare repositories through `git http-backend`, read only."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
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


def serve(request: Request, find: Find, settings: Mapping[str, str] | None = None) -> Answer:
    """Answer with the repository that `find` gives for `owner/name` or `name` (without `.git`).

    `settings` are the server's own settings of git, laid over those that stand for GitHub's.
    """
    suffix = next(one for one in _SUFFIXES if request.path.endswith(one))
    repository = find(request.path[: -len(suffix)].strip("/").removesuffix(".git"))
    if repository is None:
        return Reply(404, b"Repository not found.\n", {"Content-Type": "text/plain"})
    if "receive-pack" in request.target:
        return Reply(403, b"this server is read only\n", {"Content-Type": "text/plain"})
    return _backend(request, repository, suffix, {**_SETTINGS, **(settings or {})})


def _backend(request: Request, repository: Path, suffix: str, settings: Mapping[str, str]) -> Answer:
    process = subprocess.Popen(
        ["git", "http-backend"],
        env=_environment(request, repository, suffix, settings),
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


def _environment(
    request: Request, repository: Path, suffix: str, settings: Mapping[str, str]
) -> dict[str, str]:
    given: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (key, value) in enumerate(settings.items()):
        given |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return (
        isolated()
        | given
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
            "GIT_PROTOCOL": _protocol(request, settings),
        }
    )


def _protocol(request: Request, settings: Mapping[str, str]) -> str:
    """What the client speaks; a server whose `protocol.version` is 0 knows no newer one."""
    return request.headers.get("git-protocol", "") if settings["protocol.version"] != "0" else ""
