"""From files to file slices: one pass over columns, for all file groups of a table at once.

A slice is the newest committed base file of a group with the logs written since, or logs alone.
Whether an instant is committed is decided once for each distinct instant, by the timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.errors import FileCorrupt
from bridge.table.hudi.files.file_names import ParsedNames, parse_names

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Replaced = Mapping[tuple[str, str], str]
"""Partition and file group to the replacecommit that replaced it (the earliest)."""


@dataclass(frozen=True, slots=True)
class FileSlices:
    """File slices as columns, by partition and file id. No object is made for a file.

    Attributes:
        partitions: all partition paths, sorted; ``("",)`` without partitions.
        partition: of each slice, an index into ``partitions``; int32[n].
        file_ids: Arrow large_string[n].
        base_instants: of the base file; of logs alone, the instant in the name of the first.
        base_paths: relative to the table; empty without a base file.
        base_sizes: bytes; 0 without a base file.
        has_base: False if a slice is logs alone.
        log_offsets: slice i has logs ``log_offsets[i]`` to ``log_offsets[i + 1]``; int64[n + 1].
        log_paths: relative to the table, in merge order within each slice.
        log_sizes: bytes. Before version 8 a log may have grown since.
        log_instants: the deltacommits that wrote the logs. Before version 8 empty if the files were
            listed: then a log may also hold blocks of failed or later instants.
    """

    partitions: tuple[str, ...]
    partition: Int32
    file_ids: pa.Array
    base_instants: pa.Array
    base_paths: pa.Array
    base_sizes: Int64
    has_base: Mask
    log_offsets: Int64
    log_paths: pa.Array
    log_sizes: Int64
    log_instants: pa.Array

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def log_counts(self) -> Int64:
        """The number of logs of each slice."""
        return np.diff(self.log_offsets)

    def take(self, positions: Int64) -> FileSlices:
        """The slices at the given positions, in that order."""
        at = pa.array(positions)
        counts = self.log_counts[positions]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        logs = np.repeat(self.log_offsets[:-1][positions], counts) + within
        return FileSlices(
            self.partitions,
            self.partition[positions],
            self.file_ids.take(at),
            self.base_instants.take(at),
            self.base_paths.take(at),
            self.base_sizes[positions],
            self.has_base[positions],
            offsets,
            self.log_paths.take(pa.array(logs)),
            self.log_sizes[logs],
            self.log_instants.take(pa.array(logs)),
        )


@dataclass(frozen=True, slots=True)
class SliceFiles:
    """Files that may belong to slices, as columns.

    Attributes:
        partitions: partition paths, sorted.
        partition: of each file, an index into ``partitions``.
        names: without directory.
        parsed: the parsed names. Its positions refer to ``names``.
        writers: the instant that wrote each file, empty: not known; None: none is known.
        deleted: True: the file was deleted, and stands for a slice that cannot be read any more.
    """

    partitions: tuple[str, ...]
    partition: Int32
    names: pa.Array
    sizes: Int64
    parsed: ParsedNames
    writers: pa.Array | None = None
    deleted: Mask | None = None


def data_files(
    partitions: Sequence[str],
    counts: Sequence[int] | Int64,
    names: pa.Array,
    sizes: Int64,
    base_format: str,
    writers: pa.Array | None = None,
    deleted: Mask | None = None,
) -> SliceFiles:
    """Columns from files in runs of a partition each; a partition may have several runs.

    Errors:
        UnsupportedTable: files that Hudi did not write.
        FileCorrupt: a partition is outside the table.
    """
    distinct = tuple(sorted(set(partitions)))
    for path in distinct:
        if "\0" in path or (".." in path and ".." in path.split("/")):
            raise FileCorrupt(
                f"the partition {path!r} is outside the table", "restore the file that names it"
            )
    place = {path: at for at, path in enumerate(distinct)}
    runs = np.fromiter((place[p] for p in partitions), np.int32, len(partitions))
    return SliceFiles(
        distinct,
        np.repeat(runs, counts),
        names,
        sizes,
        parse_names(names, base_format),
        writers,
        deleted,
    )


@dataclass(frozen=True, slots=True)
class Rules:
    """What the timeline says of the instants in file names.

    Attributes:
        completion: the completion time of a committed instant, its requested time where that is
            not known; None if it is not committed.
        is_log_base: before version 8, whether logs may be named after this instant. None from
            version 8 on, where logs are named after the instant that wrote them.
        as_of: later instants do not count; None: all count.
        replaced: file groups that are gone.
        base_only: without logs, and without groups that are logs alone.
        is_lost: whether it is not known when a committed instant was completed; None: it is known
            of all.
    """

    completion: Callable[[str], str | None]
    is_log_base: Callable[[str], bool] | None
    as_of: str | None
    replaced: Replaced
    base_only: bool = False
    is_lost: Callable[[str], bool] | None = None


def resolve(files: SliceFiles, rules: Rules) -> tuple[FileSlices, Mask]:
    """The slices of all groups, and which of them need a file that was deleted.

    Errors:
        FileCorrupt: two base files of one group and instant: a task wrote one after the commit. Or
            it is not known whether a log is older than its base file.
    """
    parsed = files.parsed
    instants = _Instants(parsed.instants, rules)
    where = parsed.position
    ids = parsed.file_ids.dictionary_encode()
    order = _ranks(ids.dictionary)
    many = max(len(order), 1)
    groups = files.partition[where].astype(np.int64) * many + order[_codes(ids)]
    alive = ~_is_replaced(groups, files.partitions, ids.dictionary, order, many, rules)
    base = np.flatnonzero(~parsed.is_log & alive & instants.committed)
    # The last of each group, by instant.
    base = base[np.lexsort((instants.rank[base], groups[base]))]
    newest = _last_of_runs(groups[base])
    _refuse_twins(files, groups[base], instants.rank[base], newest, where[base])
    base = base[newest]
    log = np.empty(0, np.int64)
    if not rules.base_only:
        log = _logs(files, instants, groups, alive, base, rules)
    owners = np.union1d(groups[base], groups[log])
    named_after_writer = rules.is_log_base is None
    return _build(files, groups, base, log, owners, many, ids.dictionary, order, named_after_writer)


class _Instants:
    """Per file: whether its instant counts, and ranks that compare like the instants' texts."""

    def __init__(self, instants: pa.Array, rules: Rules) -> None:
        encoded = instants.dictionary_encode()
        distinct: list[str] = encoded.dictionary.to_pylist()
        self.codes = _codes(encoded)
        ends = [rules.completion(i) for i in distinct]
        in_time = [rules.as_of is None or i <= rules.as_of for i in distinct]
        # Instants and completion times share one order.
        every = sorted({*distinct, *(e for e in ends if e is not None)})
        place = {text: at for at, text in enumerate(every)}
        self.rank = np.array([place[i] for i in distinct], np.int64)[self.codes]
        closed = [-1 if e is None else place[e] for e in ends]
        self.completion = np.array(closed, np.int64)[self.codes]
        self.in_time = np.array(in_time, np.bool_)[self.codes]
        self.committed = (self.completion >= 0) & self.in_time
        self.is_log_base = self.committed
        if rules.is_log_base is not None:
            named = [rules.is_log_base(i) for i in distinct]
            self.is_log_base = np.array(named, np.bool_)[self.codes] & self.in_time


