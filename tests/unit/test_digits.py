"""Numbers in texts of users, stores and files: other digits, and more of them than a number has,
end as any wrong text does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bridge.app.doctor import _trino
from bridge.formats.lines.delimited_columns import text_columns
from bridge.formats.lines.recipe import Recipe
from bridge.hive.server import HiveSession
from bridge.index.kinds.values import KIND as VALUES
from bridge.kernel.config import Config, Setting, parse_address, parse_seconds, parse_size
from bridge.kernel.errors import BridgeError, InvalidRequest
from bridge.kernel.types import BIGINT
from bridge.segments.commands.casts import castable
from bridge.service.handler import _positive
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.object_store.listing_end import _parsed
from bridge.table.hudi.timeline.archived_timeline import _manifest
from skipbridge_geo.kind import KIND as GEO
from tests.support.planner_client import PlannerClient

DIGITS = pytest.mark.parametrize("digits", ["²", "1²", "9" * 5000], ids=["raised", "mixed", "long"])


def of_config(text: str) -> int:
    return Config({"service.port": Setting(text, "test")}).integer("service.port")


@DIGITS
@pytest.mark.parametrize(
    "use",
    [
        lambda text: PlannerClient(f"localhost:{text}"),
        lambda text: HiveSession(f"localhost:{text}"),
        lambda text: _trino(f"localhost:{text}"),
        lambda text: _positive({"limit": text}, "limit", 1),
        of_config,
        parse_size,
        lambda text: parse_size(f"{text}KiB"),
        lambda text: parse_seconds(f"{text}s"),
        lambda text: VALUES.define(f"c:limit={text}"),
        lambda text: GEO.define(f"lat,lon:cells={text}"),
        lambda text: text_columns(
            LocalStorage(), "file:///none", 1, Recipe("text", (("field.delim", text),), ())
        ),
    ],
)
def test_a_text_that_is_no_number_is_refused(digits: str, use: Callable[[str], Any]) -> None:
    with pytest.raises(BridgeError):
        use(digits)


def test_a_port_is_one_of_tcp() -> None:
    assert parse_address("[::1]:80") == ("[::1]", 80)
    for address in ("localhost", "localhost:", ":80", "localhost:0", "localhost:65536"):
        with pytest.raises(InvalidRequest, match="not an address"):
            parse_address(address)


@DIGITS
def test_a_page_that_states_no_number_of_keys_is_read(digits: str) -> None:
    page = ElementTree.fromstring(
        f"<ListBucketResult><MaxKeys>{digits}</MaxKeys><Contents><Key>a</Key></Contents>"
        "</ListBucketResult>"
    )
    assert _parsed(page, "").keys == ["a"]


@DIGITS
def test_a_version_file_without_a_number_leaves_the_newest(digits: str, tmp_path: Path) -> None:
    (tmp_path / "manifest_3").write_text('{"files": [{"fileName": "f.parquet"}]}')
    (tmp_path / "_version_").write_bytes(digits.encode("latin-1"))
    assert _manifest(LocalStorage(), f"file://{tmp_path}") == (f"file://{tmp_path}/f.parquet",)


def test_a_long_text_is_a_number_as_java_reads_it() -> None:
    assert castable("0" * 5000 + "7", BIGINT) and castable("+" + "0" * 21, BIGINT)
    assert not castable("9" * 5000, BIGINT) and not castable("²", BIGINT)
    assert not castable(str(2**63), BIGINT) and castable(str(-(2**63)), BIGINT)
