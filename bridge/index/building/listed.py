"""The files found in the locations of a table's partitions, each with the partitions that own it.

A location may belong to several partitions, and one location may contain another, so a file has a
set of owners (correctness 28). An entry stores them as one string: the sorted names, separated by
NUL, which no partition name contains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.lines.recipe import Recipe
from bridge.kernel.errors import BridgeError, InvalidUri, StorageFailure
from bridge.storage.port import EMPTY, FileTable
from bridge.table.recipes import recipe_of
from bridge.table.slices import SliceBatch, join_files
from bridge.table.snapshot import Snapshot

_BETWEEN = "\0"
_MOST_REFUSED = 100
"""Partitions that are found one by one and left out; if there are more, the listing fails."""
_PATIENCE = 60.0
"""Seconds for requests to a table's own store that fail; if it takes longer, the listing fails."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The current files of a table, sorted by path, each once.

    Attributes:
        owners: the owners of each file, as `owners_text` joins them.
        formats: names of file formats; None: all files have the table's format.
        format: each file's index into ``formats``.
        recipes: how the table declares files that do not say themselves how they are read.
        recipe: each file's index into ``recipes``; -1: it says so itself. None: all do.
        refused: partitions that cannot be listed, by name, each with the reason. None of their
            files is among the files.
        at: when they were listed or later, by `time.monotonic`.
    """

    files: FileTable
    owners: pa.Array
    formats: tuple[str, ...] | None = None
    format: npt.NDArray[np.int32] | None = None
    recipes: tuple[Recipe, ...] = ()
    recipe: npt.NDArray[np.int32] | None = None
    refused: tuple[tuple[str, str], ...] = ()
    at: float = field(default_factory=time.monotonic)

    def recipe_of(self, number: int) -> Recipe | None:
        """How the table declares one file; None if the file says so itself."""
        if self.recipe is None or self.recipe[number] < 0:
            return None
        return self.recipes[int(self.recipe[number])]

    @property
    def digests(self) -> pa.Array:
        """The digest of each file's recipe; NULL where it has none."""
        if self.recipe is None:
            return pa.nulls(len(self.files), pa.large_string())
        digests = pa.array([recipe.digest for recipe in self.recipes], pa.large_string())
        return digests.take(pa.array(self.recipe, mask=self.recipe < 0))

    def format_of(self, number: int, default: str) -> str:
        """The format of one file."""
        if self.formats is None or self.format is None:
            return default
        return self.formats[int(self.format[number])]

    def with_owners(self, others: Sequence[str]) -> Listed:
        """Each file with these owners also, as `owners_text` spells them; empty adds none."""
        texts = [
            owners_text((*owners_of(own), *owners_of(other))) if other and other != own else own
            for own, other in zip(self.owners.to_pylist(), others, strict=True)
        ]
        return replace(self, owners=pa.array(texts, pa.large_string()))


ListFiles = Callable[[], Listed]
"""Lists the current files of a table; called again when another builder has committed first."""


def list_snapshot(
    snapshot: Snapshot, *, refuse: bool = True, among: Collection[str] | None = None
) -> Listed:
    """The files of a snapshot that can be indexed, each once, with all owners.

    Those are base files, and logs whose format has a name (`ReaderSpec.log`).

    Args:
        refuse: False lists the others where some partitions lie in places that have no URI, hold a
            file that has none, or lie where storage fails: in another store, or a few in the
            table's own.
        among: names of the partitions to list; None: all.

    Errors: those of the snapshot's methods.
    """
    parts: list[FileTable] = []
    owners: list[npt.NDArray[np.int64]] = []
    formats: list[npt.NDArray[np.int32]] = []
    names: list[str] = []
    numbers: dict[str, int] = {}
    recipe: list[npt.NDArray[np.int32]] = []
    recipes: dict[Recipe | None, int] = {None: -1}
    columns = snapshot.table.columns
    every = snapshot.partition_names() if among is None else sorted(among)
    search = _Search(snapshot)
    found = search.slices(every, refuse)
    refused = search.refused
    if refused and len(refused) == len(every):
        raise refused[0][1]
    for slices in found:
        files = slices.filter(slices.has_base)
        kinds = [numbers.setdefault(r.base or r.format, len(numbers)) for r in files.readers]
        reader = np.zeros(len(files), np.int32) if files.reader is None else files.reader
        parts += (piece.files for piece in files.pieces())
        owners.append(files.partition.astype(np.int64) + len(names))
        formats.append(np.array(kinds, np.int32)[reader])
        declared = [recipe_of(r, columns) for r in files.readers]
        own = [recipes.setdefault(r, len(recipes) - 1) for r in declared]
        recipe.append(np.array(own, np.int32)[reader])
        log_files, log_owner, log_reader = _logs(slices)
        if len(log_files):
            kinds = [numbers.setdefault(r.log, len(numbers)) for r in slices.readers]
            parts.append(log_files)
            owners.append(log_owner + len(names))
            formats.append(np.array(kinds, np.int32)[log_reader])
            recipe.append(np.full(len(log_files), -1, np.int32))
        names += (p.name for p in files.partitions)
    if not parts:
        return Listed(EMPTY, pa.nulls(0, pa.large_string()), refused=_reasons(refused))
    whole, owner, format = join_files(parts), np.concatenate(owners), np.concatenate(formats)
    order = pc.sort_indices(whole.paths).to_numpy()
    merged, owner, texts, first = merge_owners(
        whole.take(order), owner[order], [owners_text([name]) for name in names]
    )
    return Listed(
        merged,
        pa.array(texts, pa.large_string()).take(pa.array(owner)),
        tuple(numbers),
        format[order][first],
        tuple(r for r in recipes if r is not None),
        np.concatenate(recipe)[order][first],
        _reasons(refused),
    )


