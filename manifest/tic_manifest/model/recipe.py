"""The recipe: what a person writes (contract, section 5); everything to resolve, nothing resolved."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from tic_manifest.model.base import GitCommit, Name, PersonValue, Sha256Hex
from tic_manifest.model.host import HostPolicy
from tic_manifest.model.verdict import State

SCHEMA = "tic/recipe/v1"


def _is_url(text: str) -> str:
    _ = urlsplit(text).port  # ValueError for a host or port that can be none
    return text


Text = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Url = Annotated[
    str, StringConstraints(pattern=r"^https?://[^\s\x00-\x1f]+$", max_length=2048), AfterValidator(_is_url)
]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Requirement = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][^\x00-\x1f]{0,511}$")]
WheelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+!-]{0,254}\.whl$")]
DebianName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9+.-]{1,127}$")]


class Debian(PersonValue):
    """A root made here, reproducibly, from Debian packages: a minimal system and what is named."""

    suite: Annotated[str, StringConstraints(pattern=r"^[a-z]{2,32}$")]
    packages: tuple[DebianName, ...]


class DebianBase(PersonValue):
    """`base: {debian: {...}}`."""

    debian: Debian


class Target(PersonValue):
    """Where the pull request is to be merged. `repo` defaults to that of the URL."""

    owner: Text
    branch: Text
    repo: Text | None = None


class Precompiled(PersonValue):
    """Native code taken from a wheel instead of being compiled from the head."""

    wheel: WheelName
    sha256: Sha256Hex
    commit: GitCommit | Literal["unknown"]


class WheelBuild(PersonValue):
    """How the wheel of a pull request is built: variables of the build.

    `generated` are paths in the wheel that the build writes itself, a version file for instance: they are
    listed by `verify --depth files`, and every other file must be that of the head's tree.
    """

    env: dict[EnvName, str] = {}
    generated: tuple[Text, ...] = ()


class PullRequest(PersonValue):
    """One deliverable."""

    url: Url
    git: Url | None = None
    repo_id: Annotated[int, Field(ge=1)] | None = None
    """The forge's numeric id of the repository: names can pass to another one."""
    target: Target
    trunks: tuple[Text, ...] = ()
    base: GitCommit
    head: GitCommit
    row: Literal["vllm", "megatron", "verl"] | None = None
    subdirectory: Text | None = None
    precompiled: Precompiled | None = None
    build: WheelBuild = WheelBuild()


class Forge(PersonValue):
    """A GitHub REST interface."""

    api: Url


class Python(PersonValue):
    """Distributions besides the deliverables: resolved by the lock, installed by hash."""

    version: Annotated[str, StringConstraints(pattern=r"^3\.\d{1,2}$")]
    runtime: tuple[Requirement, ...] = ()
    build: tuple[Requirement, ...] = ()
    exclude: tuple[Requirement, ...] = ()
    indexes: tuple[Url, ...] = ()


class Worker(PersonValue):
    """One run of a program in the image. Outputs of the runs in `needs` are mounted read-only at /in/NAME."""

    stage: Literal["input", "probe", "validate"]
    role: Name
    command: tuple[Text, ...]
    needs: tuple[Name, ...] = ()
    policy: Text | None = None
    """Path in the container of the checkpoint that the model holder holds."""
    env: dict[EnvName, str] = {}
    timeout_seconds: Annotated[int, Field(ge=1, le=86400)] = 900
    shm_mib: Annotated[int, Field(ge=1, le=1 << 20)] = 64


class Comparison(PersonValue):
    """Two score files of two runs, as RUN/FILE, compared byte for byte over the valid tokens."""

    id: Name
    kind: Literal["inference_only", "cross_stack"]
    left: Text
    right: Text
    treatment: Text = "none"
    status: Literal["proxy", "full_zero_update", "theta0_2", "quality", "performance"] = "proxy"
    scope_limitation: Text


class Validation(PersonValue):
    """What final validation measures. Every status without a comparison stays `not_run`."""

    comparisons: tuple[Comparison, ...] = ()
    not_run: dict[Literal["proxy", "full_zero_update", "theta0_2", "quality", "performance"], Text] = {}


class AcceptanceCheck(PersonValue):
    """One line of the checklist that a person approves."""

    id: Name
    state: State = Field(strict=False)
    limit: int | float | None = None
    rationale: Text


class BaseDrift(PersonValue):
    """How far the live base may be ahead of the pinned base."""

    max_commits: Annotated[int, Field(ge=0)] = 0
    action: Literal["fail", "note"] = "fail"


class RolePolicy(PersonValue):
    """What roles may have in other ways: names of distributions, libraries, families, variables, by role."""

    environment: Literal["note", "fail"] = "note"
    declared: dict[Name, tuple[Text, ...]] = {}


class Policy(HostPolicy):
    """What the gate and the judges demand; checks named here are out of scope, printed and delivered."""

    base_drift: BaseDrift = BaseDrift()
    forge_mergeable: Literal["required", "advisory"] = "required"
    out_of_scope: tuple[Name, ...] = ()
    roles: RolePolicy = RolePolicy()


class Recipe(PersonValue):
    """The whole recipe. `gate` needs no more than schema, name, forge, pull_requests and policy."""

    schema_: Literal["tic/recipe/v1"] = Field(alias="schema")
    name: Name
    platform: Annotated[str, StringConstraints(pattern=r"^linux/[a-z0-9]{2,16}(/v[0-9])?$")] = "linux/amd64"
    base: Text | DebianBase | None = None
    builder: Text | DebianBase | None = None
    forge: Forge
    pull_requests: Annotated[dict[Name, PullRequest], Field(min_length=1)]
    python: Python | None = None
    env: dict[EnvName, str] = {}
    disk_mib: Annotated[int, Field(ge=0)] = 0
    """What a whole delivery takes beside what is there; `image` refuses to start with less free."""
    workers: dict[Name, Worker] = {}
    validation: Validation = Validation()
    acceptance: tuple[AcceptanceCheck, ...] = ()
    reference_recipe: Text | None = None
    dataset: Text | None = None
    policy: Policy = Policy()
