"""Space-filling curves: the place of points on a Z-order or Hilbert curve, for all points at once.

The Hilbert curve is computed with Skilling's algorithm ("Programming the Hilbert curve", 2004),
which transforms the coordinates in place and then interleaves their bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

UInt64 = npt.NDArray[np.uint64]
_ONE = np.uint64(1)


def z_order(axes: Sequence[UInt64], bits: int) -> UInt64:
    """Places on the Z-order curve: the bits of the axes in turn, the first axis first.

    Args:
        axes: coordinates below ``2**bits``; at most 64 bits in all.

    >>> z_order([np.array([1, 0], np.uint64), np.array([0, 1], np.uint64)], 1).tolist()
    [2, 1]
    """
    place = np.zeros(len(axes[0]), np.uint64)
    for bit in reversed(range(bits)):
        for axis in axes:
            place = (place << _ONE) | ((axis >> np.uint64(bit)) & _ONE)
    return place


def hilbert(axes: Sequence[UInt64], bits: int) -> UInt64:
    """Places on the Hilbert curve; neighbours on it differ by one in one coordinate.

    Args:
        axes: coordinates below ``2**bits``; at most 64 bits in all.
    """
    x = [axis.copy() for axis in axes]
    top = np.uint64(1 << (bits - 1))
    q = top
    while q > _ONE:
        low = q - _ONE
        for axis in x:
            set_here = (axis & q) != 0
            swap = np.where(set_here, np.uint64(0), (x[0] ^ axis) & low)
            if axis is x[0]:
                x[0] ^= np.where(set_here, low, np.uint64(0))
                continue
            x[0] ^= np.where(set_here, low, swap)
            axis ^= swap
        q >>= _ONE
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    turned = np.zeros(len(x[0]), np.uint64)
    q = top
    while q > _ONE:
        turned ^= np.where((x[-1] & q) != 0, q - _ONE, np.uint64(0))
        q >>= _ONE
    for axis in x:
        axis ^= turned
    return z_order(x, bits)
