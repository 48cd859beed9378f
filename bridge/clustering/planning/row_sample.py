"""Some rows of a table, read from some of its files: what layouts are simulated on.

Values are kept in canonical form (`bridge.kernel.types`) beside their ranks among all sampled
values of their column, so that bounds of any type are the least and greatest rank of some rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.clustering.rewriting.ranks import canonical_form
from bridge.formats.parquet.tables import table_file
from bridge.index.kinds.canonical import unscaled_values
from bridge.kernel.arrow_types import flat
from bridge.kernel.errors import BridgeError, StorageFailure, StorageFull
from bridge.kernel.types import Field, Kind, Type, Value
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage
from bridge.storage.reading.source import open_source

Int64 = npt.NDArray[np.int64]
_NO_ORDER = frozenset({Kind.CHAR, Kind.ARRAY, Kind.MAP, Kind.STRUCT, Kind.UNKNOWN})


@dataclass(frozen=True, slots=True)
class SampledColumn:
    """One column of the sampled rows.

    Attributes:
        values: canonical values by row, as int64, float64, large_binary or decimal128.
        distinct: the values but NULL and NaN, ascending, each once.
        rank: each row's place in ``distinct``; -1 for NULL and NaN.
    """

    type: Type
    values: pa.Array
    distinct: pa.Array
    rank: Int64

    def value(self, rank: int) -> Value:
        """A canonical value."""
        found = self.distinct[rank].as_py()
        if self.type.kind is Kind.DECIMAL and not isinstance(found, int):
            return int(found.scaleb(self.type.scale))
        if self.type.kind is Kind.BOOLEAN:
            return bool(found)
        return found  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class RowSample:
    """Rows of some files, as columns of equal length.

    Attributes:
        paths: of the files that were read, ascending.
        file: each row's index into ``paths``, ascending.
        columns: by name in lower case; a column that cannot be compared is missing.
        whole: rows of the files that were read, sampled or not; 0 if unknown.
    """

    paths: tuple[str, ...]
    file: Int64
    columns: Mapping[str, SampledColumn]
    whole: int = 0

    def __len__(self) -> int:
        return len(self.file)


@dataclass(frozen=True, slots=True)
class SampledFile:
    """A file to read rows of.

    Attributes:
        rows: of the whole file; -1 if unknown.
    """

    path: str
    size: int
    rows: int


def comparable(type: Type) -> bool:
    """Whether rows can be ordered by values of a type, and files be skipped by its bounds."""
    return type.kind not in _NO_ORDER


def read_sample(
    storage: Storage, files: Sequence[SampledFile], fields: Sequence[Field], most_rows: int
) -> RowSample:
    """Reads rows of files, of each in proportion to its rows.

    Of a large file only some row groups are read, evenly spread. A file that cannot be
    read, or whose values are not of the table's types, is left out.

    Args:
        fields: top-level columns; those without an order are left out.
        most_rows: of all files together, about.

    Errors:
        StorageFailure, StorageFull.
    """
    wanted = [f for f in fields if comparable(f.type)]
    total = sum(max(file.rows, 1) for file in files)
    share = min(1.0, most_rows / max(total, 1))
    whole = 0
    paths: list[str] = []
    counts: list[int] = []
    parts: list[list[pa.Array]] = []
    for file in sorted(files, key=lambda f: f.path.encode()):
        try:
            found = _rows(storage, file, wanted, share)
        except (StorageFailure, StorageFull):
            raise
        except (BridgeError, pa.ArrowException, OSError, ValueError, TypeError, KeyError):
            continue
        if found:
            paths.append(file.path)
            counts.append(len(found[0]))
            whole += max(file.rows, len(found[0]))
            parts.append(found)
    columns = {
        field.name.lower(): sampled_column(
            field.type, pa.concat_arrays([part[i] for part in parts])
        )
        for i, field in enumerate(wanted)
        if parts
    }
    return RowSample(tuple(paths), np.repeat(np.arange(len(paths)), counts), columns, whole)


def sampled_column(type: Type, values: pa.Array) -> SampledColumn:
    """A column of canonical values."""
    known = values.drop_null()
    if pa.types.is_floating(values.type):
        known = known.filter(pc.invert(pc.is_nan(known)))
    distinct = pc.unique(known)
    distinct = distinct.take(pc.sort_indices(distinct))
    rank = pc.fill_null(pc.index_in(values, distinct), -1)
    return SampledColumn(type, values, distinct, np.asarray(rank.to_numpy(), np.int64))


def _rows(
    storage: Storage, file: SampledFile, wanted: Sequence[Field], share: float
) -> list[pa.Array]:
    lowered = [field.name.lower() for field in wanted]
    table = _READER.read(storage, file.path, file.size, lowered, share)
    step = max(1, round(table.num_rows / max(1, round(max(file.rows, 1) * share))))
    if file.rows > 0 and step > 1:
        table = table.take(pa.array(np.arange(0, table.num_rows, step)))
    names = [name.lower() for name in table.column_names]
    places = {name: place for place, name in reversed([*enumerate(names)])}
    return [
        canonical_values(table.column(places[f.name.lower()]), f.type)
        if f.name.lower() in places
        else pa.nulls(table.num_rows, canonical_form(f.type))
        for f in wanted
    ]


def read_some(
    storage: Storage, uri: str, size: int, wanted: Sequence[str], share: float
) -> pa.Table:
    """Some row groups. Runs in the child. Errors: those of Arrow."""
    file = table_file(open_source(storage, uri, size))
    names = [f.name for f in file.schema_arrow if f.name.lower() in wanted]
    return file.read_row_groups(_spread(file.num_row_groups, share), columns=names)


_READER: ChildReader[pa.Table] = ChildReader(read_some)


def _spread(count: int, share: float) -> list[int]:
    """Parts of a file that hold at least such a share of it, evenly spread."""
    parts = min(count, max(1, int(np.ceil(count * min(1.0, share * 4)))))
    return sorted(set(np.linspace(0, count - 1, parts).astype(int).tolist())) if count else []


def canonical_values(column: pa.ChunkedArray, type: Type) -> pa.Array:
    """A column as files store it, in canonical form. Errors: those of Arrow; ValueError."""
    values, form = flat(column), canonical_form(type)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), form)
    if type.is_floating:
        floats = values.cast(form)
        return pc.add(floats, 0.0)  # -0.0 becomes 0.0 (rule 2)
    if type.kind is Kind.BOOLEAN:
        return values.cast(pa.int8()).cast(form)
    if type.kind is Kind.DATE:
        return values.cast(pa.date32()).cast(pa.int32()).cast(form)
    if type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_TZ):
        return values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(form)
    if type.kind is Kind.DECIMAL:
        exact = values.cast(pa.decimal128(38, type.scale))
        if form != pa.int64():
            return exact
        numbers = unscaled_values(pc.fill_null(exact, 0))
        if numbers is None:
            raise ValueError(f"values of {values.type} do not fit {type}")
        return pa.array(numbers, mask=exact.is_null().to_numpy(zero_copy_only=False))
    return values.cast(form)
