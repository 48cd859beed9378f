"""The interface of layouts."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class Layout(Protocol):
    """An order of rows.

    Attributes:
        name: unique, in lower case.
        fewest, most: how many columns it orders by.
    """

    name: str
    fewest: int
    most: int

    def order(self, columns: pa.Table) -> npt.NDArray[np.int64] | None:
        """The rows in their new order.

        The law: a permutation of the positions of all rows, the same for the same table.

        Args:
            columns: the columns to order by, of orderable types, most important first.

        Returns:
            Positions; None leaves the rows as they are.
        """
        ...


@runtime_checkable
class Divides(Protocol):
    """What a `Layout` may have besides: it chooses where new files begin."""

    def divide(
        self, columns: pa.Table, files: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows in their new order, and the cuts between files.

        The law: as `Layout.order`; the cuts are ascending, from 0 to the number of rows.

        Args:
            columns: as in `Layout.order`.
            files: how many; some may be empty.

        Returns:
            Positions, and ``files + 1`` places in this order where files begin and end.
        """
        ...


def arrange(
    layout: Layout, columns: pa.Table, rows: int, files: int
) -> tuple[npt.NDArray[np.int64] | None, list[int]]:
    """The order of rows (None: as they are) and the cuts between files, from 0 to all rows.

    Files have equally many rows, unless the layout divides them itself.
    """
    if isinstance(layout, Divides) and rows:
        order, cuts = layout.divide(columns, files)
        return order, cuts.tolist()
    edges = np.linspace(0, rows, files + 1).astype(np.int64)
    return layout.order(columns), edges.tolist()
