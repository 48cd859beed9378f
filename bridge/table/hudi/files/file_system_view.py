"""The file slices of a Hudi table at an instant, as Hudi's own file system view gives them.

The files come from one of two sources. Commit metadata names all files ever written, as long as
nothing was archived. Otherwise the caller lists them, from the metadata table or from storage. Both
go through the same rules: a file counts only if the timeline says that its instant is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.errors import (
    FileCorrupt,
    InvalidRequest,
    ReadVersionNotFound,
    SnapshotExpired,
    UnsupportedTable,
)
from bridge.storage.port import Int64, Storage
from bridge.table.hudi.files.file_slices import (
    FileSlices,
    Mask,
    Replaced,
    Rules,
    SliceFiles,
    data_files,
    resolve,
)
from bridge.table.hudi.table_config import HudiTableConfig, TableType, load_table_config
from bridge.table.hudi.timeline.archived_timeline import History, load_history
from bridge.table.hudi.timeline.commit_metadata import (
    CleanMetadata,
    CommitMetadata,
    read_clean,
    read_clean_plan,
    read_commit,
    read_rollback,
)
from bridge.table.hudi.timeline.instant import Instant, State
from bridge.table.hudi.timeline.timeline import (
    HudiTimeline,
    load_timeline,
    refuse_unfinished_upgrade,
)

_MAINTENANCE = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "DELETE_PARTITION"})


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files of some partitions, as the metadata table or a listing of storage has them.

    Take it after the timeline was loaded: it must hold every file of every instant of the timeline.

    Attributes:
        partitions: partition paths; ``""`` without partitions.
        counts: number of files of each partition; files are in this order.
        names: without directory; Arrow large_string. Names that are no data files are ignored.
        sizes: bytes.
        cleans: what was deleted while it was taken, for an instant of the timeline may need it.
    """

    partitions: tuple[str, ...]
    counts: Int64
    names: pa.Array
    sizes: Int64
    cleans: tuple[CleanMetadata, ...] = ()

    @staticmethod
    def of(files: Mapping[str, Iterable[tuple[str, int]]]) -> FileListing:
        """From partition to names and sizes."""
        parts = {partition: list(each) for partition, each in files.items()}
        count = sum(map(len, parts.values()))
        every = chain.from_iterable(parts.values())
        names, sizes = zip(*every, strict=True) if count else ((), ())
        return FileListing(
            tuple(parts),
            np.fromiter(map(len, parts.values()), np.int64, len(parts)),
            pa.array(names, pa.large_string()),
            np.fromiter(sizes, np.int64, count),
        )


