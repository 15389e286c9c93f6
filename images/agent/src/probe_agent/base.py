"""Limits, text and small helpers shared by every part of the agent."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

SCHEMA = "tic/probe-agent/v1"
AGENT_VERSION = "1"
Json = Dict[str, Any]

MAX_MAPS = 200_000
MAX_PROCESSES = 4096
MAX_MODULES = 100_000
MAX_TEXT = 4096
MAX_SMALL_FILE = 16 << 20
MAX_RECORD = 64 << 20
MAX_CACHE_FILES = 100_000
CHUNK = 1 << 20

SECRET_NAME = re.compile(r"(?i)(key|token|secret|passw|credential|auth|cookie|session)")
CLEAR_NAME = re.compile(
    r"^(LD_|PYTHON|OMP_|KMP_|MKL_|OPENBLAS_|GOMP_|TORCH|PYTORCH_|ATEN_|TRITON_|VLLM_|CUDA_|NVIDIA_VISIBLE|"
    r"NCCL_|CUBLAS|CUDNN_|NVTE_|DG_JIT|FLASHINFER_|NUMBA_|TILELANG_|CUTE_DSL_|TIC_|XLA_|GLIBC_|MALLOC_|DNNL_|"
    r"ONEDNN_|TOKENIZERS_|HF_HUB_OFFLINE$|TRANSFORMERS_|RAY_|WORLD_SIZE$|RANK$|LOCAL_RANK$|"
    r"MASTER_|PATH$|HOME$|"
    r"TMPDIR$|LANG$|LC_|TZ$|CC$|CXX$|SOURCE_DATE_EPOCH$|VIRTUAL_ENV$|USER$|LOGNAME$)"
)
SECRET_PAIR = re.compile(
    r"""(?i)([\w-]*(?:key|token|secret|passw\w*|credential|auth)[\w-]*["']?\s*[:=]\s*["']?)[^"',\s}]+"""
)
URL_PASSWORD = re.compile(r"(?<=://)[^/\s@]+@")


def text(raw: bytes, limit: int = MAX_TEXT) -> str:
    """Bytes of a name as text: UTF-8 where it is, else each foreign byte as \\xNN."""
    return raw[:limit].decode("utf-8", "backslashreplace")


def clean(value: Any, limit: int = MAX_TEXT) -> str:
    """Any text, without lone surrogates, bounded, with passwords taken out of URLs."""
    raw = str(value)[:limit].encode("utf-8", "surrogateescape" if isinstance(value, str) else "replace")
    return URL_PASSWORD.sub("<redacted>@", text(raw, limit * 4))


def failure(error: BaseException) -> str:
    """One line about an exception; never a traceback."""
    return clean("%s: %s" % (type(error).__name__, error), 300)


def attempt(function: Callable[..., Any], *args: Any) -> Any:
    """The function's value, or `{"error": …}`: one broken part never takes the others with it."""
    try:
        return function(*args)
    except Exception as error:  # every part of an observation is guarded on its own
        return {"error": failure(error)}


def redact_argv(argv: List[str]) -> List[str]:
    """An argument list with the values of secret-looking options taken out."""
    shown: List[str] = []
    hide = False
    for word in argv[:1000]:
        option, equals, _ = word.partition("=")
        secret = option.startswith("-") and bool(SECRET_NAME.search(option))
        plain = SECRET_PAIR.sub(r"\1<redacted>", clean(word))
        shown.append("<redacted>" if hide else option + "=<redacted>" if secret and equals else plain)
        hide = secret and not equals
    return shown


def environment_view(items: List[Tuple[str, str]]) -> List[Json]:
    """Names with values: allow-listed ones in clear, secret-looking ones by name only, others as sha256."""
    view: List[Json] = []
    for name, value in sorted(items)[:5000]:
        entry: Json = {"name": clean(name)}
        if SECRET_NAME.search(name):
            entry["secret"] = True
        elif CLEAR_NAME.match(name):
            entry["value"] = clean(value)
        else:
            entry["sha256"] = hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
        view.append(entry)
    return view


