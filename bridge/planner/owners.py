"""Whose partition's an indexed file is now, for predicates that mix keys and columns in one OR.

``month = 3 OR tail = 'N14228'`` leaves every partition, and of all but March every file without
that tail can be skipped: what is true of a partition's key is true of all its rows. An index knows
partitions by the names that they had when it was built; they may have been renamed since, moved, or
laid over one another. So the catalogue is asked, and a file's key values count only where it lies
below the location of exactly one partition.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.nodes import BoundAnd, BoundExpression, BoundOr
from bridge.expression.residual import references, residual
from bridge.index.serving import ServingIndex
from bridge.table.model import Catalog, Partition, Table
from bridge.table.partition import Unparsable, typed_values
from bridge.types import Kind, Value

BUDGET = 0.8
"""Seconds for the catalogue's answer: the one who asks for files waits two, by default."""
MOST = 64
"""Forms that a predicate may take over a table's partitions: more are not worth a pass each."""
_PLAIN = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.STRING, Kind.DATE})
"""Of other keys engines differ on what a partition's text is worth."""
_DATE = 10
"""Characters of a date that is written in full, as all engines read it."""
ByLocation = Mapping[str, tuple[Partition, ...]]
_known: WeakKeyDictionary[ServingIndex, pa.DictionaryArray] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Residual:
    """What is left of a predicate for some files.

    Attributes:
        expression: without the keys whose values are known.
        files: by ordinal, which it speaks of.
    """

    expression: BoundExpression
    files: npt.NDArray[np.bool_]


def mixes(predicate: BoundExpression) -> bool:
    """Whether an OR asks about partition keys and columns both."""
    if not isinstance(predicate, BoundAnd | BoundOr):
        return False
    kinds = {reference.partition for reference in references(predicate)}
    if len(kinds) < 2:
        return False
    return isinstance(predicate, BoundOr) or any(map(mixes, predicate.children))


def current_partitions(catalog: Catalog, table: Table, budget: float = BUDGET) -> ByLocation | None:
    """All partitions of a table by their location, as the catalogue has them now.

    Returns:
        None if it takes longer than the budget: whose a file is can only be told from all.

    Errors:
        MetastoreUnavailable and its like.
    """
    until = time.monotonic() + budget
    found: dict[str, tuple[Partition, ...]] = {}
    names = catalog.partition_names(table)
    with contextlib.closing(catalog.partitions(table, names)) as batches:
        for batch in batches:
            for partition in batch.partitions:
                location = partition.location.rstrip("/")
                found[location] = (*found.get(location, ()), partition)
            if time.monotonic() > until:
                return None
    return found


def by_owner(
    predicate: BoundExpression,
    table: Table,
    serving: ServingIndex,
    partitions: ByLocation,
) -> list[Residual] | None:
    """The predicate as it is for each partition's files; files of none or several are left out.

    Returns:
        None where it takes too many forms.
    """
    directories = _directories(serving)
    codes = directories.indices.to_numpy()
    forms: dict[BoundExpression, list[int]] = {}
    for code, directory in enumerate(directories.dictionary.to_pylist()):
        owners = [p for place in _upwards(directory) for p in partitions.get(place, ())]
        if len(owners) == 1:
            left = residual(predicate, _values(table, owners[0]))
            forms.setdefault(left, []).append(code)
            if len(forms) > MOST:
                return None
    return [Residual(form, np.isin(codes, mine)) for form, mine in forms.items()]


def _directories(serving: ServingIndex) -> pa.DictionaryArray:
    found = _known.get(serving)
    if found is None:
        found = pc.replace_substring_regex(serving.paths, "/[^/]*$", "").dictionary_encode()
        _known[serving] = found
    return found


def _upwards(directory: str) -> Iterator[str]:
    while directory:
        yield directory
        directory = directory.rpartition("/")[0]


def _values(table: Table, partition: Partition) -> dict[tuple[str, ...], Value | None]:
    typed = typed_values([partition.name], table.partition_keys)
    known: dict[tuple[str, ...], Value | None] = {}
    for key, text, (value,) in zip(table.partition_keys, partition.values, typed, strict=True):
        plain = key.type.kind in _PLAIN
        if key.type.kind is Kind.DATE and text is not None:
            plain = len(text) == _DATE
        if plain and not isinstance(value, Unparsable):
            known[(key.name,)] = value
    return known
