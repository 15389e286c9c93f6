"""Partial mirrors against a real smart-HTTP server: which blobs come, when, and what a refusal means."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.git_gate import GateMirror
from tic_manifest.adapters.git_remote import HttpRemote
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.adapters.recording import RecordedRemote, Recording
from tic_manifest.errors import UnavailableError

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from git_repos import checkout, commit, git
from smart_http import NO_FILTER, TIPS_ALONE, GitServer

LINES = [f"{number}\n" for number in range(40)]


def edited(at: int, text: str) -> str:
    """The lines with one of them replaced."""
    return "".join([*LINES[:at], f"{text}\n", *LINES[at + 1 :]])


class Bench:
    """A repository whose trunk has 30 files, a branch that changes two of them, and mirrors of it."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        source = checkout(tmp / "r.git")
        files: dict[str, str | None] = {f"d/{number}.txt": f"file {number}\n" for number in range(30)}
        self.fork = commit(source, {**files, "a.txt": "".join(LINES), "old.txt": edited(9, "renamed")})
        self.main = commit(source, {"a.txt": edited(3, "theirs"), "d/1.txt": "theirs\n"})
        git(source, "checkout", "-q", "-b", "feat", self.fork)
        self.own = commit(source, {"a.txt": edited(30, "ours")})
        self.feat = commit(source, {"old.txt": None, "new.txt": edited(9, "renamed here")})
        git(source, "checkout", "-q", "-b", "other", self.fork)
        self.other = commit(source, {"a.txt": edited(3, "other")})
        git(source, "tag", "blob", git(source, "rev-parse", "other:a.txt"))
        self.source = source
        self.servers: list[GitServer] = []

    def server(self, **options: Any) -> GitServer:
        """A server of it."""
        self.servers.append(GitServer(self.tmp, **options))
        return self.servers[-1]

    def mirror(self, server: GitServer, name: str = "m", say: Callable[[str], None] = print) -> GateMirror:
        """A mirror that has the commits."""
        runner = GitRunner(os.environ)
        remote = RecordedRemote(HttpRemote(runner, f"{server.url}/o/r.git", "https://x.invalid/r", say=say))
        one = GateMirror(runner, self.tmp / f"{name}.mirror", remote)
        one.fetch([self.main, self.feat, self.other])
        return one


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = Bench(tmp_path)
    yield one
    for server in one.servers:
        server.close()


def blobs(mirror: GateMirror) -> set[str]:
    """Ids of the blobs that a mirror holds."""
    argv = ["cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)"]
    rows = mirror.run(argv).out.decode().splitlines()
    return {row.split()[1] for row in rows if row.startswith("blob ")}


def oids(bench: Bench, *names: str) -> set[str]:
    """Ids of blobs by revision and path."""
    return {git(bench.source, "rev-parse", name) for name in names}


def test_commits_and_trees_come_without_a_blob_and_without_a_promise_in_the_configuration(
    bench: Bench,
) -> None:
    one = bench.mirror(bench.server())
    assert blobs(one) == set()
    assert one.merge_base(bench.main, bench.feat) == bench.fork
    assert one.changed_paths(bench.fork, bench.feat) == ("a.txt", "new.txt", "old.txt")
    assert "tic" not in (one.path / "config").read_text()
    assert blobs(one) == set()


def test_a_merge_fetches_what_both_sides_change_and_what_may_be_a_rename(bench: Bench) -> None:
    server = bench.server()
    one = bench.mirror(server)
    before = server.wanted()
    merged = one.merge(bench.main, bench.feat)
    assert merged.conflicts == ()
    assert git(bench.source, "merge-tree", "--write-tree", bench.main, bench.feat) == merged.tree
    wanted = oids(
        bench, f"{bench.fork}:a.txt", f"{bench.main}:a.txt", f"{bench.feat}:a.txt",
        f"{bench.fork}:old.txt", f"{bench.feat}:new.txt", f"{merged.tree}:a.txt",
    )  # fmt: skip
    assert blobs(one) == wanted
    assert server.wanted() == before + 1
    assert one.merge(bench.main, bench.other).conflicts == ("a.txt",)


def test_every_question_has_the_answer_of_a_full_mirror(bench: Bench) -> None:
    partial, full = bench.mirror(bench.server()), bench.mirror(bench.server(settings=NO_FILTER), "full")
    assert len(blobs(full)) > 30
    questions: list[Callable[[GateMirror], object]] = [
        lambda one: one.commits([bench.own, bench.feat], patches=True),
        lambda one: one.net_patch(bench.fork, bench.feat),
        lambda one: one.range_diff((bench.fork, bench.feat), (bench.fork, bench.other)),
        lambda one: one.merge(bench.main, bench.feat),
        lambda one: one.merge(bench.main, bench.other),
        lambda one: one.replay(bench.main, [bench.own, bench.feat]),
        lambda one: one.lfs_malformed(bench.feat),
        lambda one: one.merge_driven(bench.main, bench.feat),
        lambda one: one.submodules(bench.feat),
    ]
    for question in questions:
        assert question(partial) == question(full)


