"""Plans scans for clients: files as tasks, in pages.

The law: the tasks of one plan are the files of one state of the table. A page says all that is
needed to answer it, so that another planner can: it plans again and compares a digest of the files.
"""

from __future__ import annotations

import base64
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import orjson

from bridge.expression.parsing.calendar import format_date
from bridge.formats.parquet.stored_file import StoredFile
from bridge.iceberg_rest.batches import require_plain, rows_and_columns_from_index
from bridge.iceberg_rest.clients import Client
from bridge.iceberg_rest.expressions import (
    SEMANTICS,
    Constant,
    Filter,
    parse,
    to_expression,
    to_java,
    to_plain,
)
from bridge.iceberg_rest.footers import Footers
from bridge.iceberg_rest.layout import IcebergLayout
from bridge.iceberg_rest.paths import require_whole
from bridge.iceberg_rest.residuals import longest_list
from bridge.iceberg_rest.selection import Selection
from bridge.iceberg_rest.tables import RELOAD, Tables, generation_in, require_same
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import (
    BridgeError,
    FileChanged,
    GenerationNotFound,
    InvalidRequest,
    PlanLost,
    UnsupportedTable,
)
from bridge.kernel.types import Kind
from bridge.planner.open_snapshots import OpenSnapshot
from bridge.planner.request import ScanRequest
from bridge.planner.scan_plan import ScanPlan
from bridge.service.plan_log import files_planned
from bridge.storage.port import FileStat
from bridge.table.directory.freshness import FRESH, Cached, Indexed
from bridge.table.model import Partition, TableName
from bridge.table.partition import UNPARSABLE
from bridge.table.registry import DIRECTORY
from bridge.table.slices import SliceBatch

