"""What a newcomer meets on the first day: texts that can be followed, and answers that help."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import bridge
from bridge.app.cli.main import cli
from bridge.app.cli.output import first_lines
from bridge.kernel.config import OPTIONS, variable_of
from bridge.sync.report import SyncReport, diff_text
from trino_plugin_gen import build as plugin_build

ERROR_CODES = re.findall(
    r"^    ([A-Z_]+)\(\d+, ",
    (
        Path(__file__).parents[3]
        / "trino_plugin_gen/template/src/main/java/io/skipbridge/trino/BridgeErrorCode.java"
    ).read_text(),
    re.MULTILINE,
)
NO_VARIABLES = ("SKIPBRIDGE_JDK", "SKIPBRIDGE_BENCH", *(f"SKIPBRIDGE_{c}" for c in ERROR_CODES))
"""Beginnings of variables' names, and the error codes that Trino shows."""

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", "thrift://127.0.0.1:1")
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_TIMEOUT", "250ms")
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return lambda *words: CliRunner().invoke(cli, [str(w) for w in words])


def write(path: Path, data: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path)
    os.utime(path, (1e9, 1e9))


@pytest.mark.parametrize("before", ["no plugin", "an older plugin"])
def test_the_plugin_is_installed_by_the_words_of_the_help(
    run: Run, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """The compiler is left out; where its jars go is what `plugin build` decides."""

    def jars(project: Path, *_: object) -> Path:
        made = project / "target" / "plugin"
        made.mkdir(parents=True)
        for name in ("connector.jar", "parquet-2.jar"):
            (made / name).write_bytes(b"PK")
        return made

    monkeypatch.setattr(plugin_build, "_maven", jars)
    monkeypatch.setattr(plugin_build, "_require_java", lambda *_: None)
    monkeypatch.setattr(
        "bridge.trino.plugin.find_jdk", lambda *_: type("Jdk", (), {"home": Path()})
    )
    built = run("plugin", "build")
    assert built.exit_code == 0, built.output
    home = Path.cwd() / "trino server"
    installed = home / "plugin" / "skipbridge"
    if before == "an older plugin":
        installed.mkdir(parents=True)
        (installed / "parquet-1.jar").write_bytes(b"PK")
    else:
        (home / "plugin").mkdir(parents=True)
    text = run("plugin", "build", "--help").stdout
    commands = re.findall(r"^ +((?:rm|cp|mkdir) .*)$", text, re.MULTILINE)
    assert any(c.startswith("cp ") for c in commands)
    for command in commands:
        quoted = re.sub(r"\$TRINO_HOME\S*", lambda m: f'"{m[0]}"', command)
        subprocess.run(quoted, shell=True, check=True, env=os.environ | {"TRINO_HOME": str(home)})
    assert sorted(p.name for p in installed.iterdir()) == ["connector.jar", "parquet-2.jar"]
    assert [p.name for p in (home / "plugin").iterdir()] == ["skipbridge"]
    assert [c.strip() for c in re.findall(r"^ +(?:rm|cp) .*$", built.stderr, re.MULTILINE)] == [
        "rm -rf $TRINO_HOME/plugin/skipbridge",
        f"cp -r {built.stdout.strip()} $TRINO_HOME/plugin/",
    ]
    assert "then restart Trino" in built.stderr
    # The same place in what the command prints.
    assert built.stdout.strip() == str(Path.cwd() / "skipbridge-trino" / "skipbridge")


@pytest.mark.parametrize("location", ["casey", "lake/x", "./casey", "with a space"])
def test_a_location_may_be_relative(run: Run, location: str) -> None:
    write(Path(location) / "k=1" / "0.parquet", pa.table({"x": [1]}))
    done = run("table", "create", "d.t", "--location", location, "--dry-run", "--output", "json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["partitions"] == 1 and found["location"].startswith("file:/")


@pytest.mark.parametrize(
    "command",
    [("index", "build", "two", "--local"), ("explain", "two"), ("index", "show", "two")],
)
def test_a_directory_without_a_slash_is_pointed_at(run: Run, command: tuple[str, ...]) -> None:
    without = run(*command)
    assert without.exit_code == 1 and "./two" not in without.stderr
    write(Path("two") / "0.parquet", pa.table({"x": [1]}))
    told = run(*command)
    assert "METASTORE_UNAVAILABLE" in told.stderr and "write ./two" in told.stderr, told.stderr
    write(Path("a.b.c") / "0.parquet", pa.table({"x": [1]}))
    assert "write ./a.b.c" in run("explain", "a.b.c").stderr


def test_settings_stand_one_on_a_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    for words in ((), ("--origin",)):
        done = run("config", "show", *words)
        assert done.exit_code == 0, done.output
        lines = done.stdout.splitlines()
        assert len(lines) == len(OPTIONS) + 1
        for option, line in zip(OPTIONS, lines[1:], strict=True):
            assert line.startswith(option.key) and line.endswith(option.help)


def test_an_index_is_shown_as_a_person_reads_it(run: Run) -> None:
    write(Path("t") / "0.parquet", pa.table({"x": [1], "c": ["a"]}))
    built = run("index", "build", "./t", "--local", "--values", "c", "--mode", "x=none")
    assert built.exit_code == 0, built.output
    shown = run("index", "show", "./t").stdout
    assert re.search(r"^indexes +minmax, values\(c\)\S*$", shown, re.MULTILINE), shown
    assert re.search(r"^modes +x=none$", shown, re.MULTILINE), shown
    assert re.search(r"^complete +yes$", shown, re.MULTILINE), shown
    assert re.search(r"^bytes +[\d.]+ (B|KiB)$", shown, re.MULTILINE), shown
    found = json.loads(run("index", "show", "./t", "--output", "json").stdout)
    assert len(found["indexes"]) == 2 and found["modes"] == {"x": "none"}


def test_a_condition_on_times_of_orc_is_told_the_one_reason_that_holds(run: Run) -> None:
    day = dt.datetime(2024, 3, 1)
    times = {"t": pa.array([day]), "z": pa.array([day], pa.timestamp("us", "UTC")), "n": [1]}
    Path("t").mkdir()
    orc.write_table(pa.table(times), "t/0.orc")
    os.utime("t/0.orc", (1e9, 1e9))
    assert run("index", "build", "./t", "--local").exit_code == 0
    wide = run("explain", "./t", "t > timestamp '2024-05-01 00:00:00'").stdout
    assert "minmax(t)  WIDE_BOUNDS" in wide and "two days wider" in wide
    assert "have none" not in wide
    none = run("explain", "./t", "z > timestamp '2024-05-01 00:00:00'").stdout
    assert "minmax(z)  NO_STATISTICS" in none and "times with a zone have none" in none
    assert "two days wider" not in none
    assert run("index", "build", "./t", "--local", "--mode", "t=none").exit_code == 0
    left = run("explain", "./t", "t > timestamp '2024-05-01 00:00:00'").stdout
    assert "minmax(t)  NO_STATISTICS" in left and "--mode t=full" in left
    assert "zone" not in left and "wider" not in left


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("SKIPBRIDGE_METASTORE_URL", "SKIPBRIDGE_METASTORE_URI"),
        ("SKIPBRIDGE_INDEX_ROOTS", "SKIPBRIDGE_INDEX_ROOT"),
        ("skipbridge_service_port", "SKIPBRIDGE_SERVICE_PORT"),
        ("SKIPBRIDGE_CASH", "SKIPBRIDGE_CACHE"),
    ],
)
def test_a_variable_that_is_no_setting_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, near: str
) -> None:
    monkeypatch.setenv(name, "1")
    done = run("config", "show")
    assert done.exit_code == 0
    assert f"warning: {name} is not a setting and is ignored; did you mean {near}?" in done.stderr


