"""RECORD and dpkg lists as hostile text."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from types import ModuleType

import pytest

EMPTY = hashlib.sha256(b"").digest()


def field(digest: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (field(EMPTY), EMPTY.hex()),
        ("", None),
        ("md5=abc", None),
        ("sha256=", None),
        ("sha256=!!!!", None),
        (field(b"short"), None),
    ],
)
def test_record_digests(agent: ModuleType, value: str, expected: str | None) -> None:
    assert agent.record_digest(value) == expected


def install(site: Path, name: str, files: dict[str, bytes], lie: str = "") -> None:
    """A wheel as an installer leaves it."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\nName: not-this\n")
    (info / "INSTALLER").write_text("pip\n")
    rows = []
    for path, content in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(content + (b"#" if path == lie else b""))
        rows.append(f'"{path}",{field(hashlib.sha256(content).digest())},{len(content)}')
    (info / "RECORD").write_text("\n".join(rows) + f"\n{name}-1.0.dist-info/RECORD,,\n")


def test_two_owners_of_one_file_are_both_named(agent: ModuleType, tmp_path: Path) -> None:
    install(tmp_path, "first", {"shared/a.py": b"1", "shared/_C.abi3.so": b"x"})
    install(tmp_path, "second", {"shared/a.py": b"2"})
    rows = agent.scan_distributions("", [str(tmp_path)])
    assert [(r["name"], r["version"], r["installer"], r["editable"]) for r in rows] == [
        ("first", "1.0", "pip", None),
        ("second", "1.0", "pip", None),
    ]
    wanted = str(tmp_path / "shared" / "a.py")
    owners = agent.Owners("", {wanted})
    owners.read_records(rows)
    assert [o["name"] for o in owners.owners[wanted]] == ["first", "second"]
    assert owners.extensions == {0: [str(tmp_path / "shared" / "_C.abi3.so")]}


def test_a_broken_record_is_an_error_of_its_own(agent: ModuleType, tmp_path: Path) -> None:
    install(tmp_path, "good", {"good.py": b"1"})
    install(tmp_path, "bad", {"bad.py": b"1"})
    (tmp_path / "bad-1.0.dist-info" / "RECORD").write_bytes(b'"unclosed\x00' + b"\xff" * 10)
    rows = agent.scan_distributions("", [str(tmp_path)])
    owners = agent.Owners("", {str(tmp_path / "good.py")})
    owners.read_records(rows)
    assert owners.owners[str(tmp_path / "good.py")][0]["name"] == "good"


def test_editable_installs_are_known_without_their_url(agent: ModuleType, tmp_path: Path) -> None:
    install(tmp_path, "dev", {"__editable__.dev-1.0.pth": b"/src"})
    secret = '{"url": "https://u:hunter2@h/x", "dir_info": {"editable": true}}'
    (tmp_path / "dev-1.0.dist-info" / "direct_url.json").write_text(secret)
    (row,) = agent.scan_distributions("", [str(tmp_path)])
    assert row["editable"] == "direct_url"
    assert "hunter2" not in str(row)


@pytest.mark.parametrize(
    ("path", "spellings"),
    [
        ("/usr/lib/x/libc.so.6", ["/usr/lib/x/libc.so.6", "/lib/x/libc.so.6"]),
        ("/lib/x/libc.so.6", ["/lib/x/libc.so.6", "/usr/lib/x/libc.so.6"]),
        ("/usr/share/x", ["/usr/share/x"]),
        ("/opt/lib/x", ["/opt/lib/x"]),
    ],
)
def test_both_spellings_of_a_merged_usr(agent: ModuleType, path: str, spellings: list[str]) -> None:
    assert agent.merged_spellings(path) == spellings


def test_dpkg_owns_the_c_library_in_either_spelling(agent: ModuleType) -> None:
    path = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    owners = agent.Owners("", {path})
    owners.read_debian()
    (owner,) = owners.owners[path]
    assert owner["name"].startswith("libc6") and owner["version"]
    assert owners.debian_verdict(owner["name"], path) == "match"
