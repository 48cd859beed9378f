"""docs/how-to/s3.md, "Try it on this machine", to the letter but for ports and the store's
build.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.servers.process import ServerSpec, free_port, start_server
from bridge.trino.server import TrinoSpec, start_trino
from tests.engines.stack import LIGHT_JVM, ask
from tests.support.go_programs import GoMissing
from tests.support.versitygw import PACKAGE, VERSION, versitygw

pytestmark = pytest.mark.full

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "s3.md"
_LISTENS = "until (exec 3<>/dev/tcp/127.0.0.1/7070) 2>/dev/null; do sleep 0.1; done\n"


@pytest.fixture
def blocks() -> dict[str, list[str]]:
    """The section's blocks of code by language."""
    section = PAGE.read_text("utf-8").split("## Try it on this machine")[1].split("\n## ")[0]
    found: dict[str, list[str]] = {}
    for language, code in re.findall(r"```(\w+)\n(.*?)```", section, re.S):
        found.setdefault(language, []).append(code)
    return found


def test_a_bucket_in_trino(blocks: dict[str, list[str]], plugin_476: Path, tmp_path: Path) -> None:
    try:
        (tmp_path / "versitygw").symlink_to(versitygw())
    except GoMissing as error:
        pytest.skip(str(error))
    store, planner = free_port(), free_port()

    def here(text: str) -> str:
        return (
            text.replace(":7070", f":{store}")
            .replace("/7070", f"/{store}")
            .replace(":9527", f":{planner}")
        )

    build, start = blocks["sh"][0].split("\n", 1)
    assert build.endswith(f"go install {PACKAGE}@v{VERSION}")
    (tmp_path / "put_flights.py").write_text(blocks["python"][0])
    script = here("".join([start, _LISTENS, *blocks["sh"][1:]]))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SKIPBRIDGE_CACHE": str(tmp_path / "cache"),
        "SKIPBRIDGE_SERVICE_PORT": str(planner),
    }
    shell = ServerSpec(
        "tour",
        ("bash", "-euc", script.replace("start --s3", "start --port 0 --s3")),
        tmp_path,
        port=planner,
        environment=environment,
        start_timeout=600.0,
    )
    try:
        with start_server(shell) as running:
            assert re.search(r"files minmax +28 -> 1 ", running.log.read_text())
            properties = (line.split("=", 1) for line in here(blocks["properties"][0]).split())
            spec = TrinoSpec(
                tmp_path / "trino",
                catalogs={"bridge": dict(properties)},
                plugins={"skipbridge": plugin_476},
                port=0,
                heap="1g",
                jvm_options=LIGHT_JVM,
            )
            with start_trino(spec) as trino:
                assert ask(trino.port, blocks["sql"][0]) == [[10]]
                told = ask(trino.port, f"EXPLAIN ANALYZE VERBOSE {blocks['sql'][0]}")
                assert re.search(r"skipbridge files kept\W.*1\b", str(told)), told
    finally:
        stop = ["skipbridge", "metastore", "stop"]
        subprocess.run(stop, env={**os.environ, **environment}, check=True)
