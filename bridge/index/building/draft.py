"""One build of an index: what it has read so far, and the generation that it would commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.index.building.clustered_entries import ClusteredEntries
from bridge.index.building.collect import CHANGED, Collector, Nan, Reading, tasks_of
from bridge.index.building.listed import Listed, ListFiles, owners_of
from bridge.index.building.sample import SIGNATURE, Sampling
from bridge.index.building.work import (
    Progress,
    Work,
    failed_otherwise,
    is_lasting,
    lasting_entries,
    same_code,
)
from bridge.index.generations import identity
from bridge.index.generations.compact import compact, write_shard
from bridge.index.generations.entries import (
    NONE,
    Entries,
    dead_ordinals,
    encode_texts,
    known_owners,
    live_entries,
)
from bridge.index.generations.manifest import ClusteringState, Manifest, Shard
from bridge.index.generations.replacements import carry_over_replacements
from bridge.index.generations.shard import OUTCOME, Collected, tombstones_to_bytes
from bridge.index.generations.shard_tables import shard_tables
from bridge.index.generations.store import (
    CLEANED_AFTER,
    IndexStore,
    new_id,
    next_generation,
    now_micros,
)
from bridge.index.kinds import registry
from bridge.index.kinds.definition import IndexSettings, KindDefinition
from bridge.index.kinds.kind import IndexKind
from bridge.kernel.errors import IndexCorrupt
from bridge.table.model import CatalogTable

SettingsChange = Callable[[IndexSettings], IndexSettings]
SHARD_ENTRIES = 4_000_000
_SHARD_BYTES = 256 * 1024 * 1024
"""A shard also ends when its entries and index payloads take this much memory."""
_CHECKED_AFTER = CLEANED_AFTER / 2
"""A build that takes longer, in seconds, checks before it commits that its shards still exist."""


def known_shards(store: IndexStore) -> frozenset[str]:
    """The shards before a listing. Of the entries of a later one the listing may lack the files."""
    manifest, _ = store.readable()
    return frozenset(shard.id for shard in manifest.shards) if manifest is not None else frozenset()


def write_entries(
    table: CatalogTable,
    listed: Listed,
    store: IndexStore,
    *,
    collector: Collector,
    settings: IndexSettings | None,
    nan: Nan = "footer",
) -> tuple[tuple[Shard, ...], list[tuple[str, str]]]:
    """Reads files and writes their entries, which no generation names yet.

    Returns:
        The shards, and URI and reason for each file that could not be read.

    Errors: StorageFailure, StorageFull.
    """
    work = Work.over(len(listed.files))
    build = Draft(table, store, listed, work, nan, SHARD_ENTRIES, settings=settings)
    build.collect(np.arange(len(listed.files)), NONE, collector, None)
    return tuple(work.shards), work.failed


def keep_settings(settings: IndexSettings) -> IndexSettings:
    return settings


class Draft:
    """One build of an index, until it is committed.

    Args:
        partial: only some files of the table are listed; entries of other files are kept.
        whole: the partitions whose files are all listed nevertheless.
        known: the shards before the files were listed.
    """

    def __init__(
        self,
        table: CatalogTable,
        store: IndexStore,
        listed: Listed,
        work: Work,
        nan: Nan,
        shard_entries: int,
        *,
        partial: bool = False,
        whole: Collection[str] = (),
        known: Collection[str] = (),
        settings: IndexSettings | None = None,
    ) -> None:
        self._table, self.store, self.work = table, store, work
        self._listed, self.refused = listed, listed.refused
        self._nan, self._shard_entries, self._partial = nan, shard_entries, partial
        self._whole, self._known = whole, known
        self._settings = settings or IndexSettings()
        self._clustering: ClusteringState | None = None
        self._clustered = ClusteredEntries(store)
        self._before: Manifest | None = None
        self._foreign = store.storage.is_remote(table.location)  # its times are of another clock

    @property
    def modified(self) -> npt.NDArray[np.int64]:
        return self._listed.files.modified

    def relist(self, list_files: ListFiles) -> None:
        self._known = known_shards(self.store)
        listed = list_files()
        self.work.move(self._listed.files, listed.files)
        self._listed, self.refused = listed, listed.refused

    def base(self, full: bool, change: SettingsChange) -> tuple[Manifest | None, Entries, int]:
        """The generation to build on (None: start anew), its entries, and the number to commit.

        A damaged index is replaced as a whole. The settings come from the newest readable manifest.
        """
        numbers = self.store.generations()
        number = numbers[-1] + 1 if numbers else 1
        manifest, broken = self.store.readable(numbers)
        before = self._settings
        if self._partial and broken is not None:
            raise broken
        if self._partial and manifest is not None:
            self._refuse_base(manifest)
            change = keep_settings
        self._settings = change(manifest.settings if manifest is not None else IndexSettings())
        if self.work.shards and self._settings != before:
            self.work.forget()  # another builder changed the settings
        self._before = manifest
        self._clustering = carry_over_replacements(
            self.store, manifest, self._table, check=full or broken is not None
        )
        if manifest is None or broken is not None or full:
            return None, NONE, number
        if manifest.location != self._table.location:
            return None, NONE, number
        try:
            entries = live_entries(manifest, self.store)
        except IndexCorrupt:
            if self._partial:
                raise
            return None, NONE, number
        if self._partial:
            listed = self._listed.with_owners(known_owners(entries, self._listed.files.paths))
            if self.work.shards and not listed.owners.equals(self._listed.owners):
                self.work.forget()
            self._listed = listed
        return manifest, entries, number

    def _refuse_base(self, manifest: Manifest) -> None:
        """Errors: IndexCorrupt: files cannot be added to this index; a build must replace it."""
        remedy = f"skipbridge index build {self._table.location}"
        if manifest.location != self._table.location:
            raise IndexCorrupt(
                f"the index at {self.store.root} is of {manifest.location}, and the table lies at "
                f"{self._table.location}",
                remedy,
            )

    def cover_clustered(self, collector: Collector, full: bool) -> None:
        """Reads clustered files whose entries lack a definition; all of them with ``full``."""
        if self._clustering is None or self._before is None or self._partial:
            return
        if self._before.location != self._table.location:  # nothing was carried over
            return

        def write(files: Listed) -> tuple[tuple[Shard, ...], list[tuple[str, str]]]:
            return write_entries(
                self._table, files, self.store, collector=collector, settings=self._settings,
                nan=self._nan,
            )  # fmt: skip

        self._clustering = self._clustered.cover(
            self._before, self._settings, lambda s: full or not self._suffices(s), write
        )

    @property
    def _kinds(self) -> tuple[tuple[IndexKind, KindDefinition], ...]:
        """The definitions whose kinds are installed here; other installations build the rest."""
        known = registry.kinds()
        return tuple((known[d.kind], d) for d in self._settings.definitions if d.kind in known)

    def cleaned_away(self) -> bool:
        """Whether a cleanup deleted an uncommitted shard. If so, all files are read again.

        Errors:
            StorageFailure.
        """
        work = self.work
        shards = (*work.shards, *self._clustered.shards)
        if not shards or time.monotonic() - work.oldest < _CHECKED_AFTER:
            return False
        if self.store.lacks(blob for shard in shards for blob in shard.blobs()) is None:
            return False
        work.forget()
        self._clustered.forget()
        return True

    def missing(self, entries: Entries, base: Manifest | None) -> npt.NDArray[np.int64]:
        """Listed files that neither the base nor this build covers."""
        covered = self.work.ordinal >= 0
        place = self._place(entries)
        covered[place[(place >= 0) & self._enough(entries, base)]] = True
        there = place[place >= 0]
        covered[there] |= self.work.seen[there]
        return np.flatnonzero(~covered)

    def _place(self, entries: Entries) -> npt.NDArray[np.int64]:
        """The listed file of each entry; -1 if the file was deleted or changed, or its format."""
        files = self._listed.files
        place = identity.find(files.paths, entries.paths)
        known = place >= 0
        at = np.where(known, place, 0)
        if not known.any():
            return place
        known &= entries.numbers("size") == files.sizes[at]
        known &= entries.numbers("modified") == files.modified[at]
        format = self._table.format
        known &= ~failed_otherwise(entries, lambda i: self._listed.format_of(int(at[i]), format))
        index = pa.array(at)
        owners = pc.equal(
            entries.files["partition"].combine_chunks(), self._listed.owners.take(index)
        )
        known &= np.asarray(owners.to_numpy(zero_copy_only=False), np.bool_)
        recipes = entries.files["recipe"].combine_chunks()
        if recipes.null_count < len(recipes) or self._listed.recipes:
            declared = pc.equal(
                pc.fill_null(recipes, ""), pc.fill_null(self._listed.digests.take(index), "")
            )
            known &= np.asarray(declared.to_numpy(zero_copy_only=False), np.bool_)
        if files.etags is not None:
            agree = identity.same_etags(
                entries.files["etag"].combine_chunks(), files.etags.take(index)
            )
            known &= True if agree is None else agree
        return np.where(known, place, -1)

    def _enough(self, entries: Entries, base: Manifest | None) -> npt.NDArray[np.bool_]:
        enough = entries.flags("trusted") | lasting_entries(entries)
        if base is not None and len(entries):
            held = [self._suffices(shard) for shard in base.shards]
            enough = enough & np.array(held, np.bool_)[entries.shard]
        return enough

    def _suffices(self, shard: Shard) -> bool:
        """Whether the entries of a shard are as this build would write them."""
        covered = {d.signature for _, d in self._kinds} <= {p.signature for p in shard.payloads}
        counted = self._nan != "scan" or shard.nan == "scan"
        return covered and counted and shard.modes == self._settings.modes

    def collect(
        self,
        missing: npt.NDArray[np.int64],
        entries: Entries,
        collector: Collector,
        progress: Progress | None,
    ) -> None:
        """Reads files and writes them as shards.

        Args:
            entries: the entries of the base.
        """
        files = self._listed.files
        said = self._said(entries)
        if files.etags is None or files.etags.null_count:  # an etag tells versions apart
            identity.wait_until_settled(
                files.modified[missing], self._listed.at if self._foreign else None
            )
        started = now_micros(), time.monotonic() - self._listed.at
        tasks = tasks_of(self._listed, missing, self._table.format)
        done, rows, size, parts = 0, 0, 0, []
        sampling = Sampling.of(max(len(files), len(entries)))
        shown = entries.count_shown()
        reading = Reading(self._nan, self._kinds, self._settings.modes, sampling, shown)
        for part in collector.collect(tasks, reading):
            parts.append(part)
            done += part.files.num_rows
            rows += part.columns.num_rows
            size += part.nbytes
            if progress is not None:
                progress(done, len(tasks))
            if rows >= self._shard_entries or size >= _SHARD_BYTES:
                self._write(Collected.concatenate(parts), started, said)
                rows, size, parts = 0, 0, []
        if parts:
            self._write(Collected.concatenate(parts), started, said)

    def _said(self, entries: Entries) -> dict[int, str | None]:
        """The problems that the base records for listed files that are retried."""
        place = self._place(entries)
        silent = np.flatnonzero(
            (place >= 0) & ~entries.flags("trusted") & ~lasting_entries(entries)
        )
        problems = entries.files["problem"].take(pa.array(silent)).to_pylist()
        return dict(zip(place[silent].tolist(), problems, strict=True))

    def _write(
        self, collected: Collected, started: tuple[int, float], said: Mapping[int, str | None]
    ) -> None:
        work = self.work
        outcome = self._news(collected.files.sort_by("file"), started, said)
        if not outcome.num_rows:
            return
        numbers = outcome["file"].to_numpy()
        trusted = np.asarray(outcome["trusted"].to_numpy(), np.bool_)
        tables = shard_tables(collected, outcome, self._listed, self._table.location)
        modes = self._settings.modes
        shard = write_shard(
            self.store, tables.files, tables.columns, self._nan, tables.payloads, modes
        )
        work.written += sum(blob.size for blob in shard.blobs())
        work.shard_of[numbers] = len(work.shards)
        work.ordinal[numbers] = np.arange(len(numbers))
        work.trusted[numbers] = trusted
        work.shards.append(shard)

    def _news(
        self, outcome: pa.Table, started: tuple[int, float], said: Mapping[int, str | None]
    ) -> pa.Table:
        """The files that get an entry, with a column ``trusted``. Records the files that failed.

        A file that failed as the base already records gets none: each refresh would add an entry
        that is dead from the start.
        """
        work, files = self.work, self._listed.files
        numbers = outcome["file"].to_numpy()
        now, elapsed = started[0], started[1] if self._foreign else None
        settled = identity.are_settled(files.modified[numbers], now, elapsed)
        if files.etags is not None:
            etags = files.etags.take(pa.array(numbers))
            settled |= etags.is_valid().to_numpy(zero_copy_only=False)
        good = outcome["rows"].to_numpy() >= 0  # otherwise the file could not be read
        trusted = settled & good
        news = np.ones(len(numbers), np.bool_)
        told = outcome["problem"].to_pylist()
        for i in np.flatnonzero(trusted & outcome["problem"].is_valid().to_numpy()).tolist():
            work.failed.append((files.paths[int(numbers[i])].as_py(), told[i]))
        for i in np.flatnonzero(~trusted).tolist():
            number, problem = int(numbers[i]), told[i]
            if problem is not None:
                work.failed.append((files.paths[number].as_py(), problem))
            # A problem of a file that may have changed within the clock's grain is not recorded.
            told[i] = problem if settled[i] and not str(problem).startswith(CHANGED) else None
            if told[i] is not None:
                work.problems[number] = told[i]
            news[i] = number not in said or not same_code(said[number], told[i])
        work.seen[numbers[~news]] = True
        told_problems = pa.array(told, pa.large_string())
        outcome = outcome.set_column(3, OUTCOME.field("problem"), told_problems)
        return outcome.append_column("trusted", pa.array(trusted)).filter(pa.array(news))

    def _better(self, place: npt.NDArray[np.int64], entries: Entries) -> npt.NDArray[np.bool_]:
        """Entries of the base that this build replaces: it read the file, or has a new problem."""
        work = self.work
        better = np.append(work.trusted, False)[place]
        if not work.problems:
            return better
        problems, trusted = entries.files["problem"].to_pylist(), entries.flags("trusted")
        for i in np.flatnonzero((place >= 0) & ~better).tolist():
            found = work.problems.get(int(place[i]))
            better[i] = is_lasting(found) or (not trusted[i] and not same_code(found, problems[i]))
        return better

    def _gone(self, base: Manifest | None, entries: Entries) -> npt.NDArray[np.bool_]:
        """Entries whose files would be listed if they were there."""
        shards = base.shards if base is not None else ()
        gone = np.array([shard.id in self._known for shard in shards], np.bool_)[entries.shard]
        if self._partial:
            whole = {*self._whole} - {name for name, _ in self.refused}
            places, owners = encode_texts(entries.files["partition"])
            gone &= np.array([whole.issuperset(owners_of(text)) for text in owners])[places]
        return gone

    def commit(
        self, base: Manifest | None, entries: Entries, number: int, complete: bool
    ) -> tuple[Manifest, int]:
        """Commits this build's shards on top of the base.

        Returns:
            The new manifest (the base if nothing changed) and the number of removed entries.
        """
        work = self.work
        place = self._place(entries)
        mine = np.append(work.ordinal >= 0, False)[place]  # -1 picks the last
        better = mine & ~self._enough(entries, base) & self._better(place, entries)
        vanished = place < 0
        if vanished.any():
            changed = identity.find(self._listed.files.paths, entries.paths) >= 0
            vanished &= changed | self._gone(base, entries)
        if self._partial:
            complete = base is not None and base.complete
        removed = vanished | better
        superfluous = place[mine & ~better]  # the base already covers them
        dead = dead_ordinals(base, self.store) if base is not None else {}
        for position, shard in enumerate(base.shards if base is not None else ()):
            ordinals = entries.ordinal[removed & (entries.shard == position)]
            if len(ordinals):
                dead.setdefault(shard.id, []).extend(ordinals.tolist())
        for listed in superfluous.tolist():
            shard_id = work.shards[work.shard_of[listed]].id
            dead.setdefault(shard_id, []).append(int(work.ordinal[listed]))
        for position, ordinal in work.lost:
            dead.setdefault(work.shards[position].id, []).append(ordinal)
        added = [s for s in work.shards if len(dead.get(s.id, ())) < s.num_files]
        same = base is not None and (
            (base.settings, base.complete, base.clustering)
            == (self._settings, complete, self._clustering)
        )
        if base is not None and same and not added and not removed.any():
            return base, 0
        shards = [*(base.shards if base is not None else ()), *added]
        alive = {shard.id for shard in shards}
        shards, dead, written = compact(
            self.store, shards, {s: o for s, o in dead.items() if s in alive}
        )
        work.written += written
        tombstones = None
        if dead:
            tombstones = self.store.put_blob(
                f"shards/{new_id()}-tombstones.shard", tombstones_to_bytes(dead)
            )
            work.written += tombstones.size
        manifest = next_generation(
            base,
            number,
            builder=work.builder,
            table=str(self._table.name),
            location=self._table.location,
            shards=tuple(self._kept(s, len(dead.get(s.id, ()))) for s in shards),
            tombstones=tombstones,
            settings=self._settings,
            complete=complete,
            clustering=self._clustering,
        )
        work.written += len(manifest.to_bytes())
        return self.store.commit(manifest), int(np.count_nonzero(removed))

    def _kept(self, shard: Shard, dead: int) -> Shard:
        """The shard with its current dead count, without definitions that were dropped."""
        asked = {SIGNATURE, *(definition.signature for definition in self._settings.definitions)}
        payloads = tuple(p for p in shard.payloads if p.signature in asked)
        return replace(shard, dead=dead, payloads=payloads)
