"""The faults: each an exact edit of the package's sources, and the scenarios that are to find it.

The first eleven names are those of the acceptance list of the pull-request gate; the others are further ways
in which a gate of this kind is known to go wrong (rules in brackets).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Replace `old`, which must stand exactly once in the module `path`, by `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Fault:
    """One fault. `scenarios` are folder names below tests/scenarios/gate, the likeliest first."""

    name: str
    edits: tuple[Edit, ...]
    scenarios: tuple[str, ...]


FORGE_PULL = "formats/forge_pull.py"
MERGEABLE = '        mergeable=_typed(data, "mergeable", bool, None),\n'
STATE_WORD = '        mergeable_state=(_typed(data, "mergeable_state", str, None) or "")[:100] or None,\n'

FAULTS = (
    Fault(
        "null read as true",
        (
            Edit(FORGE_PULL, MERGEABLE, MERGEABLE.replace("None", "True")),
            Edit(FORGE_PULL, STATE_WORD, '        mergeable_state="clean",\n'),
        ),
        ("S21", "S20", "S24"),
    ),
    Fault(
        "null read as false",
        (Edit(FORGE_PULL, MERGEABLE, MERGEABLE.replace("None", "False")),),
        ("S21", "S20"),
    ),
    Fault(
        "--first-parent",
        (
            Edit(
                "adapters/git_gate.py",
                'self.run(["rev-list", *options, "--stdin"], stdin=asked)',
                'self.run(["rev-list", "--first-parent", *options, "--stdin"], stdin=asked)',
            ),
        ),
        ("S09", "S08"),
    ),
    Fault(
        "base.sha of the interface used",
        (
            Edit(
                "model/gate.py",
                "    base_ref: Word\n    base_repo_id",
                "    base_ref: Word\n    base_sha: GitCommit | None = None\n    base_repo_id",
            ),
            Edit(
                FORGE_PULL,
                '        author=_login(data),\n        base_ref=_typed(base, "ref", str)[:500],\n',
                '        author=_login(data),\n        base_ref=_typed(base, "ref", str)[:500],\n'
                '        base_sha=_oid(base.get("sha")),\n',
            ),
            Edit(
                "stages/gate_git.py",
                "    tip = refs.branch(branch)\n    if tip is None or not git",
                "    tip = pull.base_sha if pull and pull.base_sha else refs.branch(branch)\n"
                "    if tip is None or not git",
            ),
        ),
        ("S32", "S33"),
    ),
    Fault(
        "match by branch name only",
        (
            Edit(
                "stages/gate_stack.py",
                "        if row.head_ref == pull.base_ref and row.head_repo_id == pull.base_repo_id\n",
                "        if row.head_ref == pull.base_ref\n",
            ),
            Edit(
                "rules/gate_state.py",
                "    if not is_trunk(pull.base_ref, facts.trunks):\n        return [_stacked",
                "    stack = facts.stack.parents if isinstance(facts.stack, StackFacts) else ()\n"
                "    if stack or not is_trunk(pull.base_ref, facts.trunks):\n        return [_stacked",
            ),
        ),
        ("F02-name", "S03"),
    ),
    Fault(
        "first page only",
        (Edit("adapters/forge.py", "            url = page.next\n", '            url = ""\n'),),
        ("S63", "S41-reset"),
    ),
    Fault(
        "exit 128 read as conflict",
        (
            Edit(
                "adapters/git.py",
                "        ran = self.run(argv, answers=(0, 1))\n"
                '        tree, *paths = ran.out.split(b"\\0")\n',
                "        ran = self.run(argv, answers=(0, 1, 128))\n        if ran.status == 128:\n"
                '            return Merge(self.tree_of(base), ("unknown",))\n'
                '        tree, *paths = ran.out.split(b"\\0")\n',
            ),
        ),
        ("F33-lost", "S43", "S44"),
    ),
    Fault(
        "shallow accepted",
        (
            Edit(
                "adapters/git_remote.py",
                '        if "shallow" in words:\n',
                '        if "shallow" in words and not wants:\n',
            ),
        ),
        ("F33-shallow",),
    ),
    Fault(
        "draft ignored",
        (
            Edit(
                "rules/gate_state.py",
                "    if not isinstance(pull, ForgePull) or pull.draft is False:\n",
                "    if not isinstance(pull, ForgePull) or pull.draft is not None:\n",
            ),
        ),
        ("S35", "S66"),
    ),
    Fault(
        "patch-id alone counted as stacked",
        (
            Edit(
                "stages/gate_stack.py",
                "    return same or _trailer(ours, theirs) or _trailer(theirs, ours)\n",
                "    return same or bool(ours.patch)\n",
            ),
        ),
        ("F07-coincident",),
    ),
    Fault(
        "the interface trusted over git: merge",
        (
            Edit(
                "rules/gate_merge.py",
                '    pinned = _conflict(facts, facts.pinned_merge, "")\n',
                "    if isinstance(facts.pull, ForgePull) and facts.pull.mergeable:\n        return []\n"
                '    pinned = _conflict(facts, facts.pinned_merge, "")\n',
            ),
        ),
        ("F17-conflict", "F17-live"),
    ),
    Fault(
        "the interface trusted over git: head",
        (
            Edit(
                "stages/gate_look.py",
                "        ref = refs.head(first.pin.number)\n        if ref is None and pull",
                "        ref = pull.head_sha if pull else refs.head(first.pin.number)\n"
                "        if ref is None and pull",
            ),
            Edit(
                "stages/gate_look.py",
                "            branch=head_branch(first, self.world) if pull and",
                "            branch=None if pull and",
            ),
        ),
        ("F21-lag", "S30", "S26"),
    ),
    Fault(
        "null draft read as ready [F26]",
        (
            Edit(
                "rules/gate_state.py",
                "    if not isinstance(pull, ForgePull) or pull.draft is False:\n",
                "    if not isinstance(pull, ForgePull) or not pull.draft:\n",
            ),
        ),
        ("X-draft-null",),
    ),
    Fault(
        "any shared commit passes unless all are shared [1.2, rule 3]",
        (
            Edit(
                "rules/gate_stack.py",
                "    theirs, rule = owner(facts.number, one.number, one.linked, one.author)\n"
                '    words = f"{one.shared_count}',
                '    theirs, rule = False, "lower number"\n    words = f"{one.shared_count}',
            ),
        ),
        ("S07", "F05-theirs"),
    ),
    Fault(
        "nothing read again at the end [F45]",
        (
            Edit(
                "rules/gate_local.py",
                "    if not isinstance(pull, ForgePull) or not isinstance(last, Closing):\n",
                "    if not isinstance(pull, ForgePull) or isinstance(last, Closing):\n",
            ),
        ),
        ("S64",),
    ),
    Fault(
        "a repository known by its name [F40]",
        (
            Edit(
                "rules/gate_state.py",
                "        if expected is not None and expected != known.id:\n",
                "        if expected is not None and not known.full_name:\n",
            ),
        ),
        ("S38",),
    ),
    Fault(
        "an incomplete list read as no overlap [1.2, rule 6]",
        (
            Edit(
                "stages/gate_look.py",
                "        if isinstance(rows, Unknown) and needs_rows:\n            return rows\n",
                "",
            ),
        ),
        ("X-502-list", "S41-reset", "S39"),
    ),
    Fault(
        "a list that lacks the pull request itself believed [F35]",
        (
            Edit(
                "stages/gate_look.py",
                "        if first.pin.number not in rows:\n",
                "        if first.pin.number < 0:\n",
            ),
        ),
        ("X-empty-list",),
    ),
)
