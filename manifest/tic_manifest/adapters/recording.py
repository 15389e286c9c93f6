"""A recording of the gate: every answer and every object it read, and no verdict; and its replay.

Layout of the folder: `forge.json` (answers by question, in order), `git/NAME.json` (refs and fetches in
order), `git/NAME.git` (a bare repository), `git/NAME.objects` (ids of its objects, so that a lost one is
noticed), `local/NAME.json` (facts of local checkouts). Replaying opens no socket and writes nothing there.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tic_manifest.adapters.forge_http import Exchange, RawAnswer
from tic_manifest.adapters.git_attributes import borrow
from tic_manifest.adapters.git_gate import GateMirror
from tic_manifest.adapters.git_objects import objects_missing
from tic_manifest.adapters.git_remote import Remote
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.errors import PersonError, RefusedError, TicError, UnavailableError
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.strict_json import load_json
from tic_manifest.model.base import GitCommit

KINDS = {"unavailable": UnavailableError, "refused": RefusedError, "person": PersonError}


class RecordedExchange:
    """Asks a real exchange and keeps what came. `base` is the forge's real address, never kept."""

    def __init__(self, inner: Exchange, base: str) -> None:
        self._inner = inner
        self._base = base
        self.answers: dict[str, list[dict[str, Any]]] = {}

    def get(self, url: str, headers: Mapping[str, str]) -> RawAnswer:
        """As the inner exchange; an error is kept too."""
        kept = self.answers.setdefault(url.removeprefix(self._base), [])
        try:
            answer = self._inner.get(url, headers)
        except TicError as error:
            kept.append({"error": _error_row(error)})
            raise
        shown = {name: value.replace(self._base, "{forge}") for name, value in answer.headers.items()}
        kept.append({"status": answer.status, "headers": shown, **_body(answer.body)})
        return answer


class ReplayedExchange:
    """Answers from a recording, each once, in order; asked for more it says that the recording ends."""

    def __init__(self, answers: Mapping[str, Sequence[Mapping[str, Any]]], base: str) -> None:
        self._base = base
        self._left = {key: list(rows) for key, rows in answers.items()}

    def get(self, url: str, headers: Mapping[str, str]) -> RawAnswer:
        """Raises what was raised, or UnavailableError RECORDING_INCOMPLETE."""
        key = url.removeprefix(self._base)
        rows = self._left.get(key)
        if not rows:
            raise _incomplete(key)
        row = rows.pop(0)
        if "error" in row:
            raise _raised(row["error"])
        shown = {name: str(value).replace("{forge}", self._base) for name, value in row["headers"].items()}
        return RawAnswer(int(row["status"]), shown, _bytes(row))


class RecordedRemote:
    """Asks a real git server and keeps its refs and its refusals."""

    def __init__(self, inner: Remote) -> None:
        self._inner = inner
        self.rows: list[dict[str, Any]] = []

    def refs(self, mirror: Path, patterns: Sequence[str]) -> dict[str, GitCommit]:
        """As the inner remote."""
        return dict(self._kept({"refs": list(patterns)}, lambda: self._inner.refs(mirror, patterns)))

    def fetch(self, mirror: Path, wants: Mapping[str, str]) -> None:
        """As the inner remote; the objects themselves are copied at the end."""
        self._kept({"fetch": sorted(wants)}, lambda: self._inner.fetch(mirror, wants))

    def blobs(self, mirror: Path, oids: Sequence[str]) -> None:
        """As the inner remote; what the server refused is kept."""
        self._kept({"fetch": sorted(oids)}, lambda: self._inner.blobs(mirror, oids))

    def _kept(self, row: dict[str, Any], ask: Any) -> Any:
        self.rows.append(row)
        try:
            row["answer"] = ask()
        except TicError as error:
            row["error"] = _error_row(error)
            raise
        return row["answer"]


