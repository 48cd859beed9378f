"""What only HDFS has: name services, users, and an optional package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bridge.kernel.errors import EnvironmentMissing, FileShort, FileUnreadable, StorageFailure
from bridge.servers.embedded_metastore import site
from bridge.storage.routed import open_storage

pytestmark = pytest.mark.full


def test_a_name_service_comes_from_hadoops_configuration(
    hdfs_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "core-site.xml").write_text(site({"fs.defaultFS": "hdfs://lab"}))
    (tmp_path / "hdfs-site.xml").write_text(
        site(
            {
                "dfs.nameservices": "lab",
                "dfs.ha.namenodes.lab": "only",
                "dfs.namenode.rpc-address.lab.only": hdfs_uri.removeprefix("hdfs://"),
            }
        )
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    open_storage().put("hdfs://lab/by/service", b"x")
    assert open_storage().read(f"{hdfs_uri}/by/service") == b"x"
    assert open_storage().list_all("hdfs:///by").paths.to_pylist() == ["hdfs:///by/service"]
    assert open_storage().list_all("hdfs://lab/by").paths.to_pylist() == ["hdfs://lab/by/service"]


def test_what_names_no_name_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    for uri in ("hdfs:///t", "hdfs://nowhere/t"):
        with pytest.raises(StorageFailure, match=uri[:-1]) as caught:
            open_storage().list_all(uri)
        assert "HADOOP_CONF_DIR" in caught.value.hint


def test_no_permission_is_told(hdfs_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_storage().put(f"{hdfs_uri}/owned/f", b"x")
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    stranger = open_storage()
    assert stranger.read(f"{hdfs_uri}/owned/f") == b"x"
    for write in (stranger.put, stranger.put_if_absent):
        with pytest.raises(StorageFailure, match=r"no permission .*stranger"):
            write(f"{hdfs_uri}/owned/g", b"x")
    with pytest.raises(StorageFailure, match="no permission"):
        stranger.delete(f"{hdfs_uri}/owned/f")


def test_a_directory_in_the_way(hdfs_uri: str) -> None:
    open_storage().put(f"{hdfs_uri}/directory/f", b"x")
    with pytest.raises(FileUnreadable, match="directory"):
        open_storage().read(f"{hdfs_uri}/directory")
    for write in (open_storage().put, open_storage().put_if_absent):
        with pytest.raises(StorageFailure, match="director"):
            write(f"{hdfs_uri}/directory", b"x")
    assert open_storage().list_all(f"{hdfs_uri}/directory").paths.to_pylist() == [
        f"{hdfs_uri}/directory/f"
    ]


def test_a_range_beyond_the_end(hdfs_uri: str) -> None:
    open_storage().put(f"{hdfs_uri}/short/f", b"x")
    with pytest.raises(FileShort, match="ends before byte 2") as caught:
        open_storage().read_ranges(f"{hdfs_uri}/short/f", [(0, 2)])
    assert "being written" in caught.value.hint


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(EnvironmentMissing, match="hdfs-native") as caught:
        open_storage().stat("hdfs://node:8020/t")
    assert "skipbridge[hdfs]" in caught.value.hint
