"""A look at single files, where a listing would cost more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.table.model import FileList

if TYPE_CHECKING:
    from bridge.planner.planner import ScanPlan


def unchanged(plan: ScanPlan, files: FileList) -> npt.NDArray[np.bool_]:
    """Which files lie right in the table's directory, just as the index knows them.

    Errors:
        StorageFailure: storage does not answer.
    """
    root = plan.table.location.rstrip("/") + "/"
    paths = files.paths.to_pylist()
    inside = [path.startswith(root) and "/" not in path[len(root) :] for path in paths]
    looked = iter(plan.look_at([path for path, mine in zip(paths, inside, strict=True) if mine]))
    same = np.zeros(len(paths), np.bool_)
    for i in np.flatnonzero(inside):
        found = next(looked)
        if found is None:
            continue
        etag = files.etags[int(i)].as_py() if files.etags is not None else None
        same[i] = (
            found.size == files.sizes[i]
            and found.modified == files.modified[i]
            and (etag is None or found.etag is None or etag.strip('"') == found.etag.strip('"'))
        )
    return same
