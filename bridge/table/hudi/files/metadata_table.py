"""The file listing in a Hudi table's own metadata table, ``.hoodie/metadata``.

The metadata table is a merge-on-read table of HFiles. Its partition ``files`` has one record for
each partition of the data: names and sizes of files. Writers commit to it before they commit, so

- a block of it counts if its instant is completed on the metadata table's timeline, and is not
  pending on the data's: then the data's commit failed, or is still to come;
- a block of an instant that began after the data's timeline was read does not count: it may say
  that files are deleted which the timeline still needs;
- a listing lacks files if a completed commit of the data has no instant on it: some writers do not
  keep the metadata table. So it does if a file of the metadata table is missing: its timeline tells
  which HFile is the newest, and each commit of the data since then has a block.

What cannot be shown to be whole is not a listing: the answer then is why, and the caller lists
storage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from re import Match
from re import compile as pattern
from typing import Any

from bridge.formats.avro.container import checked_schema
from bridge.formats.avro.skipping import require_few
from bridge.formats.hudi.avro_rows import DAMAGE
from bridge.formats.hudi.hfile import HFile
from bridge.formats.hudi.log_format import (
    BlockType,
    Header,
    LogBlock,
    blocks_in_merge_order,
    read_logs,
)
from bridge.formats.hudi.log_records import deletes_of
from bridge.kernel.errors import FileCorrupt
from bridge.kernel.threads import Threads
from bridge.storage.port import FileTable, Storage
from bridge.table.hudi.files.file_system_view import FileListing
from bridge.table.hudi.table_config import HudiTableConfig
from bridge.table.hudi.timeline.commit_metadata import CommitMetadata
from bridge.table.hudi.timeline.timeline import HudiTimeline, load_timeline

_FILES = "files"
_ALL_PARTITIONS = "__all_partitions__"
_NOT_PARTITIONED = "."
_TYPES = {_ALL_PARTITIONS: 1}
_FILES_TYPE = 2
_BASE = pattern(r"([^_.][^_]*)_[^_]+_([0-9]+)\.hfile")
_LOG = pattern(r"\.([^_]+)_([0-9]+)\.log\.([0-9]+)(?:_([0-9-]+))?")
_TIME = 17
"""Digits of an instant; table version 6 appends three that say what the instant does."""
_FIRST_OF_BUILD = "010"
_BEFORE_ALL = "0" * (_TIME - 3)
_DELETED = -1
_MOST_LOG_BYTES = 1 << 30
"""They are held at once, and Hudi compacts them every few commits."""

_Files = dict[str, int]
"""Size by name; `_DELETED` if only the deletion is known."""


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Why the metadata table does not tell the files.

    Attributes:
        reason: for reports; the table is the subject.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class MetadataSlice:
    """The files of one file group that hold its newest state; URI and length in bytes.

    Attributes:
        start: the instant of the base file; empty without one.
    """

    start: str
    base: tuple[str, int] | None
    logs: tuple[tuple[str, int], ...]


def read_file_listing(
    storage: Storage,
    config: HudiTableConfig,
    timeline: HudiTimeline,
    partitions: Collection[str] | None = None,
    pool: Executor | None = None,
) -> FileListing | Incomplete:
    """The files of a table, or of some of its partitions; partitions without files are left out.

    Args:
        config: of the data table.
        timeline: of the data table; read before this call.
        partitions: paths below the table; None: all.
        pool: reads side by side.

    Errors:
        FileCorrupt, FileChanged, FileUnreadable, StorageFailure, UnsupportedTable. A file that was
        cleaned away meanwhile is FileUnreadable: read the timeline again.
    """
    if _FILES not in config.metadata_partitions:
        return Incomplete("has no metadata table")
    with _pool(pool) as threads:
        listing = threads.submit(list_partition, storage, config, _FILES)
        instants = metadata_timeline(storage, config)
        missing = lacks_commits(timeline, instants)
        found = missing or _slice(listing.result(), instants, timeline, config.completes)
        if isinstance(found, Incomplete):
            return found
        if (size := sum(size for _, size in found.logs)) > _MOST_LOG_BYTES:
            return Incomplete(f"has a metadata table whose logs of files have {size:,} bytes")
        hfile = None
        if found.base is not None:
            hfile = threads.submit(HFile.open, storage, *found.base)
        blocks = read_logs(storage, found.logs)
        keys = None if partitions is None else [_ALL_PARTITIONS, *map(_key, partitions)]
        state: dict[str, _Files] = {}
        if hfile is not None:
            _apply_base(state, hfile.result(), keys)
    torn = _torn(blocks, found.start, instants, timeline)
    if torn is not None:
        return torn
    valid = validity(instants, timeline)
    for block in blocks_in_merge_order(blocks, valid):
        _apply_block(state, block, keys)
    return _listing(state, partitions)


def list_partition(storage: Storage, config: HudiTableConfig, partition: str) -> FileTable:
    """The files of a partition of the metadata table. Errors: StorageFailure."""
    return storage.list_all(f"{config.base}/.hoodie/metadata/{partition}", recursive=False)


def metadata_timeline(storage: Storage, config: HudiTableConfig) -> HudiTimeline:
    """The metadata table's own timeline. Errors: FileCorrupt, StorageFailure.

    Args:
        config: of the data table.
    """
    home = f"{config.base}/.hoodie"
    own = f"{home}/metadata/.hoodie{config.timeline_uri.removeprefix(home)}"
    return load_timeline(storage, replace(config, timeline_uri=own))


@contextmanager
def _pool(pool: Executor | None) -> Iterator[Executor]:
    if pool is not None:
        yield pool
        return
    with Threads(1, "hudi") as own:
        yield own


def _key(partition: str) -> str:
    return partition or _NOT_PARTITIONED


def lacks_commits(timeline: HudiTimeline, own: HudiTimeline) -> Incomplete | None:
    """Whether the metadata table lacks a commit that is completed on the data's timeline."""
    if not own.completed:
        return Incomplete("has a metadata table without a commit")
    builds = [i for i in own.completed.values() if _is_build(i.requested)]
    for instant in timeline.completed.values():
        time = instant.requested
        if time in own.completed:
            continue
        if instant.completion is not None and builds:
            # The first build listed storage: it has what was completed before it ended. Later ones
            # are of other partitions than the files.
            known = instant.completion <= min(i.completion or "" for i in builds)
        elif builds:
            known = time <= min(i.requested[:_TIME] for i in builds)
        else:
            known = time < own.first_active
        if not known:
            return Incomplete(f"has a metadata table without the commit {time}")
    return None