def test_variables_that_are_known_are_not_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for option in OPTIONS:
        monkeypatch.setenv(variable_of(option.key), option.default)
    others = ("SKIPPED", "MAVEN_REPOSITORY", "JDK17", "JDK25", "BENCH_FILES", "BENCH_PARTITIONS")
    for name in others:
        monkeypatch.setenv(f"SKIPBRIDGE_{name}", "")
    assert "warning" not in run("config", "show").stderr


def test_every_variable_that_the_code_names_is_known() -> None:
    """So that nothing this project tells people to set is called no setting."""
    from bridge.kernel import config

    root = Path(config.__file__).parents[2]
    known = {variable_of(o.key) for o in OPTIONS} | set(config._OTHER_VARIABLES)
    places = (
        "bridge",
        "docs",
        "trino_plugin_gen",
        "hive_hooks",
        "jvm_client",
        "docker",
        "tests/benchmark",
    )
    texts = [p for place in places for p in (root / place).rglob("*") if p.is_file()]
    texts += [root / "README.md", root / "Makefile", root / "tests" / "conftest.py"]
    for path in texts:
        if path.suffix not in (".py", ".md", ".yaml", ".toml", "", ".java"):
            continue
        for name in re.findall(r"\bSKIPBRIDGE_[A-Z0-9_]*[A-Z0-9]", path.read_text("utf-8")):
            allowed = name in known or config._OTHER_FAMILIES.fullmatch(name)
            assert allowed or name in NO_VARIABLES, (path, name)


