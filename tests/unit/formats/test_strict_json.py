"""Strict JSON: whatever two readers could read differently is refused, and nothing crashes."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field
from tic_manifest.errors import RefusedError
from tic_manifest.formats.oci import kind_of, parse_config, parse_index, parse_manifest
from tic_manifest.formats.strict_json import case_variants, load_json, read_model
from tic_manifest.model.base import Value

REFUSED = [
    (b"", "JSON_MALFORMED"),
    (b"{} {}", "JSON_MALFORMED"),
    (b"[1,]", "JSON_MALFORMED"),
    (b"[NaN]", "JSON_MALFORMED"),
    (b"[-Infinity]", "JSON_MALFORMED"),
    (b"[1e999]", "JSON_MALFORMED"),
    (b"[18446744073709551616]", "JSON_MALFORMED"),
    (b"[" + b"9" * 5000 + b"]", "JSON_MALFORMED"),
    (b'["\\ud800"]', "JSON_MALFORMED"),
    (b'["\xff"]', "JSON_MALFORMED"),
    (b'["\x01"]', "JSON_MALFORMED"),
    (b"\xef\xbb\xbf{}", "JSON_MALFORMED"),
    (b"{'a':1}", "JSON_MALFORMED"),
    (b"// c\n{}", "JSON_MALFORMED"),
    (b'{"a":1,"a":1}', "JSON_DUPLICATE_KEY"),
    (b'{"a":1,"\\u0061":1}', "JSON_DUPLICATE_KEY"),
    (b'[{"b":{"a":1,"a":2}}]', "JSON_DUPLICATE_KEY"),
    (b"[" * 65 + b"]" * 65, "JSON_DEPTH"),
    (b"[" * 1000000, "JSON_DEPTH"),
    (b'{"a":' * 100000, "JSON_DEPTH"),
]


@pytest.mark.parametrize(("raw", "code"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_and_why(raw: bytes, code: str) -> None:
    with pytest.raises(RefusedError) as raised:
        load_json(raw, "document")
    assert raised.value.code == code


def test_what_is_read() -> None:
    assert load_json(b'{"a":[1,-2.5,true,null,"\\ud83d\\ude00 [[{"]}', "x") == {
        "a": [1, -2.5, True, None, "😀 [[{"]
    }
    assert load_json(b"[" * 64 + b"]" * 64, "x")
    assert load_json(b'"' + b"[" * 1000 + b'\\""', "x")
    with pytest.raises(RefusedError):
        load_json(b"[1]   ", "x", max_bytes=5)


@pytest.mark.parametrize("key", ["Layers", "LAYERS", "layer\u017f", "\u017fize", "Layer\u017f"])
def test_go_takes_a_key_for_a_known_one(key: str) -> None:
    assert case_variants([key], ["layers", "size"]) == [key]


def test_the_kelvin_sign_folds_to_k_and_other_letters_do_not() -> None:
    assert case_variants(["\u212aey", "kEY", "key", "\u0138ey", "\u0131d"], ["key", "id"]) == [
        "kEY",
        "\u212aey",
    ]


class Inner(Value):
    some_key: int


class Own(Value):
    schema_: Literal["tic/own/v1"] = Field(alias="schema")
    inner: Inner


OWN = [
    (b'{"schema":"tic/own/v2","inner":{"someKey":1}}', "SCHEMA_VERSION"),
    (b'{"schema":"tic/other/v1","inner":{"someKey":1}}', "SCHEMA"),
    (b'{"schema":"tic/own/v1","inner":{"someKey":1,"other":2}}', "SCHEMA"),
    (b'{"schema":"tic/own/v1","inner":{"someKey":1,"SomeKey":2}}', "JSON_CASE_VARIANT"),
    (b'{"schema":"tic/own/v1","inner":{"someKey":"1"}}', "SCHEMA"),
    (b'{"schema":"tic/own/v1","inner":{"someKey":1.0}}', "SCHEMA"),
    (b'{"schema":"tic/own/v1"}', "SCHEMA"),
    (b"[]", "SCHEMA"),
]


@pytest.mark.parametrize(("raw", "code"), OWN, ids=range(len(OWN)))
def test_our_own_documents_are_closed(raw: bytes, code: str) -> None:
    with pytest.raises(RefusedError) as raised:
        read_model(raw, Own, "own.json")
    assert raised.value.code == code


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)  # fmt: skip


@given(plain)
def test_ordinary_json_is_read_as_it_is(value: Any) -> None:
    assert load_json(json.dumps(value).encode(), "x") == value
    assert load_json(json.dumps(value, ensure_ascii=False).encode(), "x") == value


KEYS = st.sampled_from(
    ["schemaVersion", "mediaType", "config", "layers", "manifests", "digest", "size", "subject", "Digest", "platform",
     "rootfs", "diff_ids", "type", "annotations", "os", "architecture", "config", "Env", "x"]
)  # fmt: skip
LEAVES = st.sampled_from(
    [
        2,
        -1,
        True,
        None,
        "",
        "sha256:" + "0" * 64,
        "application/vnd.oci.image.manifest.v1+json",
        "layers",
        1.5,
        2**70,
    ]
)
documents = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner), max_leaves=25
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(documents.map(lambda one: json.dumps(one).encode()), st.binary(max_size=300)))
def test_no_document_makes_the_reader_crash(raw: bytes) -> None:
    kind_of(raw)
    for parse in (parse_manifest, parse_index, parse_config):
        try:
            parse(raw, "document")
        except RefusedError as error:
            assert error.code.startswith(("JSON_", "SCHEMA", "MEDIATYPE"))
