from __future__ import annotations

import pytest

from bridge.errors import InvalidUri
from bridge.storage.uri import canonical, join, parent, relative


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


def test_parts() -> None:
    assert join("s3://b/", "k") == "s3://b/k"
    assert join("file:///t", "a/b") == "file:///t/a/b"
    assert relative("s3://b/", "s3://b/k") == "k"
    assert relative("file:///t", "file:///t") is None
    assert parent("file:///a/b") == "file:///a"
    assert parent("s3://b/k") == "s3://b/"
