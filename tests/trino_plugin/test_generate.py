"""The connector's project: generated, renamed, refused."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from bridge.servers.java import find_jdk
from bridge.trino.plugin import PluginBuildFailed, build_plugin
from trino_plugin_gen.build import BuildFailed, build
from trino_plugin_gen.generate import CLIENT, InvalidName, generate, write
from trino_plugin_gen.versions import (
    DEFAULT,
    HIVE_CLASSES,
    STORES,
    UnsupportedVersion,
    supported,
    target,
)

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "trino_plugin_gen" / "template"


def test_the_default_is_the_template_and_the_shared_sources_byte_for_byte() -> None:
    files = generate(DEFAULT)
    on_disk = {
        path.relative_to(TEMPLATE).as_posix(): path.read_bytes()
        for path in TEMPLATE.rglob("*")
        if path.is_file() and "target" not in path.relative_to(TEMPLATE).parts
    }
    shared = {
        f"src/client/java/{path.relative_to(CLIENT).as_posix()}": path.read_bytes()
        for path in CLIENT.rglob("*.java")
    }
    assert len(shared) >= 7
    there = b"${project.basedir}/../../jvm_client/java"
    assert on_disk["pom.xml"].count(there) == 1
    on_disk["pom.xml"] = on_disk["pom.xml"].replace(there, b"src/client/java")
    assert files == on_disk | shared


@pytest.mark.parametrize("version", supported())
def test_every_release_compiles_the_shared_sources(version: int) -> None:
    files = generate(version)
    assert "src/client/java/io/skipbridge/client/BinaryReader.java" in files
    pom = files["pom.xml"].decode()
    assert "<client.sources>src/client/java</client.sources>" in pom
    assert "<source>${client.sources}</source>" in pom


def test_the_shared_sources_need_nothing_but_java_8(tmp_path: Path) -> None:
    """Hive 2.3 runs on Java 8, and any client on the JVM may take them as they are."""
    sources = sorted(map(str, CLIENT.rglob("*.java")))
    javac = find_jdk(17, 24).home / "bin" / "javac"
    options = ["--release", "8", "-Xlint:-options", "-cp", str(tmp_path), "-d", str(tmp_path)]
    done = subprocess.run([javac, *options, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", supported())
def test_a_renamed_project_has_none_of_the_old_names(version: int) -> None:
    files = generate(version, package="com.example.skip", connector_name="fastfiles")
    assert "src/main/java/com/example/skip/BridgePlugin.java" in files
    assert "src/client/java/com/example/skip/client/BinaryReader.java" in files
    services = files["src/main/resources/META-INF/services/io.trino.spi.Plugin"]
    assert services == b"com.example.skip.BridgePlugin\n"
    for path, data in files.items():
        assert "io/skipbridge" not in path
        assert b"io.skipbridge" not in data, path
    name = files["src/main/java/com/example/skip/ConnectorName.java"].decode()
    assert 'NAME = "fastfiles"' in name
    assert f"<trino.version>{version}<".encode() in files["pom.xml"]


def test_both_ways_of_building_take_the_same_classes() -> None:
    for version in supported():
        pom = generate(version)["pom.xml"].decode()
        assert f"<includes>{','.join(HIVE_CLASSES)}</includes>" in pom


def test_write_leaves_unchanged_files_alone(tmp_path: Path) -> None:
    write(generate(), tmp_path)
    before = (tmp_path / "pom.xml").stat().st_mtime_ns
    write(generate(), tmp_path)
    assert (tmp_path / "pom.xml").stat().st_mtime_ns == before


def test_an_unknown_release_names_the_known_ones() -> None:
    with pytest.raises(UnsupportedVersion, match=rf"Trino 123: supported are {supported()[0]}"):
        generate(123)


@pytest.mark.parametrize("package", ["single", "Upper.case", "a..b", "a.b;c"])
def test_a_package_that_is_none_is_refused(package: str) -> None:
    with pytest.raises(InvalidName, match=re.escape(package)):
        generate(package=package)


@pytest.mark.parametrize("name", ["", "Upper", "with space", '"quoted"'])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        generate(connector_name=name)


def test_a_missing_jdk_is_told(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="Install JDK 24"):
        build(DEFAULT, tmp_path, java_home=tmp_path / "nowhere")


def test_the_shared_vectors_are_documents_of_the_wire_form() -> None:
    vectors = json.loads((ROOT / "tests/vectors/trino_predicates.json").read_text("utf-8"))
    assert len({vector["name"] for vector in vectors}) == len(vectors) > 30
    for vector in vectors:
        document = vector["json"]
        if document is None:
            continue
        assert document["version"] == 1
        assert set(document) <= {"version", "none", "domains", "expression", "dropped"}
        for domain in document["domains"]:
            assert len({"ranges", "values", "all", "none"} & set(domain)) == 1


def test_an_unknown_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="no store ftp: known are hdfs, gcs, azure, cache"):
        build(DEFAULT, tmp_path, java_home=tmp_path, stores=["hdfs", "ftp"])


def test_a_release_whose_hadoop_client_maven_lacks_has_a_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven = tmp_path / "mvn"
    maven.write_text(
        "#!/bin/sh\n"
        'case "$*" in *hdfs/pom.xml*)\n'
        "echo 'Could not find artifact io.trino:trino-hdfs:jar:476 in central'; exit 1;; esac\n"
    )
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(PluginBuildFailed, match="Could not find artifact") as caught:
        build_plugin("476", tmp_path / "to", None, "skipbridge", print, ("hdfs",))
    assert "--from-server" in caught.value.hint


def test_hudis_reader_comes_from_maven_alone(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="Maven only"):
        build(DEFAULT, tmp_path, java_home=tmp_path, from_server=tmp_path, hudi=True)


def test_the_hive_connector_comes_from_a_server_or_from_maven(tmp_path: Path) -> None:
    with pytest.raises(PluginBuildFailed, match="from an installed Trino 476") as caught:
        build_plugin("476", tmp_path, None, "skipbridge", print, hive=True)
    assert "--from-server" in caught.value.hint
    with pytest.raises(BuildFailed, match="Trino 483 is built by Maven only"):
        build(483, tmp_path, java_home=find_jdk(25).home, from_server=tmp_path, hive=True)
    for version in supported():
        pom = generate(version)["pom.xml"].decode()
        assert target(version).from_server or "<id>hive</id>" in pom


@pytest.mark.parametrize("version", supported())
def test_hudis_reader_is_of_the_plugins_release_and_package(version: int) -> None:
    files = generate(version, package="com.example.skip", connector_name="fastfiles")
    pom = files["hudi/pom.xml"].decode()
    assert f"<trino.version>{version}<" in pom
    # the jar that the main project makes
    assert "<connector>trino-fastfiles<" in pom and "target/plugin/${connector}-0.1.0.jar" in pom
    assert "hudi/src/main/java/com/example/skip/hudi/HudiSliceMerger.java" in files


@pytest.mark.parametrize("version", supported())
def test_every_store_has_a_way_into_the_plugin(version: int) -> None:
    files = generate(version)
    pom = files["pom.xml"].decode()
    for store in STORES:
        if store == "hdfs":
            hadoop = files["hdfs/pom.xml"].decode()
            assert "<artifactId>trino-hdfs<" in hadoop
            assert f"<trino.version>{version}<" in hadoop
        else:
            assert f"<id>{store}</id>" in pom