class FileSystemView:
    """One state of a table's timeline, and the slices that follow from it; safe for threads.

    Bodies of instants are read when they are needed, once, and shared with later views.

    Attributes:
        config, timeline: as they were read.
        history_is_empty: nothing is archived. See `with_lost_history`.
    """

    def __init__(
        self,
        storage: Storage,
        config: HudiTableConfig,
        timeline: HudiTimeline,
        history_is_empty: bool,
        pool: Executor | None = None,
    ) -> None:
        self.config = config
        self.timeline = timeline
        self.history_is_empty = history_is_empty
        self.storage = storage
        self._pool = pool
        self._lock = threading.RLock()
        self._bodies: dict[str, CommitMetadata] = {}
        self._written: SliceFiles | None = None
        self._history: History | None = None
        self._rolled_back: frozenset[str] | None = None
        self._schema_commits: dict[str | None, Instant | None] = {}

    @staticmethod
    def open(storage: Storage, base: str, pool: Executor | None = None) -> FileSystemView:
        """Reads the configuration and the timeline of the table at a location.

        Args:
            pool: reads bodies side by side where each read is a request.

        Errors:
            TableNotFound, UnsupportedTable, FileCorrupt, StorageFailure.
        """
        config = load_table_config(storage, base)
        return FileSystemView._load(storage, config, pool)

    @staticmethod
    def _load(
        storage: Storage,
        config: HudiTableConfig,
        pool: Executor | None,
        before: HudiTimeline | None = None,
        may_be_empty: bool = True,
    ) -> FileSystemView:
        """Reads the timeline, and whether anything was archived.

        That once true remains true, unless the table was made anew: then instants are lost.
        """
        # The timeline first: what is archived in between is then still on it.
        timeline = load_timeline(storage, config)
        lost = before is None or before.lost_any(timeline)
        upgrade: Future[None] | None = None
        if lost and pool is not None and storage.is_remote(config.timeline_uri):
            upgrade = pool.submit(refuse_unfinished_upgrade, storage, config)
        elif lost:
            refuse_unfinished_upgrade(storage, config)
        empty = may_be_empty
        # Archival leaves the newest commits: while the timeline is the same, it took none of it.
        if lost or (may_be_empty and timeline != before):
            archive = storage.list_all(config.history_uri, recursive=False)
            empty = not len(archive)
            if config.history_uri == config.timeline_uri:
                empty = not any(".archive." in uri for uri in archive.paths.to_pylist())
        if upgrade is not None:
            upgrade.result()
        return FileSystemView(storage, config, timeline, empty, pool)

    def refresh(self) -> FileSystemView:
        """The view as it is now, the same object if nothing was written. Errors: as `open`."""
        new = self._reloaded()
        config = new.config
        if (
            config == self.config
            and new.timeline == self.timeline
            and new.history_is_empty == self.history_is_empty
        ):
            return self
        # A body that was written again, as in a table made anew, has another size or time.
        same = set(new.timeline.instants) & set(self.timeline.instants)
        names = {instant.name for instant in same}
        with self._lock:
            new._bodies = {name: body for name, body in self._bodies.items() if name in names}
        return new

    def _reloaded(self) -> FileSystemView:
        """The same table read anew, in one or two round trips."""
        storage, base = self.storage, self.config.base
        if self._pool is None:
            config = load_table_config(storage, base)
            return self._load(storage, config, None, self.timeline, self.history_is_empty)
        asked = self._pool.submit(load_table_config, storage, base)
        new = self._load(storage, self.config, self._pool, self.timeline, self.history_is_empty)
        config = asked.result()
        return new if config == self.config else self._load(storage, config, self._pool)

    def with_lost_history(self) -> FileSystemView:
        """The same view, where files show that the archive is empty because it was deleted.

        Hudi does not need it, and its users are told that they may delete it.
        """
        found = FileSystemView(self.storage, self.config, self.timeline, False, self._pool)
        found._bodies = dict(self._bodies)
        return found

    def commit(self, instant: Instant) -> CommitMetadata:
        """The body of a completed commit, deltacommit or replacecommit. Errors: FileCorrupt."""
        return self.commits([instant])[0]

    def commits_suffice(self) -> bool:
        """Whether commit metadata alone names every file of every slice.

        It does if nothing was ever archived, no commit builds upon one that is not on the timeline,
        and no log was appended to. Reads the bodies of all completed writes.

        Errors:
            FileCorrupt: a completed commit cannot be read.
        """
        if not self.history_is_empty:
            return False
        known = self.timeline.completed.keys() | {
            i.requested for i in self.timeline.pending_of("compaction", "logcompaction")
        }
        commits = self.commits(self.timeline.completed.values())
        return all(not c.appends and c.previous <= known for c in commits)

    def archived_commits(self, after: str, until: str | None) -> dict[str, CommitMetadata]:
        """Archived writes of a range, by requested time: start exclusive, end inclusive.

        The range is of completion times from table version 8 on, and of instants before.

        Errors:
            FileCorrupt: the body of one cannot be read.
        """
        if self.history_is_empty:
            return {}
        found = self._archived().writes(after, until)
        return {
            i.requested: i.commit() for i in found if i.requested not in self.timeline.completed
        }

    @property
    def last_completion(self) -> str:
        """The greatest completion time of a write, archived or not; empty before version 8.

        Errors:
            FileCorrupt.
        """
        last = self.timeline.last_completion
        return last if self.history_is_empty or not last else max({last, *self._archived().ends})

    def ended_at(self, completion: str) -> bool:
        """Whether a write that is not undone was completed then. Errors: FileCorrupt."""
        if any(i.completion == completion for i in self.timeline.completed.values()):
            return True
        return not self.history_is_empty and completion in self._archived().ends

    def read_archived(self) -> frozenset[str]:
        """Requested times of the archived writes that were not undone. Errors: FileCorrupt."""
        if self.history_is_empty:
            return frozenset()
        history = self._archived()
        return frozenset(history.completions) - self._undone(history)

    def is_lost(self, instant: str) -> bool:
        """Whether an instant may be a write that neither timeline has. Errors: FileCorrupt."""
        if self.history_is_empty or not self.timeline.is_archived(instant):
            return False
        history = self._archived()
        return instant not in history.completions and instant not in self._undone(history)

    def schema(self, as_of: str | None = None) -> str | None:
        """The Avro schema of the newest commit that has one, as JSON without the meta fields.

        None: no commit says it, nor the table's properties.
        """
        told = self.schema_commit(as_of)
        if told is not None:
            commit = self.commit(told)
            if commit.operation not in _MAINTENANCE or not self.config.create_schema:
                return commit.extra["schema"]
        return self.config.create_schema

    def schema_commit(self, as_of: str | None = None) -> Instant | None:
        """The newest commit that carries a schema, one that changed rows if there is any.

        Maintenance of the table does not change its schema.
        """
        if as_of not in self._schema_commits:
            self._schema_commits[as_of] = self._schema_commit(as_of)
        return self._schema_commits[as_of]

    def _schema_commit(self, as_of: str | None) -> Instant | None:
        order = sorted(
            (i for i in self.timeline.completed.values() if as_of is None or i.requested <= as_of),
            key=lambda i: (i.completion or i.requested, i.requested),
            reverse=True,
        )
        second = None
        for instant in order:
            body = self.commit(instant)
            if body.extra.get("schema"):
                if body.operation not in _MAINTENANCE:
                    return instant
                second = second or instant
        return second

    def slices(
        self,
        *,
        as_of: str | None = None,
        completed_by: str | None = None,
        files: FileListing | None = None,
        partitions: Collection[str] | None = None,
        groups: Mapping[str, Collection[str]] | None = None,
        base_only: bool = False,
    ) -> FileSlices:
        """The file slices that a snapshot of the table consists of.

        Args:
            as_of: only instants requested then or earlier; None: all.
            completed_by: only instants completed then or earlier; from table version 8 on.
            files: where the files are; None: commit metadata, which `commits_suffice` must allow.
            partitions: only these; None: all, or those that were listed.
            groups: only these file groups, by partition; None: all.
            base_only: a read-optimised snapshot: base files without their logs.

        Errors:
            ReadVersionNotFound: there was no such version, or its files were deleted.
            SnapshotExpired: its files were deleted while they were listed.
            FileCorrupt, StorageFailure.
        """
        if completed_by is not None and not self.config.completes:
            raise InvalidRequest(
                f"table version {self.config.version} does not record completion times",
                "name the version by its instant",
            )
        if not self.timeline.first_active and not self.history_is_empty:
            raise FileCorrupt(
                f"{self.config.name} has archived commits, but none on its timeline",
                "restore the files of the timeline",
            )
        history = self._history_for(files)
        rules = Rules(
            completion=lambda i: self._completion(i, history, completed_by),
            is_log_base=None if self.config.completes else lambda i: self._is_log_base(i, history),
            as_of=as_of,
            replaced=self._replaced(completed_by),
            base_only=base_only or self.config.table_type is TableType.COPY_ON_WRITE,
            is_lost=None if history is History.EMPTY or history.completions else self.is_lost,
        )
        cleans = self._cleans_for(as_of, completed_by)
        found = self._from_commits() if files is None else self._listed(files, cleans)
        if files is None and cleans:
            found = _mark_deleted(found, cleans)
        slices, lost = resolve(found, rules)
        wanted = np.ones(len(slices), np.bool_)
        if partitions is not None:
            known = set(partitions)
            chosen = np.array([p in known for p in slices.partitions], np.bool_)
            wanted = chosen[slices.partition]
        if groups is not None:
            wanted &= _are_of(slices, groups)
        if (lost & wanted).any() and cleans:
            # The timeline may have cleans of groups that archived instants replaced.
            gone = lost & _are_of(slices, self._replaced_before(as_of, completed_by))
            lost, wanted = lost & ~gone, wanted & ~gone
        if (lost & wanted).any():
            if files is not None and files.cleans and not cleans:
                raise files_gone_error(self.config)
            raise ReadVersionNotFound(
                f"files of {self.config.name} as of {as_of or completed_by} were cleaned up",
                "read a newer version, or keep more commits when cleaning",
            )
        return slices if wanted.all() else slices.take(np.flatnonzero(wanted))

    def commits(self, instants: Iterable[Instant]) -> list[CommitMetadata]:
        """The bodies of completed commits, deltacommits or replacecommits. Errors: FileCorrupt."""
        chosen = list(instants)
        with self._lock:
            missing = [i for i in chosen if i.name not in self._bodies]
            contents = self.read_all(self.timeline.uris_of(missing))
            for instant, content in zip(missing, contents, strict=True):
                self._bodies[instant.name] = read_commit(content, self.timeline.uri_of(instant))
            return [self._bodies[i.name] for i in chosen]

    def read_all(self, uris: list[str]) -> list[bytes]:
        """Whole files, side by side where each read is a request."""
        if self._pool is None or len(uris) < 2 or not self.storage.is_remote(self.timeline.uri):
            return [self.storage.read(uri) for uri in uris]
        return list(self._pool.map(self.storage.read, uris))

    def _from_commits(self) -> SliceFiles:
        if not self.commits_suffice():
            raise InvalidRequest(
                f"commit metadata of {self.config.name} does not name every file",
                "list the files, or read the metadata table",
            )
        with self._lock:
            if self._written is None:
                self._written = self._all_written()
            return self._written

    def _all_written(self) -> SliceFiles:
        instants = sorted(self.timeline.completed)
        commits = self.commits(self.timeline.completed[i] for i in instants)
        sizes = [len(c.names) for c in commits]
        found = data_files(
            list(chain.from_iterable(c.partitions for c in commits)),
            list(chain.from_iterable(c.counts for c in commits)),
            pa.array(chain.from_iterable(c.names for c in commits), pa.large_string()),
            np.fromiter(chain.from_iterable(c.sizes for c in commits), np.int64, sum(sizes)),
            self.config.base_format,
            pa.array(instants, pa.large_string()).take(
                pa.array(np.repeat(np.arange(len(instants)), sizes))
            ),
        )
        if len(found.parsed.position) < len(found.names):
            known = np.zeros(len(found.names), np.bool_)
            known[found.parsed.position] = True
            odd = found.names.filter(pa.array(~known))[0].as_py()
            raise UnsupportedTable(
                f"a commit of {self.config.name} wrote {odd}, whose name is no data file's",
                "read the table with Hudi's own reader",
            )
        return found

    def _listed(self, files: FileListing, cleans: list[CleanMetadata]) -> SliceFiles:
        partitions, counts = list(files.partitions), files.counts
        names, sizes, deleted = files.names, files.sizes, None
        for clean in (*cleans, *files.cleans):
            for partition, gone in clean.deleted.items():
                if gone:  # perhaps with the whole partition, which is then not listed
                    partitions.append(partition)
                    counts = np.append(counts, len(gone))
                    names = pa.concat_arrays([names, pa.array(sorted(gone), pa.large_string())])
                    sizes = np.concatenate((sizes, np.zeros(len(gone), np.int64)))
        if len(names) > len(files.names):
            deleted = np.arange(len(names)) >= len(files.names)
        return data_files(partitions, counts, names, sizes, self.config.base_format, None, deleted)

    def _replaced(self, completed_by: str | None) -> Replaced:
        replaced: dict[tuple[str, str], str] = {}
        instants = [
            i
            for i in self.timeline.of("replacecommit")
            if completed_by is None or (i.completion or "") <= completed_by
        ]
        for instant, body in zip(instants, self.commits(instants), strict=True):
            for partition, ids in body.replaced.items():
                for each in ids:
                    replaced.setdefault((partition, each), instant.requested)
        return replaced

    def _replaced_before(self, as_of: str | None, completed_by: str | None) -> dict[str, set[str]]:
        """The groups that archived instants of a version replaced, by partition."""
        found: dict[str, set[str]] = {}
        for instant, commit in self.archived_commits("", completed_by).items():
            if as_of is not None and instant > as_of:
                continue
            if self._history is not None and instant in self._undone(self._history):
                continue
            for partition, ids in commit.replaced.items():
                found.setdefault(partition, set()).update(ids)
        return found

    def _completion(self, instant: str, history: History, completed_by: str | None) -> str | None:
        found = self.timeline.completed.get(instant)
        if found is not None:
            end = found.completion or instant
        elif self.timeline.is_archived(instant):
            known = history.completions.get(instant)
            if known is None and instant in self._undone(history):
                return None
            end = known or instant
        else:
            return None
        return end if completed_by is None or end <= completed_by else None

    def _is_log_base(self, instant: str, history: History) -> bool:
        # Before version 8 logs are named after the compaction that is pending, if there is one.
        if any(i.requested == instant for i in self.timeline.pending_of("compaction")):
            return True
        return self._completion(instant, history, None) is not None

    def _history_for(self, files: FileListing | None) -> History:
        if files is None or self.history_is_empty or not self.config.completes:
            return History.EMPTY
        return self._archived()

    def _archived(self) -> History:
        with self._lock:
            if self._history is None:
                self._history = load_history(self.storage, self.config)
            return self._history

    def _undone(self, history: History) -> frozenset[str]:
        with self._lock:
            if self._rolled_back is None:
                instants = self.timeline.of("rollback", "restore")
                contents = self.read_all(self.timeline.uris_of(instants))
                found = [
                    read_rollback(content, self.timeline.uri_of(instant)).instants
                    for instant, content in zip(instants, contents, strict=True)
                ]
                self._rolled_back = frozenset(chain.from_iterable(found))
            return self._rolled_back | history.rolled_back

    def _cleans_for(self, as_of: str | None, completed_by: str | None) -> list[CleanMetadata]:
        """What was ever deleted, for a version that is not the newest.

        A file deleted before the version was made is never the newest of its group at the version.

        Errors:
            ReadVersionNotFound: there was no such version, or what was deleted is not known.
        """
        completed = self.timeline.completed.values()
        known = [
            i.requested
            for i in completed
            if (as_of is None or i.requested <= as_of)
            and (completed_by is None or (i.completion or "") <= completed_by)
        ]
        if len(known) == len(completed) and (completed_by or "~") >= self.last_completion:
            return []
        name = self.config.name
        if not known:
            raise ReadVersionNotFound(
                f"{name} has no version as of {as_of or completed_by}",
                "name an instant of the active timeline",
            )
        at = max(known)
        cleans = [self._clean(i) for i in self.timeline.of("clean", state=None)]
        if self.history_is_empty or as_of in self.timeline.savepoints:
            return cleans
        if at < self.timeline.first_active:
            raise ReadVersionNotFound(
                f"{name} as of {as_of or completed_by} is older than its active timeline, which "
                f"starts at {self.timeline.first_active}",
                "name an instant of the active timeline, or a savepoint",
            )
        retained = max((c.retained_from for c in cleans), default="")
        if not (retained and retained <= at) and self._cleaned_after(at):
            raise ReadVersionNotFound(
                f"{name} as of {as_of or completed_by}: it is not known what was cleaned up since",
                "read a version that the cleaner retains, or a savepoint",
            )
        return cleans

    def since(self) -> tuple[CleanMetadata, ...]:
        """What cleans deleted that began after the timeline was read.

        Errors:
            SnapshotExpired: completed instants were undone since, so their files may be gone.
        """
        now = load_timeline(self.storage, self.config)
        if any(i not in now.completed and not now.is_archived(i) for i in self.timeline.completed):
            raise files_gone_error(self.config)
        known = {i.key for i in self.timeline.instants}
        return tuple(self._clean(i) for i in now.of("clean", state=None) if i.key not in known)

    def _cleaned_after(self, at: str) -> bool:
        """Whether archived cleans may have deleted files of a version."""
        history = load_history(self.storage, self.config)
        return not history.completions or any(clean > at for clean in history.cleans)

    def _clean(self, instant: Instant) -> CleanMetadata:
        if instant.completed:
            (uri,) = self.timeline.uris_of([instant])
            return read_clean(self.storage.read(uri), uri)
        # A pending clean may have deleted all that it plans to delete.
        name = f"{instant.requested}.clean.requested"
        content = self.storage.read(f"{self.timeline.uri}/{name}")
        if not content and instant.state is State.REQUESTED:
            return CleanMetadata("", {})  # the plan is being written
        return read_clean_plan(content, name)


def files_gone_error(config: HudiTableConfig) -> SnapshotExpired:
    """The files of a timeline were deleted before they were listed."""
    return SnapshotExpired(
        f"files of {config.name} were cleaned up or rolled back while they were listed",
        "run the query again; enable the metadata table or retain more commits if it recurs",
    )


def _are_of(slices: FileSlices, groups: Mapping[str, Collection[str]]) -> Mask:
    found = np.zeros(len(slices), np.bool_)
    for at, partition in enumerate(slices.partitions):
        ids = groups.get(partition)
        if ids:
            named = pc.is_in(slices.file_ids, pa.array(sorted(ids), pa.large_string()))
            found |= (slices.partition == at) & named.to_numpy(zero_copy_only=False)
    return found


def _mark_deleted(files: SliceFiles, cleans: list[CleanMetadata]) -> SliceFiles:
    gone = {(path, name) for c in cleans for path, names in c.deleted.items() for name in names}
    owners = (files.partitions[p] for p in files.partition.tolist())
    pairs = zip(owners, files.names.to_pylist(), strict=True)
    deleted = np.fromiter((pair in gone for pair in pairs), np.bool_, len(files.names))
    return replace(files, deleted=deleted)
