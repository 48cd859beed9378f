"""The tables of a shard, made from what a build collected of files.

A build numbers files by their place in the listing. A shard numbers them by their row in its own
table of files: the ordinal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.index.building.listed import Listed
from bridge.index.generations.entries import relative_to
from bridge.index.generations.shard import FILES, Collected


@dataclass(frozen=True, slots=True)
class ShardTables:
    """The rows of one shard.

    Attributes:
        files: one row per file (`FILES`), sorted by path.
        columns: statistics of trusted files (`COLUMNS`), by ordinal.
        payloads: rows of the other index kinds, by the signature of their definition.
    """

    files: pa.Table
    columns: pa.Table
    payloads: dict[str, pa.Table]


def shard_tables(
    collected: Collected, outcome: pa.Table, listed: Listed, location: str
) -> ShardTables:
    """Keeps the files of ``outcome`` and replaces their numbers by ordinals.

    The law: a file that is not trusted gets an entry without row count, statistics and payloads.

    Args:
        outcome: the files that get an entry, sorted by number, with a column ``trusted``.
        location: the table's root; paths below it are kept relative to it.
    """
    files, numbers = listed.files, outcome["file"].to_numpy()
    trusted = np.asarray(outcome["trusted"].to_numpy(), np.bool_)
    ordinal = np.full(len(files) + 1, -1, np.int64)  # -1 picks the last
    ordinal[numbers] = np.arange(len(numbers))
    columns = _renumber(collected.columns, 1, ordinal)
    columns = columns.filter(pa.array(_trusted(columns, trusted)))
    payloads = {}
    for signature, rows in collected.payloads.items():
        moved = _renumber(rows, 0, ordinal)
        of_no_file = rows["file"].to_numpy() < 0
        payloads[signature] = moved.filter(pa.array(of_no_file | _trusted(moved, trusted)))
    return ShardTables(_files(outcome, trusted, listed, location), columns, payloads)


def _files(
    outcome: pa.Table, trusted: npt.NDArray[np.bool_], listed: Listed, location: str
) -> pa.Table:
    files, numbers = listed.files, outcome["file"].to_numpy()
    index = pa.array(numbers)
    no_etags = pa.nulls(len(numbers), pa.large_string())
    uris = files.paths.take(index).to_pylist()
    return pa.table(
        [
            pa.array([relative_to(uri, location) for uri in uris], pa.large_string()),
            listed.owners.take(index),
            pa.array(files.sizes[numbers]),
            pa.array(files.modified[numbers]),
            no_etags if files.etags is None else files.etags.take(index),
            pa.array(np.where(trusted, outcome["rows"].to_numpy(), -1)),
            pa.array(trusted),
            outcome["row_groups"],
            outcome["problem"],
            listed.digests.take(index),
            outcome["writer"],
            outcome["group_rows"],
            outcome["shown"],
            outcome["stored"],
        ],
        schema=FILES,
    )


def _renumber(rows: pa.Table, position: int, ordinal: npt.NDArray[np.int64]) -> pa.Table:
    ordinals = ordinal[rows["file"].to_numpy()]
    return rows.set_column(position, rows.schema.field("file"), pa.array(ordinals))


def _trusted(rows: pa.Table, trusted: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    kept: npt.NDArray[np.bool_] = np.append(trusted, False)[rows["file"].to_numpy()]
    return kept