class ReplayedRemote:
    """Refs from a recording, in order; objects are in the recording already."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._refs = [row for row in rows if "refs" in row]
        self._fetches = [row for row in rows if "fetch" in row]

    def refs(self, mirror: Path, patterns: Sequence[str]) -> dict[str, GitCommit]:
        """The next recorded list, which must answer the same question."""
        row = self._next(self._refs, "refs", list(patterns))
        return dict(row["answer"])

    def blobs(self, mirror: Path, oids: Sequence[str]) -> None:
        """As `fetch`."""
        self.fetch(mirror, dict.fromkeys(oids, ""))

    def fetch(self, mirror: Path, wants: Mapping[str, str]) -> None:
        """The next recorded outcome; an object that it brought and that is gone now is a missing object."""
        refused = [row for row in self._fetches if "error" in row and set(wants) <= set(row["fetch"])]
        if refused:
            raise _raised(refused[-1]["error"])
        raise objects_missing("the recording lacks objects that the gate asks for")

    def _next(self, rows: list[Mapping[str, Any]], key: str, asked: list[str]) -> Mapping[str, Any]:
        if not rows or rows[0][key] != asked:
            raise _incomplete("refs " + " ".join(asked))
        row = rows.pop(0)
        if "error" in row:
            raise _raised(row["error"])
        return row


class Recording:
    """The folder of a recording, for writing (`--record`) or reading (`--replay`)."""

    def __init__(self, root: Path, runner: GitRunner) -> None:
        self._root = root
        self._runner = runner
        self._scratch: list[Path] = []

    def claim(self) -> None:
        """Take the folder, which must be new or empty. Raises PersonError USAGE."""
        _claim(self._root)

    def write(
        self, answers: Mapping[str, Any], mirrors: Mapping[str, tuple[GateMirror, RecordedRemote]]
    ) -> None:
        """Write everything into the claimed folder."""
        _put(self._root / "forge.json", dict(answers))
        for name, (mirror, remote) in sorted(mirrors.items()):
            _put(self._root / "git" / f"{name}.json", remote.rows)
            if mirror.path.is_dir():
                self._copy(name, mirror)

    def put_local(self, name: str, value: Any) -> None:
        """Keep the facts of a local checkout, whose files a replay does not have."""
        _put(self._root / "local" / f"{name}.json", value)

    def local(self, name: str) -> Any:
        """Facts of a local checkout. Raises UnavailableError RECORDING_INCOMPLETE."""
        return self._read(f"local/{name}.json")

    def exchange(self, base: str) -> ReplayedExchange:
        """The forge's answers."""
        return ReplayedExchange(self._read("forge.json"), base)

    def mirror(self, name: str) -> GateMirror:
        """A scratch mirror that borrows the recording's objects, so that nothing is written there."""
        remote = ReplayedRemote(self._read(f"git/{name}.json"))
        repo = self._root / "git" / f"{name}.git"
        scratch = Path(tempfile.mkdtemp(prefix="tic-replay-"))
        self._scratch.append(scratch)
        borrow(self._runner, repo, scratch)
        mirror = GateMirror(self._runner, scratch, remote)
        self._restore_pins(name, scratch)
        self._check_objects(name, mirror)
        return mirror

    def close(self) -> None:
        """Remove the scratch mirrors."""
        for scratch in self._scratch:
            shutil.rmtree(scratch, ignore_errors=True)

    def _copy(self, name: str, mirror: GateMirror) -> None:
        target = self._root / "git" / f"{name}.git"
        (target / "refs").mkdir(parents=True)
        (target / "HEAD").write_text("ref: refs/heads/main\n")
        (target / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        shutil.copytree(mirror.path / "objects", target / "objects", ignore=shutil.ignore_patterns("tmp_*"))
        pins = mirror.run(["for-each-ref", "--format=%(objectname) %(refname)", "refs/tic/pins"]).out
        (target / "packed-refs").write_bytes(pins)
        (self._root / "git" / f"{name}.objects").write_bytes(_object_ids(mirror))

    def _restore_pins(self, name: str, scratch: Path) -> None:
        refs = self._root / "git" / f"{name}.git" / "packed-refs"
        if refs.is_file():
            shutil.copyfile(refs, scratch / "packed-refs")

    def _check_objects(self, name: str, mirror: GateMirror) -> None:
        path = self._root / "git" / f"{name}.objects"
        if not path.is_file():
            return
        here = set(_object_ids(mirror).split())
        lost = sorted(one for one in path.read_bytes().split() if one not in here)
        if lost:
            shown = ", ".join(one.decode("ascii", "replace") for one in lost[:5])
            raise objects_missing(f"the recording of {name} lost {len(lost)} objects", shown)

    def _read(self, name: str) -> Any:
        try:
            return load_json((self._root / name).read_bytes(), name)
        except FileNotFoundError:
            raise _incomplete(name) from None
        except OSError as error:
            raise PersonError("USAGE", "the recording cannot be read", where=str(self._root)) from error


def _object_ids(mirror: GateMirror) -> bytes:
    argv = ["cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)"]
    return b"\n".join(sorted(mirror.run(argv).out.split())) + b"\n"


def _claim(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
        busy = any(root.iterdir())
    except OSError as error:
        raise PersonError("USAGE", "cannot record there", where=str(root), actual=str(error)) from error
    if busy:
        raise PersonError("USAGE", "the folder of a recording must be new or empty", where=str(root))


def _put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(canonical_bytes(value))


def _body(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}


def _bytes(row: Mapping[str, Any]) -> bytes:
    return base64.b64decode(row["base64"]) if "base64" in row else str(row["body"]).encode()


def _error_row(error: TicError) -> dict[str, str]:
    kind = next((name for name, cls in KINDS.items() if isinstance(error, cls)), "unavailable")
    fields = ("code", "what", "where", "expected", "actual", "remedy")
    return {"kind": kind, **{name: getattr(error, name) for name in fields}}


def _raised(row: Mapping[str, str]) -> TicError:
    fields = {name: row[name] for name in ("where", "expected", "actual", "remedy")}
    return KINDS[row["kind"]](row["code"], row["what"], **fields)


def _incomplete(question: str) -> UnavailableError:
    return UnavailableError(
        "RECORDING_INCOMPLETE",
        "the recording holds no answer to this question",
        actual=question[:300],
        remedy="record again with --record",
    )
