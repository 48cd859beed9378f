from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.kernel.errors import InvalidUri
from bridge.storage.routed import RoutedStorage
from bridge.storage.uri import canonical, is_unusual, join, parent, parse, relative


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/x/y", "file:///x/y"),
        ("file:/x/y", "file:///x/y"),
        ("file:///x/y/", "file:///x/y"),
        ("file://localhost/x/y", "file:///x/y"),
        ("local:///x/y", "file:///x/y"),
        ("FILE:/x//y/./z", "file:///x/y/z"),
        ("/", "file:///"),
        ("/a%20b/c d", "file:///a%20b/c d"),
        ("/m=1%2F2/k=a=b", "file:///m=1%2F2/k=a=b"),
        ("/...x/.y", "file:///...x/.y"),
        ("s3a://b/k/f", "s3://b/k/f"),
        ("s3n://b/k/", "s3://b/k"),
        ("s3://b", "s3://b/"),
        ("gs://b/k", "gs://b/k"),
        ("abfs://c@acc.dfs.core.windows.net/k", "abfss://c@acc.dfs.core.windows.net/k"),
        ("wasbs://c@acc.blob.core.windows.net/k", "abfss://c@acc.dfs.core.windows.net/k"),
        ("hdfs://NameNode:8020/x//y", "hdfs://namenode:8020/x/y"),
        ("hdfs://NameService/x", "hdfs://NameService/x"),
        ("hdfs:///x", "hdfs:///x"),
    ],
)
def test_one_spelling(text: str, expected: str) -> None:
    assert canonical(text) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    "text",
    ["", "x/y", "./x", "file:x", "file://host/x", "/x/../y", "s3://b/a//c", "s3:///k", "s3a:k",
     "ftp://h/x", "abfs://account/x", "s3://b/a/../c", "s3://b/./c", "/x\0y", "hdfs://h/../x"],
)  # fmt: skip
def test_refused_with_the_value(text: str) -> None:
    with pytest.raises(InvalidUri) as caught:
        canonical(text)
    assert repr(text) in caught.value.message
    assert caught.value.hint


@given(
    st.sampled_from(["", "file:", "file://", "FILE:", "s3:", "s3a://", "gs://b", "hdfs://H", "x:"]),
    st.text(st.sampled_from("//..ab%:\0\n"), max_size=12),
)
def test_plain_spellings_are_those_that_the_parts_make(start: str, rest: str) -> None:
    text = start + rest
    try:
        parsed = str(parse(text))
    except InvalidUri:
        with pytest.raises(InvalidUri):
            canonical(text)
    else:
        assert canonical(text) == parsed == canonical(parsed)


@given(st.text(st.sampled_from("//..ab\n"), max_size=12))
def test_a_path_that_is_not_unusual_is_its_own_spelling(path: str) -> None:
    if not is_unusual(f"/{path}"):
        assert canonical(f"/{path}") == f"file:///{path}"


def test_parts() -> None:
    assert join("s3://b/", "k") == "s3://b/k"
    assert join("file:///t", "a/b") == "file:///t/a/b"
    assert relative("s3://b/", "s3://b/k") == "k"
    assert relative("file:///t", "file:///t") is None
    assert parent("file:///a/b") == "file:///a"
    assert parent("s3://b/k") == "s3://b/"


def test_a_bucket_is_not_one_whose_name_begins_alike() -> None:
    storage = RoutedStorage({"region": "us-east-1"})
    lake = storage.store("s3://lake/t")
    assert storage.store("s3://lakes") is storage.store("s3://lakes/t") is not lake
    assert storage.store("s3://lake") is lake
