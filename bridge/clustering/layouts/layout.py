"""The interface of layouts."""

from __future__ import annotations

from typing import Protocol

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
