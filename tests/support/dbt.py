"""dbt in an environment of its own, and the project that tests run in it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.servers.maven import build_once, cache_directory

PROJECT = Path(__file__).parents[1] / "fixtures" / "dbt"


def python_with_dbt() -> Path:
    """dbt-core and dbt-trino, out of the packages that the project pins; made the first time."""
    pins = PROJECT / "requirements.txt"

    def make(target: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        pip = [str(target / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps"]
        subprocess.run([*pip, "-r", str(pins)], check=True)

    name = hashlib.sha256(pins.read_bytes()).hexdigest()[:12]
    return build_once(cache_directory() / f"dbt-{name}", make) / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command of dbt did.

    Attributes:
        results: status and message of each node, by its name.
        compiled: the SQL of each node that reads, by its name.
    """

    results: dict[str, tuple[str, str]]
    compiled: dict[str, str]


@dataclass(frozen=True, slots=True)
class Project:
    """A copy of the project whose models go into one schema of catalog ``hive``."""

    directory: Path
    port: int
    schema: str

    def build(self, *words: str) -> Outcome:
        """Seeds, models, snapshots and tests. A node that fails is told in the results."""
        self._run("build", *words)
        results = {
            one["unique_id"]: (one["status"], _message(one, self.schema))
            for one in self._artifact("run_results")["results"]
        }
        nodes = self._artifact("manifest")["nodes"].items()
        return Outcome(results, {k: n["compiled_code"] for k, n in nodes if n.get("compiled_code")})

    def relations(self) -> dict[str, Any]:
        """What ``dbt docs generate`` finds of each relation: type, comment and columns."""
        assert not self._run("docs", "generate")
        found = self._artifact("catalog")
        relations = {**found["nodes"], **found["sources"]}
        return json.loads(json.dumps(relations).replace(self.schema, "S"))  # type: ignore[no-any-return]

    def _run(self, *words: str) -> int:
        if not self.directory.exists():
            shutil.copytree(PROJECT, self.directory)
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        told = {"TRINO_PORT": str(self.port), "DBT_SCHEMA": self.schema, "DBT_PROFILES_DIR": "."}
        done = subprocess.run(
            [str(python_with_dbt()), "-m", "dbt.cli.main", "--no-version-check", *words],
            cwd=self.directory,
            env={**kept, **told},
            capture_output=True,
            text=True,
            check=False,
        )
        # 1: a node failed; 2: dbt itself did.
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode

    def _artifact(self, name: str) -> dict[str, Any]:
        text = (self.directory / "target" / f"{name}.json").read_text("utf-8")
        return json.loads(text)  # type: ignore[no-any-return]


def _message(result: dict[str, Any], schema: str) -> str:
    """Without what differs in each run: the query's id and the schema."""
    text = re.sub(r"query_id=\w+", "", result["message"] or "")
    return text.replace(schema, "S")
