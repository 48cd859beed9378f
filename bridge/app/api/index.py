"""The index of one table: build, refresh, describe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bridge.app.api.html import page
from bridge.index.kinds.registry import kinds as known_kinds
from bridge.index.kinds.request import from_options
from bridge.kernel.errors import InvalidRequest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from bridge.app.api.context import SessionContext
    from bridge.app.api.scan_report import IndexReport
    from bridge.index.kinds.request import RequestedIndexes

Progress = Callable[[int, int], None]
Say = Callable[[str], None]
Nan = Literal["footer", "scan"]
Form = Literal["long", "wide"]


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """What a build, a refresh or an addition did.

    Attributes:
        generation: the one that describes the table now.
        committed: whether this call made it; False where nothing had changed.
        files: files of the table, or those that were added.
        read: files that were read.
        removed: entries that vanished or were replaced.
        failed: ``file`` and ``reason`` of those that could not be read: every query reads them.
        refused: ``partition`` and ``reason`` of those that could not be listed.
        bytes_written: to storage.
        seconds: it took.
    """

    table: str
    generation: int
    committed: bool
    files: int
    read: int
    removed: int
    failed: list[dict[str, str]]
    refused: list[dict[str, str]]
    bytes_written: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``skipbridge index build --output json`` prints them."""
        return asdict(self)

    def _repr_html_(self) -> str:
        rows = [(k, len(v) if isinstance(v, list) else v) for k, v in self.to_dict().items()]
        return page(f"index of {self.table}", rows[1:])


