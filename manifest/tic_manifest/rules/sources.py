"""Everything that `files.sources` decides: RECORDs against wheels, built wheels against the heads' trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from tic_manifest.model.files import EffectiveTree
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding, note
from tic_manifest.rules.bounded import Bounded
from tic_manifest.rules.installed import Bytecode, Installed, check_absent, check_installed, find_installed
from tic_manifest.rules.installers import Place
from tic_manifest.rules.records import installed_records, read_record
from tic_manifest.rules.source_evidence import Sources, normalized
from tic_manifest.rules.source_tree import NATIVE, check_against_tree, check_pull
from tic_manifest.rules.tree import Resolver

CHECK = "files.sources"
MAX_COPIES = 16
"""Installations of one distribution that are compared: each costs the time of its whole RECORD."""


def check_sources(tree: EffectiveTree, sources: Sources, subject: str) -> list[Finding]:
    """All findings and notes; what could not be compared for want of evidence is in `sources.missing`.

    Distributions are judged one after the other: the rows of all of them would take much memory.
    """
    found, bytecode, native = Bounded(subject), Bytecode(tree), _Native()
    at, seen = Resolver(tree), Counter[str]()
    for path in installed_records(tree):
        place = Place.of(path)
        name = normalized(place.name)
        seen[name] += 1
        if seen[name] > MAX_COPIES:
            found.add([_too_many(path)])
            continue
        rows, problem = read_record(tree.records[path], place.site)
        one, said = find_installed(tree, at, path, rows, sources) if not problem else (None, iter(()))
        found.add(said)
        if one is not None:
            bytecode.saw(one)
            native.saw(one)
            found.add(check_installed(tree, one))
            found.add(_against_tree(tree, one, sources))
    for built in sources.built.values():
        found.add(check_pull(built))
    found.add(check_absent(sources, set(seen)))
    found.add(bytecode.findings(sources))
    return [*found.all(), native.note(subject)]


def _too_many(path: str) -> Finding:
    what = f"a distribution is installed more than {MAX_COPIES} times; this copy was not compared"
    return finding("WHEEL_HASH", Status.INCONCLUSIVE, path, what=what)


def _against_tree(tree: EffectiveTree, one: Installed, sources: Sources) -> Iterator[Finding]:
    built = sources.built.get(one.wheel.pull or "")
    if built is not None:
        yield from check_against_tree(tree, one, built)


def row_of(found: Iterable[Finding], sources: Sources, subject: str) -> Check:
    """The row: a fail stands; else, where evidence is missing, the check was not run."""
    row = check_of(CHECK, found, subject=subject)
    if row.status is Status.FAIL or not sources.missing:
        return row
    first = ", ".join(sources.missing[:3])
    more = f" and {len(sources.missing) - 3} more" if len(sources.missing) > 3 else ""
    return Check(
        id=CHECK, status=Status.NOT_RUN, subject=subject, reason=f"not in the evidence: {first}{more}"
    )


def with_blob_id(everything: Iterable[Sources]) -> Callable[[str], bool]:
    """Whether a path may be a file of a built wheel, told by its last two parts."""
    tails: set[str] = set()
    for sources in everything:
        for wheel in sources.wheels.values():
            if wheel.pull and wheel.record is not None:
                tails |= {_tail(row.path) for row in read_record(wheel.record.record.encode(), "")[0]}
    return lambda path: bool(tails) and (_tail(path) in tails or path.rpartition("/")[2] in tails)


def _tail(path: str) -> str:
    parts = path.split("/")
    if len(parts) > 2 and parts[0].endswith(".data"):
        return parts[-1]
    return "/".join(parts[-2:])


class _Native:
    """Which wheels native files are from, those of pull requests apart."""

    def __init__(self) -> None:
        self._files: Counter[bool] = Counter()
        self._wheels: Counter[bool] = Counter()

    def saw(self, one: Installed) -> None:
        """Count the native files of a wheel."""
        count, built = sum(1 for path in one.held if NATIVE.search(path)), one.wheel.pull is not None
        self._files[built] += count
        self._wheels[built] += bool(count)

    def note(self, subject: str) -> Finding:
        """The counts."""
        counts = {
            "builtFiles": self._files[True], "builtWheels": self._wheels[True],
            "lockedFiles": self._files[False], "lockedWheels": self._wheels[False],
        }  # fmt: skip
        return note("NATIVE_TRACED", subject, evidence=counts)
