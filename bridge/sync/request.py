"""The request and the settings of a sync."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.kernel.config import Config
from bridge.runtime.compose import absolute_location
from bridge.storage.uri import canonical
from bridge.sync.writing.write_batches import BatchLimits
from bridge.table.model import Column, TableName

LIMITS = BatchLimits()
RECHECK_AFTER = 30.0


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """One table to sync.

    Attributes:
        location: as the user spells it; None: the location of the last sync.
        extractor: its name; None: that of the last sync, at first ``hive``.
        keys: partition keys that the user named; UNKNOWN if no type was given.
        adopt: takes over a table that skipbridge did not create.
        full: compares every partition, whatever the last run recorded.
        dry_run: only reports the changes.
        move: the table's root has moved to ``location``.
        relocate: partitions registered elsewhere return to their directory below the root.
        drop_now: partitions without data are dropped by this run, without waiting for another.
        hold_wider: accepts files narrower than the table's types; the table keeps its types.
        drop_all: drops however many partitions; accepts empty storage, which otherwise is an error.
        format: of the files of a new table; None: as the files say themselves.
        columns: of a new table whose files do not tell them.
        header: the first line of each CSV file names its fields.
        delimiter: between the fields of CSV or text; None: that of Hive's SerDe.
        seen: names of the tables that runs of this request have found or made. One that is gone
            since was dropped by another job, and is not created again.
    """

    name: TableName
    location: str | None = None
    extractor: str | None = None
    keys: tuple[Column, ...] = ()
    adopt: bool = False
    full: bool = False
    dry_run: bool = False
    move: bool = False
    relocate: bool = False
    hold_wider: bool = False
    drop_now: bool = False
    drop_all: bool = False
    format: str | None = None
    columns: tuple[Column, ...] = ()
    header: bool = False
    delimiter: str | None = None
    seen: set[str] = field(default_factory=set, compare=False)


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """How a sync works; few of it are settings.

    Attributes:
        limits: of one write. 200 partitions, since larger batches are slower on Derby and
            PostgreSQL.
        parallelism: concurrent writes of partitions.
        schema_sample: footers read to infer the schema; 0: all.
        compare_all_after: seconds after which every partition is compared again.
        recheck_after: seconds; a directory listed longer ago is listed again.
        threads: directories listed at once.
        quiet: seconds for which a table's record must not have changed before its columns, location
            or marks are written (`bridge.sync.writing.metastore.alter_unless_changed`).
        state_root: canonical URI below which states lie; empty: below each table.
    """

    limits: BatchLimits = field(default_factory=BatchLimits)
    parallelism: int = 4
    schema_sample: int = 400
    compare_all_after: float = 86400.0
    recheck_after: float = RECHECK_AFTER
    drop_after: float = 3600.0
    recursive: bool = False
    threads: int = 16
    quiet: float = 1.1
    state_root: str = ""

    @classmethod
    def of(cls, config: Config) -> SyncSettings:
        index = config.text("index.root")
        return cls(
            LIMITS,
            recheck_after=RECHECK_AFTER,
            drop_after=config.seconds("sync.drop_after"),
            recursive=config.flag("planner.recursive"),
            state_root=canonical(absolute_location(index)) if index else "",
        )