def test_the_doctor_speaks_for_itself(run: Run) -> None:
    """In a process of its own: logging is set up there as a user has it."""
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "doctor", "--port", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "metastore" in done.stdout and "127.0.0.1:1" in done.stdout, done
    assert done.stderr == ""


def test_an_interrupted_build_says_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    write(Path("t") / "0.parquet", pa.table({"x": [1]}))
    monkeypatch.setattr("bridge.indexing.table.index_table", interrupted)
    for verb in ("build", "refresh"):
        done = run("index", verb, "./t")
        assert done.exit_code == 130
        assert "continues after the last commit (every 50,000 files)" in done.stderr
        assert "Abort" not in done.output
    monkeypatch.setattr("bridge.app.api.session.resolve", interrupted)
    done = run("explain", "./t")
    assert (done.exit_code, done.stderr) == (130, "stopped\n")


def test_many_new_columns_are_not_all_printed() -> None:
    changes = ["+ table a.b", *(f"+ column c{i} int" for i in range(300))]
    changes += [f"~ column d{i} int -> bigint" for i in range(3)]
    text = diff_text(SyncReport("a.b", "file:/x", table_changes=changes))
    assert len(text.splitlines()) == 1 + 1 + 20 + 1 + 3
    assert "+ ... and 280 more" in text
    assert len(diff_text(SyncReport("a.b", "x", table_changes=changes), shown=0).splitlines()) > 300


