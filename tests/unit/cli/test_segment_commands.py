"""`skipbridge table create --format` and `skipbridge segment`: a newcomer's lake of CSV, without a
metastore. Each command says what it did, in text and JSON, and no fact file is touched.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner, Result

from bridge.app.cli.main import cli

Run = Callable[..., Result]
COLUMNS = "id bigint, caller string, seconds int, at timestamp"
FILES = {
    "2024-05/a.csv": b"id,caller,seconds,at\n1,ann,10,2024-05-01 00:00:00\n2,bob,20,\n",
    "2024-05/b.csv.gz": gzip.compress(
        b"\xef\xbb\xbfid,caller,seconds,at\r\n3,'cy',30,2024-05-03 01:02:03\r\n"
    ),
    "2024-06/a.csv": b'AT,Id,"caller",seconds,note\n2024-06-01 00:00:00,4,"d, e",n/a,hm\n',
    "2024-06/deep/b.csv": b"id,caller,seconds,at\n5\n",
    "2024-07/a.csv": b"id,caller,at\n6,flo,2024-07-01 00:00:00\n",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command beside the fact files, in ``lake``."""
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        path = tmp_path / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1.7e9, 1.7e9))

    def call(*words: str, input: str | None = None) -> Result:
        return CliRunner().invoke(cli, words, input=input)

    return call


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def told(result: Result) -> Any:
    return json.loads(done(result))


def make(run: Run) -> None:
    made = run("table", "create", "./calls", "--format", "csv", "--property", "csv.header_lines=1",
               "--columns", COLUMNS)  # fmt: skip
    assert "created ./calls, of csv segments" in done(made)
    assert "id                       bigint" in made.stdout
    done(run("segment", "add", "./calls", "lake/2024-05", "--local"))
    done(run("segment", "add", "./calls", "lake/2024-06", "--local"))


def ids(run: Run, *more: str) -> dict[str, str]:
    found = told(run("segment", "list", "./calls", "--output", "json", *more))
    return {one["id"]: one["status"] for one in found["segments"]}


def test_columns_are_inferred_and_shown_before_anything_is_made(run: Run, tmp_path: Path) -> None:
    given = ("table", "create", "./calls", "--format", "csv", "--from", "lake/2024-05",
             "--property", "csv.header_lines=1")  # fmt: skip
    refused = run(*given, input="n\n")
    assert refused.exit_code != 0 and not (tmp_path / "calls").exists()
    for name, type in (("id", "bigint"), ("caller", "string"), ("at", "timestamp")):
        assert f"  {name:<24} {type}" in refused.stderr
    assert "would create ./calls" in done(run(*given, "--dry-run"))
    assert not (tmp_path / "calls").exists()
    assert "created ./calls" in done(run(*given, input="y\n"))
    shown = told(run("table", "show", "./calls"))
    assert shown["format"] == "csv" and [c["name"] for c in shown["columns"]][:2] == [
        "id",
        "caller",
    ]
    again = run(*given, "--yes")
    assert again.exit_code != 0 and "TABLE_ALREADY_EXISTS" in again.stderr


