"""What users get wrong, or the world does: each time a code, the value, the remedy, no trace."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app.cli.main import cli
from bridge.kernel.errors import StorageFull, TableNotFound
from bridge.runtime.compose import check_directory
from bridge.storage.local_disk.local import LocalStorage

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", "thrift://127.0.0.1:1")
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    return lambda *words: CliRunner().invoke(cli, [str(w) for w in words])


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    root = tmp_path / "flights"
    for month in (1, 2):
        for i in range(3):
            path = root / f"month={month}" / f"{i}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, pa.table({"dep_delay": [10 * i], "carrier": ["UA"]}))
    return root


def write(path: Path, data: pa.Table) -> None:
    pq.write_table(data, path)
    past(path)


def past(path: Path) -> None:
    os.utime(path, (path.stat().st_atime - 60, path.stat().st_mtime - 60))


def refused(result: Result, code: str, *words: str, status: int = 2) -> None:
    assert "Traceback" not in result.output
    assert f"error {code}: " in result.stderr, result.output
    assert "\n  -> " in result.stderr, "no remedy"
    assert result.stderr.count("error ") == 1 or "error " in "".join(words)
    for word in words:
        assert word in result.stderr, (word, result.stderr)
    assert result.exit_code == status
    assert result.stdout == ""


def test_unknown_directory_and_what_is_no_table(run: Run, tmp_path: Path) -> None:
    refused(run("explain", tmp_path / "nope"), "TABLE_NOT_FOUND", "nope")
    for text in ("x.y.z", ".t", "db."):
        refused(run("explain", text), "INVALID_REQUEST", repr(text), "./flights")
    refused(run("table", "create", "t", "--location", tmp_path), "INVALID_REQUEST", "DB.TABLE")


def test_half_a_character_is_no_directory(flights: Path) -> None:
    with pytest.raises(TableNotFound, match="there is no directory"):
        check_directory(f"file://{flights}/\ud800")


def test_unknown_column_names_the_nearest(run: Run, flights: Path) -> None:
    refused(run("explain", flights, "dep_dely > 5"), "COLUMN_NOT_FOUND", "dep_dely", "dep_delay")


@pytest.mark.parametrize(
    "where",
    [
        "month = dep_dely",
        "dep_dely = month",
        "month IN (1, dep_dely)",
        "reverse(dep_dely) = 'a'",
        "month = 1 AND NOT (abs(dep_dely) > 5 OR month = 2)",
        "dep_dely IS NULL OR 1 = 1",
        "lower(dep_dely) = 'a' OR true",
        "(month = dep_dely) IS TRUE",
        'carrier = "dep_dely"',
    ],
)
def test_unknown_columns_are_refused_wherever_they_stand(
    run: Run, flights: Path, where: str
) -> None:
    refused(run("explain", flights, where), "COLUMN_NOT_FOUND", "dep_dely", "dep_delay")


@pytest.mark.parametrize(
    "where",
    [
        "month = dep_delay",
        "MONTH = abs(Dep_Delay)",
        "carrier = current_user",
        "carrier = current_catalog",
        "carrier = current_schema",
        "current_date > DATE '2024-01-01' AND localtime IS NOT NULL",
        "any_match(ARRAY[1], e -> e > month)",
        "month IN (SELECT other FROM t)",
        "extract(WEEK FROM dep_delay) = 1 AND dep_delay + INTERVAL '1' DAY IS NULL",
    ],
)
def test_what_is_no_column_is_not_looked_for(run: Run, flights: Path, where: str) -> None:
    result = run("explain", flights, where)
    assert result.exit_code == 0, result.output
    assert "dropped" in result.stdout


def test_unknown_generation_names_those_there_are(run: Run, flights: Path) -> None:
    assert run("index", "build", flights, "--local").exit_code == 0
    refused(run("explain", flights, "--generation", 9), "GENERATION_NOT_FOUND", "9", "[1]")
    shutil.rmtree(flights / ".skipbridge")
    refused(run("index", "show", flights), "GENERATION_NOT_FOUND", "skipbridge index build")


@pytest.mark.parametrize("text", ["dep_delay >", "(a = 1", "a = 'x", "SELECT 1", "a = 1; DROP t"])
def test_a_predicate_that_does_not_parse(run: Run, flights: Path, text: str) -> None:
    refused(run("explain", flights, text), "INVALID_PREDICATE")


def test_a_wire_predicate_that_is_no_json(run: Run, flights: Path) -> None:
    refused(run("explain", flights, "--wire", "{"), "INVALID_PREDICATE", "no JSON")


def test_a_text_without_quotes_and_a_key_in_another_case(
    run: Run, flights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = run("explain", flights, "carrier = xyz")
    refused(done, "COLUMN_NOT_FOUND", "no column xyz", "if xyz is a text, write 'xyz'")
    quoted = run("explain", flights, 'carrier = "AA"')
    refused(quoted, "COLUMN_NOT_FOUND", "no column AA", "if AA is a text, write 'AA'")
    (flights / "month=2").rename(flights / "month=Feb")
    assert run("explain", flights, "month = 'FEB'").exit_code == 0
    assert "no partition has month = 'FEB', but there is 'Feb'" in caplog.text


def test_a_value_without_the_leading_zero_of_its_directory(
    run: Run, flights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The value that there is is told, in place of one with which no row is found."""
    for month in (1, 2):
        (flights / f"month={month}").rename(flights / f"month=0{month}")
    refused(run("explain", flights, "month = 2"), "INVALID_PREDICATE", "write month = '02'")
    refused(run("explain", flights, "month = 7"), "INVALID_PREDICATE", "'single quotes'")
    for asked, told in (("'2'", True), ("'7'", False), ("'02'", False), ("'002'", True)):
        caplog.clear()
        done = run("explain", flights, f"dep_delay > 1 AND month = {asked}")
        assert done.exit_code == 0, done.output
        warned = f"no partition has month = {asked}, but there is '02'" in caplog.text
        assert warned is told, (asked, caplog.text)


