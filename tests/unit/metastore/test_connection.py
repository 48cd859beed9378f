from __future__ import annotations

import pytest

from bridge.kernel.errors import InvalidConfiguration
from bridge.metastore.connection import parse_addresses


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("thrift://h:9083", ["thrift://h:9083"]),
        ("h", ["thrift://h:9083"]),
        ("h:1", ["thrift://h:1"]),
        ("thrift://a:1, thrift://b", ["thrift://a:1", "thrift://b:9083"]),
        ("thrift://[::1]:9083", ["thrift://[::1]:9083"]),
        ("[::1]", ["thrift://[::1]:9083"]),
    ],
)
def test_addresses(text: str, wanted: list[str]) -> None:
    assert [str(a) for a in parse_addresses(text)] == wanted


@pytest.mark.parametrize(
    "text",
    ["", "http://h:1", "h:", "h:x", "h:0", "h:70000", "h:²", ":9083", "a,,b", "thrift://h/db"],
)
def test_no_addresses(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="not a metastore address"):
        parse_addresses(text)
