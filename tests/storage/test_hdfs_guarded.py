"""HDFS with two name nodes, of which one takes over, and HDFS that asks for Kerberos."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.errors import StorageFailure
from bridge.servers.embedded_metastore import site
from bridge.storage.routed import open_storage
from tests.support.hdfs import Hdfs, start_hdfs
from tests.support.kdc import REALM, running_realm
from tests.support.kerberos import KerberosMissing

pytestmark = pytest.mark.nightly
SERVICES = ("hdfs/localhost", "HTTP/localhost")


def configured(directory: Path, properties: dict[str, str]) -> str:
    """Hadoop's configuration directory of clients."""
    directory.mkdir(parents=True)
    for name in ("core-site.xml", "hdfs-site.xml"):
        (directory / name).write_text(site(properties))
    return str(directory)


def content(first: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": range(first, first + 10)}), sink)
    return sink.getvalue()


def asked(root: str, cache: Path, value: int) -> tuple[list[int], int]:
    """The rows with this value, and the number of files that were read for them."""
    with bridge.connect(planner_cache_dir=str(cache)) as session:
        scan = session.table(root).scan(f"x = {value}")
        return scan.to_arrow()["x"].to_pylist(), scan.files().num_rows


def built(root: str, cache: Path) -> int:
    with bridge.connect(planner_cache_dir=str(cache)) as session:
        return session.table(root).index.build().files


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hdfs]:
    cluster = start_hdfs(tmp_path / "hdfs", name_nodes=2)
    names = [f"nn{i + 1}" for i in range(len(cluster.name_nodes))]
    service = {"dfs.nameservices": "lab", "dfs.ha.namenodes.lab": ",".join(names)}
    for name, address in zip(names, cluster.name_nodes, strict=True):
        service[f"dfs.namenode.rpc-address.lab.{name}"] = address
    monkeypatch.setenv("HADOOP_CONF_DIR", configured(tmp_path / "conf", service))
    with cluster.server:
        yield cluster


def test_the_other_name_node_takes_over(lab: Hdfs, tmp_path: Path) -> None:
    root = "hdfs://lab/t"
    before = open_storage()
    for i in range(6):
        before.put(f"{root}/f{i}", content(i * 10))
    assert built(root, tmp_path / "cache") == 6
    assert asked(root, tmp_path / "cache", 33) == ([33], 1)
    lab.fail_over()
    # the client that was connected goes on, and a new one finds its way
    for storage in (before, open_storage()):
        assert len(storage.list_all(root).paths) >= 6
        assert storage.read(f"{root}/f2") == content(20)
        assert not storage.put_if_absent(f"{root}/f2", b"other")
    assert before.put_if_absent(f"{root}/f6", content(60))
    assert built(root, tmp_path / "cache") == 7
    assert asked(root, tmp_path / "cache", 66) == ([66], 1)


@pytest.mark.parametrize("protection", ["authentication", "privacy"])
def test_kerberos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protection: str) -> None:
    common = {
        "hadoop.security.authentication": "kerberos",
        "dfs.namenode.kerberos.principal": f"hdfs/localhost@{REALM}",
        "dfs.data.transfer.protection": protection,
        "hadoop.rpc.protection": protection,
    }
    with ExitStack() as stack:
        try:
            made = stack.enter_context(running_realm(tmp_path, SERVICES))
        except KerberosMissing as error:
            pytest.skip(f"no Kerberos: {error}")
        keytab, web = str(made.keytab), "dfs.web.authentication.kerberos"
        cluster = start_hdfs(
            tmp_path / "hdfs",
            host="localhost",
            jvm_options=(f"-Djava.security.krb5.conf={made.configuration}",),
            properties={
                **common,
                "hadoop.security.authorization": "true",
                "dfs.namenode.keytab.file": keytab,
                "dfs.datanode.kerberos.principal": f"hdfs/localhost@{REALM}",
                "dfs.datanode.keytab.file": keytab,
                f"{web}.principal": f"HTTP/localhost@{REALM}",
                f"{web}.keytab": keytab,
                "dfs.block.access.token.enable": "true",
                "ignore.secure.ports.for.testing": "true",
                "dfs.permissions.superusergroup": "planner",
                "dfs.permissions.enabled": "false",
            },
        )
        with cluster.server:
            monkeypatch.setenv("HADOOP_CONF_DIR", configured(tmp_path / "conf", common))
            for name, value in made.environment.items():
                monkeypatch.setenv(name, value)
            root = f"{cluster.uri}/t"
            storage = open_storage()
            for i in range(4):
                storage.put(f"{root}/f{i}", content(i * 10))
            assert built(root, tmp_path / "cache") == 4
            assert asked(root, tmp_path / "cache", 23) == ([23], 1)
            monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "none"))
            with pytest.raises(StorageFailure, match=r"(?i)gss|kerberos|credential"):
                open_storage().list_all(root)