_PAGE_FILES = 5000
_PAGE_BYTES = 16 << 20
_TASK_BYTES = 200
_LONGEST_FILTER = 16 << 10
"""Bytes of a compressed filter that a page carries itself."""
_TRIES = 3
"""Of a plan, while files change under it."""
_HELD_SECONDS = 60.0
_REUSED_SECONDS = 10.0
_HELD_PLANS = 64
_HELD_FILES = 1_000_000
_MANY_FILES = 100_000
_LARGE_AT_ONCE = 4
"""Plans of many files, each of which takes hundreds of bytes while its plan is made."""
_LARGEST_FILTER = 64 << 20


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What decides a plan.

    Attributes:
        snapshot_id: as the client gave it; None if it did not.
        generation: of the index, if the client's snapshot pins one; None: the newest state.
        filter: as JSON.
        limit: rows after which planning may end; None: all files are wanted.
    """

    table: TableName
    client: Client
    snapshot_id: int | None
    generation: int | None
    filter: bytes
    limit: int | None


@dataclass(frozen=True, slots=True)
class Kept:
    """The files of a plan, by path.

    Attributes:
        id: a digest of the question and of the files.
        counts: rows; -1 if not known.
        partition: of each file, its place in ``partitions``: spec ids, and values as JSON.
        unknown: the residual of a file whose rows are not known.
        starts: the first file of each page.
        part: the residual with some of the values of a long list; None: all files have the same.
        values: of each file, the first of its values and that after the last one.
        generation: of the index, if that is the state; None if storage was listed.
        until: when another plan must be made for the same question, by the monotonic clock.
    """

    id: str
    paths: list[str]
    sizes: list[int]
    counts: list[int]
    partition: list[int]
    partitions: list[tuple[int, orjson.Fragment]]
    residual: orjson.Fragment
    unknown: orjson.Fragment
    starts: list[int]
    generation: int | None
    until: float
    part: Callable[[int, int], orjson.Fragment] | None = None
    values: list[tuple[int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.paths)


class Plans:
    """Plans of one process; all threads share it.

    Args:
        most_footers: footers that one plan reads, of files that no index describes.
    """

    def __init__(self, tables: Tables, footers: Footers, most_footers: int) -> None:
        self._tables, self._footers = tables, footers
        self._planner = tables.planner
        self._most_footers = most_footers
        self._held: BoundedCache[str, Kept] = BoundedCache(
            _HELD_PLANS, capacity=_HELD_FILES, weigh=len, seconds=_HELD_SECONDS
        )
        self._last: BoundedCache[PlanRequest, tuple[str, float]] = BoundedCache(_HELD_PLANS)
        self._filters: BoundedCache[str, bytes] = BoundedCache(_HELD_PLANS)
        self._large = threading.BoundedSemaphore(_LARGE_AT_ONCE)

    def plan(self, name: TableName, client: Client, body: dict[str, Any]) -> bytes:
        """The first page of a plan, and tokens of the others.

        Errors:
            InvalidRequest: the client must load the table again, or cannot ask so.
            UnsupportedTable: a file is not read rightly; with the column's name.
            LimitExceeded; as `Planner.plan`.
        """
        if body.get("start-snapshot-id") is not None or body.get("end-snapshot-id") is not None:
            raise InvalidRequest(
                f"{name} keeps no snapshots, so there is no incremental read", "read it whole"
            )
        snapshot_id = _whole(body, "snapshot-id")
        given = body.get("filter")
        filter = parse(True if given is None else given)
        text = _dumped(to_plain(filter))
        rows = _whole(body, "min-rows-requested")
        limit = rows if text == b"true" and rows is not None and rows > 0 else None
        asked = PlanRequest(name, client, snapshot_id, generation_in(snapshot_id), text, limit)
        kept = self._again(asked)
        if kept is None:
            selection = Selection(client, filter, body.get("select"))
            kept = self._keep(asked, self._plan(asked, filter, selection))
        more = {"status": "completed", "plan-id": kept.id, "plan-tasks": self._tokens(asked, kept)}
        return _answer(kept, 0, more)

    def tasks(self, name: TableName, client: Client, token: str) -> bytes:
        """A further page of a plan.

        Errors:
            PlanLost: the files are others now, or the token is of no planner; as `plan`.
        """
        told = _told(token)
        try:
            text = self._filter(told)
            table, client_told = TableName(*told["t"]), Client(told["c"])
            limit = _whole(told, "l")
            snapshot_id, generation = _whole(told, "s"), _whole(told, "g")
            asked = PlanRequest(table, client_told, snapshot_id, generation, text, limit)
            id, page = str(told["d"]), told["p"]
            body = orjson.loads(text)
        except (KeyError, TypeError, ValueError, InvalidRequest) as error:
            raise _lost() from error
        if asked.table != name or asked.client != client:
            raise _lost()
        kept = self._held.get(id)
        if kept is None:
            kept = self._keep(asked, self._plan(asked, parse(body)))
        if kept.id != id or not isinstance(page, int) or not 0 < page < len(kept.starts):
            raise _lost()
        return _answer(kept, page, {"plan-tasks": []})

    def _again(self, asked: PlanRequest) -> Kept | None:
        """The last plan of a question, while its answer must be the same: Java asks twice.

        To Java alone: others may be refused for what they select, which another plan does not tell.
        """
        if asked.client is not Client.JAVA:
            return None
        id, until = self._last.get(asked, ("", 0.0))
        return self._held.get(id) if time.monotonic() < until else None

    def _keep(self, asked: PlanRequest, kept: Kept) -> Kept:
        self._held.put(kept.id, kept)
        self._last.put(asked, (kept.id, kept.until))
        return kept

    def _plan(self, asked: PlanRequest, filter: Filter, selection: Selection | None = None) -> Kept:
        """Plans again, of a newer state, if a file goes between its listing and its footer.

        Args:
            selection: None: it was checked with the first page of these files.
        """
        freshness = self._younger(asked.table)
        for _ in range(_TRIES - 1):
            with suppress(FileChanged):
                return self._plan_once(asked, filter, selection, freshness)
            freshness = FRESH if asked.generation is None else freshness
        return self._plan_once(asked, filter, selection, freshness)

    def _plan_once(
        self,
        asked: PlanRequest,
        filter: Filter,
        selection: Selection | None,
        freshness: str | None,
    ) -> Kept:
        started, began = time.perf_counter(), time.monotonic()
        opened, request = self._opened(asked, freshness)
        layout = self._layout(asked, opened, request)
        if selection is not None:
            selection.require(layout)
        request = replace(request, predicate=to_expression(filter, layout.resolve))
        plan = self._planner.open(request, opened)
        try:
            batches = [part for batch in plan.batches() for part in batch.pieces()]
            files_planned(plan, time.perf_counter() - started)
            many = sum(map(len, batches)) > _MANY_FILES
            with self._large if many else nullcontext():
                kept = self._kept(asked, plan, layout, filter, batches, selection)
            fixed = asked.generation is not None and kept.generation is not None
            aged = freshness not in (None, FRESH)
            return replace(kept, until=began + _REUSED_SECONDS) if fixed or aged else kept
        finally:
            plan.close()

    def _layout(
        self, asked: PlanRequest, opened: OpenSnapshot, request: ScanRequest
    ) -> IcebergLayout:
        """The layout that the client holds; what it surely holds, if it does not say which.

        Errors:
            InvalidRequest: it holds another one.
        """
        table = opened.snapshot.table
        # PyIceberg fails on what it does not know; others would read it wrongly.
        learnt = asked.snapshot_id is not None or asked.client is Client.PYICEBERG
        layout = self._tables.layout(table, opened.view, asked.client, learnt=learnt)
        try:
            require_same(table, layout, asked.snapshot_id)
        except InvalidRequest:
            # Each process has met other files. All of them agree about those that there are.
            self._meet_all(opened, request)
            layout = self._tables.layout(table, opened.view, asked.client)
            require_same(table, layout, asked.snapshot_id)
        return layout

    def _meet_all(self, opened: OpenSnapshot, request: ScanRequest) -> None:
        plan = self._planner.open(replace(request, limit=None), opened)
        files: list[FileStat] = []
        told: list[StoredFile | None] = []
        try:
            for batch in (part for whole in plan.batches() for part in whole.pieces()):
                require_plain(request.table, batch)
                files += batch.files.stats()
                told += rows_and_columns_from_index(batch)[1]
            schemas = {one.schema for one in self._stored(files, told)}
        except BridgeError:
            return  # what the plan needs of it, the plan will say
        finally:
            plan.close()
        self._tables.note_schemas(opened.snapshot.table, schemas, alone=True)

    def _stored(self, files: list[FileStat], told: list[StoredFile | None]) -> list[StoredFile]:
        """What files hold, by their footers where no index says it."""
        unknown = [file for file, one in zip(files, told, strict=True) if one is None]
        read = iter(self._footers.read(unknown, self._most_footers))
        return [next(read) if one is None else one for one in told]

    def _opened(
        self, asked: PlanRequest, freshness: str | None
    ) -> tuple[OpenSnapshot, ScanRequest]:
        request = ScanRequest(
            asked.table,
            semantics=SEMANTICS,
            engine=asked.client.value,
            absent_is_empty=True,
            freshness=freshness,
            limit=asked.limit,
        )
        wanted = asked.generation
        opened = self._planner.snapshot(request)
        if wanted is not None and opened.view.generation != wanted:
            try:
                opened = self._planner.snapshot(replace(request, generation=wanted))
            except GenerationNotFound as error:
                raise InvalidRequest(
                    f"{asked.table}: the snapshot that the client holds is gone: {error.message}",
                    RELOAD,
                ) from error
        return opened, request

    def _younger(self, name: TableName) -> str | None:
        """Under ``cached`` a state that is new enough for as long as its plan is given again.

        Not under ``live``: the second plan of a query cannot be told from the first of another one,
        before which a file was written.
        """
        table = self._planner.table(name)
        freshness = self._planner.freshness_of(table)
        if table.table_format != DIRECTORY or not isinstance(freshness, Cached):
            return None
        ttl = freshness.ttl - _REUSED_SECONDS
        return str(Cached(ttl)) if ttl > 0 else None

    def _kept(
        self,
        asked: PlanRequest,
        plan: ScanPlan,
        layout: IcebergLayout,
        filter: Filter,
        batches: list[SliceBatch],
        selection: Selection | None,
    ) -> Kept:
        files: list[FileStat] = []
        owners: list[int] = []
        partitions: list[tuple[int, orjson.Fragment]] = []
        believed: list[int] = []
        stored: list[StoredFile | None] = []
        places: dict[str, int] = {}
        long, values = longest_list(filter, layout), list[tuple[int, int]]()
        for batch in batches:
            require_plain(asked.table, batch)
            own = []
            for partition in batch.partitions:
                place = places.get(partition.name)
                if place is None:
                    place = places[partition.name] = len(partitions)
                    partitions.append(_partition(plan, layout, partition, asked.client))
                own.append(place)
            files += batch.files.stats()
            owners += [own[i] for i in batch.partition.tolist()]
            rows, columns = rows_and_columns_from_index(batch)
            believed += rows
            stored += columns
            values += [] if long is None else long.places(batch)
        counts = self._counts(layout, files, believed, stored, selection)
        names = list(places)
        order = sorted(range(len(files)), key=lambda i: (files[i].uri, owners[i]))
        digest = blake2b(digest_size=16)
        digest.update(orjson.dumps([asked.client.value, asked.limit, layout.digest]))
        digest.update(asked.filter)
        for i in order:
            line = f"{files[i].uri}\0{files[i].size}\0{files[i].modified}\0{names[owners[i]]}\n"
            digest.update(_text(line))
        paths = [self._tables.spell(files[i].uri) for i in order]
        require_whole(asked.client, paths)
        spell = partial(_residual, asked.client, layout)
        residual = spell(filter)
        unknown = residual if asked.client is Client.JAVA else _counted(layout, filter, residual)
        part = None
        page = max(1, min(_PAGE_FILES, _PAGE_BYTES // (_TASK_BYTES + len(residual))))
        starts = list(range(0, len(order), page))
        if long is not None:
            part = partial(long.spell, spell)
            values = [values[i] for i in order]
            each, rest = long.bytes_of(residual)
            starts = _starts([_TASK_BYTES + rest + each * (end - begin) for begin, end in values])
            digest.update(orjson.dumps(starts))
        return Kept(
            digest.hexdigest(),
            paths,
            [files[i].size for i in order],
            [counts[i] for i in order],
            [owners[i] for i in order],
            partitions,
            orjson.Fragment(residual),
            orjson.Fragment(unknown),
            starts or [0],
            plan.view.generation if plan.snapshot.freshness == str(Indexed()) else None,
            0.0,
            part,
            values,
        )

    def _counts(
        self,
        layout: IcebergLayout,
        files: list[FileStat],
        believed: list[int],
        stored: list[StoredFile | None],
        selection: Selection | None,
    ) -> list[int]:
        """Rows of each file; its columns are checked, by its footer where no index has them.

        Args:
            believed: rows by the index; -1 where it knows no certain number.
            stored: columns by the index.
        """
        found = self._stored(files, stored)
        each = {id(one): (one, file.uri) for one, file in zip(found, files, strict=True)}
        self._tables.note_schemas(layout.table, {one.schema for one, _ in each.values()})
        for one, uri in each.values():  # an index has equal ones once
            layout.refuse(one, uri)
        if selection is not None:
            selection.require_times(layout, files, found, self._footers)
        return [
            one.rows if one.rows >= 0 else told for one, told in zip(found, believed, strict=True)
        ]

    def _tokens(self, asked: PlanRequest, kept: Kept) -> list[str]:
        """One for each further page. All together are no longer than a page."""
        pages = len(kept.starts)
        if pages == 1:
            return []
        packed = zlib.compress(asked.filter)
        told: dict[str, Any] = {
            "t": [asked.table.schema, asked.table.table],
            "c": asked.client.value,
            "s": asked.snapshot_id,
            "g": kept.generation,
            "l": asked.limit,
            "d": kept.id,
        }
        if len(packed) <= min(_LONGEST_FILTER, _PAGE_BYTES // pages):
            told["f"] = base64.b64encode(packed).decode()
        else:
            key = told["h"] = blake2b(asked.filter, digest_size=16).hexdigest()
            self._filters.put(key, packed)
        each = (orjson.dumps({**told, "p": page}) for page in range(1, pages))
        return [base64.urlsafe_b64encode(one).decode() for one in each]

    def _filter(self, told: dict[str, Any]) -> bytes:
        if "h" not in told:
            return _unpacked(base64.b64decode(told["f"]))
        packed = self._filters.get(told["h"])
        if packed is None:
            raise KeyError(told["h"])
        return _unpacked(packed)


def _text(line: str) -> bytes:
    """Errors: UnsupportedTable: a file's name is no UTF-8, which JSON cannot say."""
    try:
        return line.encode()
    except UnicodeEncodeError as error:
        name = line.partition("\0")[0]
        raise UnsupportedTable(
            f"the name of a file is no UTF-8: {name!r}", "rename it, or leave it out by a filter"
        ) from error