def _is_build(requested: str) -> bool:
    """Whether an instant of the metadata table made one of its partitions from a listing."""
    if requested.startswith(_BEFORE_ALL):
        return True
    return len(requested) == _TIME + 3 and requested[_TIME:] >= _FIRST_OF_BUILD


def _slice(
    listing: FileTable, own: HudiTimeline, timeline: HudiTimeline, completes: bool
) -> MetadataSlice | Incomplete:
    groups = metadata_slices(listing, own, completes)
    if len(groups) != 1:
        return Incomplete(f"has a metadata table with {len(groups)} groups of file listings")
    (found,) = groups
    if found.start and not began_before(found.start, own, timeline):
        return Incomplete("has a metadata table that is being compacted")
    return found


def metadata_slices(listing: FileTable, own: HudiTimeline, completes: bool) -> list[MetadataSlice]:
    """The newest slice of each file group of a partition of the metadata table.

    Args:
        own: the metadata table's timeline.
        completes: whether instants tell when they were completed.
    """
    files = {
        uri.rpartition("/")[2]: (uri, size)
        for uri, size in zip(listing.paths.to_pylist(), listing.sizes.tolist(), strict=True)
    }
    bases: dict[str, list[tuple[str, tuple[str, int]]]] = defaultdict(list)
    logs: dict[str, list[tuple[Match[str], tuple[str, int]]]] = defaultdict(list)
    for name, file in files.items():
        if (match := _BASE.fullmatch(name)) and _committed(own, match[2]):
            bases[match[1]].append((match[2], file))
        elif match := _LOG.fullmatch(name):
            logs[match[1]].append((match, file))
    found = []
    for group in sorted({*bases, *logs}):
        start, base = max(bases[group], default=("", None))
        later = sorted(logs[group], key=lambda log: (log[0][2], int(log[0][3]), log[0][4] or ""))
        chosen = [
            file
            for m, file in later
            if (_follows(own, m[2], start) if completes else m[2] >= start)
        ]
        found.append(MetadataSlice(start, base, tuple(chosen)))
    return found


