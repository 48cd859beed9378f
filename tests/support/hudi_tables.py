"""Writes Hudi tables of any history, file by file: only names and bodies, no rows.

Bodies are as Hudi writes them, JSON before table version 8 and Avro from then on, with the fields
that a reader of file slices looks at.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.hudi_writer import avro_block

_TEXT = ["null", "string"]
_LONG = ["null", "long"]


def _record(name: str, **fields: Any) -> dict[str, Any]:
    full = f"org.apache.hudi.avro.model.{name}"
    return {
        "type": "record",
        "name": full,
        "fields": [{"name": k, "type": t, "default": None} for k, t in fields.items()],
    }


def _map(values: Any) -> list[Any]:
    return ["null", {"type": "map", "values": values}]


def _array(items: Any) -> list[Any]:
    return ["null", {"type": "array", "items": items}]


_STAT = _record(
    "HoodieWriteStat",
    fileId=_TEXT,
    path=_TEXT,
    prevCommit=_TEXT,
    fileSizeInBytes=_LONG,
    logOffset=_LONG,
    numWrites=_LONG,
)
_COMMIT = {
    "partitionToWriteStats": _map({"type": "array", "items": _STAT}),
    "extraMetadata": _map("string"),
    "operationType": _TEXT,
}
_ROLLBACK = _record("HoodieRollbackMetadata", commitsRollback=_array("string"))
SCHEMAS: dict[str, dict[str, Any]] = {
    "commit": _record("HoodieCommitMetadata", **_COMMIT),
    "deltacommit": _record("HoodieCommitMetadata", **_COMMIT),
    "replacecommit": _record(
        "HoodieReplaceCommitMetadata",
        **_COMMIT,
        partitionToReplaceFileIds=_map({"type": "array", "items": "string"}),
    ),
    "clean": _record(
        "HoodieCleanMetadata",
        earliestCommitToRetain=_TEXT,
        partitionMetadata=_map(
            _record(
                "HoodieCleanPartitionMetadata",
                deletePathPatterns=_array("string"),
                successDeleteFiles=_array("string"),
            )
        ),
    ),
    "clean.requested": _record(
        "HoodieCleanerPlan",
        filePathsToBeDeletedPerPartition=_map(
            {"type": "array", "items": _record("HoodieCleanFileInfo", filePath=_TEXT)}
        ),
    ),
    "rollback": _ROLLBACK,
    "restore": _record(
        "HoodieRestoreMetadata",
        instantsToRollback=_array("string"),
        hoodieRestoreMetadata=_map({"type": "array", "items": _ROLLBACK}),
    ),
    "savepoint": _record("HoodieSavepointMetadata", comments=_TEXT),
}


def avro_body(kind: str, body: Mapping[str, Any]) -> bytes:
    """A body in an Avro file, with its schema."""
    out = io.BytesIO()
    fastavro.writer(out, SCHEMAS[kind], [dict(body)])
    return out.getvalue()


def plan_body(operation: str) -> bytes:
    """The body of a request to replace file groups, which a writer may leave empty."""
    out = io.BytesIO()
    schema = _record("HoodieRequestedReplaceMetadata", operationType=_TEXT)
    fastavro.writer(out, schema, [{"operationType": operation}])
    return out.getvalue()


_ARCHIVED = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "hoodieReplaceCommitMetadata",
    "rollback": "hoodieRollbackMetadata",
}


def _archived_schema() -> Any:
    once = json.dumps(_STAT)
    replace = json.dumps(SCHEMAS["replacecommit"]).replace(once, json.dumps(_STAT["name"]))
    return _record(
        "HoodieArchivedMetaEntry",
        hoodieCommitMetadata=["null", SCHEMAS["commit"]],
        hoodieReplaceCommitMetadata=["null", json.loads(replace)],
        hoodieRollbackMetadata=["null", _ROLLBACK],
        commitTime=_TEXT,
        actionType=_TEXT,
        actionState=_TEXT,
    )


def _archived_entry(instant: str, action: str, body: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "commitTime": instant,
        "actionType": action,
        "actionState": "COMPLETED",
    }
    if action == "rollback":
        (entry["hoodieRollbackMetadata"],) = fastavro.reader(io.BytesIO(body))
    elif action in _ARCHIVED:
        entry[_ARCHIVED[action]] = json.loads(body)
    return entry


@dataclass(frozen=True, slots=True)
class Written:
    """A file that an instant wrote.

    Attributes:
        offset: of a log, where it was appended to.
        rows: None: the commit does not tell.
    """

    partition: str
    name: str
    size: int
    previous: str = "null"
    offset: int = 0
    rows: int | None = None

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.name}" if self.partition else self.name

    def stat(self) -> dict[str, Any]:
        group = self.name.lstrip(".").split("_")[0]
        return {
            "fileId": group,
            "path": self.path,
            "prevCommit": self.previous,
            "fileSizeInBytes": self.size,
            "logOffset": self.offset if self.name.startswith(".") else None,
            "numWrites": self.rows,
        }


class HudiTable:
    """A table below a directory. Instants may be any digits.

    Attributes:
        sizes: of all data files, by path.
    """

    def __init__(
        self, root: Path, version: int, kind: str = "MERGE_ON_READ", **properties: str
    ) -> None:
        self.root = root
        self.sizes: dict[str, int] = {}
        self.version = version
        self.meta = root / ".hoodie"
        self.timeline = self.meta if version < 8 else self.meta / "timeline"
        self.history = self.meta / "archived" if version < 8 else self.timeline / "history"
        self.history.mkdir(parents=True)
        name = f".{root.name}"
        base = {
            "hoodie.table.name": root.name,
            "hoodie.table.version": str(version),
            "hoodie.table.type": kind,
            "hoodie.timeline.layout.version": "1" if version < 8 else "2",
            "hoodie.table.checksum": str(zlib.crc32(name.encode())),
        }
        given = {k.replace("__", "."): v for k, v in properties.items()}
        lines = [f"{key}={value}\n" for key, value in {**base, **given}.items()]
        (self.meta / "hoodie.properties").write_text("#saved\n" + "".join(lines))

    @property
    def uri(self) -> str:
        return f"file://{self.root}"

    def base(
        self,
        partition: str,
        group: str,
        instant: str,
        *,
        previous: str = "null",
        token: str = "0-1-2",
        size: int = 100,
    ) -> Written:
        """Writes a base file."""
        name = f"{group}_{token}_{instant}.parquet"
        return self._write(Written(partition, name, size, previous))

    def log(
        self,
        partition: str,
        group: str,
        named: str,
        *,
        number: int = 1,
        previous: str = "null",
        token: str = "0-1-2",
        size: int = 10,
        suffix: str = "",
    ) -> Written:
        """Writes a log. ``named``: the instant in its name."""
        name = f".{group}_{named}.log.{number}_{token}{suffix}"
        return self._write(Written(partition, name, size, previous))

    def _write(self, file: Written) -> Written:
        # Nobody reads it, so it need not exist.
        self.sizes[file.path] = file.size
        return file

    def stray(self, path: str) -> None:
        """Adds a file that no writer of Hudi made."""
        self.sizes[path] = 1

    def delete(self, file: Written) -> None:
        """Deletes a data file; no error if it is gone."""
        self.sizes.pop(file.path, None)

    def state(self, name: str, content: bytes = b"") -> Path:
        """Writes one file of the timeline."""
        path = self.timeline / name
        path.write_bytes(content)
        return path

    def begin(self, instant: str, action: str, *, inflight: bool = True) -> None:
        """Writes the requested state of an action, and by default the inflight one."""
        self.state(f"{instant}.{action}.requested")
        if inflight:
            self.state(f"{instant}{'' if action == 'commit' else '.' + action}.inflight")

    def complete(
        self, instant: str, action: str, body: Mapping[str, Any], end: str | None = None
    ) -> Path:
        """Writes the completed state. ``end``: completion time, from table version 8 on."""
        if self.version < 8:
            plain = action in ("commit", "deltacommit", "replacecommit")
            content = json.dumps(body).encode() if plain else avro_body(action, body)
            return self.state(f"{instant}.{action}", content)
        return self.state(f"{instant}_{end or instant}.{action}", avro_body(action, body))

    def commit(
        self,
        instant: str,
        files: Iterable[Written],
        *,
        action: str = "deltacommit",
        end: str | None = None,
        operation: str = "UPSERT",
        replaced: Mapping[str, Sequence[str]] | None = None,
        schema: str | None = None,
        latest_schema: str | None = None,
        begin: bool = True,
    ) -> Path:
        """Completes a write of some files. ``begin``: also write its earlier states."""
        extra = {"schema": schema, "latest_schema": latest_schema}
        stats: dict[str, list[dict[str, Any]]] = {}
        for file in files:
            stats.setdefault(file.partition, []).append(file.stat())
        body: dict[str, Any] = {
            "partitionToWriteStats": stats,
            "operationType": operation,
            "extraMetadata": {key: text for key, text in extra.items() if text is not None},
        }
        if action == "replacecommit":
            body["partitionToReplaceFileIds"] = {k: list(v) for k, v in (replaced or {}).items()}
        if begin:
            self.begin(instant, action)
        return self.complete(instant, action, body, end)

    def forget(self, instant: str) -> None:
        """Removes all states of an instant, as a rollback does."""
        for path in self.timeline.glob(f"{instant}[._]*"):
            if path.is_file():
                path.unlink()

    def archive(self, *instants: str, log: int = 0) -> None:
        """Moves completed instants to the archived timeline, as one more file.

        Args:
            log: number of the archived log, before table version 8; 0: the next one.
        """
        found: list[tuple[str, str, str, bytes]] = []
        for path in sorted(self.timeline.glob("*")):
            times, _, action = path.name.partition(".")
            requested, _, end = times.partition("_")
            if requested in instants and path.is_file() and action in SCHEMAS:
                found.append((requested, end or requested, action, path.read_bytes()))
        for instant in instants:
            self.forget(instant)
        if self.version < 8:
            entries = [_archived_entry(at, action, body) for at, _, action, body in found]
            block = avro_block(found[0][0], _archived_schema(), entries)
            number = log or 1 + len(list(self.history.glob(".commits_.archive.*")))
            (self.history / f".commits_.archive.{number}_1-0-1").write_bytes(block)
            return
        names = ("instantTime", "completionTime", "action", "metadata")
        table = pa.table(dict(zip(names, map(list, zip(*found, strict=True)), strict=True)))
        name = f"{found[0][0]}_{found[-1][0]}_0.parquet"
        pq.write_table(table, self.history / name)
        files = [{"fileName": path.name, "fileLen": 1} for path in self.history.glob("*.parquet")]
        manifest = {"files": files}
        (self.history / "manifest_1").write_text(json.dumps(manifest))
        # A writer that died left a manifest that no reader looks at.
        (self.history / "manifest_2").write_text("half-writ")
        (self.history / "_version_").write_text("1")

    def listing(self) -> dict[str, list[tuple[str, int]]]:
        """All files of all partitions, whatever wrote them."""
        found: dict[str, list[tuple[str, int]]] = {}
        for path in sorted(self.sizes):
            partition, _, name = path.rpartition("/")
            found.setdefault(partition, []).append((name, self.sizes[path]))
        return found
