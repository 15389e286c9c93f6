"""A delivery whose image was installed from wheels, with a head that one of them was built from.

By default every file of the wheel is in the head's tree and installed as it is; scenarios change one of the
three, or the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from delivered import Delivered, digest_of
from sourced import SITE, Head, Wheel, built_wheel, evidence, lock_of

__all__ = [
    "FILES",
    "HEAD",
    "LOCKED",
    "SITE",
    "FromSources",
    "Head",
    "Wheel",
    "digest_of",
    "replace",
    "written",
]
FILES = {"alpha/__init__.py": b"x = 1\n", "alpha/core.py": b"y = 2\n", "alpha/_C.abi3.so": b"native code"}
HEAD = Head(files={"alpha/__init__.py": b"x = 1\n", "alpha/core.py": b"y = 2\n", "csrc/c.cpp": b"int c;"})
LOCKED = Wheel(name="other", files={"other/__init__.py": b"z = 3\n"})


class FromSources(Delivered):
    """`built` is the wheel of the pull request alpha, `later` further layers of the image."""

    def __init__(
        self,
        *later: Mapping[str, bytes],
        built: Wheel | None = None,
        head: Head = HEAD,
        more: str = "",
        locked: Sequence[Wheel] = (LOCKED,),
        given: Sequence[Wheel] = (),
        start: Mapping[str, Any] | None = None,
        env: tuple[str, ...] = ("PATH=/usr/bin",),
        **pull: Any,
    ) -> None:
        self.built, self.head = built or Wheel(files=FILES), head
        self.wheels = [self.built, *locked, *given]
        installed = self.built.installed({"alpha-1.dist-info/INSTALLER": b"pip\n"})
        for one in locked:
            installed |= one.installed()
        layers = [{"etc/os-release": b"x"}, installed, *(later or ({"etc/x": b"y"},))]
        super().__init__(lock=lock_of(head, locked, more, **pull), files=layers, start=start, env=env)
        self.body = {"wheels": (built_wheel(self.built, self.head),)}
        self.more = evidence(self.head, self.wheels)
        self.close()

    def finish(self, without: Sequence[str] = (), **changed: bytes) -> None:
        """Deliver with evidence changed or left out, write the policy, save."""
        files = {name: data for name, data in self.evidence().items() if name not in without} | changed
        self.files = files
        self.attach(self.statement(files), files)
        self.policy()
        self.save()


def written(path: str, data: bytes, wheel: Wheel) -> dict[str, bytes]:
    """A layer that writes a file of a wheel and its row of the RECORD."""
    files = replace(wheel, files={**wheel.files, path: data}).installed()
    return {one: files[one] for one in (f"{SITE}/{path}", f"{SITE}/{wheel.info}/RECORD")}
