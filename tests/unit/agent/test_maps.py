"""/proc/PID/maps: names that lie, lines that are broken, many lines."""

from __future__ import annotations

from types import ModuleType

import pytest

LINE = b"7f0000000000-7f0000001000 r-xp 00002000 fe:01 42                  "


@pytest.mark.parametrize(
    ("tail", "path"),
    [
        (b"/usr/lib/libz.so.1\n", b"/usr/lib/libz.so.1"),
        (b"/tmp/with space.so\n", b"/tmp/with space.so"),
        (b"/tmp/new\\012line.so\n", b"/tmp/new\nline.so"),
        (b"/tmp/gone.so (deleted)\n", b"/tmp/gone.so (deleted)"),
        (b"/memfd:jit (deleted)\n", b"/memfd:jit (deleted)"),
        (b"/tmp/\xff\xfe.so\n", b"/tmp/\xff\xfe.so"),
        (b"[heap]\n", b"[heap]"),
        (b"\n", b""),
    ],
)
def test_a_line_is_read_with_its_whole_name(agent: ModuleType, tail: bytes, path: bytes) -> None:
    (mapping,), report = agent.parse_maps([LINE + tail])
    assert mapping.path == path
    assert (mapping.size, mapping.offset, mapping.device, mapping.inode) == (4096, 0x2000, (0xFE, 1), 42)
    assert report == {"lines": 1, "malformed": 0, "truncated": False}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nonsense\n",
        b"7f00-6f00 r-xp 00000000 fe:01 42 /end/before/start\n",
        b"7f00-8f00 r?xp 00000000 fe:01 42 /perms\n",
        b"7f00-8f00 r-xp 00000000 fe:01 /no/inode\n",
        b"-8f00 r-xp 00000000 fe:01 42 /no/start\n",
        b"\x00" * 100,
    ],
)
def test_a_broken_line_is_counted_never_guessed(agent: ModuleType, line: bytes) -> None:
    found, report = agent.parse_maps([line])
    assert found == []
    assert report["malformed"] == 1


def test_mappings_of_one_file_are_one_group(agent: ModuleType) -> None:
    lines = [b"%x-%x r--p 00000000 fe:01 42 /a.so\n" % (i * 8192, i * 8192 + 4096) for i in range(1, 6)]
    found, _ = agent.parse_maps([*lines, b"ffff0000-ffff1000 rwxp 00000000 00:00 0 \n"])
    assert [len(group) for group in agent.by_file(found).values()] == [5]
    assert agent.anonymous_executable(found) == {"count": 1, "bytes": 4096, "writable": 1, "names": [""]}


def test_more_lines_than_the_limit_are_said_to_be_cut(agent: ModuleType) -> None:
    line = b"1000-2000 r--p 00000000 fe:01 42 /a.so\n"
    found, report = agent.parse_maps(line for _ in range(agent.MAX_MAPS + 5))
    assert len(found) == agent.MAX_MAPS
    assert report["truncated"] is True