def test_the_export_fetches_the_tree_in_one_go(bench: Bench) -> None:
    server = bench.server()
    one = bench.mirror(server)
    before = server.wanted()
    assert one.export(bench.feat, bench.tmp / "out") == git(
        bench.source, "rev-parse", f"{bench.feat}^{{tree}}"
    )
    assert server.wanted() == before + 1
    assert (bench.tmp / "out/d/7.txt").read_text() == "file 7\n"


def test_files_that_are_kept_are_exported_with_no_server(bench: Bench) -> None:
    server = bench.server()
    one = bench.mirror(server)
    before = server.wanted()
    one.keep_files(bench.feat)
    assert server.wanted() == before + 1
    server.close()
    one.export(bench.feat, bench.tmp / "out")
    assert (bench.tmp / "out/new.txt").read_text() == edited(9, "renamed here")


def test_criss_cross_bases_are_merged_from_fetched_blobs(bench: Bench) -> None:
    source = bench.source
    git(source, "checkout", "-q", "-b", "x", bench.own)
    git(source, "merge", "-q", "-m", "x", bench.main)
    left = commit(source, {"a.txt": (source / "a.txt").read_text() + "left\n"})
    git(source, "checkout", "-q", "-b", "y", bench.main)
    git(source, "merge", "-q", "-m", "y", bench.own)
    right = commit(source, {"b.txt": "right\n"})
    one = bench.mirror(bench.server())
    one.fetch([left, right])
    assert len(one.merge_bases(left, right)) == 2
    assert one.merge(left, right).tree == git(source, "merge-tree", "--write-tree", left, right)


def test_a_server_without_filter_gives_a_full_mirror_and_a_note(bench: Bench) -> None:
    said: list[str] = []
    one = bench.mirror(bench.server(settings=NO_FILTER), say=said.append)
    assert len(blobs(one)) >= 35
    assert [line for line in said if "https://x.invalid/r" in line and "full" in line] == said != []


def test_a_server_that_gives_no_object_by_id_sends_everything(bench: Bench) -> None:
    said: list[str] = []
    server = bench.server(settings=TIPS_ALONE)
    one = bench.mirror(server, say=said.append)
    assert len(blobs(one)) == 0
    assert one.merge(bench.main, bench.other).conflicts == ("a.txt",)
    assert len(blobs(one)) >= 35
    assert "full" in said[-1]


def test_a_mirror_made_full_earlier_asks_for_nothing_it_has(bench: Bench) -> None:
    bench.mirror(bench.server(settings=NO_FILTER))
    for promise in (bench.tmp / "m.mirror/objects/pack").glob("*.promisor"):
        promise.unlink()
    server = bench.server()
    one = bench.mirror(server)
    assert one.merge(bench.main, bench.other).conflicts == ("a.txt",)
    assert server.wanted() == 0
    git(bench.source, "checkout", "-q", "other")
    newer = commit(bench.source, {"a.txt": edited(3, "newer")})
    one.fetch([newer])
    assert newer not in one.missing([newer])
    assert oids(bench, f"{newer}:a.txt").isdisjoint(blobs(one))
    assert one.merge(bench.main, newer).conflicts == ("a.txt",)
    assert oids(bench, f"{newer}:a.txt") <= blobs(one)


def test_a_refused_fetch_of_blobs_is_a_missing_object_for_the_rest_of_the_run(bench: Bench) -> None:
    server = bench.server()
    one = bench.mirror(server)
    server.fetches_left = 0
    errors = []
    for question in (
        lambda: one.merge(bench.main, bench.other),
        lambda: one.merge_driven(bench.main, bench.feat) or one.merge(bench.main, bench.feat),
        lambda: one.commits([bench.other], patches=True),
        lambda: one.export(bench.other, bench.tmp / "out"),
    ):
        with pytest.raises(UnavailableError) as caught:
            question()
        assert caught.value.code == "OBJECTS_MISSING"
        errors.append(caught.value)
        # also when the server could answer again: a replay has no second moment
        server.fetches_left = 100
    assert not (bench.tmp / "out").exists()
    assert server.url not in "\n".join(line for error in errors for line in error.lines())


def test_nothing_fetches_by_itself(bench: Bench) -> None:
    server = bench.server()
    one = bench.mirror(server)
    before = len(server.heard)
    ran = one.runner.run(["merge-tree", "--write-tree", bench.main, bench.other], repo=one.path)
    assert ran.status not in {0, 1}
    assert len(server.heard) == before


def test_a_recording_of_a_partial_mirror_holds_what_was_looked_at(bench: Bench) -> None:
    server = bench.server()
    one = bench.mirror(server)
    merged = one.merge(bench.main, bench.feat)
    remote = one.remote
    assert isinstance(remote, RecordedRemote)
    folder = Recording(bench.tmp / "proof", one.runner)
    folder.claim()
    folder.write({}, {"r": (one, remote)})
    server.close()
    again = Recording(bench.tmp / "proof", one.runner)
    try:
        replayed = again.mirror("r")
        assert replayed.merge(bench.main, bench.feat) == merged
        with pytest.raises(UnavailableError) as caught:
            replayed.merge(bench.main, bench.other)
        assert caught.value.code == "OBJECTS_MISSING"
    finally:
        again.close()
