"""Values of GitHub's REST interface, with the fields that its description (`@octokit/openapi`) requires."""

from __future__ import annotations

import base64
import re
from typing import Any

from scenarios.world import Repository, stable_id

EPOCH = "2026-01-01T00:00:00Z"
_PERSON = re.compile(r"^(?P<name>.*) <(?P<email>[^>]*)> (?P<when>-?\d+) (?P<zone>[+-]\d{4})$")
_REPO_LINKS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
_REPO_PLAIN: dict[str, Any] = {
    "private": False,
    "description": None,
    "homepage": None,
    "language": None,
    "license": None,
    "mirror_url": None,
    "archived": False,
    "disabled": False,
    "has_issues": True,
    "has_projects": True,
    "has_wiki": True,
    "has_pages": False,
    "has_downloads": True,
    "has_discussions": False,
    "is_template": False,
    "visibility": "public",
    "forks": 0,
    "forks_count": 0,
    "open_issues": 0,
    "open_issues_count": 0,
    "stargazers_count": 0,
    "watchers": 0,
    "watchers_count": 0,
    "size": 1,
    "topics": [],
    "allow_forking": True,
    "web_commit_signoff_required": False,
    "created_at": EPOCH,
    "pushed_at": EPOCH,
    "updated_at": EPOCH,
}
_USER_LINKS = (
    "followers",
    "following{/other_user}",
    "gists{/gist_id}",
    "starred{/owner}{/repo}",
    "subscriptions",
    "orgs",
    "repos",
    "events{/privacy}",
    "received_events",
)


class Shapes:
    """Builders that know the address of the interface; `web` is the address of the pages."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.web = api.removesuffix("/api/v3")

    def user(self, login: str) -> dict[str, Any]:
        """simple-user."""
        url = f"{self.api}/users/{login}"
        links = {f"{link.partition('{')[0]}_url": f"{url}/{link}" for link in _USER_LINKS}
        links["organizations_url"] = links.pop("orgs_url")
        return {
            "login": login,
            "id": stable_id(login),
            "node_id": node_id("U", stable_id(login)),
            "gravatar_id": "",
            "avatar_url": f"{self.web}/{login}.png",
            "url": url,
            "html_url": f"{self.web}/{login}",
            **links,
            "type": "User",
            "user_view_type": "public",
            "site_admin": False,
        }

    def repository(self, repo: Repository, *, full: bool = False) -> dict[str, Any]:
        """repository, or full-repository where it is asked for by name."""
        url, page = f"{self.api}/repos/{repo.full_name}", f"{self.web}/{repo.full_name}"
        value = {
            "id": repo.id,
            "node_id": node_id("R", repo.id),
            "name": repo.name,
            "full_name": repo.full_name,
            "owner": self.user(repo.owner),
            "html_url": page,
            "url": url,
            "fork": bool(repo.facts.get("parent")),
            **{key: url + tail for key, tail in _REPO_LINKS.items()},
            "git_url": page.replace("http", "git", 1) + ".git",
            "clone_url": f"{page}.git",
            "svn_url": page,
            "ssh_url": f"git@{self.web.partition('//')[2]}:{repo.full_name}.git",
            "default_branch": repo.facts.get("default_branch") or repo.bare.default_branch(),
            **_REPO_PLAIN,
        }
        return value | ({"network_count": 0, "subscribers_count": 0} if full else {})

    def commit(self, repo: Repository, sha: str) -> dict[str, Any]:
        """commit."""
        raw = repo.bare.raw(sha)
        url = f"{self.api}/repos/{repo.full_name}"
        tree = raw["tree"][0]
        return {
            "sha": sha,
            "node_id": node_id("C", sha),
            "url": f"{url}/commits/{sha}",
            "html_url": f"{self.web}/{repo.full_name}/commit/{sha}",
            "comments_url": f"{url}/commits/{sha}/comments",
            "commit": {
                "author": _person(raw["author"][0]),
                "committer": _person(raw["committer"][0]),
                "message": raw["message"][0],
                "tree": {"sha": tree, "url": f"{url}/git/trees/{tree}"},
                "url": f"{url}/git/commits/{sha}",
                "comment_count": 0,
                "verification": _UNSIGNED,
            },
            "author": self._account(repo, raw["author"][0]),
            "committer": self._account(repo, raw["committer"][0]),
            "parents": [
                {
                    "sha": one,
                    "url": f"{url}/commits/{one}",
                    "html_url": f"{self.web}/{repo.full_name}/commit/{one}",
                }
                for one in raw["parent"]
            ],
        }

    def _account(self, repo: Repository, line: str) -> dict[str, Any] | None:
        """The account behind an e-mail address, by the fact `accounts` of the repository."""
        login = repo.facts.get("accounts", {}).get(_person(line)["email"])
        return self.user(login) if login else None

    def ref(self, repo: Repository, ref: str, sha: str) -> dict[str, Any]:
        """git-ref."""
        url = f"{self.api}/repos/{repo.full_name}/git"
        return {
            "ref": ref,
            "node_id": node_id("REF", ref),
            "url": f"{url}/{ref}",
            "object": {"sha": sha, "type": "commit", "url": f"{url}/commits/{sha}"},
        }

    def short_branch(self, repo: Repository, name: str, sha: str) -> dict[str, Any]:
        """short-branch."""
        url = f"{self.api}/repos/{repo.full_name}/commits/{sha}"
        return {"name": name, "commit": {"sha": sha, "url": url}, "protected": False}

    def branch(self, repo: Repository, name: str, sha: str) -> dict[str, Any]:
        """branch-with-protection."""
        url = f"{self.api}/repos/{repo.full_name}/branches/{name}"
        return {
            "name": name,
            "commit": self.commit(repo, sha),
            "protected": False,
            "_links": {"self": url, "html": f"{self.web}/{repo.full_name}/tree/{name}"},
            "protection": {"enabled": False},
            "protection_url": f"{url}/protection",
        }

    def file(self, repo: Repository, sha: str, path: str, added: int, gone: int) -> dict[str, Any]:
        """diff-entry."""
        page = f"{self.web}/{repo.full_name}"
        return {
            "sha": None,
            "filename": path,
            "status": "modified",
            "additions": added,
            "deletions": gone,
            "changes": added + gone,
            "blob_url": f"{page}/blob/{sha}/{path}",
            "raw_url": f"{page}/raw/{sha}/{path}",
            "contents_url": f"{self.api}/repos/{repo.full_name}/contents/{path}?ref={sha}",
        }


_UNSIGNED = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}


def node_id(kind: str, value: object) -> str:
    """An opaque id."""
    return base64.b64encode(f"{kind}:{value}".encode()).decode()


def _person(line: str) -> dict[str, str]:
    from datetime import UTC, datetime

    found = _PERSON.match(line)
    if not found:
        return {"name": line, "email": "", "date": EPOCH}
    when = datetime.fromtimestamp(int(found["when"]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"name": found["name"], "email": found["email"], "date": when}
