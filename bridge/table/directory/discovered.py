"""A table's directories that hold data, as columns: no object per file or directory.

Storage has no list of partitions, only files. A directory counts if it directly contains at least
one file that an engine would read: the file is not empty, and no name on its path from the root is
hidden. Names that begin with ``.`` or ``_`` are hidden, except directories that name a partition
(``_year=2024``), as in Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.errors import InvalidUri
from bridge.kernel.threads import Threads
from bridge.storage.port import FileTable, LinkOutside, Storage
from bridge.storage.uri import is_text, printable

_log = logging.getLogger(__name__)
Int64 = npt.NDArray[np.int64]
SCHEMA = pa.schema(
    [
        ("path", pa.large_string()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
        ("newest", pa.int64()),
        ("sample", pa.large_string()),
        ("sample_bytes", pa.int64()),
    ]
)
_HIDDEN = r"(^|/)(\.|_[^=/]*/|_[^/]*$)"
_TELLING = r"^(?P<name>(?:[^/._][^/]*/|_[^/=]*=[^/]*/)*_[^=/]*)/"
"""The first hidden directory of a path; not one whose name begins with a dot."""
STAGING = ("_temporary", ".hive-staging", ".spark-staging")
"""How the names begin of directories in which Spark and Hive keep what is not committed."""
_OF_ENGINES = frozenset({"_temporary", "_delta_log", "_spark_metadata", "_metadata", "_tmp"})
_NAMED = 10
_NAME = r"/?[^/]*$"
_FEW = 256
"""Up to this many directories directly below the root are listed by one call each."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """Directories with data below one root, sorted by path.

    Attributes:
        root: canonical URI.
        rows: with `SCHEMA`: ``path`` relative to the root (empty: the root itself); ``files``,
            ``bytes`` and ``newest`` (microseconds since the epoch) of the files directly in it;
            ``sample``, the name of its newest file, and that file's size.
        refused: directories that cannot be listed, relative to the root as people can read them,
            each with the reason. None of their files is in ``rows``.
    """

    root: str
    rows: pa.Table
    refused: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def paths(self) -> list[str]:
        return self.rows["path"].to_pylist()  # type: ignore[no-any-return]

    def uri(self, directory: str) -> str:
        return f"{self.root}/{directory}" if directory else self.root


def list_directories(storage: Storage, root: str, *, threads: int = 16) -> Discovered:
    """Lists everything below a root and keeps one row per directory.

    A directory with a file that cannot be named, or with a link out of it, is refused by itself,
    not those below it.

    Args:
        root: canonical URI.
        threads: maximum number of concurrent listings.

    Errors:
        StorageFailure.
    """
    every = _directories_in(storage, root)
    children = [c for c in every if is_visible(c)]
    if all(map(is_text, children)):
        with suppress(InvalidUri):
            return _listed(storage, root, every, children, threads)
    return _one_by_one(storage, root, children, threads)


def _listed(
    storage: Storage, root: str, every: list[str], children: list[str], threads: int
) -> Discovered:
    """Errors: InvalidUri: for one directory, whichever it is."""
    if len(children) < 2:
        return Discovered(root, combine(summaries(storage, root, root)))
    if len(children) > _FEW:
        # Many small directories: one listing, split between them if the store supports it.
        pages = storage.pages(root, hints=pa.array(children, pa.large_string()))
        return Discovered(root, combine(summarise(page, root) for page in pages))
    _warn(c for c in every if c.rpartition("/")[2].startswith("_") and not is_visible(c))
    own = combine(summarise(p, root) for p in storage.pages(root, recursive=False))
    with Threads(threads, "listing") as pool:
        parts = list(pool.map(lambda child: combine(summaries(storage, child, root)), children))
    return Discovered(root, combine([own, *parts]))


def _one_by_one(storage: Storage, root: str, children: list[str], threads: int) -> Discovered:
    parts: list[pa.Table] = []
    refused: list[tuple[str, str]] = []

    def look(directory: str) -> tuple[pa.Table | InvalidUri, list[str]]:
        try:
            own = combine(summarise(p, root) for p in storage.pages(directory, recursive=False))
        except InvalidUri as error:
            own = error
        try:
            inside = children if directory == root else _directories_in(storage, directory)
        except InvalidUri as error:
            return error, []
        return own, inside

    due = [root]
    with Threads(threads, "listing") as pool:
        while due:
            found = list(pool.map(look, due))
            for directory, (own, _) in zip(due, found, strict=True):
                if isinstance(own, InvalidUri):
                    name = printable(directory[len(root.removesuffix("/")) + 1 :])
                    refused.append((name, own.message))
                else:
                    parts.append(own)
            due = [c for _, inside in found for c in inside if is_visible(c)]
    return Discovered(root, combine(parts), tuple(refused))


def _directories_in(storage: Storage, directory: str) -> list[str]:
    """Without links out of the directory, for which its files cannot be listed."""
    try:
        found = storage.list_directories(directory)
    except LinkOutside as error:
        found = error.directories
    return [uri.rstrip("/") for uri in found]


def summaries(storage: Storage, prefix: str, root: str) -> Iterator[pa.Table]:
    """`summarise` for each page of the listing below a prefix."""
    return (summarise(page, root) for page in storage.pages(prefix))


def is_visible(directory: str) -> bool:
    """Whether engines read a directory of this name."""
    name = directory.rpartition("/")[2]
    return not (name.startswith(".") or (name.startswith("_") and "=" not in name))


def summarise(listing: FileTable, root: str) -> pa.Table:
    """One row per directory of a listing; other pages may add rows for the same directory."""
    if not len(listing):
        return SCHEMA.empty_table()
    relative = pc.utf8_slice_codeunits(listing.paths, len(root.removesuffix("/")) + 1)
    keep = ~_left_out(listing, relative, root)
    if not keep.all():
        relative = relative.filter(pa.array(keep))
    paths = pc.replace_substring_regex(relative, _NAME, "")
    nameless = pc.starts_with(relative, "/")
    if pc.any(nameless).as_py():  # a key t//f of a table at t, which is no file in the root
        paths = pc.if_else(pc.and_(nameless, pc.equal(paths, "")), "/", paths)
    names = pc.replace_substring_regex(relative, r"^(?s:.*)/", "")
    sizes = listing.sizes[keep]
    return _grouped(
        paths, np.ones(len(sizes), np.int64), sizes, listing.modified[keep], names, sizes
    )


def visible_files(listing: FileTable, root: str) -> FileTable:
    """The files that engines read as data of the table below a root, at any depth.

    Warns of directories that hold data and are left out, except those of engines' own.
    """
    relative = pc.utf8_slice_codeunits(listing.paths, len(root.removesuffix("/")) + 1)
    return listing.filter(~_left_out(listing, relative, root))


def _left_out(listing: FileTable, relative: pa.Array, root: str) -> npt.NDArray[np.bool_]:
    hidden = pc.match_substring_regex(relative, _HIDDEN).to_numpy(zero_copy_only=False)
    empty = listing.sizes <= 0
    if hidden.any():
        told = pc.extract_regex(relative.filter(pa.array(hidden & ~empty)), _TELLING)
        names = pc.struct_field(told, "name").unique().drop_null().to_pylist()
        _warn(f"{root}/{name}" for name in names)
    found: npt.NDArray[np.bool_] = hidden | empty
    return found


def _warn(hidden: Iterable[str]) -> None:
    for uri in sorted(hidden)[:_NAMED]:
        if uri.rpartition("/")[2] not in _OF_ENGINES:
            _log.warning(
                "%s is left out with its files: a directory whose name begins with _ is hidden, "
                "unless it is key=value",
                uri,
            )


def combine(parts: Iterable[pa.Table]) -> pa.Table:
    """Merges the parts into one row per directory, sorted by path."""
    rows = pa.concat_tables([SCHEMA.empty_table(), *parts]).combine_chunks()
    if not rows.num_rows:
        return rows

    def whole(name: str) -> pa.Array:
        return pa.concat_arrays(rows[name].chunks)

    numbers = {n: whole(n).to_numpy() for n in ("files", "bytes", "newest", "sample_bytes")}
    return _grouped(
        whole("path"),
        numbers["files"],
        numbers["bytes"],
        numbers["newest"],
        whole("sample"),
        numbers["sample_bytes"],
    ).sort_by("path")


def _grouped(
    paths: pa.Array, files: Int64, sizes: Int64, newest: Int64, names: pa.Array, each: Int64
) -> pa.Table:
    encoded = pc.dictionary_encode(paths)
    group = encoded.indices.to_numpy()
    count = len(encoded.dictionary)
    # The last of each group, ordered by time and then by position, is the newest.
    order = np.lexsort((np.arange(len(group)), newest, group))
    last = order[np.flatnonzero(np.diff(group[order], append=count))]
    return pa.table(
        [
            encoded.dictionary,
            _sums(group, files, count),
            _sums(group, sizes, count),
            newest[last],
            names.take(pa.array(last)),
            each[last],
        ],
        schema=SCHEMA,
    )


def _sums(group: npt.NDArray[np.int32], values: Int64, count: int) -> Int64:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, group, values)
    return sums
