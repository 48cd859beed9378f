"""The process that runs Hudi's procedures: how it is called, and how it ends. No Spark takes part:
a shell script says what it was given.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.clustering.hudi.planning import partition_options
from bridge.clustering.hudi.spark import HudiFailed, call_procedure, quote
from bridge.kernel.errors import EnvironmentMissing, InvalidConfiguration, InvalidRequest


def _script(tmp_path: Path, body: str) -> str:
    """A command, whose path has a space, with an argument that has one, too."""
    path = tmp_path / "my spark" / "spark-sql"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return shlex.join([str(path), "--conf", "spark.app.name=two words"])


def test_the_command_is_split_without_a_shell(tmp_path: Path) -> None:
    command = _script(tmp_path, f"printf '%s\\n' \"$@\" > {shlex.quote(str(tmp_path / 'given'))}")
    more = " --conf spark.sql.extensions=mine '$(touch x)'"
    call_procedure(command + more, "run_clustering", {"path": "/a'b", "op": "schedule"})
    given = (tmp_path / "given").read_text("utf-8").split("\n")[:-1]
    assert given[:2] == ["--conf", "spark.app.name=two words"] and "$(touch x)" in given
    assert [each for each in given if "extensions" in each] == ["spark.sql.extensions=mine"]
    assert "spark.serializer=org.apache.spark.serializer.KryoSerializer" in given
    text = "CALL run_clustering(path => '/a\\u0027b', op => 'schedule')"
    assert given[-2:] == ["-e", text]


def test_spark_home_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "spark-sql"
    program.write_text(f"#!/bin/sh\necho done > {shlex.quote(str(tmp_path / 'given'))}\n")
    program.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    call_procedure("", "p", {})
    (tmp_path / "given").unlink()
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    call_procedure("", "p", {})
    assert (tmp_path / "given").exists()


def test_what_is_no_command_is_refused(tmp_path: Path) -> None:
    for named in ("/nowhere/spark-sql", str(tmp_path)):  # a home of Spark is no command
        with pytest.raises(EnvironmentMissing, match=re.escape(f"no program {named}")) as refused:
            call_procedure(named, "p", {})
        assert "hudi-spark3.5-bundle" in refused.value.hint
    with pytest.raises(InvalidConfiguration, match="No closing quotation"):
        call_procedure("spark-sql 'x", "p", {})
    with pytest.raises(InvalidRequest, match="more than a command may have"):
        call_procedure("true", "p", {"options": "x" * 200_000})


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_literal_holds_any_text_and_nothing_ends_it(text: str) -> None:
    quoted = quote(text)
    body = quoted[1:-1]
    assert quoted[0] == quoted[-1] == "'" and re.fullmatch(r"[\\\w./:,=-]*", body, re.ASCII)
    units = re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), body)
    assert units.encode("utf-16-be", "surrogatepass").decode("utf-16-be") == text


@given(st.text(min_size=1))
def test_a_pattern_is_of_one_partition_alone(path: str) -> None:
    (pattern,) = partition_options({path}, {path, "other"}).values()
    assert not set(pattern) & set(",=' ;|")
    plain = re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: re.escape(chr(int(m[1], 16))), pattern)
    assert re.fullmatch(plain, path) and not re.fullmatch(plain, path + "x")


def test_a_spark_that_fails_is_one_error_without_secrets(tmp_path: Path) -> None:
    told = "spark.hadoop.fs.s3a.secret.key=hidden\\njava.lang.Error: no memory\\n\\tat a.B.c(D)\\n"
    command = _script(tmp_path, f"printf '{told}' >&2; exit 9")
    with pytest.raises(HudiFailed, match=r"status 9: .*java\.lang\.Error: no memory\n") as f:
        call_procedure(command, "run_clustering", {})
    assert "hidden" not in str(f.value) and "cluster show" in f.value.hint


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_spark_ends_with_this_process(tmp_path: Path, number: int) -> None:
    ids = tmp_path / "ids"
    command = _script(tmp_path, f"sleep 600 & echo $$ $! > {shlex.quote(str(ids))}; wait")
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from bridge.clustering.hudi.spark import call_procedure; "
        "call_procedure(sys.argv[1], 'p', {})"
    )
    process = subprocess.Popen([sys.executable, "-c", code, command], stderr=subprocess.DEVNULL)
    while not (ids.exists() and ids.read_text().endswith("\n")):
        assert process.poll() is None
        time.sleep(0.01)
    children = [psutil.Process(int(each)) for each in ids.read_text().split()]
    process.send_signal(number)
    assert process.wait(60) != 0
    _, alive = psutil.wait_procs(children, 60)
    assert not alive
