"""What files that were read have shown of their writers.

The law: of a writer that is not on the list, a fact is believed only if a file was read that could
have refuted it and confirmed it. A fact that one file refutes is believed in no file of its writer.
Only columns at the top level confirm. What confirms:

- NULL counts: a column of the same physical type with NULLs and values;
- exact bounds: a column of the same type with two values;
- the least boolean: a column of true and NULL; the greatest: one of false and NULL;
- numbers of rows: a file of several row groups.

Small row groups, few bytes, or a single row group confirm nothing of larger ones. NULLs in one
page confirm nothing of several pages: the rows from a row group's first NULL to its last count.

A build reads a few files for this (`MOST` of each chunk, the largest), and the entry of such a file
keeps what it has shown. All entries of a writer are weighed when a generation is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.physical_column import PhysicalType
from bridge.formats.statistics import COUNTED, SEEN, FileStatistics, LeafStatistics
from bridge.kernel.errors import FileCorrupt

Mask = npt.NDArray[np.bool_]
MOST = 4
"""Files of a chunk that are read to learn of their writers; as many entries of one suffice."""
LARGEST = 64 * 1024 * 1024
"""Larger files are not read for this. Bytes."""
_SLACK = 16
"""Files that are larger by this part are no different: NULLs seldom lie in the first and last row.
"""
NULLS, EXACT, BOUNDS, LEAST, GREATEST, ROWS = (
    "nulls", "exact", "bounds", "least", "greatest", "rows",
)  # fmt: skip
_WORDS = {NULLS: "NULL counts", EXACT: "that bounds are values", ROWS: "numbers of rows"}


class Fact(NamedTuple):
    """One fact that a file has shown, right or wrong.

    Attributes:
        type: the physical type for NULL counts, both types for bounds; empty for rows.
        rows: of the largest row group; for NULL counts, from the first NULL to the last.
        size: bytes of the column in the file.
        several: the file has several row groups; for NULL counts, with NULLs.
    """

    fact: str
    type: str
    right: bool
    rows: int = 0
    size: int = 0
    several: bool = False


def type_of(stored: PhysicalType) -> str:
    return f"{stored.physical} {stored.logical}"


def compare(
    stated: Sequence[LeafStatistics], seen: FileStatistics, problem: str | None
) -> list[Fact]:
    """What the values of a file show of what its footer states.

    Args:
        seen: what was read.
        problem: why its values were not read to the end: it may have other numbers of rows.
    """
    if problem is not None:
        return [Fact(ROWS, "", False)] if problem.startswith(FileCorrupt.code) else []
    found: list[Fact] = []
    rows = seen.rows if seen.group_rows is None else seen.group_rows
    several = rows < seen.rows
    for old, new in zip(stated, seen.leaves, strict=True):
        if new.basis & COUNTED:
            found += _of_nulls(old, new, seen.rows)
            bounds = _of_bounds(old, new)
            found += [f._replace(rows=rows, size=old.size, several=several) for f in bounds]
            if several:
                found.append(Fact(ROWS, "", True, rows, 0, True))
    return list(dict.fromkeys(found))


def _of_nulls(old: LeafStatistics, new: LeafStatistics, rows: int) -> Iterable[Fact]:
    physical = old.column.type.physical
    if old.nulls is None or new.nulls is None:
        return
    if old.nulls != new.nulls:
        yield Fact(NULLS, physical, False)
    elif 0 < new.nulls < rows and len(old.column.path) == 1:
        yield Fact(NULLS, physical, True, new.null_span, old.size, new.null_groups > 1)


def _of_bounds(old: LeafStatistics, new: LeafStatistics) -> Iterable[Fact]:
    stored = old.column.type
    if not new.basis & SEEN or old.lower is None or old.upper is None:
        return
    if old.lower != old.lower or old.upper != old.upper:  # NaN is no bound
        return
    name, same = type_of(stored), (old.lower, old.upper) == (new.lower, new.upper)
    if not (old.lower <= new.lower and new.upper <= old.upper):
        yield Fact(BOUNDS, name, False)
    elif old.exact and not same:
        yield Fact(EXACT, name, False)
    elif old.exact and len(old.column.path) == 1:
        if stored.logical != "bool":
            if new.lower != new.upper:
                yield Fact(EXACT, name, True)
        elif new.lower == new.upper and new.nulls:
            yield Fact(LEAST if new.lower else GREATEST, name, True)


def evidence_to_text(facts: Iterable[Fact]) -> str:
    return json.dumps(list(facts), separators=(",", ":"))


def by_writer(codes: npt.NDArray[np.int32], entries: pa.ChunkedArray) -> dict[str, list[Any]]:
    """What entries have shown, by the place of their writer (as text, for JSON)."""
    read = np.flatnonzero(pc.is_valid(entries).to_numpy())
    found: dict[str, list[Any]] = {}
    texts = entries.take(pa.array(read)).to_pylist()
    for code, text in zip(codes[read].tolist(), texts, strict=True):
        facts = found.setdefault(str(code), [])
        facts += [fact for fact in json.loads(text) if fact not in facts]
    return found


def confirmed_row_counts(files: pa.Table) -> dict[str, int]:
    """For each writer with enough files read: the row count of its largest file."""
    read = files.filter(pc.and_(pc.is_valid(files["shown"]), pc.is_valid(files["writer"])))
    each = read.group_by("writer").aggregate([("rows", "max"), ("rows", "count")]).to_pylist()
    return {one["writer"]: one["rows_max"] for one in each if one["rows_count"] >= MOST}


@dataclass(frozen=True, slots=True)
class Shown:
    """All that the files of one writer have shown."""

    facts: frozenset[Fact] = frozenset()

    @classmethod
    def of(
        cls, writer: str | None, writers: Sequence[str | None], held: Mapping[str, Any]
    ) -> Shown:
        """Weighs the facts of all files that the same program wrote.

        Args:
            writers: as entries spell them; one program may be spelled in several ways.
            held: what `by_writer` has found.
        """
        if writer is None or not held:
            return _NOTHING
        name = writer.partition("\n")[0]
        codes = (i for i, one in enumerate(writers) if (one or "").partition("\n")[0] == name)
        return cls(frozenset(Fact(*fact) for code in codes for fact in held.get(str(code), ())))

    def refutes(self, fact: str, type: str) -> bool:
        """Whether a file has shown a fact to be wrong: of this type, or in any type NULL counts."""
        wrong = {(one.fact, one.type) for one in self.facts if not one.right}
        if fact == NULLS:
            return any(name == NULLS for name, _ in wrong)
        related = (fact,) if fact in (ROWS, BOUNDS) else (EXACT, BOUNDS)
        return any((one, type) in wrong for one in related)

    def covers(
        self,
        fact: str,
        type: str,
        rows: npt.NDArray[np.int64],
        size: npt.NDArray[np.int64] | None,
        several: Mask,
    ) -> Mask:
        """Files in which a fact was shown to be right.

        Args:
            rows: of the largest row group of each file.
            size: bytes of the column in each file; None if its values have a fixed width.
            several: files that may have several row groups.
        """
        found: Mask = np.zeros(len(rows), np.bool_)
        for one in self.facts:
            if one.fact == fact and one.type == type and one.right:
                mine = (rows <= one.rows + one.rows // _SLACK) & (one.several | ~several)
                found |= mine if size is None else mine & (size <= one.size + one.size // _SLACK)
        return found

    def words(self) -> dict[str, str]:
        """What is believed for it, of which types; by what is doubted otherwise."""
        right = [one for one in self.facts if one.right and not self.refutes(one.fact, one.type)]
        found = {}
        for fact, word in _WORDS.items():
            if types := {one.type.rpartition(" ")[2] for one in right if one.fact == fact}:
                found[word] = ", ".join(sorted(types))
        if {LEAST, GREATEST} <= {one.fact for one in right}:
            found["bounds of booleans"] = ""
        return found


_NOTHING = Shown()