def test_a_file_that_is_not_parquet(
    run: Run, flights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named and read like any file; it does not keep the others from being indexed."""
    bad = flights / "month=1" / "0.parquet"
    bad.write_text("hello, I am text")
    past(bad)
    for command in (("explain", flights), ("index", "build", flights, "--local")):
        caplog.clear()
        result = run(*command)
        assert result.exit_code == (3 if command[0] == "index" else 0), result.output
        assert f"{bad} is text; queries that read it fail" in caplog.text
    assert "6 files, 6 read (1 failed)" in result.stdout
    listed = run("index", "show", flights, "--failed")
    assert listed.stdout.count(str(bad)) == 1 and "FILE_CORRUPT" in listed.stdout
    told = run("explain", flights, "dep_delay > 15")
    assert "6 -> 3" in told.stdout and "FAILED_FILES" in told.stdout
    assert "when the index was built; every query reads it ->" in told.stdout
    assert "--failed" in told.stdout and "index refresh" not in told.stdout
    found = run("doctor", flights)
    assert "could not be read" in found.output and "newer" not in found.output
    report = run("index", "report", flights)
    assert "5 files" not in report.stdout and "1 not readable" in report.stdout


def test_a_file_that_is_cut_short(
    run: Run, flights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = flights / "month=1" / "0.parquet"
    whole = (flights / "month=1" / "1.parquet").read_bytes()
    for content in (whole[:-9], whole[-300:]):
        bad.write_bytes(content)
        caplog.clear()
        assert run("explain", flights).exit_code == 0
        assert str(bad) in caplog.text and "damaged" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user to be refused")
def test_a_file_that_must_not_be_read(run: Run, flights: Path) -> None:
    for path in (flights, *flights.parents):
        if not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o055)
    bad = flights / "month=1" / "0.parquet"
    bad.chmod(0o600)
    os.seteuid(65534)
    try:
        refused(run("explain", flights), "FILE_UNREADABLE", str(bad), "denied", status=1)
    finally:
        os.seteuid(0)


def test_a_file_that_vanishes_while_the_index_is_built(
    run: Run, flights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = flights / "month=2" / "2.parquet"
    real = LocalStorage.stat

    def stat(self: LocalStorage, uri: str) -> object:
        if uri.endswith("month=2/2.parquet"):
            gone.unlink(missing_ok=True)
        return real(self, uri)

    monkeypatch.setattr(LocalStorage, "stat", stat)
    result = run("index", "build", flights, "--local")
    assert result.exit_code == 0, result.output
    assert "not indexed" in result.stderr and "2.parquet" in result.stderr
    assert "5 -> 5" in run("explain", flights).stdout


def test_schemas_that_disagree_name_both_files(run: Run, flights: Path) -> None:
    other = flights / "month=2" / "0.parquet"
    write(other, pa.table({"dep_delay": ["late"], "carrier": ["UA"]}))
    words = ("dep_delay", "string", str(other), "month=1/0.parquet")
    refused(run("explain", flights), "SCHEMA_CONFLICT", *words)
    refused(run("table", "create", "a.b", "--location", flights), "SCHEMA_CONFLICT", *words)


def damage_version(index: Path) -> None:
    manifest = index / "generations" / "1.json"
    manifest.write_text(re.sub(r'"version": \d+', '"version": 99', manifest.read_text(), count=1))


def damage_checksum(index: Path) -> None:
    (shard,) = (index / "shards").glob("*-columns*")
    raw = bytearray(shard.read_bytes())
    groups = pq.read_metadata(shard)
    for number in range(groups.num_row_groups):  # each last page: a query reads its columns alone
        group = groups.row_group(number)
        for chunk in (group.column(i) for i in range(group.num_columns)):
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            raw[start + chunk.total_compressed_size - 1] ^= 255
    shard.write_bytes(bytes(raw))


def lose_shard(index: Path) -> None:
    next((index / "shards").glob("*-files*")).unlink()


@pytest.mark.parametrize(
    ("damage", "word"),
    [(damage_version, "99"), (damage_checksum, "checksum"), (lose_shard, "gone")],
)
def test_a_damaged_index_is_ignored_told_and_mended(
    run: Run, flights: Path, damage: Callable[[Path], None], word: str
) -> None:
    assert run("index", "build", flights, "--local").exit_code == 0
    damage(flights / ".skipbridge")
    told = run("explain", flights, "dep_delay > 15")
    assert told.exit_code == 0 and "6 -> 6" in told.stdout
    assert "INDEX_CORRUPT, " in told.stdout and word in told.stdout
    assert f"-> skipbridge index build {flights}" in told.stdout
    assert run("index", "build", flights, "--local").exit_code == 0
    mended = run("explain", flights, "dep_delay > 15").stdout
    assert "6 -> 2" in mended and "not used" not in mended


@pytest.mark.parametrize("command", [("explain", "a.b"), ("index", "show", "a.b")])
def test_no_metastore(run: Run, command: tuple[str, ...]) -> None:
    words = ("thrift://127.0.0.1:1", "refused", "skipbridge metastore start", "metastore.uri")
    refused(run(*command), "METASTORE_UNAVAILABLE", *words, status=1)


def test_a_column_that_is_left_out_is_named_and_told_by_the_status(
    run: Run, tmp_path: Path
) -> None:
    part = pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int32()), ("b", pa.null())]))
    held = {"n": [1], "at": pa.array([1], pa.time64("us")), "st": part}
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table(held), tmp_path / "t" / "f.parquet")
    found = run("table", "create", "a.b", "--location", tmp_path / "t", "--dry-run")
    assert found.exit_code == 3 and "left out: column at, whose type" in found.stderr
    assert "would create a.b" in found.stdout and "  n " in found.stdout
    assert "left out: column st.b, whose type" in found.stderr
    assert "struct<a:int>" in found.stdout
    words = ("--format", "parquet", "--from", tmp_path / "t", "--dry-run", "--yes")
    found = run("table", "create", tmp_path / "s", *words)
    assert found.exit_code == 3 and "left out: 'at'" in found.stderr
    assert "left out: 'st.b'" in found.stderr


def test_no_metastore_and_nothing_half_registered(run: Run, flights: Path) -> None:
    result = run("table", "create", "a.b", "--location", flights)
    refused(result, "METASTORE_UNAVAILABLE", "127.0.0.1:1", status=1)


@pytest.fixture
def stranger() -> Iterator[int]:
    """A port where a web server answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def answer() -> None:
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with closing(peer):
                    peer.recv(1000)
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        yield int(listening.getsockname()[1])


def test_something_else_than_a_metastore(run: Run, stranger: int) -> None:
    uri = f"thrift://127.0.0.1:{stranger}"
    result = run("table", "show", "a.b", "--metastore-uri", uri)
    refused(result, "METASTORE_ERROR", uri, "does not answer as a Hive metastore", status=1)
    result = run("table", "show", "a.b", "--metastore-uri", f"http://127.0.0.1:{stranger}")
    refused(result, "INVALID_CONFIGURATION", "http://", "thrift://host:9083")


def test_ports(run: Run, stranger: int) -> None:
    refused(run("serve", "--port", stranger), "PORT_IN_USE", str(stranger), "--port")
    refused(run("serve", "--port", stranger, "--processes", 2), "PORT_IN_USE", str(stranger))
    refused(run("serve", "--port", 0, "--processes", 2), "INVALID_CONFIGURATION", "service.port")
    refused(run("serve", "--port", 99999), "INVALID_CONFIGURATION", "99999")
    refused(run("serve", "--port", "x"), "INVALID_CONFIGURATION", "'x'", "whole number")
    for host in ("0.0.0.0", "::1", "example.org"):
        refused(run("serve", "--host", host), "INVALID_CONFIGURATION", host, "127.0.0.1")
    result = run("serve", "--port", 0, "--metrics-port", stranger)
    refused(result, "PORT_IN_USE", f"metrics on port {stranger}")
    result = run("metastore", "start", "--port", stranger, "--data-dir", "never-made")
    refused(result, "PORT_IN_USE", str(stranger))


def test_a_second_metastore_of_a_directory(run: Run, tmp_path: Path) -> None:
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    record = {"pid": os.getpid(), "port": 9083, "started": started, "name": "metastore"}
    (tmp_path / "metastore.pid").write_text(json.dumps(record))
    result = run("metastore", "start", "--port", 0, "--data-dir", tmp_path)
    refused(result, "PORT_IN_USE", "thrift://127.0.0.1:9083", "skipbridge metastore stop")


def test_no_jdk(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPBRIDGE_JDK17", str(tmp_path))
    result = run("metastore", "start", "--port", 0, "--data-dir", tmp_path / "m")
    refused(result, "ENVIRONMENT", "SKIPBRIDGE_JDK17", str(tmp_path))
    old = tmp_path / "jdk8"
    (old / "bin").mkdir(parents=True)
    (old / "bin" / "javac").write_text("#!/bin/sh\n")
    (old / "bin" / "javac").chmod(0o755)
    (old / "release").write_text('JAVA_VERSION="1.8.0_392"\n')
    monkeypatch.setenv("SKIPBRIDGE_JDK17", str(old))
    result = run("metastore", "start", "--port", 0, "--data-dir", tmp_path / "m")
    refused(result, "ENVIRONMENT", str(old), "17")
    monkeypatch.delenv("SKIPBRIDGE_JDK17")
    monkeypatch.setattr("bridge.servers.java._PLACES", ())
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(old / "bin"))
    result = run("metastore", "start", "--port", 0, "--data-dir", tmp_path / "m")
    refused(result, "ENVIRONMENT", f"8 in {old}", "adoptium", "JAVA_HOME")


@pytest.mark.parametrize("version", ["400", "476.1", "abc", ""])
def test_a_trino_that_there_is_no_connector_for(run: Run, tmp_path: Path, version: str) -> None:
    result = run("plugin", "build", "--trino-version", version, "--to", tmp_path / "p")
    refused(result, "PLUGIN_BUILD_FAILED", repr(version), "476")
    assert not (tmp_path / "p").exists()


def test_a_full_disk_leaves_the_old_generation(
    run: Run, flights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("index", "build", flights, "--local").exit_code == 0
    before = sorted(p for p in (flights / ".skipbridge").rglob("*") if p.is_file())
    write(flights / "month=1" / "new.parquet", pa.table({"dep_delay": [99], "carrier": ["UA"]}))

    def full(self: LocalStorage, uri: str, content: bytes) -> None:
        raise StorageFull(f"no space left to write {uri}", "free space")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "put", full)
        result = run("index", "build", flights, "--local")
        refused(result, "STORAGE_FULL", "no space left", status=1)
    assert sorted(p for p in (flights / ".skipbridge").rglob("*") if p.is_file()) == before
    assert "generation   1" in run("index", "show", flights).stdout
    assert "7 -> 3" in run("explain", flights, "dep_delay > 15").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_disk_that_is_really_full(run: Run, flights: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("no mounts here")
    try:
        built = ("index", "build", flights, "--local", "--index-root", small)
        assert run(*built).exit_code == 0
        write(flights / "month=1" / "new.parquet", pa.table({"dep_delay": [99], "carrier": ["X"]}))
        filler = small / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
        refused(run(*built), "STORAGE_FULL", "no space left", status=1)
        page = small / "page.html"
        result = run("explain", flights, "--output", "html", "--to", page)
        refused(result, "STORAGE_FULL", status=1)
        assert not page.exists() and sorted(p.name for p in small.iterdir()) == [
            "directory",
            "filler",
        ]
        filler.unlink()
        assert "generation 2" in run(*built).stdout
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_file_that_cannot_be_written(run: Run, flights: Path, tmp_path: Path) -> None:
    target = tmp_path / "no" / "x.html"
    result = run("explain", flights, "--output", "html", "--to", target)
    refused(result, "INVALID_REQUEST", str(target), "No such file")


def test_settings(run: Run, flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(run("--config", tmp_path / "no.toml", "config", "show"), "INVALID_CONFIGURATION")
    file = tmp_path / "c.toml"
    file.write_text("[metastore]\nurl = 'thrift://x:1'\n")
    refused(run("--config", file, "config", "show"), "INVALID_CONFIGURATION", "metastore.uri")
    file.write_text("no toml")
    refused(run("--config", file, "config", "show"), "INVALID_CONFIGURATION", str(file), "TOML")
    refused(run("explain", flights, "--freshness", "new"), "INVALID_CONFIGURATION", "'new'")
    monkeypatch.setenv("SKIPBRIDGE_SPLITS_MAX_FILES", "few")
    refused(run("config", "show"), "INVALID_CONFIGURATION", "SKIPBRIDGE_SPLITS_MAX_FILES", "'few'")


def test_what_nobody_foresaw(run: Run, flights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError("so be it")

    monkeypatch.setattr("bridge.app.api.session.resolve", broken)
    result = run("explain", flights)
    refused(result, "INTERNAL", "ZeroDivisionError: so be it", "skipbridge -v", status=1)


def test_a_mistyped_command_names_the_nearest(run: Run) -> None:
    result = run("exlain")
    assert result.exit_code == 2 and "did you mean 'explain'" in result.stderr


def test_secrets_of_the_environment_are_never_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANEVERSHOWN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "never-shown-either")
    monkeypatch.setenv("SKIPBRIDGE_STORAGE_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("SKIPBRIDGE_STORAGE_ALLOW_HTTP", "true")
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "-v", "config", "show", "--origin"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "NEVERSHOWN" not in done.stdout + done.stderr
    assert "never-shown" not in done.stdout + done.stderr


def test_help_needs_neither_arrow_nor_sqlglot() -> None:
    program = (
        "import sys\nfrom click.testing import CliRunner\nfrom bridge.app.cli.main import cli\n"
        "for words in (['--help'], ['config', 'show'], ['metastore', '--help']):\n"
        "    assert CliRunner().invoke(cli, words).exit_code == 0\n"
        "print(sorted({'pyarrow', 'pandas', 'sqlglot', 'thrift', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
