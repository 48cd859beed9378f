"""Java programs of the benchmarks, compiled against the connector and Trino's own classes."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from bridge.servers.java import find_jdk
from bridge.servers.maven import Artifact, artifact_file, build_once
from bridge.trino.plugin import build_plugin
from tests.benchmark.data import root


def run_java(main: str, *arguments: str) -> list[list[float]]:
    """Compiles and runs a class of this folder; the numbers of each line that it prints."""
    jdk = find_jdk(25)
    plugin = build_plugin("476", root() / "plugin", None, "skipbridge", lambda line: None)
    core = artifact_file(Artifact("io.trino", "trino-server-core", "476", "tar.gz"))
    home = build_once(
        root() / "trino-core-476", lambda to: shutil.unpack_archive(core, to, filter="data")
    )
    libraries = f"{next(home.glob('*/lib'))}/*:{plugin}/*"
    source = Path(__file__).parent / f"{main.rpartition('.')[2]}.java"
    with tempfile.TemporaryDirectory() as classes:
        compiler = [jdk.javac, "-cp", libraries, "-d", classes, str(source)]
        subprocess.run(compiler, check=True)
        vectors = ["--add-modules", "jdk.incubator.vector"]
        command = [jdk.java, "-Xmx4G", *vectors, "-cp", f"{classes}:{libraries}", main, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]  # "# WARNING"
    return [[float(x) for x in line.split()] for line in lines]
