"""What a batch of splits tells of its files beside their byte ranges: readers and logs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.table.model import Column


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """How files are read.

    Attributes:
        format: name of a file format.
        properties: of the SerDe, as (key, value) pairs.
        columns: that the files were written with; None: the table's.
    """

    format: str
    properties: tuple[tuple[str, str], ...] = ()
    columns: tuple[Column, ...] | None = None


@dataclass(frozen=True, slots=True)
class Logs:
    """L logs of F files, in the order in which a reader merges them.

    Attributes:
        first: int32[F + 1], the first log of each file.
        paths: large_string[L], canonical URIs.
        sizes: int64[L], bytes.
        modified: int64[L], milliseconds since the epoch.
    """

    first: npt.NDArray[np.int32]
    paths: pa.Array
    sizes: npt.NDArray[np.int64]
    modified: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slices:
    """Readers and logs of a batch's F files.

    Attributes:
        readers: each once.
        reader: int32[F], index into `readers`; None: all have the first.
        logs: None: nothing is merged.
    """

    readers: tuple[ReaderSpec, ...]
    reader: npt.NDArray[np.int32] | None = None
    logs: Logs | None = None
