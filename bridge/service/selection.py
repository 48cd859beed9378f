"""A `FileSelection` as bridge.thrift packs it."""

from __future__ import annotations

import os.path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.planner.report import IndexNotUsed
from bridge.planner.selection import FileSelection
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL

MAX_BYTES = 32 << 20
"""Of paths in one answer; files beyond it are not named, and so are read."""


def encode_selection(found: FileSelection, dropped: tuple[str, ...]) -> ttypes.FileSelection:
    """Packs it; paths are cut at the directory that all of them lie under."""
    paths = found.paths.cast(pa.large_binary())
    root = _common_directory(paths)
    if root:
        paths = pc.binary_slice(paths, len(root))
    lengths = np.asarray(pc.binary_length(paths), np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    count = int(np.searchsorted(offsets, MAX_BYTES, side="right")) - 1
    text = b"".join(paths.slice(0, count).to_pylist())
    return ttypes.FileSelection(
        protocol=PROTOCOL,
        generation=found.generation,
        none=found.none,
        known=found.known,
        skipped=count,
        root=root.decode(),
        files=b"".join(
            (
                found.sizes[:count].astype("<i8").tobytes(),
                (found.modified[:count] // 1000).astype("<i8").tobytes(),
                offsets[: count + 1].astype("<i4").tobytes(),
                text,
            )
        ),
        dropped=list(dropped),
        notes=[_note(reason) for reason in found.not_used],
    )


def _common_directory(paths: pa.Array) -> bytes:
    """With its slash; of sorted paths the first and the last decide."""
    if not len(paths):
        return b""
    ends = pc.min_max(paths).as_py()
    shared = os.path.commonprefix([ends["min"], ends["max"]])  # noqa: RUF071  cut at / below
    return bytes(shared[: shared.rfind(b"/") + 1])


def _note(reason: IndexNotUsed) -> str:
    return f"{reason.index} {reason.reason}: {reason.detail} -> {reason.mend}"
