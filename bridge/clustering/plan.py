"""A clustering plan: which files are rewritten together, and how. Saved as JSON with a checksum."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from bridge.index.generations.replacements import FileState
from bridge.kernel.errors import FileCorrupt
from bridge.storage.commit_log import checksum, seal

FORMAT = "skipbridge-clustering-plan"
VERSION = 1


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """Files of one partition that are rewritten together.

    Attributes:
        id: its number in the plan; names its new files.
        partition: ``""`` in a table without partitions.
        outputs: how many files are to replace them.
        metrics: for each sort column, and then each other column of which the index has bounds, the
            least and greatest value of each file as text; None where the index does not know them.
        format: of the files.
        depth: of how many groups of its partition, itself included, the files share a value of the
            sort columns.
        told: what the grouping tells of it besides, sorted by name.
    """

    id: int
    partition: str
    files: tuple[FileState, ...]
    outputs: int
    metrics: tuple[tuple[str, tuple[tuple[str | None, str | None], ...]], ...] = ()
    format: str = "parquet"
    depth: int = 1
    told: tuple[tuple[str, str], ...] = ()

    @property
    def num_bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """A plan, named by its instant.

    Attributes:
        instant: UTC time as ``yyyyMMddHHmmssSSS``.
        layout, columns: the order of the new files' rows.
        compression: of the new files; None: that of the old ones.
        row_group_bytes: size of their row groups, as far as can be told from the old files.
        generation: of the index from which it was made.
        bloom: what new Parquet files get besides; see `data_files.Writing`.
        target: size of new files in bytes; 0: an older version made the plan.
        packed: smaller files are rewritten together whatever they hold; see `Limits.packed`.
    """

    instant: str
    table: str
    location: str
    grouping: str
    layout: str
    columns: tuple[str, ...]
    groups: tuple[PlannedGroup, ...]
    compression: str | None = None
    row_group_bytes: int = 128 * 1024**2
    generation: int = 0
    bloom: tuple[str, ...] = ()
    target: int = 0
    packed: int = 0

    def to_bytes(self) -> bytes:
        body = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return seal(body, ascii_only=True)


def parse_plan(raw: bytes, name: str) -> ClusteringPlan:
    """Reads a plan. Errors: FileCorrupt: not a plan, of a later version, or damaged."""
    remedy = "cancel this plan and schedule another one"
    try:
        body: dict[str, Any] = json.loads(raw)
        found = body.pop("checksum")
        if body["format"] != FORMAT or body["version"] != VERSION:
            raise FileCorrupt(
                f"{name} is a {body['format']} of version {body['version']}, and this program "
                f"reads {FORMAT} of version {VERSION}",
                remedy,
            )
        if found != checksum(body, ascii_only=True):
            raise FileCorrupt(f"{name} does not match its checksum {found[:12]}", remedy)
        return ClusteringPlan(
            body["instant"],
            body["table"],
            body["location"],
            body["grouping"],
            body["layout"],
            tuple(body["columns"]),
            tuple(_group(each) for each in body["groups"]),
            body["compression"],
            body["row_group_bytes"],
            body.get("generation", 0),
            tuple(body.get("bloom", ())),
            body.get("target", 0),
            body.get("packed", 0),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileCorrupt(f"{name} is not a clustering plan: {error}", remedy) from error


def _group(body: dict[str, Any]) -> PlannedGroup:
    return PlannedGroup(
        body["id"],
        body["partition"],
        tuple(FileState(**file) for file in body["files"]),
        body["outputs"],
        tuple(
            (column, tuple((low, high) for low, high in bounds))
            for column, bounds in body["metrics"]
        ),
        body.get("format", "parquet"),
        body.get("depth", 1),
        tuple((name, text) for name, text in body.get("told", ())),
    )