class TableIndex:
    """The index of a table; made by `Table.index`. There need be none yet."""

    def __init__(self, session: SessionContext, table: str) -> None:
        self._session = session
        self._table = table

    def build(
        self,
        *,
        nan: Nan = "footer",
        full: bool = False,
        spark: SparkSession | None = None,
        modes: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
        progress: Progress | None = None,
        say: Say | None = None,
        **kinds: str | Sequence[str],
    ) -> IndexBuild:
        """Indexes new and changed files, forgets vanished ones, and commits one new generation.

        Args:
            nan: ``scan`` also reads float columns, to count NaN: > and <> on them can then prune.
            full: reads every file again.
            spark: reads files on this session; None reads them with threads of this process.
            modes: how much min/max keeps, by column or ``*``: ``none``, ``counts``,
                ``truncate(16)`` or ``full``.
            without: indexes to drop, as `show` spells them.
            progress: called with files read and files to read.
            say: called with what a person should know, such as files that could not be read.
            kinds: indexes beside min/max, each with its columns: ``bloom="tailnum:fpp=0.001"``,
                ``values=["carrier", "dest"]``. They are kept up to date from then on.

        Errors:
            ColumnNotFound, InvalidConfiguration: what is asked for cannot be indexed.
            InvalidRequest: there is no such kind, or an argument is of another type.
            TableNotFound, UnsupportedTable, IndexConflict, StorageFull and their like.
        """
        asked = _asked(kinds, modes or {}, without)
        return self._index(asked, nan=nan, full=full, spark=spark, progress=progress, say=say)

    def refresh(
        self,
        *,
        nan: Nan = "footer",
        spark: SparkSession | None = None,
        progress: Progress | None = None,
        say: Say | None = None,
    ) -> IndexBuild:
        """Indexes new and changed files and forgets vanished ones; settings stay as they are.

        Args and errors: as `build`.
        """
        asked = _asked({}, {}, ())
        return self._index(asked, nan=nan, spark=spark, progress=progress, say=say)

    def add(
        self,
        files: Iterable[str | PathLike[str]],
        *,
        nan: Nan = "footer",
        spark: SparkSession | None = None,
        progress: Progress | None = None,
        say: Say | None = None,
    ) -> IndexBuild:
        """Indexes exactly the files that the caller has just written, without listing the table.

        Commits one generation on top of the newest; entries of all other files stay as they are. A
        job that writes indexes its output so before it ends. Where there is no index yet, one of
        these files alone begins; the next build or refresh takes up the others. Of several writers
        at once each adds its own.

        A file so young that a later write would not show in its time is waited for, two seconds at
        most; one that is still too young then is read by queries until the next refresh.

        Args:
            files: paths or URIs; a directory stands for the data files in it and below it.
            nan: as `build`.
            spark: the job's session, whose executors read the files; None reads them with threads
                of this process.
            progress, say: as `build`.

        Errors:
            InvalidRequest: no file is given, one lies outside the table's locations, or is hidden.
            FileUnreadable: one is not there.
            IndexCorrupt: the index is damaged, or of an older version: a build replaces it.
            TableNotFound, UnsupportedTable, IndexConflict, StorageFull and their like.
        """
        from bridge.indexing.add import add_to_index

        if isinstance(files, str | PathLike):
            raise InvalidRequest(f"files is one path: {files}", "give a list of paths")
        _check_nan(nan)
        made = add_to_index(
            self._session._config,
            self._table,
            [str(file) for file in files],
            nan=nan,
            spark=spark,
            progress=progress or _nobody,
            say=say or _nobody,
        )
        self._session._renew(self._table)
        return IndexBuild(**made)

    def statistics(self, form: Form = "long", columns: Sequence[str] | None = None) -> pa.Table:
        """The bounds and counts that the index holds, of every indexed file.

        Args:
            form: ``long`` has a row for each file and column: ``path``, ``column``, ``min`` and
                ``max`` as text, ``nulls``, ``nans``, ``rows``, ``exact``, ``bytes`` of the column
                in the file, and ``modified``, the time of the file. ``wide`` has a row for each
                file: ``path``, ``rows``, ``modified``, and for each column ``<name>.min`` and
                ``<name>.max`` in its own type, ``<name>.nulls``, ``<name>.nans``,
                ``<name>.exact`` and ``<name>.bytes``.
            columns: names, those of fields with dots (``st.a``); None takes all.

        NULL is not known. An exact bound is a value of the file; another one (a long text that was
        cut) may lie beyond all of them.

        Errors:
            GenerationNotFound: there is no index.
            InvalidRequest: no such form, or no bounds are kept of a column.
            IndexCorrupt, StorageFailure.
        """
        from bridge.app.api.statistics import index_statistics

        return index_statistics(self._session._config, self._table, form, columns)

    def report(self, log: str | Path | None = None) -> IndexReport:
        """How much the index helps, by column, and what would make it help more.

        Args:
            log: of predicates; None takes the one of the settings, if planners keep one.

        Errors:
            GenerationNotFound: there is no index.
            IndexCorrupt, StorageFailure: it cannot be read.
        """
        from bridge.app.api.scan_report import IndexReport
        from bridge.indexing.report import report_index

        place = None if log is None else Path(log)
        return IndexReport.of(report_index(self._session._config, self._table, place))

    def show(self) -> dict[str, Any]:
        """The newest generation: its number, files, indexes, bytes and age in seconds.

        Errors: as `report`.
        """
        from bridge.indexing.table import describe_index

        return describe_index(self._session._config, self._table)

    def list_failed(self) -> list[dict[str, Any]]:
        """``file`` and ``reason`` of the files that could not be read when they were indexed.

        Errors: as `report`.
        """
        from bridge.indexing.table import failed_files

        return failed_files(self._session._config, self._table)

    def __repr__(self) -> str:
        return f"<bridge.TableIndex of {self._table!r}>"

    def _index(
        self,
        asked: RequestedIndexes,
        *,
        nan: Nan,
        full: bool = False,
        local: bool | None = True,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
        say: Say | None = None,
        check: bool = True,
    ) -> IndexBuild:
        from bridge.indexing.table import index_table
        from bridge.runtime.nested_files import warn_of_nested

        _check_nan(nan)
        made = index_table(
            self._session._config,
            self._table,
            nan=nan,
            local=local,
            full=full,
            asked=asked,
            spark=spark,
            progress=progress or _nobody,
            say=say or _nobody,
            check=check,
        )
        self._session._renew(self._table)
        if say is not None and check:
            warn_of_nested(self._session._config, self._table, say)
        return IndexBuild(**made)


def _nobody(*_: object) -> None:
    """Whom nothing is told."""


def _check_nan(nan: str) -> None:
    if nan not in ("footer", "scan"):
        raise InvalidRequest(f"nan is {nan!r}", "give footer or scan")


def _asked(
    kinds: Mapping[str, str | Sequence[str]], modes: Mapping[str, str], without: Sequence[str]
) -> RequestedIndexes:
    if isinstance(modes, str):
        raise InvalidRequest(
            f"modes is the text {modes!r}", f"give them by column: {{'*': {modes!r}}}"
        )
    if isinstance(without, str):
        raise InvalidRequest(f"without is the text {without!r}", f"give a list: [{without!r}]")
    there = {kind.name for kind in known_kinds().values()}
    for name in kinds:
        if name not in there:
            raise InvalidRequest(f"no index kind {name!r}", f"one of {', '.join(sorted(there))}")
    given = {n: (v,) if isinstance(v, str) else tuple(v) for n, v in kinds.items()}
    spelled = tuple(f"{column}={mode}" for column, mode in modes.items())
    return from_options(given, spelled, tuple(without))
