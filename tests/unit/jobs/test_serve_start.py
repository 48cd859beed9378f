"""What `serve` says of its metastore before it is ready."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bridge.app.serve import ask_metastore
from bridge.kernel.config import load
from bridge.kernel.errors import InvalidConfiguration
from bridge.servers.process import choose_port


def test_a_metastore_that_does_not_answer_is_a_warning_with_a_remedy() -> None:
    uri = f"thrift://127.0.0.1:{choose_port(0, 'nobody')}"
    said: list[str] = []
    config = load({"metastore.uri": uri, "metastore.timeout": "250ms"})
    assert not ask_metastore(config, said.append)
    assert said[0].startswith(f"warning METASTORE_UNAVAILABLE: no metastore answers at {uri}")
    assert "skipbridge metastore start" in said[1]


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="not a metastore address: 'http://m'"):
        ask_metastore(load({"metastore.uri": "http://m"}), print)


def test_the_line_of_readiness_says_that_no_metastore_answers() -> None:
    command = [sys.executable, "-m", "bridge", "serve", "--port", "0", "--metastore-uri"]
    uri = f"thrift://127.0.0.1:{choose_port(0, 'nobody')}"
    small = {"SKIPBRIDGE_METASTORE_TIMEOUT": "250ms", "SKIPBRIDGE_SERVICE_METRICS_PORT": "0"}
    with subprocess.Popen(
        [*command, uri], stderr=subprocess.PIPE, text=True, env=os.environ | small
    ) as planner:
        try:
            assert planner.stderr is not None
            lines = [next(planner.stderr) for _ in range(3)]
        finally:
            planner.terminate()
    assert lines[0].startswith("warning METASTORE_UNAVAILABLE") and "->" in lines[1]
    assert lines[2].startswith("planner ready on")
    assert f"metastore {uri} does NOT answer, and queries fail until it does" in lines[2]
