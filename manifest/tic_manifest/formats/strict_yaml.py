"""Strict YAML for files that people write: strings stay strings, a key stands once, errors carry the line.

Plain scalars become bool, int, float or null only in the one spelling a person means (`true`, `0`, `1.5`,
`null`); `yes`, `0x1f`, `1e3`, `12:30` and an all-digit short SHA stay text for the schema to judge.
Source of the rule: contract, section 5.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from tic_manifest.errors import PersonError

MAX_BYTES = 4 << 20
MAX_DEPTH = 32

_PLAIN = (
    ("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf")),
    ("tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9][0-9]{0,17})$"), list("-0123456789")),
    ("tag:yaml.org,2002:float", re.compile(r"^-?(?:0|[1-9][0-9]*)\.[0-9]+$"), list("-0123456789")),
    ("tag:yaml.org,2002:null", re.compile(r"^(?:null|)$"), ["n", ""]),
)


class Located:
    """Where each value of a document stands: path of keys and indexes to `line`."""

    def __init__(self, data: Any, lines: dict[tuple[str | int, ...], int]) -> None:
        self.data = data
        self._lines = lines

    def line(self, path: tuple[str | int, ...]) -> int:
        """The line of a path, or of its nearest parent that exists."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)


class _Loader(yaml.SafeLoader):
    """SafeLoader with our closed set of plain scalars."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As PyYAML's, without aliases: they make small files large."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "an alias is used; write the value out", mark)
        return super().compose_node(parent, index)


for _tag, _pattern, _first in _PLAIN:
    _Loader.add_implicit_resolver(_tag, _pattern, _first)


def load_yaml(raw: bytes, where: str) -> Located:
    """Data and lines of one document. Raises PersonError RECIPE with file and line."""
    if len(raw) > MAX_BYTES:
        raise _error(where, "file too large", f"at most {MAX_BYTES} bytes", f"{len(raw)} bytes")
    lines: dict[tuple[str | int, ...], int] = {}
    loader = None
    try:
        loader = _Loader(raw.decode("utf-8"))
        node = loader.get_single_node()
        data = None if node is None else _build(loader, node, (), lines, where)
    except UnicodeDecodeError as error:
        raise _error(where, "not UTF-8 text", "UTF-8", str(error)) from error
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        raise _error(place, "not YAML", "one YAML document", str(getattr(error, "problem", error))) from error
    finally:
        if loader is not None:
            loader.dispose()
    return Located(data, lines)


def _build(
    loader: yaml.SafeLoader,
    node: yaml.Node,
    path: tuple[str | int, ...],
    lines: dict[tuple[str | int, ...], int],
    where: str,
) -> Any:
    place = f"{where}:{node.start_mark.line + 1}"
    lines[path] = node.start_mark.line + 1
    if len(path) > MAX_DEPTH:
        raise _error(place, "nested too deeply", f"at most {MAX_DEPTH} levels", "more")
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, lines, where)
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, one, (*path, i), lines, where) for i, one in enumerate(node.value)]
    return _scalar(loader, node, place)


def _scalar(loader: yaml.SafeLoader, node: yaml.Node, place: str) -> Any:
    if node.tag not in {"tag:yaml.org,2002:str", *(tag for tag, _, _ in _PLAIN)}:
        raise _error(place, "a tag is used", "plain values", node.tag)
    return loader.construct_object(node)


def _mapping(
    loader: yaml.SafeLoader,
    node: yaml.MappingNode,
    path: tuple[str | int, ...],
    lines: dict[tuple[str | int, ...], int],
    where: str,
) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key_node, value_node in node.value:
        place = f"{where}:{key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise _error(place, "a key is not text", "a plain key", "a collection")
        key = str(key_node.value)
        if key == "<<":
            raise _error(place, "a merge key is used", "keys written out", "<<")
        if key in data:
            raise _error(
                place, f"key {key!r} stands twice", "each key once", f"first on line {lines[(*path, key)]}"
            )
        data[key] = _build(loader, value_node, (*path, key), lines, where)
        lines[(*path, key)] = key_node.start_mark.line + 1
    return data


def _error(where: str, what: str, expected: str, actual: str) -> PersonError:
    return PersonError("RECIPE", what, where=where, expected=expected, actual=actual)
