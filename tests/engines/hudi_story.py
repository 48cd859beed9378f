"""Writes and reads Hudi tables with real Spark 3.5; runs in a Python that has PySpark 3.5.

``python -m tests.engines.hudi_story JAR SCRATCH``: takes one JSON request a line, and answers each
with a line that begins with ``@@``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.fixtures.hudi import session, view

_ROWS = "id int, name string, price double, ts bigint, day string"


class Story:
    def __init__(self, jar: Path, scratch: Path) -> None:
        self._spark = session.start(jar, "UTC", scratch)
        self._bundle = jar.stem.rpartition("-")[2]

    def write(self, asked: dict[str, Any]) -> None:
        """One commit: rows of (id, ts), whose other values follow from them."""
        path = Path(asked["path"])
        table = session.Table(self._spark, path, path.name, self._bundle)
        table.define(asked["kind"], schema=_ROWS, **asked.get("options", {}))
        rows = [
            (i, f"n{(i * 7919) % 1009:04d}", float((i * 31) % 997), ts, f"2024-01-0{1 + i % 2}")
            for i, ts in asked["rows"]
        ]
        frame = self._spark.createDataFrame(rows, _ROWS).repartition(asked.get("files", 1))
        table.write(frame, asked.get("operation", "insert"), **asked.get("more", {}))

    def commit(self, asked: dict[str, Any]) -> str:
        """One write of rows of (id, ts, day); returns its instant.

        With ``dies`` the writer dies before it completes the instant.
        """
        path = Path(asked["path"])
        table = session.Table(self._spark, path, path.name, self._bundle)
        table.define(asked["kind"], schema=_ROWS, **asked.get("options", {}))
        rows = [(i, f"n{i}", float(i), ts, day) for i, ts, day in asked["rows"]]
        table.write(rows, asked["operation"])
        instant = re.split(r"[_.]", table.completed()[-1].name)[0]
        if asked.get("dies"):
            table.lose_last_commit()
        return instant

    def call(self, asked: dict[str, Any]) -> list[Any]:
        """A procedure of Hudi's; ``{t}`` in its text is the table's name."""
        path = Path(asked["path"])
        name = f"{path.parent.name}_{path.name}".replace("-", "_")
        self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION '{path}'")
        self._spark.sql("SET hoodie.metadata.enable=false")  # 0.15.0 restores only without
        try:
            rows = self._spark.sql(asked["sql"].format(t=name)).collect()
            return [[*map(str, row)] for row in rows]
        finally:
            self._spark.sql("RESET hoodie.metadata.enable")

    def partitions(self, asked: dict[str, Any]) -> list[str]:
        """The partitions that hold a file slice, by Hudi's own view of the timeline."""
        return view.partitions(self._spark, Path(asked["path"]))

    def read(self, asked: dict[str, Any]) -> list[Any]:
        """Rows of a query as lists, sorted."""
        reader = self._spark.read.format("hudi").options(**asked.get("options", {}))
        frame = reader.load(asked["path"])
        kept = frame.select("id", "name", "price", "ts", "day", "_hoodie_commit_time").collect()
        return sorted([*row] for row in kept)

    def version(self, asked: dict[str, Any]) -> int:
        text = (Path(asked["path"]) / ".hoodie" / "hoodie.properties").read_text()
        return int(text.partition("hoodie.table.version=")[2].split("\n")[0])


def main() -> int:
    story = Story(Path(sys.argv[1]), Path(sys.argv[2]))
    print("@@" + json.dumps("ready"), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"is": getattr(story, asked["do"])(asked)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:4000]}
        print("@@" + json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