def open_regular(path: str) -> int:
    """Open a regular file for reading; a FIFO, a device or a folder is an OSError, never a wait."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("not a regular file: " + path)
    return fd


def read_file(path: str, limit: int = MAX_SMALL_FILE) -> bytes:
    """A whole regular file of at most `limit` bytes; a larger one is an OSError."""
    fd = open_regular(path)
    with os.fdopen(fd, "rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise OSError("larger than %d bytes: %s" % (limit, path))
    return data


def read_proc(path: str, limit: int = MAX_SMALL_FILE) -> bytes:
    """A file of /proc: not regular in size, so read to the end within the limit."""
    with open(path, "rb", buffering=0) as stream:
        parts: List[bytes] = []
        left = limit
        while left > 0:
            part = stream.read(min(left, CHUNK))
            if not part:
                break
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def blocks(fd: int, size: int, start: int = 0) -> Iterator[bytes]:
    """The bytes of a file in order, one chunk at a time, at most up to `size`."""
    offset = start
    while offset < size:
        data = os.pread(fd, min(CHUNK, size - offset), offset)
        if not data:
            return
        yield data
        offset += len(data)


def digest_fd(fd: int, algorithm: str = "sha256") -> str:
    """Hash of an open file; an MD5 is only ever compared with dpkg's own lists, never trusted."""
    state = hashlib.new(algorithm, usedforsecurity=False) if algorithm == "md5" else hashlib.new(algorithm)
    for data in blocks(fd, os.fstat(fd).st_size):
        state.update(data)
    return state.hexdigest()


def digest_path(path: str, algorithm: str = "sha256") -> str:
    """Hash of a regular file."""
    fd = open_regular(path)
    try:
        return digest_fd(fd, algorithm)
    finally:
        os.close(fd)


def write_json(path: str, value: Json) -> None:
    """Write whole or not at all: a temporary beside the target, synced, renamed over it."""
    temporary = "%s.tmp.%d" % (path, os.getpid())
    data = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False) + "\n"
    with open(temporary, "wb") as stream:  # no codec is looked up: that would import one
        stream.write(data.encode("utf-8"))
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


class Budget:
    """A time limit that a part asks before each piece of work, so that no input makes it run for ever."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def spent(self) -> bool:
        """True once the time is over."""
        return time.monotonic() >= self.end

    def left(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self.end - time.monotonic())


def resolve_in_root(root: str, path: str) -> Optional[str]:
    """The real path, as seen inside `root`, of an absolute path there; None when it does not exist.

    Links are followed by hand: the kernel would follow an absolute link against the caller's own root.
    """
    if not root:
        real = os.path.realpath(path)
        return real if os.path.lexists(real) else None
    parts = [part for part in path.split("/") if part][::-1]
    done: List[str] = []
    for _ in range(4096):
        if not parts:
            return "/" + "/".join(done)
        if not _step(root, parts, done):
            return None
    return None


def real_path(root: str, path: str) -> str:
    """Where the caller reaches a path of `root`, links followed inside it; FileNotFoundError without one."""
    real = resolve_in_root(root, path)
    if real is None:
        raise FileNotFoundError(path)
    return root + real


def _step(root: str, parts: List[str], done: List[str]) -> bool:
    """Move one component from `parts` to `done`; False when it does not exist."""
    name = parts.pop()
    if name in (".", ""):
        return True
    if name == "..":
        if done:
            done.pop()
        return True
    full = root + "/" + "/".join([*done, name])
    try:
        if not stat.S_ISLNK(os.lstat(full).st_mode):
            done.append(name)
            return True
        target = os.readlink(full)
    except OSError:
        return False
    if target.startswith("/"):
        del done[:]
    parts.extend([part for part in target.split("/") if part][::-1])
    return True