def lost_files(
    written: Iterable[CommitMetadata],
    partition: str,
    listing: FileTable,
    own: HudiTimeline,
    completes: bool,
) -> Incomplete | None:
    """Whether a file that the metadata table's own commits wrote to a partition is missing.

    Args:
        written: the bodies of those commits.
    """
    there = {uri.rpartition("/")[2] for uri in listing.paths.to_pylist()}
    starts: dict[str, str] = {}
    for name in there:
        if (match := _BASE.fullmatch(name)) and _committed(own, match[2]):
            starts[match[1]] = max(match[2], starts.get(match[1], ""))
    for commit in written:
        end = 0
        for path, count in zip(commit.partitions, commit.counts, strict=True):
            begin, end = end, end + count
            for name in commit.names[begin:end] if path == partition else ():
                match = _LOG.fullmatch(name) or _BASE.fullmatch(name)
                if name in there or match is None:
                    continue
                start = starts.get(match[1], "")
                is_log = name.startswith(".") and completes
                if _follows(own, match[2], start) if is_log else match[2] >= start:
                    return Incomplete(f"has a metadata table without its file {name}")
    return None


def _torn(
    blocks: Sequence[LogBlock], start: str, own: HudiTimeline, timeline: HudiTimeline
) -> Incomplete | None:
    """Whether a base file or a log of the metadata table is missing."""
    compactions = [i.requested for i in own.completed.values() if i.action == "commit"]
    if start < max(compactions, default=""):
        return Incomplete("has a metadata table without its newest HFile")
    data = [b for b in blocks if b.type is BlockType.HFILE_DATA]
    if not start and not any(_is_build(b.instant) for b in data):
        return Incomplete("has a metadata table without its first listing")
    told = {b.instant for b in data}
    for block in data:
        told.update(block.header.get(Header.COMPACTED_BLOCK_TIMES, "").split(","))
    for instant in own.completed.values():
        time = instant.requested
        later = (instant.completion or time) > start and time != start
        if later and time in timeline.completed and time not in told:
            return Incomplete(f"has a metadata table without the files of the commit {time}")
    return None


def _committed(own: HudiTimeline, requested: str) -> bool:
    if requested in own.completed:
        return True
    return requested < own.first_active and all(i.requested != requested for i in own.pending)


def _follows(own: HudiTimeline, requested: str, start: str) -> bool:
    """Whether a log, which belongs to one instant, is newer than the base file."""
    instant = own.completed.get(requested)
    if instant is not None:
        return (instant.completion or "") >= start
    return _committed(own, requested) and requested >= start


def began_before(start: str, own: HudiTimeline, timeline: HudiTimeline) -> bool:
    """Whether a compaction ended before the data's timeline was read.

    A later one may have left out files that the timeline still needs.
    """
    if start.startswith(_BEFORE_ALL):
        return True
    compaction = own.completed.get(start)
    times = [i.requested for i in timeline.instants]
    if compaction is None or compaction.completion is None:
        return start[:_TIME] <= max(times, default="")
    times += [i.completion for i in timeline.instants if i.completion]
    return compaction.completion <= max(times, default="")