def test_many_columns_of_a_new_table_are_not_all_printed(run: Run) -> None:
    write(Path("wide") / "0.parquet", pa.table({f"c{i}": [i] for i in range(300)}))
    done = run("table", "create", "a.b", "--location", "wide", "--dry-run")
    assert len(done.stdout.splitlines()) == 52
    assert "250 more: --output json shows all" in done.stdout
    assert list(first_lines(["x"] * 50)) == ["x"] * 50


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab_completion_as_the_documentation_says(shell: str) -> None:
    environment = os.environ | {"_SKIPBRIDGE_COMPLETE": f"{shell}_source"}
    done = subprocess.run(
        [sys.executable, "-m", "bridge"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "_SKIPBRIDGE_COMPLETE" in done.stdout
    root = Path(plugin_build.__file__).parents[1]
    assert (
        f"_SKIPBRIDGE_COMPLETE={shell}_source" in (root / "docs/how-to/operations.md").read_text()
    )


def test_a_path_that_is_not_there_or_is_a_file_is_told(run: Run) -> None:
    write(Path("flights") / "0.parquet", pa.table({"x": [1]}))
    for words in (
        ("explain", "./flihgts"),
        ("index", "build", "./flihgts", "--local"),
        ("table", "create", "a.b", "--location", "flihgts"),
    ):
        done = run(*words)
        assert done.exit_code == 2 and "error TABLE_NOT_FOUND: there is no" in done.stderr
        assert f"did you mean {Path.cwd() / 'flights'}?" in done.stderr
    for words in (
        ("explain", "./flights/0.parquet"),
        ("index", "build", "./flights/0.parquet", "--local"),
        ("table", "create", "a.b", "--location", "flights/0.parquet"),
    ):
        done = run(*words)
        assert done.exit_code == 2 and "error INVALID_REQUEST: " in done.stderr
        assert "0.parquet is a file, not a directory" in done.stderr
        assert f"-> give the directory that holds the table's files: {Path.cwd()}" in done.stderr
    Path("void").mkdir()
    assert "no data files below" in run("explain", "./void").stderr
    Path("f.parquet").write_bytes(b"")
    assert "f.parquet here is a file" in run("explain", "f.parquet").stderr
    assert "directory of this name" not in run("explain", "").stderr


def test_a_path_may_go_up(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "lake" / "0.parquet", pa.table({"x": [1]}))
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    Path("link").symlink_to(tmp_path / "elsewhere" / "deep")
    for path in ("../lake", "./../here/../lake", "link/../../lake"):
        done = run("explain", path)
        assert done.exit_code == 0 and "1 -> 1" in done.stdout, done.output


@pytest.mark.parametrize("group", ["index", "table", "metastore", "plugin", "hive", "config"])
def test_a_group_shows_whole_sentences(run: Run, group: str) -> None:
    listed = run(group, "--help").stdout.partition("Commands:")[2]
    assert listed.strip() and "..." not in listed


def test_the_doctor_takes_a_relative_directory_that_is_no_table(run: Run) -> None:
    write(Path("t") / "a" / "0.parquet", pa.table({"x": [1]}))
    done = run("doctor", "./t", "--port", "1")
    assert "error    index of ./t: " in done.stdout and "planner.recursive" in done.stdout


def test_the_doctor_names_what_does_not_answer(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    write(Path("t") / "0.parquet", pa.table({"x": [1]}))
    assert run("index", "build", "./t", "--local").exit_code == 0
    done = run("doctor", "./t", "--port", "1")
    # A directory needs no metastore: that none answers is no error.
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert "warning planner: no answer from the planner at 127.0.0.1:1: " in told
    assert "refused" in told.partition("planner at 127.0.0.1:1")[2][:60] and "[(" not in told
    told = " ".join(run("doctor", "--trino", "localhost").stdout.split())
    assert "error Trino: not an address: 'localhost' -> give host:port" in told
    done = run("doctor", "--trino", "127.0.0.1:1")
    told = " ".join(done.stdout.split())
    assert "error Trino: no Trino answers at 127.0.0.1:1 -> start it" in told
    assert "attempts" not in told and not [r for r in caplog.records if r.name.startswith("trino")]
    assert done.exit_code == 1


def test_a_directory_that_is_no_trino(run: Run, tmp_path: Path) -> None:
    done = run("plugin", "build", "--from-server", tmp_path)
    assert "is not a Trino 476 server" in done.stderr and "installed Trino of that" in done.stderr


def test_commands_that_a_report_advises_can_be_pasted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.planner.reports.effectiveness._HEAVY", 0)
    for i in range(3):
        data = pa.table({"dep delay": pa.array([0.5, 1.5, i / 8]), "x": [i, i + 1, i + 2]})
        write(Path("my lake") / f"{i}.parquet", data)
    assert run("index", "build", "./my lake", "--local").exit_code == 0
    text = run("index", "report", "./my lake").stdout
    commands = re.findall(r"-> (skipbridge .*)", text)
    assert any("dep delay" in c for c in commands), text
    for command in commands:
        done = run(*shlex.split(command)[1:], "--local")
        assert done.exit_code == 0, (command, done.output)


def test_what_was_met_on_a_messy_lake(run: Run) -> None:
    """Each text names the cause and what to do next."""
    write(Path("levels") / "root.parquet", pa.table({"x": [1]}))
    write(Path("levels") / "p=1" / "0.parquet", pa.table({"x": [1]}))
    (Path("levels") / "README.md").write_text("read me")
    told = run("explain", "./levels").stderr
    assert "levels/root.parquet below the root" in told and "README" not in told

    write(Path("plain") / "2024" / "01" / "0.parquet", pa.table({"x": [1]}))
    told = run("explain", "./plain").stderr
    assert "sync --extractor" in told and "set planner.recursive" in told

    write(Path("two kinds") / "a.parquet", pa.table({"x": [1]}))
    (Path("two kinds") / "b.csv").write_text("1,2\n")
    done = run("index", "build", "./two kinds", "--local")
    assert done.exit_code == 3 and "b'" not in done.stderr, done.stderr
    assert "b.csv does not end as Parquet does" in done.stderr
    (Path("a csv") / "deep").mkdir(parents=True)
    (Path("a csv") / "b.csv").write_text("1,2\n")
    told = run("explain", "./a csv").stderr
    assert re.search(r"--location '\S+/a csv' --format csv --header", told)
    assert "in a metastore (for trials: skipbridge metastore start)" in told
    (Path("a csv") / "b.csv").write_text("id;name\n1;x\n")
    assert "--format csv --delimiter ';' --header" in run("explain", "./a csv").stderr
    (Path("a csv") / "b.csv").write_text("id\tname\n1\tx\n")
    assert "--format csv --delimiter $'\\t' --header" in run("explain", "./a csv").stderr

    write(Path("t") / "0.parquet", pa.table({"x": [1]}))
    assert "-> skipbridge index build ./t\n" in run("explain", "./t", "x = 1").stdout
    first = run("index", "build", "./t", "--local").stdout
    assert "1 read, 0 old entries removed" in first
    assert "1 old entry removed" in run("index", "build", "./t", "--bloom", "x", "--local").stdout


def test_a_column_without_bounds_is_told(run: Run) -> None:
    path = Path("t") / "0.parquet"
    path.parent.mkdir()
    moments = pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns"))
    pq.write_table(pa.table({"at": moments}), path, use_deprecated_int96_timestamps=True)
    os.utime(path, (1e9, 1e9))
    assert run("index", "build", "./t", "--local").exit_code == 0
    told = run("explain", "./t", "at = TIMESTAMP '2024-01-01 00:00:00'").stdout
    assert "minmax(at)  NO_STATISTICS" in told and "INT96" in told, told
    assert "not used" not in run("explain", "./t", "at IS NULL").stdout


def test_a_warning_is_a_line_as_others(run: Run) -> None:
    """In a process of its own: logging is set up there as a user has it."""
    write(Path("t") / "m=01" / "0.parquet", pa.table({"x": [1]}))
    for words, begins in (
        ((), r"warning: the partition"),
        (("-v",), r"\d{4}-\d\d-\d\d .* WARNING"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "bridge", *words, "explain", "./t"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert re.search(f"^{begins}", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.parametrize(
    ("declared", "good", "odd"),
    [("int", "1", "3000000000"), ("timestamp", '"2024-01-04 00:00:00"', '"2024-01-04"')],
)
def test_a_doubtful_value_is_named(run: Run, declared: str, good: str, odd: str) -> None:
    Path("facts").mkdir()
    lines = [f'{{"n": {n}}}' for n in [good] * 5 + [odd] + [good] * 7]
    (Path("facts") / "a.json").write_text("\n".join(lines) + "\n")
    made = run("table", "create", "./t", "--format", "json", "--columns", f"n {declared}")
    assert made.exit_code == 0, made.output
    assert run("segment", "add", "./t", "facts").exit_code == 0
    with bridge.connect() as session, pytest.raises(bridge.BridgeError) as refused:
        session.table("./t").scan().to_arrow()
    assert refused.value.code == "FILE_AMBIGUOUS"
    value = odd.strip('"')
    assert f"values of 'n': {value!r} does not fit {declared}" in refused.value.message


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("lower(\"select\") = 'b'", "--expression"),
        ("lower(\"$path\") = 'x'", None),
        ("\"$path\" LIKE '%/x%y'", None),
    ],
)
def test_advice_can_be_followed(run: Run, condition: str, advice: str | None) -> None:
    """A column named as a keyword is quoted; hidden columns get no index."""
    write(Path("t") / "0.parquet", pa.table({"select": ["A", "B"]}))
    assert run("index", "build", "./t", "--local").exit_code == 0
    told = run("explain", "./t", condition)
    assert told.exit_code == 0, told.output
    found = re.search(r"-> (skipbridge index build .*)", told.stdout)
    assert (found is not None) == (advice is not None), told.stdout
    if found is not None:
        words = shlex.split(found[1])[1:]
        assert advice in words and run(*words, "--local").exit_code == 0
        assert "NO_INDEX" not in run("explain", "./t", condition).stdout