def _logs(
    files: SliceFiles,
    instants: _Instants,
    groups: Int64,
    alive: Mask,
    base: Int64,
    rules: Rules,
) -> Int64:
    """The logs that are merged, by group and in merge order."""
    parsed = files.parsed
    if rules.is_log_base is None:
        counts, since = instants.committed, instants.completion
    else:
        # Logs named after a later instant than the base file's follow a pending compaction.
        counts, since = instants.is_log_base, instants.rank
        if files.writers is not None:
            writers = _Instants(files.writers.take(pa.array(parsed.position)), rules)
            counts = writers.committed & instants.in_time
    log = np.flatnonzero(parsed.is_log & alive & counts)
    if not len(log):
        return log
    at = np.searchsorted(groups[base], groups[log])
    at_most = np.minimum(at, max(len(base) - 1, 0))
    if len(base):
        follows = groups[base][at_most] == groups[log]
        stale = follows & (since[log] < instants.rank[base][at_most])
        if rules.is_lost is not None:
            # In a table that was upgraded, older logs are named after base files.
            keys = groups * (int(instants.rank.max()) + 1) + instants.rank
            named = np.isin(keys[log], keys[~parsed.is_log])
            _refuse_lost(files, log[stale & ~named], rules.is_lost)
        log = log[~stale]
    tokens = _ranks(parsed.tokens.take(pa.array(log)))
    return log[np.lexsort((tokens, parsed.versions[log], instants.rank[log], groups[log]))]


def _refuse_lost(files: SliceFiles, stale: Int64, is_lost: Callable[[str], bool]) -> None:
    """Refuses logs that were requested before a base file and may have been completed after it."""
    instants = files.parsed.instants.take(pa.array(stale))
    lost = pa.array([i for i in instants.unique().to_pylist() if is_lost(i)], instants.type)
    if len(lost):
        at = stale[np.flatnonzero(pc.is_in(instants, lost).to_numpy(zero_copy_only=False))[0]]
        name = files.names[int(files.parsed.position[at])].as_py()
        raise FileCorrupt(
            f"it is not known whether the log {name} is older than its base file: its commit was "
            "archived, and the archive was deleted",
            "restore the archive, or clean older file slices up with Hudi",
        )


