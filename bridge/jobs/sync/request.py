"""The request and the settings of a sync."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.config import Config
from bridge.jobs.sync.write_batches import BatchLimits
from bridge.table.model import Column, TableName


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
        spark: lists with Spark; None: only from a number of partitions on.
        format: of the files of a new table; None: as the files say themselves.
        columns: of a new table whose files do not tell them.
        header: the first line of each CSV file names its fields.
        delimiter: between the fields of CSV or text; None: that of Hive's SerDe.
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
    spark: bool | None = None
    format: str | None = None
    columns: tuple[Column, ...] = ()
    header: bool = False
    delimiter: str | None = None


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """The ``sync.*`` options.

    Attributes:
        quiet: seconds for which a table's record must not have changed before its columns, location
            or marks are written (`bridge.jobs.sync.metastore.alter_unless_changed`).
    """

    limits: BatchLimits = field(default_factory=BatchLimits)
    parallelism: int = 4
    schema_sample: int = 400
    compare_all_after: float = 86400.0
    spark_from: int = 50_000
    recheck_after: float = 30.0
    drop_after: float = 3600.0
    recursive: bool = False
    threads: int = 16
    quiet: float = 1.1

    @classmethod
    def of(cls, config: Config) -> SyncSettings:
        return cls(
            BatchLimits(config.size("sync.batch_bytes"), config.integer("sync.batch_partitions")),
            max(1, config.integer("sync.parallelism")),
            config.integer("sync.schema_sample"),
            config.seconds("sync.compare_all_after"),
            config.integer("sync.spark_from"),
            config.seconds("sync.recheck_after"),
            config.seconds("sync.drop_after"),
            config.flag("planner.recursive"),
            max(1, config.integer("planner.listing_threads")),
        )
