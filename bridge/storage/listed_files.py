"""What the answers of a listing hold: which files, each once, and whether all are below it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from obstore.exceptions import GenericError

from bridge.kernel.errors import StorageFailure
from bridge.storage.port import EMPTY, FileTable, Int64, one_spelling, sort


def require_inside(prefix: str, ordered: FileTable) -> None:
    """Errors: GenericError: a sorted listing holds what is not below a directory."""
    for path in (*ordered.paths[:1].to_pylist(), *ordered.paths[-1:].to_pylist()):
        if not path.startswith(inside(prefix)):
            raise GenericError(f"Got invalid list response: {path} is elsewhere")


def distinct(prefix: str, files: FileTable) -> FileTable:
    """The files sorted, each once.

    Errors:
        StorageFailure: one was listed in two states.
        GenericError: one is elsewhere.
    """
    files = sort(files)
    require_inside(prefix, files)
    paths = files.paths
    double = np.zeros(len(files), np.bool_)
    double[1:] = mask(pc.equal(paths[1:], paths[:-1]))
    for at in np.flatnonzero(double).tolist():
        one, other = (_row(files, i) for i in (at - 1, at))
        if one != other and 0 in (one[0], other[0]):  # a file, and the marker of a directory
            double[at] = False
        elif one != other:
            raise StorageFailure(
                f"the store lists {paths[at].as_py()} twice: of {one[0]} and of {other[0]} bytes, "
                f"as {one[2]} and as {other[2]}",
                "it was rewritten meanwhile, or the store is broken: ask again",
            )
    return files.filter(~double)


def _row(files: FileTable, at: int) -> tuple[int, int, str | None]:
    etag = None if files.etags is None else files.etags[at].as_py()
    return int(files.sizes[at]), int(files.modified[at]), etag


def inside(prefix: str) -> str:
    return prefix.removesuffix("/") + "/"


def directly_in(prefix: str, files: FileTable) -> FileTable:
    depth = inside(prefix).count("/")
    return files.filter(mask(pc.equal(pc.count_substring(files.paths, "/"), depth)))


def files_after(files: FileTable, name: str | None) -> FileTable:
    return files if name is None else files.filter(mask(pc.greater(files.paths, name)))


def listed_files(base: str, prefix: str, batch: pa.RecordBatch) -> FileTable:
    """The files of the client's page, without the marker of the directory that is listed."""
    if not batch.num_rows:
        return EMPTY
    keys = batch.column("path").cast(pa.large_string())
    paths = pc.binary_join_element_wise(
        pa.scalar(base, pa.large_string()), keys, pa.scalar("", pa.large_string())
    )
    modified = batch.column("last_modified").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    files = FileTable(
        paths,
        true_sizes(batch.column("size").to_numpy().astype(np.int64)),
        modified.to_numpy(),
        one_spelling_of(batch.column("e_tag").cast(pa.large_string())),
    )
    return files.filter(mask(pc.not_equal(paths, prefix)))


def true_sizes(sizes: Int64) -> Int64:
    """Errors: GenericError: there is a size of no file. It would count as that of an empty one."""
    if (sizes < 0).any():
        raise GenericError(
            "Got invalid list response: a file of 2^63 bytes or more, or of less than 0"
        )
    return sizes


def one_spelling_of(etags: pa.Array) -> pa.Array:
    """As `one_spelling`, of many: nearly all have it already."""
    fine = pc.and_(pc.starts_with(etags, '"'), pc.greater(pc.binary_length(etags), 2))
    if pc.all(pc.fill_null(fine, True)).as_py():
        return etags
    return pa.array([one_spelling(etag) for etag in etags.to_pylist()], pa.large_string())


def mask(found: Any) -> Any:
    """An array of booleans for numpy."""
    return found.to_numpy(zero_copy_only=False)