def _reasons(refused: Sequence[tuple[str, BridgeError]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, f"{error.code}: {error.message}") for name, error in refused)


class _Search:
    """Lists partitions, and finds those that cannot be listed by halving.

    Attributes:
        refused: names of those that cannot be listed, each with the error.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.refused: list[tuple[str, BridgeError]] = []
        self._found = 0
        self._lost = 0.0

    def slices(self, names: list[str], refuse: bool) -> list[SliceBatch]:
        """Errors: those of the snapshot's methods; StorageFailure if the table's store fails."""
        started = time.monotonic()
        snapshot = self._snapshot
        try:
            with closing(snapshot.partitions(names)) as batches:
                return [slices for batch in batches for slices in snapshot.slices(batch, None)]
        except (InvalidUri, StorageFailure) as error:
            if refuse or self._found >= _MOST_REFUSED:
                raise
            failed = error
        if isinstance(failed, StorageFailure):
            stores = self._by_store(names)
            if len(stores) != 1 or len(*stores.values()) < len(names):
                return [s for some in stores.values() for s in self.slices(some, refuse)]
            if _store(snapshot.table.location) not in stores:
                self.refused += [(name, failed) for name in names]  # all of them lie there
                return []
            self._lost += time.monotonic() - started
            if self._lost > _PATIENCE:
                raise failed
        if len(names) == 1:
            self._refuse(names[0], failed)
            return []
        return [s for some in _halves(names) for s in self.slices(some, refuse)]

    def _refuse(self, name: str, error: BridgeError) -> None:
        self._found += 1
        self.refused.append((name, error))

    def _by_store(self, names: list[str]) -> dict[str, list[str]]:
        """But for those that lie at no URI, which are refused."""
        found: dict[str, list[str]] = {}
        try:
            with closing(self._snapshot.partitions(names)) as batches:
                for partition in (p for batch in batches for p in batch.partitions):
                    found.setdefault(_store(partition.location), []).append(partition.name)
            return found
        except InvalidUri as error:
            if self._found >= _MOST_REFUSED:
                raise
            if len(names) == 1:
                self._refuse(names[0], error)
                return {}
        first, second = map(self._by_store, _halves(names))
        return {s: first.get(s, []) + second.get(s, []) for s in {**first, **second}}


def _halves(names: list[str]) -> tuple[list[str], list[str]]:
    return names[: len(names) // 2], names[len(names) // 2 :]


def _store(location: str) -> str:
    """Scheme and host or bucket of a URI."""
    return "/".join(location.split("/", 3)[:3])


def _logs(
    slices: SliceBatch,
) -> tuple[FileTable, npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The logs that can be indexed, with the number of the partition and of the reader of each."""
    none = np.empty(0, np.int64)
    if slices.logs is None or not any(r.log for r in slices.readers):
        return EMPTY, none, none.astype(np.int32)
    counts = slices.logs.counts
    reader = np.zeros(len(slices), np.int32) if slices.reader is None else slices.reader
    of_log = np.repeat(reader, counts)
    named = np.array([bool(r.log) for r in slices.readers], np.bool_)[of_log]
    owner = np.repeat(slices.partition.astype(np.int64), counts)
    return slices.logs.files.filter(named), owner[named], of_log[named]


def owners_text(names: Iterable[str]) -> str:
    """The partitions that own a file, as entries store them.

    >>> owners_text(["p=2", "p=1", "p=2"])
    'p=1\\x00p=2'
    """
    return _BETWEEN.join(sorted(set(names)))


def owners_of(text: str) -> tuple[str, ...]:
    """The partitions that an entry names.

    >>> owners_of("p=1")
    ('p=1',)
    """
    return tuple(text.split(_BETWEEN))


def merge_owners(
    files: FileTable, owner: np.ndarray, texts: list[str]
) -> tuple[FileTable, np.ndarray, list[str], np.ndarray]:
    """Merges duplicates: a file listed below several nested locations has all their owners.

    Returns:
        The files, each once; the owner of each as an index into the texts; the texts; and a mask of
        the given files that were kept.
    """
    first = np.ones(len(files), np.bool_)
    first[1:] = pc.not_equal(files.paths[1:], files.paths[:-1]).to_numpy(zero_copy_only=False)
    if first.all():
        return files, owner, texts, first
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(files))
    merged = owner[starts].copy()
    numbers: dict[tuple[int, ...], int] = {}
    for i in np.flatnonzero(ends - starts > 1).tolist():
        together = tuple(sorted(owner[starts[i] : ends[i]].tolist()))
        if together not in numbers:
            names = [name for one in together for name in owners_of(texts[one])]
            numbers[together] = len(texts)
            texts = [*texts, owners_text(names)]
        merged[i] = numbers[together]
    return files.filter(first), merged, texts, first
