"""Mirrors and the store in front of a place that is gone, lies or lacks something."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.adapters.places import Mirrored, StoreSource
from tic_manifest.adapters.registry_mirrors import mirrors_of
from tic_manifest.adapters.roots import AnyRoots
from tic_manifest.adapters.store import FileStore
from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.model.base import Digest
from tic_manifest.model.lock import ImageRoot

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import Layout, layers_of
from quiet import Quiet


class Away:
    """A registry that does not answer."""

    def describe(self) -> str:
        return "registry.example/away"

    def __getattr__(self, name: str) -> Any:
        def ask(*_: object) -> None:
            raise UnavailableError("NETWORK", "no answer")

        return ask


class Empty(LayoutSource):
    """A registry that has nothing any more."""

    def __init__(self) -> None: ...

    def describe(self) -> str:
        return "registry.example/base"

    def manifest(self, digest: Digest) -> bytes | None:
        return None

    def blob(self, digest: Digest, size: int) -> Iterator[bytes] | None:
        return None


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "layout")
    image = made.image()
    made.save(made.index([image]), "latest")
    return made


def test_a_copy_that_is_away_lies_or_lacks_something_is_passed_over(layout: Layout, tmp_path: Path) -> None:
    [entry] = layout.entries
    whole = LayoutSource(layout.root)
    raw = whole.manifest(entry["digest"])
    copy = Layout(tmp_path / "copy")
    copy.save(copy.index([copy.image()]))
    copy.path(entry["digest"]).write_bytes(b"{}")
    liar = LayoutSource(copy.root)
    for sources in ([Away(), liar, whole], [liar, whole], [whole, Away()], [Empty(), whole]):
        mirrored = Mirrored(sources)
        assert mirrored.manifest(entry["digest"]) == raw
    assert Mirrored([liar, Empty()]).manifest(entry["digest"]) == b"{}", (
        "whoever asks sees that it is another"
    )
    assert Mirrored([Empty(), Empty()]).manifest(entry["digest"]) is None
    with pytest.raises(UnavailableError):
        Mirrored([Empty(), Away()]).manifest(entry["digest"])
    for sources in ([Away(), whole], [whole, Away()], [whole, Away(), Away()]):
        assert Mirrored(sources).resolve("latest") == entry["digest"]
    with pytest.raises(UnavailableError):
        Mirrored([Away(), Away()]).resolve("latest")


@pytest.mark.parametrize("named", ["index", "platform"])
def test_a_base_that_is_gone_is_taken_from_the_store(layout: Layout, tmp_path: Path, named: str) -> None:
    [entry] = layout.entries
    image = layout.image()
    digest = entry["digest"] if named == "index" else image["digest"]
    store, place = FileStore(tmp_path / "store"), f"registry.example/base@{digest}"

    def roots(source: Any) -> AnyRoots:
        return AnyRoots(None, lambda _: source, Quiet())  # type: ignore[arg-type]

    for gone in (Empty(), Away()):
        with pytest.raises(UnavailableError) as raised:
            roots(gone).resolve(place, "amd64", store)
        assert raised.value.exit_code == 3 and raised.value.code in {"BASE_IMAGE_GONE", "NETWORK"}
    first = roots(LayoutSource(layout.root)).resolve(place, "amd64", store)
    assert isinstance(first, ImageRoot) and len(first.layers) == len(layers_of(layout, image))
    for gone in (Empty(), Away()):
        assert roots(gone).resolve(place, "amd64", store) == first
    assert StoreSource(store).length(first.config_digest) is not None


CONF = """
[[registry]]
location = "docker.io"
[[registry.mirror]]
location = "mirror.example:5000/hub"
[[registry]]
prefix = "docker.io/library/special"
[[registry.mirror]]
location = "[::1]:5000/x"
[[registry.mirror]]
location = "second.example"
"""


@pytest.mark.parametrize(
    ("registry", "repository", "mirrors"),
    [
        ("docker.io", "library/debian", (("mirror.example:5000", "hub/library/debian"),)),
        ("docker.io", "library/special", (("[::1]:5000", "x"), ("second.example", ""))),
        ("docker.io", "library/special/a", (("[::1]:5000", "x/a"), ("second.example", "a"))),
        ("docker.io", "library/specially", (("mirror.example:5000", "hub/library/specially"),)),
        ("other.example", "a", ()),
    ],
)
def test_mirrors_are_those_of_registries_conf(
    tmp_path: Path, registry: str, repository: str, mirrors: tuple[tuple[str, str], ...]
) -> None:
    (tmp_path / "registries.conf").write_text(CONF)
    environ = {"CONTAINERS_REGISTRIES_CONF": str(tmp_path / "registries.conf")}
    assert mirrors_of(registry, repository, environ) == mirrors


@pytest.mark.parametrize("text", ["[[", "registry = 7", "registry = ['x']", "[[registry]]\nprefix = 7"])
def test_a_list_of_registries_that_names_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.conf").write_text(text)
    environ = {"CONTAINERS_REGISTRIES_CONF": str(tmp_path / "r.conf")}
    if text == "[[":
        with pytest.raises(PersonError):
            mirrors_of("docker.io", "a", environ)
    else:
        assert mirrors_of("docker.io", "a", environ) == ()