def test_a_segment_is_added_listed_hidden_merged_and_deleted(run: Run, tmp_path: Path) -> None:
    make(run)
    before = {p: p.read_bytes() for p in (tmp_path / "lake").rglob("*") if p.is_file()}
    lines = done(run("segment", "list", "./calls")).splitlines()
    assert lines[0].split()[:4] == ["ID", "STATUS", "ADDED", "FORMAT"]
    assert [line.split()[:2] for line in lines[1:]] == [["0", "Success"], ["1", "Success"]]
    assert all(" csv " in line and line.split()[-1] == "-" for line in lines[1:])

    done(run("sql", "ALTER TABLE `./calls` DISABLE SEGMENTS (1)"))
    assert ids(run) == {"0": "Success", "1": "Disabled"}
    done(run("sql", "ALTER TABLE `./calls` ENABLE SEGMENTS (1)"))
    done(run("sql", "ALTER TABLE `./calls` COMPACT 'CUSTOM' WHERE SEGMENT.ID IN (0, 1)"))
    done(run("sql", "CLEAN FILES FOR TABLE `./calls` OPTIONS('dryrun'='true')"))
    assert len(ids(run)) == 3
    done(run("sql", "CLEAN FILES FOR TABLE `./calls`"))
    assert ids(run) == {"0.1": "Success"}
    assert ids(run, "--history") == {"0": "Compacted", "0.1": "Success", "1": "Compacted"}

    added = re.findall(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d{4}", done(run("segment", "list", "./calls"))
    )
    for each in ("2000-01-01", min(added), "2000-01-01T00:00:00Z"):
        assert "deleted nothing" in done(run("segment", "delete", "./calls", "--before", each))
    assert "deleted 0.1" in done(run("segment", "delete", "./calls", "--before", "2999-01-01"))
    asked = run("table", "drop", "./calls")  # nobody answers
    assert asked.exit_code == 1 and "Drop ./calls" in asked.stderr
    assert "dropped ./calls" in done(run("table", "drop", "./calls", "--yes"))
    assert {p: p.read_bytes() for p in (tmp_path / "lake").rglob("*") if p.is_file()} == before
    assert all(p.stat().st_mtime == 1.7e9 for p in before)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
def test_times_name_their_zone_and_before_takes_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """Without one, a time is in UTC, in a command as in SQL, whatever this machine's zone is."""
    try:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        make(run)
        (micros, _) = [
            s["started"]
            for s in told(run("segment", "list", "./calls", "--output", "json"))["segments"]
        ]
        exact = datetime.fromtimestamp(micros / 1_000_000, UTC)
        start = exact.replace(microsecond=0)
        here, utc = start.astimezone(ZoneInfo(zone)), exact.isoformat(" ")
        assert f"{start:%Y-%m-%d %H:%M:%S%z}" in done(run("segment", "list", "./calls"))
        assert utc in done(run("sql", "SHOW SEGMENTS FOR TABLE `./calls`")) and "+00:00" in utc

        plain, second = "%Y-%m-%d %H:%M:%S", timedelta(seconds=1)
        forms = (plain, "%Y-%m-%dT%H:%M:%S", f"{plain}%z", "%Y-%m-%dT%H:%M:%S%z")
        times = [start.strftime(form) for form in forms]
        times += [here.strftime(form) for form in forms[2:]]
        times += [utc, f"{start:%Y-%m-%dT%H:%M:%S}Z", f"{start:{plain}}+00:00"]
        times += [(start + timedelta(hours=3)).strftime(f"{plain}+0300")]
        for each in times:
            assert "deleted nothing" in done(run("segment", "delete", "./calls", "--before", each))
        sql = "DELETE FROM TABLE `./calls` WHERE SEGMENT.STARTTIME BEFORE '{}'"
        assert "no segment" in done(run("sql", sql.format(start.strftime(plain))))

        wrong = run("segment", "delete", "./calls", "--before", "1.5.2024")
        assert wrong.exit_code == 2 and "'1.5.2024' is not a time" in wrong.stderr
        later = (start + second).strftime(plain)
        assert "deleted 0" in done(run("segment", "delete", "./calls", "--before", later))
        done(run("segment", "add", "./calls", "lake/2024-05", "--local"))
        assert "deleted" in done(
            run("sql", sql.format((datetime.now(UTC) + second).strftime(plain)))
        )
    finally:
        monkeypatch.undo()
        time.tzset()


def test_explain_counts_the_files_of_chosen_segments(run: Run) -> None:
    make(run)
    done(run("sql", "--local", "CREATE INDEX bounds ON TABLE `./calls` AS 'minmax'"))
    lines = done(run("segment", "list", "./calls")).splitlines()
    assert [line.split()[-2] for line in lines[1:]] == ["2/2", "2/2"]
    explain = ("explain", "./calls", "id > 2", "--output", "json")
    assert told(run(*explain))["files"] == {"total": 4, "kept": 3}
    assert told(run(*explain, "--segments", "0"))["files"] == {"total": 2, "kept": 1}
    unknown = run(*explain, "--segments", "7")
    assert unknown.exit_code != 0 and "SEGMENT_NOT_FOUND" in unknown.stderr


