"""Every command over tables with a planted fault: it ends with a status and a code, and no trace.

A command that leaves out a part of its work says so by its status.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app.cli.clustering.watch import print_report
from bridge.app.cli.main import cli
from bridge.app.cli.output import PROBLEMS

_BEGUN = {"serve", "metastore", "demo", "plugin", "doctor", "hive", "sync"}
"""Commands that start servers or builds, or need a metastore: others ask them."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", "thrift://127.0.0.1:1")
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    return lambda *words: CliRunner().invoke(cli, [str(w) for w in words])


def lake(root: Path) -> Path:
    for i in range(4):
        path = root / f"f{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [9 - i, i], "s": ["a", "b"]}), path)
        os.utime(path, (10**9, 10**9))
    return root


def _cut(root: Path) -> None:
    path = root / "f1.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    os.utime(path, (10**9 + 5, 10**9 + 5))


def _garbled(root: Path) -> None:
    path = root / "f1.parquet"
    raw = bytearray(path.read_bytes())
    raw[4:60] = bytes(56)
    path.write_bytes(raw)
    os.utime(path, (10**9 + 5, 10**9 + 5))


def _index_files(root: Path, change: Callable[[Path], None]) -> None:
    for path in sorted((root / ".skipbridge").rglob("*")):
        if path.is_file():
            change(path)


FAULTS: dict[str, Callable[[Path], None]] = {
    "none": lambda root: None,
    "a file cut short": _cut,
    "a file with garbled pages": _garbled,
    "a file that is empty": lambda root: (root / "f1.parquet").write_bytes(b""),
    "a file of another format": lambda root: (root / "f1.parquet").write_bytes(b"a,b\n1,2\n"),
    "a file of other types": lambda root: pq.write_table(
        pa.table({"id": ["x"], "s": [1]}), root / "g.parquet"
    ),
    "no file": lambda root: [p.unlink() for p in root.glob("*.parquet")] and None,
    "no directory": lambda root: shutil.rmtree(root),
    "a directory in a file's place": lambda root: (
        (root / "f1.parquet").unlink() or (root / "f1.parquet").mkdir()
    ),
    "an index of zeros": lambda root: _index_files(
        root, lambda path: path.write_bytes(bytes(path.stat().st_size)) and None
    ),
    "an index cut short": lambda root: _index_files(
        root, lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]) and None
    ),
    "an index of text": lambda root: _index_files(
        root, lambda path: path.write_text("{}") and None
    ),
}


def commands(table: Path, other: Path) -> list[tuple[str, ...]]:
    t = f"{table}/"
    return [
        ("explain", t, "id = 1"),
        ("explain", t, "id = 1", "--output", "json"),
        ("index", "show", t),
        ("index", "show", t, "--failed"),
        ("index", "report", t),
        ("cluster", "advise", t),
        ("cluster", "show", t),
        ("cluster", "run", t, "--now", "--by", "id", "--local", "--dry-run"),
        ("cluster", "run", t, "--now", "--by", "id", "--local"),
        ("cluster", "clean", t, "--dry-run"),
        ("index", "refresh", t),
        ("index", "build", t, "--local", "--bloom", "id", "--values", "s"),
        ("index", "build", t, "--local", "--full"),
        ("index", "hide", t, "minmax"),
        ("index", "reveal", t, "minmax"),
        ("index", "clean", t),
        ("timeline", "show", t),
        ("timeline", "files", t),
        ("table", "create", "a.b", "--location", t, "--dry-run"),
        ("table", "create", str(other), "--format", "parquet", "--from", t, "--yes"),
        ("segment", "add", str(other), t, "--local"),
        ("segment", "list", str(other)),
        ("segment", "refresh", str(other), "--local"),
        ("sql", f"ALTER TABLE `{other}` COMPACT 'MINOR'; CLEAN FILES FOR TABLE `{other}`"),
        ("sql", f"SHOW SEGMENTS FOR TABLE `{other}`"),
        ("index", "drop", t, "--yes"),
        ("config", "show"),
    ]


def test_every_command_is_asked() -> None:
    asked = {words[0] for words in commands(Path("/t"), Path("/o"))}
    assert isinstance(cli, click.Group)
    assert asked | _BEGUN == set(cli.list_commands(click.Context(cli)))


@pytest.mark.parametrize("fault", FAULTS)
def test_no_command_ends_by_a_trace(tmp_path: Path, run: Callable[..., Result], fault: str) -> None:
    root = lake(tmp_path / "t")
    assert run("index", "build", f"{root}/", "--local").exit_code == 0
    FAULTS[fault](root)
    for words in commands(root, tmp_path / "other"):
        done = run(*words)
        assert not done.exception or isinstance(done.exception, SystemExit), (words, done.exception)
        assert done.exit_code in (0, 1, 2, PROBLEMS), words
        assert "Traceback" not in done.output and "this is a bug" not in done.output, (
            words,
            done.output,
        )
        if done.exit_code in (1, 2):
            assert "error " in done.stderr.lower(), (words, done.output)


