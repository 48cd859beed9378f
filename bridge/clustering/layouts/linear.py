"""Rows sorted by the first column, then by the second, and so on; NULL last."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.arrow_types import flat


class Linear:
    """Implements `Layout`: best if most predicates name the first column."""

    name = "linear"
    fewest = 1
    most = 16

    def order(self, columns: pa.Table) -> npt.NDArray[np.int64] | None:
        plain = pa.table(
            [flat(c) for c in columns.columns], [f"c{i}" for i in range(len(columns.columns))]
        )
        keys = [(name, "ascending") for name in plain.column_names]
        return np.asarray(pc.sort_indices(plain, sort_keys=keys).to_numpy(), np.int64)


LAYOUT = Linear()