def test_a_changed_file_is_taken_up(run: Run, tmp_path: Path) -> None:
    make(run)
    (tmp_path / "lake/2024-05/a.csv").write_text("id,caller,seconds,at\n9,zoe,9,\n")
    (tmp_path / "lake/2024-06/deep/b.csv").unlink()
    gone = run("segment", "refresh", "./calls", "--local")
    assert gone.exit_code != 0 and "b.csv" in gone.stderr and "--forget-missing" in gone.stderr
    mended = run("segment", "refresh", "./calls", "--local", "--forget-missing")
    assert "changed files in segments 0, 1" in done(mended)
    assert "gone, and out of the table" in mended.stderr and "b.csv" in mended.stderr
    again = told(run("segment", "refresh", "./calls", "--local", "--output", "json"))
    assert again["changed_files"] == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("segment", "add", "./calls", "lake/2024-07"), "SEGMENT_SCHEMA_MISMATCH", "seconds"),
        (("segment", "add", "./calls", "lake/2024-05/a.csv"), "SEGMENT_OVERLAP", "a.csv"),
        (("segment", "add", "./calls", "lake/2024-08"), "FILE_UNREADABLE", "2024-08"),
        (
            ("segment", "add", "./calls", "lake/2024-07", "--property", "csv.delimeter=;"),
            "INVALID_REQUEST",
            "csv.delimeter",
        ),
        (
            ("segment", "add", "./calls", "lake/2024-07", "--format", "xlsx"),
            "UNSUPPORTED_TABLE",
            "xlsx",
        ),
        (("segment", "delete", "./calls", "7"), "SEGMENT_NOT_FOUND", "0, 1"),
        (("segment", "list", "./lake/2024-05"), "OPERATION_BLOCKED", "no segments"),
        (("table", "create", "./u", "--format", "csv"), "INVALID_REQUEST", "columns"),
        (
            ("table", "create", "./u", "--format", "xml", "--columns", "a int"),
            "INVALID_REQUEST",
            "xml",
        ),
        (
            ("table", "create", "./u", "--format", "csv", "--columns", "a number"),
            "UNSUPPORTED_TYPE",
            "number",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_one_error_with_its_remedy(
    run: Run, words: tuple[str, ...], code: str, said: str
) -> None:
    make(run)
    local = ("--local",) if words[:2] == ("segment", "add") else ()
    failed = run(*words, *local)
    assert failed.exit_code != 0 and failed.stdout == "" and "Traceback" not in failed.output
    assert f"error {code}: " in failed.stderr and said in failed.stderr, failed.output
    assert "\n  -> " in failed.stderr
    assert ids(run) == {"0": "Success", "1": "Success"}


def test_strict_names_the_property_of_a_line_of_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "a.csv").write_bytes(b"id,seconds\n1,2\n")
    done(run("table", "create", "./c", "--format", "csv", "--columns", "id bigint, seconds int"))
    failed = run("segment", "add", "./c", str(tmp_path / "named"), "--strict", "--local")
    assert "line 1 names the columns: 'id' is no bigint" in failed.stderr
    assert "csv.header_lines=1" in failed.stderr


def test_strict_names_file_line_and_value(run: Run) -> None:
    make(run)
    done(run("segment", "delete", "./calls", "1"))
    failed = run("segment", "add", "./calls", "lake/2024-06", "--strict", "--local")
    assert "error SEGMENT_BAD_VALUE: " in failed.stderr
    assert "a.csv, line 2: 'n/a' is no int, which column seconds is" in failed.stderr
    added = run("segment", "add", "./calls", "lake/2024-06", "--strict", "--local",
                "--property", "csv.null=n/a")  # fmt: skip
    assert "segment 2, 2 files" in done(added)
