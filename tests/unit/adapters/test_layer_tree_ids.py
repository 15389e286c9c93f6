"""Git's blob ids and modes as a layer's archive gives them."""

from __future__ import annotations

import io
import tarfile

import pytest
from sourced import git_id
from tic_manifest.adapters.layer_tree import LayerTreeReader
from tic_manifest.model.files import FileKind, LayerTree
from tic_manifest.rules.tree import lay_over

BIG = bytes(range(256)) * (1 << 13)


def read(step: int = 1 << 20, **modes: int) -> LayerTree:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in {"a/x.py": b"one", "a/big.py": BIG, "a/none.py": b"", "b/x.py": b"two"}.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), modes.get(name.partition("/")[2].removesuffix(".py"), 0o644)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("a/hard.py")
        link.type, link.linkname = tarfile.LNKTYPE, "a/x.py"
        archive.addfile(link)
    reader = LayerTreeReader(1, lambda path: path.startswith("a/"))
    raw = out.getvalue()
    for at in range(0, len(raw), step):
        reader.update(raw[at : at + step])
    reader.close()
    return reader.tree


@pytest.mark.parametrize("step", [1 << 20, 4096, 777])
def test_ids_are_gits_and_only_those_that_are_wanted(step: int) -> None:
    entries = read(step).entries
    assert {path: entries[path].blob_id for path in ("a/x.py", "a/big.py", "a/none.py", "b/x.py")} == {
        "a/x.py": git_id(b"one"), "a/big.py": git_id(BIG), "a/none.py": git_id(b""), "b/x.py": "",
    }  # fmt: skip


def test_modes_are_read_and_a_hard_link_is_the_file_that_it_names() -> None:
    tree = read(big=0o4755)
    assert tree.entries["a/big.py"].mode & 0o7777 == 0o4755
    laid = lay_over([tree])
    assert laid.entries["a/hard.py"].kind is FileKind.FILE
    assert laid.entries["a/hard.py"].blob_id == git_id(b"one")
