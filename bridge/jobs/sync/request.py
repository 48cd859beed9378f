"""What a sync is asked for, and how it goes about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.config import Config
from bridge.jobs.sync.write_batches import BatchLimits
from bridge.table.model import Column, TableName


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What to bring in step.

    Attributes:
        location: as the user spells it; None: where the table was synced from before.
        extractor: its name; None: the one used before, at first ``hive``.
        keys: partition keys that the user named; UNKNOWN where no type was given.
        adopt: take over a table that something else has made.
        full: compare every partition, whatever the last run remembers.
        dry_run: only say what would be done.
        move: the table's root has moved to ``location``.
        relocate: partitions registered elsewhere come back below the root.
        hold_wider: files narrower than the table's types are no error; the table keeps its types.
        drop_all: storage may be empty; else that is taken for a mistake.
        spark: list with Spark; None: from a number of partitions on.
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
    drop_all: bool = False
    spark: bool | None = None


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """The ``sync.*`` options."""

    limits: BatchLimits = field(default_factory=BatchLimits)
    parallelism: int = 4
    schema_sample: int = 400
    compare_all_after: float = 86400.0
    spark_from: int = 50_000
    recheck_after: float = 30.0
    recursive: bool = False
    threads: int = 16

    @classmethod
    def of(cls, config: Config) -> SyncSettings:
        return cls(
            BatchLimits(config.size("sync.batch_bytes"), config.integer("sync.batch_partitions")),
            max(1, config.integer("sync.parallelism")),
            config.integer("sync.schema_sample"),
            config.seconds("sync.compare_all_after"),
            config.integer("sync.spark_from"),
            config.seconds("sync.recheck_after"),
            config.flag("planner.recursive"),
            max(1, config.integer("planner.listing_threads")),
        )
