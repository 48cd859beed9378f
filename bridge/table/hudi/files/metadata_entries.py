"""All entries of a partition of a Hudi table's metadata table, where they are shown to be whole.

They count only if the metadata table lacks no commit of the data and no file that its own commits
wrote, and no later commit counts (`metadata_table`).
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from bridge.formats.avro.container import checked_schema
from bridge.formats.avro.skipping import require_few
from bridge.formats.hudi.hfile import HFile
from bridge.formats.hudi.log_format import BlockType, Header, blocks_in_merge_order, read_logs
from bridge.formats.hudi.log_records import deletes_of
from bridge.kernel.errors import LimitExceeded, UnsupportedTable
from bridge.table.hudi.files.base_files import metadata_damage
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.files.metadata_table import (
    Incomplete,
    MetadataSlice,
    began_before,
    lacks_commits,
    list_partition,
    lost_files,
    metadata_slices,
    metadata_timeline,
    validity,
)
from bridge.table.hudi.timeline.commit_metadata import read_commit

MOST = 2_000_000
"""Entries of a partition, some 3 µs and 12 bytes each."""
_MOST_BYTES = 128 << 20
"""Of the logs, which are read as a whole."""
Entry = tuple[bytes, bytes | None, str]
"""Key, record and its schema; without a record the key was deleted."""


def read_entries(view: FileSystemView, partition: str) -> Iterator[Iterator[Entry]]:
    """The entries of each file group, the oldest first.

    Errors:
        UnsupportedTable: they are not whole. LimitExceeded: they are too many.
        FileCorrupt, FileChanged, FileUnreadable, StorageFailure.
    """
    storage, config = view.storage, view.config
    own = metadata_timeline(storage, config)
    if (lacking := lacks_commits(view.timeline, own)) is not None:
        raise _unknown(view, lacking)
    listing = list_partition(storage, config, partition)
    uris = own.uris_of([i for i in own.completed.values() if "commit" in i.action])
    written = map(read_commit, view.read_all(uris), uris)
    if (lacking := lost_files(written, partition, listing, own, config.completes)) is not None:
        raise _unknown(view, lacking)
    groups = metadata_slices(listing, own, config.completes)
    if any(g.start and not began_before(g.start, own, view.timeline) for g in groups):
        raise _unknown(view, Incomplete("has a metadata table that is being compacted"))
    if (size := sum(size for each in groups for _, size in each.logs)) > _MOST_BYTES:
        raise LimitExceeded(
            f"the logs of {partition} of {config.base} have {size:,} bytes, and at most "
            f"{_MOST_BYTES:,} are read",
            "compact the metadata table: hoodie.metadata.compact.max.delta.commits",
        )
    valid, read = validity(own, view.timeline), 0

    def entries(hfile: HFile, schema: str) -> Iterator[Entry]:
        nonlocal read
        read += hfile.entries
        if read > MOST:
            raise LimitExceeded(
                f"{partition} has more than {MOST:,} entries",
                "build an index: skipbridge index build",
            )
        return ((key, value, schema) for key, value in hfile.scan())

    def of_group(group: MetadataSlice) -> Iterator[Entry]:
        if group.base is not None:
            hfile = HFile.open(storage, *group.base)
            yield from entries(hfile, hfile.info.get(b"schema", b"").decode(errors="replace"))
        for block in blocks_in_merge_order(read_logs(storage, group.logs), valid):
            if block.type is BlockType.DELETE:
                yield from ((record.key.encode(), None, "") for record in deletes_of(block))
            elif block.type is BlockType.HFILE_DATA:
                yield from entries(HFile.parse(block.content, block.uri), block.text(Header.SCHEMA))

    return map(of_group, groups)


def read_record(schema: str, value: bytes, type: int) -> Any:
    """A record of the metadata table, of the partition that has the type. Errors: DAMAGE."""
    import fastavro

    parsed = checked_schema(schema).parsed
    require_few(parsed, value)
    record: Any = fastavro.schemaless_reader(BytesIO(value), parsed, None)
    if record["type"] != type:
        raise metadata_damage(f"a record has the type {record['type']}, and not {type}")
    return record


def _unknown(view: FileSystemView, why: Incomplete) -> UnsupportedTable:
    return UnsupportedTable(
        f"{view.config.base} {why.reason}", "let the table's writers keep the metadata table"
    )