def _is_replaced(
    groups: Int64, partitions: tuple[str, ...], ids: pa.Array, order: Int64, many: int, rules: Rules
) -> Mask:
    gone = [k for k, at in rules.replaced.items() if rules.as_of is None or at <= rules.as_of]
    if not gone:
        return np.zeros(len(groups), np.bool_)
    place = {path: at for at, path in enumerate(partitions)}
    owners = np.fromiter((place.get(p, -1) for p, _ in gone), np.int64, len(gone))
    found = pc.index_in(pa.array([i for _, i in gone], ids.type), ids)
    codes = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    known = (owners >= 0) & (codes >= 0)
    return np.isin(groups, owners[known] * many + order[codes[known]])


def _refuse_twins(
    files: SliceFiles, groups: Int64, ranks: Int64, newest: Mask, where: Int64
) -> None:
    if len(groups) < 2:
        return
    same = (groups[1:] == groups[:-1]) & (ranks[1:] == ranks[:-1]) & newest[1:]
    if same.any():
        at = int(np.flatnonzero(same)[0])
        twins = files.names.take(pa.array(where[at : at + 2])).to_pylist()
        directory = files.partitions[files.partition[where[at]]]
        raise FileCorrupt(
            f"partition {directory!r} has two base files of one group and instant: "
            f"{twins[0]} and {twins[1]}",
            "delete the one that its commit does not name, or enable the metadata table",
        )


def _build(
    files: SliceFiles,
    groups: Int64,
    base: Int64,
    log: Int64,
    owners: Int64,
    many: int,
    ids: pa.Array,
    order: Int64,
    named_after_writer: bool,
) -> tuple[FileSlices, Mask]:
    count = len(owners)
    parsed, where = files.parsed, files.parsed.position
    base_at = np.searchsorted(owners, groups[base])
    log_at = np.searchsorted(owners, groups[log])
    has_base = np.zeros(count, np.bool_)
    has_base[base_at] = True
    sizes = np.zeros(count, np.int64)
    sizes[base_at] = files.sizes[where[base]]
    # The first log of a group is the first of its run.
    first = np.full(count, -1, np.int64)
    first[log_at[::-1]] = log[::-1]
    first[base_at] = base
    by_rank = np.empty(len(order), np.int64)
    by_rank[order] = np.arange(len(order))
    paths = _scatter(_paths(files, where[base]), base_at, count)
    lost = np.zeros(count, np.bool_)
    if files.deleted is not None:
        lost[base_at] |= files.deleted[where[base]]
        np.logical_or.at(lost, log_at, files.deleted[where[log]])
    log_files = where[log]
    if files.writers is not None:
        log_instants = files.writers.take(pa.array(log_files))
    elif named_after_writer:
        log_instants = parsed.instants.take(pa.array(log))
    else:
        log_instants = pa.array([""] * len(log), pa.large_string())
    slices = FileSlices(
        partitions=files.partitions,
        partition=(owners // many).astype(np.int32),
        file_ids=ids.take(pa.array(by_rank[owners % many])),
        base_instants=parsed.instants.take(pa.array(first)),
        base_paths=paths,
        base_sizes=sizes,
        has_base=has_base,
        log_offsets=np.concatenate(([0], np.cumsum(np.bincount(log_at, minlength=count)))),
        log_paths=_paths(files, log_files),
        log_sizes=files.sizes[log_files],
        log_instants=log_instants,
    )
    return slices, lost


def _paths(files: SliceFiles, at: Int64) -> pa.Array:
    starts = pa.array([f"{p}/" if p else "" for p in files.partitions], pa.large_string())
    heads = starts.take(pa.array(files.partition[at]))
    nothing = pa.scalar("", heads.type)
    return pc.binary_join_element_wise(heads, files.names.take(pa.array(at)), nothing)


def _scatter(values: pa.Array, at: Int64, count: int) -> pa.Array:
    if len(values) == count:
        return values  # both are sorted by group
    source = np.full(count, -1, np.int64)
    source[at] = np.arange(len(values))
    picked = values.take(pa.array(source, mask=source < 0))
    return pc.fill_null(picked, "")


def _last_of_runs(values: Int64) -> Mask:
    last = np.ones(len(values), np.bool_)
    last[:-1] = values[1:] != values[:-1]
    return last


def _ranks(texts: pa.Array) -> Int64:
    """The place of each text in their order; equal texts have one place."""
    ranks: Int64 = pc.rank(texts, tiebreaker="dense").to_numpy().astype(np.int64) - 1
    return ranks


def _codes(encoded: Any) -> Int64:
    codes: Int64 = encoded.indices.to_numpy().astype(np.int64)
    return codes


def full_paths(base: str, paths: pa.Array) -> pa.Array:
    """Full paths; an empty one stays empty."""
    prefix = pa.scalar(f"{base}/", pa.large_string())
    joined = pc.binary_join_element_wise(prefix, paths, pa.scalar("", pa.large_string()))
    if not len(paths):
        return pa.nulls(0, pa.large_string())
    return pc.if_else(pc.equal(paths, ""), pa.scalar("", pa.large_string()), joined)
