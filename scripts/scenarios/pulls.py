"""Pull requests of the local forge, derived from refs, `pulls.json` and what the script says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.shapes import EPOCH, Shapes, node_id
from scenarios.world import Repository, World

_PLAIN = {
    "locked": False,
    "labels": [],
    "milestone": None,
    "active_lock_reason": None,
    "assignee": None,
    "assignees": [],
    "requested_reviewers": [],
    "requested_teams": [],
    "author_association": "CONTRIBUTOR",
    "auto_merge": None,
    "created_at": EPOCH,
    "updated_at": EPOCH,
}
# Fields that only the answer for one pull request has.
SINGLE = (
    "merged",
    "mergeable",
    "rebaseable",
    "mergeable_state",
    "merged_by",
    "comments",
    "review_comments",
    "maintainer_can_modify",
    "commits",
    "additions",
    "deletions",
    "changed_files",
)


class Pulls:
    """Builders of pull-request and pull-request-simple."""

    def __init__(self, world: World, shapes: Shapes) -> None:
        self._world = world
        self._shapes = shapes

    def simple(self, repo: Repository, number: int) -> dict[str, Any]:
        """A row of a listing."""
        facts, head = repo.pull_facts(number), self.head(repo, number)
        base = str(facts.get("base") or repo.bare.default_branch())
        value = {
            **self._links(repo, number, head),
            "id": repo.id * 100000 + number,
            "number": number,
            "node_id": node_id("PR", f"{repo.id}:{number}"),
            **_PLAIN,
            "title": facts.get("title", f"Pull request {number}"),
            "body": facts.get("body"),
            "user": self._shapes.user(facts.get("user") or "contributor"),
            "draft": bool(facts.get("draft")),
            **_state(facts),
            "merge_commit_sha": self._merge_commit(repo, number, facts),
            "head": self._head(repo, number, head),
            "base": self._base(repo, number, base),
        }
        return value | ({"stack": facts["stack"]} if "stack" in facts else {})

    def single(self, repo: Repository, number: int) -> dict[str, Any]:
        """The answer for one pull request, with its merge state computed by git."""
        row, facts = self.simple(repo, number), repo.pull_facts(number)
        clean = self._mergeable(repo, number, row)
        base, head = self._range(repo, row)
        changes = repo.bare.changes(base, head)
        derived = {
            "merged": row["merged_at"] is not None,
            "mergeable": clean,
            "rebaseable": clean,
            "mergeable_state": _merge_state(clean, row["draft"]),
            "merged_by": None,
            "comments": 0,
            "review_comments": 0,
            "maintainer_can_modify": False,
            "commits": repo.bare.count(head, f"^{base}"),
            "additions": sum(one[1] for one in changes),
            "deletions": sum(one[2] for one in changes),
            "changed_files": len(changes),
        }
        return row | derived | {key: facts[key] for key in SINGLE if key in facts}

    def head(self, repo: Repository, number: int) -> str:
        """The commit that the forge has recorded as the head."""
        recorded = repo.pull_facts(number).get("head_sha")
        return str(recorded or repo.bare.refs(f"refs/pull/{number}/head")[f"refs/pull/{number}/head"])

    def commits(self, repo: Repository, number: int) -> list[dict[str, Any]]:
        """The commits of a pull request, oldest first, 250 at most as on GitHub."""
        base, head = self._range(repo, self.simple(repo, number))
        return [self._shapes.commit(repo, sha) for sha in repo.bare.range(head, f"^{base}")[:250]]

    def files(self, repo: Repository, number: int) -> list[dict[str, Any]]:
        """The files of a pull request."""
        base, head = self._range(repo, self.simple(repo, number))
        return [self._shapes.file(repo, head, *change) for change in repo.bare.changes(base, head)]

    def _range(self, repo: Repository, row: Mapping[str, Any]) -> tuple[str, str]:
        tip = repo.branch(row["base"]["ref"]) or row["base"]["sha"]
        return str(tip), str(row["head"]["sha"])

    def _mergeable(self, repo: Repository, number: int, row: Mapping[str, Any]) -> bool | None:
        tip = repo.branch(row["base"]["ref"])
        head = repo.bare.commit(row["head"]["sha"])
        return repo.bare.merges(tip, head) if row["state"] == "open" and tip and head else None

    def _merge_commit(self, repo: Repository, number: int, facts: Mapping[str, Any]) -> str | None:
        ref = f"refs/pull/{number}/merge"
        return facts.get("merge_commit_sha") or repo.bare.refs(ref).get(ref)

    def _base(self, repo: Repository, number: int, ref: str) -> dict[str, Any]:
        sha = repo.pull_facts(number).get("base_sha") or repo.branch(ref) or "0" * 40
        return self._end(repo, ref, sha, repo.owner, repo)

    def _head(self, repo: Repository, number: int, sha: str) -> dict[str, Any]:
        facts = repo.pull_facts(number)
        name = facts.get("head_repo", repo.full_name)
        source = self._world.find(name) if name else None
        owner = name.partition("/")[0] if name else "unknown"
        return self._end(repo, str(facts.get("head") or _branch_at(repo, sha)), sha, owner, source)

    def _end(
        self, repo: Repository, ref: str, sha: str, owner: str, source: Repository | None
    ) -> dict[str, Any]:
        shown = self._shapes.repository(source) if source else None
        return {
            "label": f"{owner}:{ref}",
            "ref": ref,
            "sha": sha,
            "user": self._shapes.user(owner),
            "repo": shown,
        }

    def _links(self, repo: Repository, number: int, head: str) -> dict[str, Any]:
        api, page = (
            f"{self._shapes.api}/repos/{repo.full_name}",
            f"{self._shapes.web}/{repo.full_name}/pull/{number}",
        )
        urls = {
            "self": f"{api}/pulls/{number}",
            "html": page,
            "issue": f"{api}/issues/{number}",
            "comments": f"{api}/issues/{number}/comments",
            "review_comments": f"{api}/pulls/{number}/comments",
            "review_comment": f"{api}/pulls/comments{{/number}}",
            "commits": f"{api}/pulls/{number}/commits",
            "statuses": f"{api}/statuses/{head}",
        }
        named = {f"{key}_url": url for key, url in urls.items() if key != "self"}
        return {
            "url": urls["self"],
            **named,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "_links": {key: {"href": url} for key, url in urls.items()},
        }


def _state(facts: Mapping[str, Any]) -> dict[str, Any]:
    merged = facts.get("merged_at") or (EPOCH if facts.get("merged") else None)
    state = "closed" if merged else facts.get("state", "open")
    closed = facts.get("closed_at") or (None if state == "open" else merged or EPOCH)
    return {"state": state, "merged_at": merged, "closed_at": closed}


def _merge_state(clean: bool | None, draft: bool) -> str:
    if clean is None:
        return "unknown"
    return "dirty" if not clean else "draft" if draft else "clean"


def _branch_at(repo: Repository, sha: str) -> str:
    """A branch with this tip that is not the default; without one the ref that always exists."""
    main = f"refs/heads/{repo.bare.default_branch()}"
    names = [ref for ref, tip in repo.bare.refs("refs/heads/").items() if tip == sha and ref != main]
    return names[0].removeprefix("refs/heads/") if names else f"patch-{sha[:7]}"
