"""What `serve` says of its metastore before it is ready."""

from __future__ import annotations

import pytest

from bridge.app.serve import ask_metastore
from bridge.kernel.config import load
from bridge.kernel.errors import InvalidConfiguration
from bridge.servers.process import choose_port


def test_a_metastore_that_does_not_answer_is_a_warning_with_a_remedy() -> None:
    uri = f"thrift://127.0.0.1:{choose_port(0, 'nobody')}"
    said: list[str] = []
    ask_metastore(load({"metastore.uri": uri, "metastore.timeout": "250ms"}), said.append)
    assert said[0].startswith(f"warning METASTORE_UNAVAILABLE: no metastore answers at {uri}")
    assert "skipbridge metastore start" in said[1]


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="not a metastore address: 'http://m'"):
        ask_metastore(load({"metastore.uri": "http://m"}), print)
