"""References: what is one, what is a tag, and what is neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tic_manifest.errors import PersonError
from tic_manifest.formats.reference import parse_reference, require_digest, require_store

D = "sha256:" + "a1" * 32

GOOD = [
    (f"registry.example/team/app@{D}", ("registry.example", "team/app")),
    (f"registry.example:5000/app@{D}", ("registry.example:5000", "app")),
    (f"localhost/app@{D}", ("localhost", "app")),
    (f"localhost:5000/a/b/c-d_e__f.g@{D}", ("localhost:5000", "a/b/c-d_e__f.g")),
    (f"127.0.0.1:5000/app@{D}", ("127.0.0.1:5000", "app")),
    (f"[::1]:5000/app@{D}", ("[::1]:5000", "app")),
    (f"[2001:db8::1]/app@{D}", ("[2001:db8::1]", "app")),
    (f"docker.io/library/debian@{D}", ("docker.io", "library/debian")),
]


@pytest.mark.parametrize(("text", "parts"), GOOD, ids=[row[0][:30] for row in GOOD])
def test_a_registry_reference(text: str, parts: tuple[str, str]) -> None:
    found = require_digest(parse_reference(text))
    assert (found.registry, found.repository, found.digest, str(found)) == (*parts, D, text)


LAYOUTS = [f"oci:layout@{D}", f"oci:/a/b c@{D}", f"oci:./@x/y@{D}", f"oci:C:\\images\\x@{D}"]


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_layout_reference(text: str) -> None:
    found = require_digest(parse_reference(text))
    assert (found.layout, found.digest) == (text[4:].rpartition("@")[0], D)


@pytest.mark.parametrize("text", [f"docker-archive:image.tar@{D}", f"docker-archive:/a@b/c d.tar@{D}"])
def test_an_archive_is_read_and_is_no_place_for_anything_else(text: str) -> None:
    found = require_digest(parse_reference(text))
    assert (found.archive, found.digest, str(found)) == (text[15:].rpartition("@")[0], D, text)
    with pytest.raises(PersonError) as raised:
        require_store(found)
    assert raised.value.code == "USAGE"


TAGS = [
    ("registry.example/app:v1", "v1"), ("registry.example/app", "latest"), ("localhost:5000/app:a.b-c_d", "a.b-c_d"),
    ("[::1]:5000/app:v1", "v1"), ("oci:dir:v1", "v1"), ("oci:/a/dir", None),
    ("docker-archive:image.tar", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tag"), TAGS)
def test_a_tag_is_kept_for_the_look_up_and_refused(text: str, tag: str | None) -> None:
    found = parse_reference(text)
    assert (found.tag, found.digest) == (tag, None)
    with pytest.raises(PersonError) as raised:
        require_digest(found)
    assert (raised.value.code, raised.value.exit_code) == ("MUTABLE_REF", 2)


def test_a_tag_beside_a_digest_is_refused_and_the_way_out_is_said() -> None:
    with pytest.raises(PersonError) as raised:
        require_digest(parse_reference(f"registry.example/app:v1@{D}"))
    assert raised.value.code == "MUTABLE_REF" and f"registry.example/app@{D}" in raised.value.remedy


BAD = [
    "", "app", f"app@{D}", f"Registry.example/App@{D}", f"registry.example/app@{D[:-1]}", f"registry.example/app@{D}0",
    f"registry.example/app@{D.upper()}", "registry.example/app@sha512:" + "a" * 128, f"registry.example/app@md5:{'a' * 32}",
    f"-x.example/app@{D}", f"registry.example//app@{D}", f"registry.example/../app@{D}", f"https://registry.example/app@{D}",
    f"user@registry.example/app@{D}", f"registry.example:99999/app@{D}", f"registry.example:0/app@{D}",
    f"registry.example/app@{D}@{D}", f"registry.example/a\nb@{D}", "oci:", f"oci:@{D}", "oci:dir@sha256:abc", "docker-archive:",
    f"docker-archive:@{D}", "docker-archive:a.tar@sha256:abc",
    "registry.example/app:" + "t" * 129, "registry.example/app:-t", f"[::1/app@{D}", "x" * 5000,
    f"[:21]:5000/app@{D}", f"[::1::2]/app@{D}", f"[1.2.3.4]/app@{D}", f"[:::]/app@{D}",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(PersonError) as raised:
        require_digest(parse_reference(text))
    assert raised.value.exit_code == 2


@given(st.text(max_size=80) | st.text("[]:@/.oci-sha256a1", max_size=120))
def test_any_text_is_a_reference_or_a_message(text: str) -> None:
    try:
        found = parse_reference(text)
    except PersonError:
        return
    assert (found.layout is None) != (found.registry is None)
