"""A table: its columns, scans of it, and its index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING

from bridge.app.api.clustering import TableClustering
from bridge.app.api.html import page
from bridge.app.api.index import TableIndex
from bridge.app.api.scan import Scan, output_schema
from bridge.app.api.scan_options import ScanOptions
from bridge.expression.nodes import AlwaysTrue, Expression
from bridge.expression.parsing.text import DIALECTS, parse_where
from bridge.kernel.errors import InvalidRequest
from bridge.runtime.compose import is_location
from bridge.table.model import CatalogTable as Definition
from bridge.table.read_version import ReadVersion, parse_read_version

if TYPE_CHECKING:
    import pyarrow as pa

    from bridge.app.api.context import SessionContext
    from bridge.sync.report import SyncReport


class Table:
    """One table of a session; made by `Session.table`. Immutable, safe for threads."""

    def __init__(self, session: SessionContext, text: str) -> None:
        self._session = session
        self._text = text

    @property
    def name(self) -> str:
        """``schema.table``, or the directory as it was given."""
        return self._text

    @property
    def location(self) -> str:
        """The canonical URI of its root."""
        return self._definition().location

    @property
    def format(self) -> str:
        """``parquet`` or ``orc``."""
        return self._definition().format

    @property
    def schema(self) -> pa.Schema:
        """The columns that a scan returns, partition keys last, in Arrow's types."""
        return output_schema(self._definition(), None)

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Names of the partition keys, in the order of the directory levels."""
        return tuple(k.name for k in self._definition().partition_keys)

    @property
    def properties(self) -> dict[str, str]:
        """The metastore's properties of the table; none of a directory."""
        return dict(self._definition().properties)

    @property
    def index(self) -> TableIndex:
        """Its index; there need be none yet."""
        return TableIndex(self._session, self._text)

    @property
    def clustering(self) -> TableClustering:
        """What writers ask about its clustering plans."""
        return TableClustering(self._session, self._text)

    def scan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        semantics: str = "trino",
        freshness: str | None = None,
        pruning: bool = True,
        generation: int | None = None,
        version: str | None = None,
        changes: tuple[str, str] | None = None,
        read_optimized: bool = False,
        segments: Sequence[str] | None = None,
    ) -> Scan:
        """A scan of the rows that satisfy a condition. Nothing is read before it is asked for.

        Args:
            where: a condition in the SQL dialect of ``semantics``, without the word WHERE; None
                takes all rows.
            columns: names of columns, partition keys or hidden columns (``$path``), in the order
                wanted; None takes all columns and partition keys.
            limit: most rows; which ones is not specified.
            semantics: ``trino``, ``hive`` or ``spark``: whose reading of NaN, CHAR, LIKE, casts and
                rounding applies, to pruning and to rows alike.
            freshness: ``live``, ``cached(60s)``, ``snapshot`` or ``fresh``; None takes the table's
                own or the session's.
            pruning: False reads every file, for comparison.
            generation: a generation of the index other than the newest.
            version: a version of the table by its name in the table format, such as an instant of a
                Hudi table; None is the newest.
            changes: rows changed after one version, up to and including another; an empty text as
                the second is the newest.
            read_optimized: reads only base files of a Hudi table; logs are not merged.
            segments: ids of segments of a table of segments; None reads all.

        Errors:
            InvalidPredicate: the condition does not parse.
            InvalidRequest: an argument is of another type, the limit is negative, or the semantics
                are none of these.
        """
        if semantics not in DIALECTS:
            raise InvalidRequest(f"no semantics {semantics!r}", f"one of {', '.join(DIALECTS)}")
        if limit is not None and (not isinstance(limit, Integral) or int(limit) < 0):
            raise InvalidRequest(f"a limit of {limit!r}", "give a whole number, 0 or more")
        if isinstance(columns, str):
            raise InvalidRequest(f"columns is the text {columns!r}", f"give a list: [{columns!r}]")
        if where is not None and not isinstance(where, str):
            raise InvalidRequest(f"where is {where!r}", "give a condition as text: 'id = 5'")
        expression: Expression = AlwaysTrue()
        dropped: tuple[str, ...] = ()
        if where is not None:
            expression, dropped = parse_where(where, semantics)
        return self._scan(
            ScanOptions(
                expression=expression,
                dropped=dropped,
                columns=None if columns is None else tuple(columns),
                limit=None if limit is None else int(limit),
                semantics=semantics,
                freshness=freshness,
                pruning=pruning,
                generation=generation,
                read=_read_version(version, changes, read_optimized, segments),
            )
        )

    def sync(
        self,
        location: str | None = None,
        *,
        extractor: str | None = None,
        partition_keys: Sequence[str] = (),
        dry_run: bool = False,
        full: bool = False,
        adopt: bool = False,
        index: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> SyncReport:
        """Makes the metastore say what lies on storage: the table, its columns and partitions.

        Args:
            location: the directory of a table that the metastore does not know yet.
            extractor: how directories spell partitions; None: as before, or ``hive``.
            partition_keys: keys of a new table (``dt:date``), where directories do not name them.
            dry_run: finds the difference and changes nothing.
            full: compares every partition.
            adopt: takes over a table that something else has made.
            index: ``local`` or ``spark`` refreshes the index at the end.
            progress: called with what is done and what is to do.

        Errors:
            InvalidRequest: it is a directory and no table of the metastore.
            those of ``skipbridge sync``.
        """
        if is_location(self._text):
            raise InvalidRequest(
                f"{self._text} is a directory, and a sync is of a table in the metastore",
                "session.table('schema.table').sync(location=...)",
            )
        from bridge.clustering.commands.publish import left_lines
        from bridge.runtime.create_table import table_name
        from bridge.sync.job import SyncJob, parse_keys, run_job
        from bridge.sync.request import SyncRequest

        request = SyncRequest(
            name=table_name(self._text),
            location=location,
            extractor=extractor,
            keys=parse_keys(tuple(partition_keys)),
            adopt=adopt,
            full=full,
            dry_run=dry_run,
        )
        job = SyncJob(request, index, left_lines)
        quiet = progress or (lambda done, total: None)
        report = run_job(self._session._config, job, progress=quiet, say=lambda text: None)
        self._session._renew(self._text)
        return report

    def __repr__(self) -> str:
        return f"<bridge.Table {self._text!r}>"

    def _repr_html_(self) -> str:
        definition = self._definition()
        keys = {k.name for k in definition.partition_keys}
        rows = [
            (c.name, str(c.type), "partition key" if c.name in keys else "")
            for c in (*definition.columns, *definition.partition_keys)
        ]
        return page(f"{self._text} ({definition.format})", rows, ("column", "type", ""))

    def _definition(self) -> Definition:
        return self._session._definition(self._text)

    def _scan(self, asked: ScanOptions) -> Scan:
        return Scan(self._session, self._text, asked)


def _read_version(
    version: str | None,
    changes: tuple[str, str] | None,
    read_optimized: bool,
    segments: Sequence[str] | None,
) -> ReadVersion:
    if segments is not None:
        if isinstance(segments, str) or not segments:
            raise InvalidRequest(f"segments is {segments!r}", "give a list of ids: ['3', '5']")
        text = f";segments={','.join(map(str, segments))}"
        read = _read_version(version, changes, read_optimized, None)
        return replace(read, segments=parse_read_version(text).segments)
    if version is not None and changes is not None:
        raise InvalidRequest("both a version and changes are asked for", "ask for one of them")
    if version is not None:
        return replace(parse_read_version(f"version:{version}"), read_optimized=read_optimized)
    if changes is not None:
        text = f"changes:{changes[0]}..{changes[1]}"
        return replace(parse_read_version(text), read_optimized=read_optimized)
    return ReadVersion(read_optimized=read_optimized)
