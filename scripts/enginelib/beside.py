"""A second version of a program, beside the installed one: taken out of its package, not installed as one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from enginelib.packages import apt, distribution, private_view, update
from enginelib.say import MissingError, run, say

FOLDER = Path("/usr/local/bin")


@dataclass(frozen=True)
class Beside:
    """A package, the first Debian release that has the version, and the program inside it."""

    package: str
    number: int
    codename: str
    program: str


BESIDE = {"cosign-3": Beside("cosign", 14, "forky", "usr/bin/cosign")}


def install_beside(name: str, work: Path) -> None:
    """Put a program of a newer release at /usr/local/bin/NAME; apt checks the package, dpkg unpacks it.

    Raises MissingError where this is no Debian, we are not root, or the release cannot be read.
    """
    one, system = BESIDE[name], distribution()
    if system is None or system.name != "debian" or os.geteuid() != 0:
        raise MissingError(f"{name} is taken out of Debian's package {one.package}: on Debian, as root")
    newer = {one.codename: [one.package]} if one.number > system.number else {}
    say(f"getting {name} from {one.package} of {one.codename}, beside what is installed")
    target = work / "beside"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o755, parents=True)
    with private_view(system, newer, work) as options:
        update(options)
        apt(["download", one.package], [*options, "-o", "APT::Sandbox::User=root"], target)
    _place(next(target.glob("*.deb")), one, FOLDER / name)


def _place(package: Path, one: Beside, place: Path) -> None:
    unpacked = run(["dpkg-deb", "--extract", str(package), str(package.parent / "root")])
    if unpacked.returncode != 0:
        raise MissingError(f"dpkg-deb cannot unpack {package.name}: {unpacked.stderr.strip()}")
    temporary = place.with_name(f".{place.name}.new")
    shutil.copyfile(package.parent / "root" / one.program, temporary)
    temporary.chmod(0o755)
    temporary.replace(place)