def validity(own: HudiTimeline, timeline: HudiTimeline) -> Callable[[str], bool]:
    """Whether the blocks of an instant of the metadata table count."""
    known = {i.requested for i in timeline.instants}
    pending = {i.requested for i in timeline.pending}
    newest = max(known, default="")

    def is_valid(requested: str) -> bool:
        if requested in pending or not _committed(own, requested):
            return False
        return requested in known or requested[:_TIME] <= newest

    return is_valid


def _apply_base(state: dict[str, _Files], hfile: HFile, keys: Sequence[str] | None) -> None:
    schema = hfile.info.get(b"schema")
    if schema is None:
        raise FileCorrupt(f"{hfile.uri} has no schema", "build the metadata table again")
    _apply(state, _entries(hfile, keys), schema.decode(errors="replace"), hfile.uri)


def _apply_block(state: dict[str, _Files], block: LogBlock, keys: Sequence[str] | None) -> None:
    if block.type is BlockType.DELETE:
        for record in deletes_of(block):
            state.pop(record.key, None)
    elif block.type is BlockType.HFILE_DATA:
        hfile = HFile.parse(block.content, block.uri)
        _apply(state, _entries(hfile, keys), block.text(Header.SCHEMA), block.uri)
    else:
        raise FileCorrupt(
            f"{block.uri}: a metadata table holds a block of type {block.type.name}",
            "build the metadata table again",
        )


def _entries(hfile: HFile, keys: Sequence[str] | None) -> Iterable[tuple[bytes, bytes]]:
    if keys is None:
        return hfile.scan()
    return hfile.get(key.encode() for key in keys).items()


def _apply(
    state: dict[str, _Files], entries: Iterable[tuple[bytes, bytes]], schema: str, uri: str
) -> None:
    """Adds records that are newer than the state.

    A size only grows. A deletion removes the file; one of an unknown file is kept, for Hudi may
    give the file to a later merge.
    """
    import fastavro

    try:
        parsed = checked_schema(schema).parsed
        for key, value in entries:
            require_few(parsed, value)
            record: Any = fastavro.schemaless_reader(BytesIO(value), parsed, None)
            partition = key.decode()
            if record["type"] != _TYPES.get(partition, _FILES_TYPE):
                raise ValueError(f"the record of {partition!r} has the type {record['type']}")
            files = state.setdefault(partition, {})
            for name, file in (record["filesystemMetadata"] or {}).items():
                have = files.get(name, _DELETED)
                if not file["isDeleted"]:
                    if file["size"] < 0:
                        raise ValueError(f"{name!r} has the size {file['size']}")
                    files[name] = max(file["size"], have)
                elif have == _DELETED:
                    files[name] = _DELETED
                else:
                    del files[name]
    except DAMAGE as error:
        raise FileCorrupt(
            f"{uri} is no listing of files: {error}", "build the metadata table again"
        ) from error


def _listing(
    state: Mapping[str, _Files], partitions: Collection[str] | None
) -> FileListing | Incomplete:
    if _ALL_PARTITIONS not in state:
        return Incomplete("has a metadata table without a list of partitions")
    named = {name for name, size in state[_ALL_PARTITIONS].items() if size != _DELETED}
    listed = {key: _live(files) for key, files in state.items() if key != _ALL_PARTITIONS}
    unnamed = sorted(key for key, files in listed.items() if files and key not in named)
    if unnamed:
        return Incomplete(f"has a metadata table with files of {unnamed[0]!r}, which it lacks")
    wanted = named if partitions is None else named & set(map(_key, partitions))
    lost = sorted(wanted - listed.keys())
    if lost:
        return Incomplete(f"has a metadata table without the files of {lost[0]!r}")
    return FileListing.of(
        {
            "" if key == _NOT_PARTITIONED else key: listed[key].items()
            for key in sorted(wanted)
            if listed[key]
        }
    )


def _live(files: _Files) -> _Files:
    return {name: size for name, size in files.items() if size != _DELETED}
