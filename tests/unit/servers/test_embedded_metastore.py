from __future__ import annotations

from pathlib import Path

import pytest

from bridge.servers.embedded_metastore import MetastoreSpec, write_configuration


@pytest.mark.parametrize("given", [None, "w +ü", "hdfs://node:8020/warehouse"])
def test_the_warehouse_is_a_directory_or_a_uri(tmp_path: Path, given: str | None) -> None:
    is_uri = given is not None and "://" in given
    warehouse = given if given is None or is_uri else tmp_path / given
    made = write_configuration(MetastoreSpec(tmp_path / "m", warehouse), "jdbc:x", {})
    directory = tmp_path / (given or "m/warehouse")
    expected = given if is_uri else directory.as_uri()
    assert f"<value>{expected}</value>" in (made / "hive-site.xml").read_text("utf-8")
    assert is_uri or directory.is_dir()
