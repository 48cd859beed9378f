"""A layout, a grouping and a group filter that skipbridge does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.clustering.groupings.grouping import Candidates


class Falling:
    """Implements `Layout`: the greatest value first."""

    name = "falling"
    fewest = most = 1

    def order(self, columns: pa.Table) -> npt.NDArray[np.int64] | None:
        found = pc.sort_indices(columns.column(0), sort_keys=[("", "descending")])
        return np.asarray(found.to_numpy(), np.int64)


class Pairs:
    """Implements `Grouping`: each file with the next one."""

    name = "pairs"

    def groups(self, files: Candidates, most_bytes: int) -> list[list[int]]:
        return [[i, i + 1] for i in range(0, len(files) - 1, 2)]

    def tell(self, files: Candidates, group: Sequence[int]) -> Mapping[str, str]:
        return {"first": files.paths[group[0]].rpartition("/")[2], "pairs of": str(len(files))}


class First:
    """Implements `GroupFilter`: the group of the first file."""

    name = "first"

    def keeps(self, files: Candidates, target: int) -> bool:
        return files.paths[0].endswith("f0.parquet")


LAYOUT, GROUPING, FILTER = Falling(), Pairs(), First()
