"""Random directory trees, and what a listing of each partition's directory finds in them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from bridge.kernel.errors import BridgeError
from bridge.kernel.types import STRING
from bridge.storage.port import Storage, data_files
from bridge.storage.uri import join
from bridge.table.directory.format import DirectoryFormat
from bridge.table.directory.freshness import Freshness
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import CatalogTable, Column, Partition, PartitionBatch, TableName
from bridge.table.read_version import NEWEST
from bridge.table.snapshot import Snapshot, TableContext
from tests.support.lake import Fetch

Found = set[tuple[str, str, int, int]]
"""Partition name, URI, bytes, modification time."""

PLACES = [f"t/p={i}" for i in range(4)]
PLACES += ["t/p=1/deep", "t/p=1/_hidden", "t/p=2/p=3", "t/_k=1", "t/.k=1/x", "t", "elsewhere/1"]
NAMES = ["a", "b.parquet", "_SUCCESS", ".b.crc", "x y%20ä", "sub/c", "_tmp/d", "sub/.h/e", "a-/f"]


@dataclass(frozen=True, slots=True)
class Tree:
    """Files by path with their sizes, and the places of partitions in batches.

    Two partitions may share a place, lie in one another's, or lie outside the table ``t``.
    """

    files: dict[str, int]
    batches: tuple[tuple[str, ...], ...]
    recursive: bool


def trees(places: Sequence[str] = tuple(PLACES)) -> st.SearchStrategy[Tree]:
    files = st.builds("{}/{}".format, st.sampled_from(places), st.sampled_from(NAMES))
    return st.builds(
        Tree,
        st.dictionaries(files, st.integers(0, 3), max_size=12).map(_consistent),
        st.lists(
            st.lists(st.sampled_from(places), min_size=1, max_size=5).map(tuple), max_size=4
        ).map(tuple),
        st.booleans(),
    )


def _consistent(files: dict[str, int]) -> dict[str, int]:
    """Without files whose path is a directory of other files."""
    return {f: n for f, n in files.items() if not any(o.startswith(f"{f}/") for o in files)}


def partitions_of(tree: Tree, root: str) -> list[PartitionBatch]:
    """Every place of every batch as a partition of its own."""
    batches = []
    for i, places in enumerate(tree.batches):
        names = [f"p={i}-{number}" for number in range(len(places))]
        found = [
            Partition(n, (n,), join(root, place)) for n, place in zip(names, places, strict=True)
        ]
        batches.append(PartitionBatch(tuple(found)))
    return batches


def expected(
    storage: Storage, batches: Sequence[PartitionBatch], recursive: bool, absent_is_empty: bool
) -> Found | list[str]:
    """One listing for each partition; the codes of the errors if there are any."""
    found: Found = set()
    errors = []
    for partition in (p for batch in batches for p in batch.partitions):
        try:
            listing = storage.list_all(partition.location, recursive=recursive)
        except BridgeError as error:
            errors.append(error.code)
            continue
        if not len(listing) and not absent_is_empty:
            if not storage.directory_exists(partition.location):
                errors.append("PARTITION_ABSENT")
            continue
        files = data_files(listing, partition.location)
        found |= set(
            zip(
                [partition.name] * len(files),
                files.paths.to_pylist(),
                files.sizes.tolist(),
                files.modified.tolist(),
                strict=True,
            )
        )
    return errors or found


class Nothing:
    """A catalog that is asked for partitions and has none."""

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> Fetch:
        return Fetch([])


def open_snapshot(
    lister: DirectoryLister, root: str, freshness: Freshness, absent_is_empty: bool = False
) -> Snapshot:
    """A snapshot of the partitioned table in ``t``, without an index."""
    table = CatalogTable(TableName("db", "t"), (), (Column("p", STRING),), join(root, "t"))
    context = TableContext(
        lister.storage,
        Nothing(),  # type: ignore[arg-type]
        lister,
        None,
        lambda _: None,
        freshness,
        absent_is_empty,
    )
    return DirectoryFormat().snapshot(table, NEWEST, context)


def listed(snapshot: Snapshot, batches: Sequence[PartitionBatch]) -> Found | str:
    """What a snapshot finds; the code of the error if it fails."""
    found: list[tuple[str, str, int, int]] = []
    try:
        for batch in batches:
            found += rows(snapshot, batch)
    except BridgeError as error:
        return error.code
    assert len(found) == len(set(found)), "a file came out twice"
    return set(found)


def rows(
    snapshot: Snapshot, batch: PartitionBatch
) -> Generator[tuple[str, str, int, int], None, None]:
    for slices in snapshot.slices(batch, None):
        yield from zip(
            [slices.partitions[i].name for i in slices.partition.tolist()],
            slices.files.paths.to_pylist(),
            slices.files.sizes.tolist(),
            slices.files.modified.tolist(),
            strict=True,
        )


def agrees(found: Found | str, wanted: Found | list[str]) -> bool:
    """Whether a snapshot found what was wanted, or failed with one of the errors."""
    return found in wanted if isinstance(wanted, list) else found == wanted