def _dumped(filter: Any) -> bytes:
    """Errors: InvalidRequest: it is nested too deeply."""
    try:
        return orjson.dumps(filter)
    except TypeError as error:
        raise InvalidRequest(
            f"the filter cannot be written as JSON: {error}", "filter by fewer levels of conditions"
        ) from error


def _unpacked(packed: bytes) -> bytes:
    unpack = zlib.decompressobj()
    try:
        found = unpack.decompress(packed, _LARGEST_FILTER)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if unpack.unconsumed_tail:
        raise ValueError("too large")
    return found


def _told(token: str) -> dict[str, Any]:
    try:
        found = orjson.loads(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise _lost() from error
    if not isinstance(found, dict):
        raise _lost()
    return found


def _lost() -> PlanLost:
    return PlanLost(
        "there is no such plan task: the table's files have changed, or it is of another planner",
        "run the query again",
    )


def _whole(body: dict[str, Any], name: str) -> int | None:
    found = body.get(name)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
        raise InvalidRequest(f"{name} is {found!r}", "give a whole number")
    return found


def _partition(
    plan: ScanPlan, layout: IcebergLayout, partition: Partition, client: Client
) -> tuple[int, orjson.Fragment]:
    """A partition's spec and its values: a NULL is not among them."""
    keys = layout.table.partition_keys
    values = plan.context.values_of(partition) if keys else ()
    mask = 0
    given: list[Any] = []
    for i, key in enumerate(keys):
        value: Any = values[i] if values else UNPARSABLE
        if value is None:
            mask |= 1 << i
            continue
        if isinstance(value, bytes):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                value = UNPARSABLE
        if value is UNPARSABLE:
            raise UnsupportedTable(
                f"{layout.table.name}: the partition {partition.name!r} has no value that is "
                f"{key.type} for the key {key.name}",
                "leave it out by a filter on another key, or rename its directory",
            )
        if key.type.kind is Kind.DATE and client is Client.JAVA:
            value = format_date(value)
        given.append(value)
    return mask, orjson.Fragment(orjson.dumps(given))


def _counted(layout: IcebergLayout, filter: Filter, residual: bytes) -> bytes:
    """A residual under which a client counts rows itself: it is not true as it stands."""
    if not isinstance(filter, Constant) or not layout.fields:
        return residual
    name = layout.fields[0]["name"]
    left, right = {"type": "not-null", "term": name}, {"type": "is-null", "term": name}
    return orjson.dumps({"type": "or", "left": left, "right": right})


def _residual(client: Client, layout: IcebergLayout, filter: Filter) -> bytes:
    """PyIceberg looks only whether it is true."""
    pyiceberg = client is Client.PYICEBERG
    return _dumped(to_plain(filter) if pyiceberg else to_java(filter, layout.resolve))


def _starts(sizes: Iterable[float]) -> list[int]:
    """The first file of each page, by the bytes of each file's task."""
    starts, room, files = [0], float(_PAGE_BYTES), 0
    for i, size in enumerate(sizes):
        if files and (files == _PAGE_FILES or room < size):
            starts.append(i)
            room, files = float(_PAGE_BYTES), 0
        room, files = room - size, files + 1
    return starts


def _answer(kept: Kept, page: int, more: dict[str, Any]) -> bytes:
    begin, end = (*kept.starts, len(kept))[page : page + 2]
    tasks = []
    parts: dict[tuple[int, int], orjson.Fragment] = {}
    for i in range(begin, end):
        spec, values = kept.partitions[kept.partition[i]]
        rows = kept.counts[i]
        residual = kept.residual if rows >= 0 else kept.unknown
        if kept.part is not None:
            some = kept.values[i]
            residual = parts[some] = parts.get(some) or kept.part(*some)
        tasks.append(
            {
                "data-file": {
                    "content": "data",
                    "spec-id": spec,
                    "file-path": kept.paths[i],
                    "file-format": "parquet",
                    "file-size-in-bytes": kept.sizes[i],
                    "record-count": rows,
                    "partition": values,
                },
                "residual-filter": residual,
            }
        )
    return orjson.dumps({**more, "delete-files": [], "file-scan-tasks": tasks})
