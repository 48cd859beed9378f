"""Encodes `SkippableFiles` in the format of bridge.thrift."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, islice

import numpy as np
import pyarrow as pa

from bridge.planner.answers.skippable_files import SkippableFiles
from bridge.planner.reports.remedies import remedy_text
from bridge.planner.reports.report import IndexNotUsed
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL

MAX_BYTES = 32 << 20
"""Of an encoded answer, where the client states no bound."""
_MOST_NOTES = 20
_LONGEST_NOTE = 1000
_MOST_INDEXES = 100
_LONGEST_NAME = 200
_FRAMING = 512
_FILE = 20


def encode_skippable_files(
    found: SkippableFiles, dropped: tuple[str, ...], most_bytes: int = MAX_BYTES
) -> ttypes.SkippableFiles:
    """Encodes the files; paths are relative to their longest common directory.

    Args:
        most_bytes: of the encoded answer; further files are not named, and so are read. Those that
            min/max excludes come first.
    """
    notes = _short(_note(reason) for reason in found.not_used)
    short = _short(dropped)
    paths: list[bytes] = found.paths.cast(pa.large_binary()).to_pylist()
    root = _common_directory(paths)
    below = [path[len(root) :] for path in paths]
    offsets = np.fromiter(accumulate(map(len, below), initial=0), np.int64, len(below) + 1)
    by_index = {name[:_LONGEST_NAME]: number for name, number in found.by_index[:_MOST_INDEXES]}
    texts = sum(4 + len(text.encode()) for text in (*notes, *short))
    texts += sum(12 + len(name.encode()) for name in by_index)
    room = most_bytes - _FRAMING - texts - len(root)
    encoded = offsets + _FILE * np.arange(len(offsets))
    count = max(0, int(np.searchsorted(encoded, room, side="right")) - 1)
    return ttypes.SkippableFiles(
        protocol=PROTOCOL,
        generation=found.generation,
        known=found.known,
        skipped=count,
        root=root.decode(),
        files=b"".join(
            (
                found.sizes[:count].astype("<i8").tobytes(),
                (found.modified[:count] // 1000).astype("<i8").tobytes(),
                offsets[: count + 1].astype("<i4").tobytes(),
                b"".join(below[:count]),
            )
        ),
        dropped=short,
        notes=notes,
        by_index=by_index,
        unnamed=len(paths) - count,
    )


def _short(texts: Iterable[str]) -> list[str]:
    return [text[:_LONGEST_NOTE] for text in islice(texts, _MOST_NOTES)]


def _common_directory(paths: list[bytes]) -> bytes:
    """The common directory with its slash, found from the least and the greatest path."""
    if not paths:
        return b""
    least, greatest = min(paths), max(paths)
    differ = next(
        (i for i, (a, b) in enumerate(zip(least, greatest, strict=False)) if a != b), len(least)
    )
    return least[: least.rfind(b"/", 0, differ) + 1]


def _note(reason: IndexNotUsed) -> str:
    return f"{reason.index} {reason.reason}: {reason.detail} -> {remedy_text(reason.remedy)}"