@pytest.mark.parametrize("fault", ["a file cut short", "a file of another format"])
def test_a_build_without_some_files_says_so_by_its_status(
    tmp_path: Path, run: Callable[..., Result], fault: str
) -> None:
    root = lake(tmp_path / "t")
    assert run("index", "build", f"{root}/", "--local").exit_code == 0
    assert run("index", "refresh", f"{root}/").exit_code == 0
    FAULTS[fault](root)
    done = run("index", "build", f"{root}/", "--local", "--full", "--output", "json")
    assert done.exit_code == PROBLEMS and json.loads(done.stdout)["failed"]


def test_a_clustering_that_leaves_groups_says_so_by_its_status(
    tmp_path: Path, run: Callable[..., Result]
) -> None:
    import duckdb

    root = tmp_path / "t"
    root.mkdir()
    for i in range(3):
        query = f"SELECT range + {i} id, INTERVAL 1 DAY v FROM range(50)"
        duckdb.sql(f"COPY ({query}) TO '{root}/{i}.parquet' (FORMAT parquet)")
        os.utime(root / f"{i}.parquet", (10**9, 10**9))
    assert run("index", "build", f"{root}/", "--local").exit_code == 0
    done = run("cluster", "run", f"{root}/", "--now", "--by", "id", "--local")
    assert done.exit_code == PROBLEMS and "stays as it was" in done.stderr, done.output


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Directories that cannot be made: below a file, on a file system that is read-only or full."""
    below = tmp_path / "file"
    below.write_text("x")
    found = {"below a file": below / "m"}
    mounted = []
    for name, option in (("read-only", "ro"), ("full", "rw")):
        place = tmp_path / name
        place.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size=64k,{option}", "tmpfs", str(place)]
        if os.geteuid() == 0 and not subprocess.run(mount, capture_output=True).returncode:
            mounted.append(place)
            found[name] = place / "m"
    if "full" in found:
        _fill(found["full"].parent)
    try:
        yield found
    finally:
        for place in mounted:
            subprocess.run(["umount", str(place)], check=True)


def _fill(place: Path) -> None:
    with open(place / "filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


def test_a_place_that_nothing_can_be_written_to_is_named(
    tmp_path: Path, places: dict[str, Path], run: Callable[..., Result]
) -> None:
    """Before anything is started, downloaded or built."""
    root = lake(tmp_path / "t")
    for name, place in places.items():
        for words in (
            ("metastore", "start", "--port", "0", "--data-dir", place),
            ("metastore", "start", "--port", "0", "--data-dir", tmp_path / "m", "--warehouse",
             place),
            ("demo", "--out", place),
            ("plugin", "build", "--to", place),
            ("hive", "jar", "--to", place),
            ("index", "build", f"{root}/", "--local", "--index-root", place),
            ("table", "create", place, "--format", "parquet", "--from", root, "--yes"),
        ):  # fmt: skip
            if name == "full" and words[0] in ("metastore", "plugin", "demo", "hive"):
                continue  # an empty directory takes no space
            done = run(*words)
            assert done.exit_code in (1, 2), (name, words, done.output)
            told = "INVALID_REQUEST" if words[0] == "hive" else "STORAGE_"
            assert told in done.stderr and "this is a bug" not in done.stderr, done.output
            assert str(place) in done.stderr or name == "full", (words, done.output)


def test_a_full_disk_keeps_the_earlier_plugin_whole(
    tmp_path: Path, places: dict[str, Path]
) -> None:
    from trino_plugin_gen.build import BuildFailed, _replace

    if "full" not in places:
        pytest.skip("no mounts here")
    place = places["full"].parent
    (place / "filler").unlink()
    (place / "skipbridge").mkdir()
    (place / "skipbridge" / "old.jar").write_bytes(b"old")
    built = tmp_path / "built"
    built.mkdir()
    (built / "new.jar").write_bytes(bytes(200_000))
    with pytest.raises(BuildFailed, match="No space left"):
        _replace(place / "skipbridge", built)
    assert [p.name for p in place.rglob("*")] == ["skipbridge", "old.jar"]
    (built / "new.jar").write_bytes(b"new")
    _replace(place / "skipbridge", built)
    assert [p.name for p in place.rglob("*")] == ["skipbridge", "new.jar"]


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--port", "0"),
        ("sync", "a.b"),
        ("table", "create", "a.b", "--location", "/t"),
        ("metastore", "start", "--port", "0"),
    ],
    ids=lambda words: words[0],
)
def test_settings_that_cannot_be_read(
    tmp_path: Path, run: Callable[..., Result], words: tuple[str, ...]
) -> None:
    binary, directory = tmp_path / "c.toml", tmp_path / "d"
    binary.write_bytes(b"\xff\xfe\x00")
    directory.mkdir()
    for given in (binary, directory, tmp_path / "none", tmp_path / "c.toml" / "x"):
        done = run("--config", given, *words)
        assert done.exit_code == 2 and str(given) in done.stderr, (given, done.output)
        assert "this is a bug" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("sync", "a.b", "--location", "T/none"),
        ("sync", "a.b", "--location", "T/c.toml"),
        ("sync", "--all", "T/none"),
        ("sync", "--all", "T/c.toml"),
        ("sync", "--all", "T/t"),
        ("sync", "a.b", "--location", "T/t", "--watch", "soon"),
        ("table", "create", "a.b", "--location", "T/c.toml"),
        ("table", "create", "a.b", "--location", "T/none"),
        ("table", "create", "a.b", "--location", ""),
        ("table", "create", "T/o", "--format", "parquet", "--from", "T/c.toml", "--yes"),
        ("table", "create", "T/o", "--format", "csv", "--columns", "id bigint", "--property", "x"),
        ("plugin", "build", "--from-server", "T/t", "--to", "T/p"),
        ("plugin", "build", "--name", "../x", "--to", "T/p"),
        ("metastore", "start", "--port", "99999", "--data-dir", "T/m"),
        ("metastore", "start", "--port", "-1", "--data-dir", "T/m"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_an_error_with_a_code(
    tmp_path: Path, run: Callable[..., Result], words: tuple[str, ...]
) -> None:
    lake(tmp_path / "t")
    (tmp_path / "c.toml").write_bytes(b"\xff\xfe\x00")
    done = run(*(word.replace("T/", f"{tmp_path}/") for word in words))
    assert done.exit_code in (1, 2), done.output
    assert "this is a bug" not in done.stderr and "rror" in done.stderr, done.output


@pytest.mark.parametrize("record", [b"", b"\xff\xfe\x00", b"-1 5", b"9" * 30, b"1 2 3", b"{}"])
def test_a_damaged_record_of_a_metastore_ends_no_process(
    tmp_path: Path, run: Callable[..., Result], record: bytes
) -> None:
    (tmp_path / "metastore.pid").write_bytes(record)
    done = run("metastore", "stop", "--data-dir", tmp_path)
    assert done.exit_code == 0 and "no metastore is running" in done.stderr, done.output


def test_a_metastore_with_a_directory_of_its_own_is_stopped_by_it(
    tmp_path: Path, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path))
    told = run("metastore", "stop").stderr
    assert "no metastore is running" in told and "--data-dir names the one" in told


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (("serve", "--port", "USED"), {}),
        (("serve", "--port", "0"), {"SKIPBRIDGE_SERVICE_HTTP_PORT": "USED"}),
        (("serve", "--port", "0"), {"SKIPBRIDGE_SERVICE_METRICS_PORT": "USED"}),
        (("serve", "--port", "0"), {"SKIPBRIDGE_SERVICE_HOST": "no.host.invalid"}),
        (("serve", "--port", "0"), {"SKIPBRIDGE_PLANNER_FRESHNESS": "never"}),
        (("serve", "--port", "0"), {"SKIPBRIDGE_METASTORE_URI": "thrift://a:b"}),
        (("metastore", "start", "--port", "USED", "--data-dir", "T/m"), {}),
        (("plugin", "build", "--trino-version", "1", "--to", "T/p"), {}),
        (("plugin", "build", "--to", "T/p"), {"PATH": "/none", "JAVA_HOME": "/none"}),
        (("demo", "--out", "T/t"), {}),
        (("demo", "--out", "T/d"), {"PATH": "/none", "JAVA_HOME": "/none"}),
    ],
    ids=str,
)
def test_what_cannot_be_started_is_an_error_with_a_code(
    tmp_path: Path,
    run: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    variables: dict[str, str],
) -> None:
    lake(tmp_path / "t")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        used = str(taken.getsockname()[1])
        for name, value in variables.items():
            monkeypatch.setenv(name, value.replace("USED", used))
        done = run(*(w.replace("T/", f"{tmp_path}/").replace("USED", used) for w in words))
    assert done.exit_code in (1, 2), done.output
    assert "this is a bug" not in done.stderr and "rror" in done.stderr, done.output
    assert not done.exception or isinstance(done.exception, SystemExit)


@pytest.mark.full
@pytest.mark.parametrize("option", [("--trino-version", "1"), ("--from-server", "T")])
def test_a_demo_that_cannot_be_built_is_not_begun(
    tmp_path: Path, run: Callable[..., Result], option: tuple[str, str]
) -> None:
    wrong = option[1].replace("T", str(tmp_path))
    done = run("demo", "--out", tmp_path / "d", option[0], wrong)
    assert done.exit_code in (1, 2) and "PLUGIN_BUILD_FAILED" in done.stderr, done.output
    assert wrong in done.stderr and "1/7" not in done.output
    assert not (tmp_path / "d").exists()


def test_what_hudis_clustering_reports_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    report = {
        "table": "a.b", "instant": "1", "state": "completed", "generation": -1, "old_files": 2,
        "new_files": 1, "old_bytes": 10, "new_bytes": 9, "rows": 5, "rejected": [], "seconds": 1.0,
    }  # fmt: skip
    print_report(report, "text")
    assert "5 rows/s" in capsys.readouterr().out
