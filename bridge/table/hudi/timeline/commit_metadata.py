"""Bodies of instants: JSON commits before table version 8, Avro for everything else.

A completed instant whose body cannot be read is an error with the file's name. It never counts as
a commit without files: rows would be missing.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from bridge.formats.avro.container import MAGIC, Container, checked_schema, without_logical
from bridge.formats.avro.skipping import require_few
from bridge.kernel.errors import FileCorrupt
from bridge.table.hudi.timeline.write_stats import StatsDecoder

_NO_COMMIT = frozenset({"", "null"})


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """What a completed commit, deltacommit or replacecommit wrote. All lists are of its files.

    Attributes:
        operation: ``UPSERT``, ``INSERT_OVERWRITE``, ``COMPACT``, ``CLUSTER`` and so on; may be
            empty.
        extra: ``schema`` is the table's Avro schema as JSON, without meta fields.
        partitions: distinct partition paths; empty if the table has none.
        counts: number of files of each partition; files are in this order.
        names: of base files and logs, without directory.
        sizes: bytes.
        previous: instant of the slice that was written to, empty if the file starts a group.
        appends: some log was appended to, so its size is not known for sure.
        replaced: partition to the file groups that this commit replaces.
    """

    operation: str
    extra: Mapping[str, str]
    partitions: list[str]
    counts: list[int]
    names: list[str]
    sizes: list[int]
    previous: frozenset[str]
    appends: bool
    replaced: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """What a completed clean deleted.

    Attributes:
        retained_from: snapshots of this instant and later ones kept all files; empty: not said.
        deleted: partition to names of files.
    """

    retained_from: str
    deleted: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """The instants that a rollback or restore undid, by requested time."""

    instants: frozenset[str]


def read_commit(content: bytes, name: str) -> CommitMetadata:
    """The body of a completed commit, deltacommit or replacecommit. Errors: FileCorrupt."""
    return commit_of(_fast_commit(content) or _record(content, name), name)


def read_row_counts(content: bytes, name: str) -> dict[str, int]:
    """The rows of each base file that a commit wrote, by the file's name; -1 if it does not say.

    Errors:
        FileCorrupt.
    """
    body = _record(content, name)
    try:
        stats = chain(*(_list(each) for each in _object(body["partitionToWriteStats"]).values()))
        rows = ((stat["path"] or "", stat.get("numWrites")) for stat in stats)
        return {p.rpartition("/")[2]: n if isinstance(n, int) else -1 for p, n in rows}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _corrupt(name, error) from error


def read_clean(content: bytes, name: str) -> CleanMetadata:
    """The body of a completed clean. Errors: FileCorrupt."""
    body = _record(content, name)
    try:
        deleted: dict[str, frozenset[str]] = {}
        for partition, entry in (body.get("partitionMetadata") or {}).items():
            gone = _list(entry.get("deletePathPatterns")) + _list(entry["successDeleteFiles"])
            deleted[partition] = frozenset(path.rpartition("/")[2] for path in gone)
        retained = body.get("earliestCommitToRetain") or ""
        _require_texts([retained, *deleted, *chain(*deleted.values())])
        return CleanMetadata(retained, deleted)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _corrupt(name, error) from error


def read_clean_plan(content: bytes, name: str) -> CleanMetadata:
    """The body of a requested clean, which may have deleted all of it. Errors: FileCorrupt."""
    body = _record(content, name)
    try:
        deleted: dict[str, set[str]] = {}
        for partition, entries in (body.get("filePathsToBeDeletedPerPartition") or {}).items():
            paths = (entry["filePath"] or "" for entry in entries)
            deleted.setdefault(partition, set()).update(p.rpartition("/")[2] for p in paths)
        for partition, files in (body.get("filesToBeDeletedPerPartition") or {}).items():
            names = (path.rpartition("/")[2] for path in _list(files))
            deleted.setdefault(partition, set()).update(names)
        retained = (body.get("earliestInstantToRetain") or {}).get("timestamp") or ""
        _require_texts([retained, *deleted, *chain(*deleted.values())])
        return CleanMetadata(retained, {p: frozenset(gone) for p, gone in deleted.items()})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _corrupt(name, error) from error


def read_rollback(content: bytes, name: str) -> RollbackMetadata:
    """The body of a completed rollback or restore. Errors: FileCorrupt."""
    return rollback_of(_record(content, name), name)


def rollback_of(body: Any, name: str) -> RollbackMetadata:
    """A rollback or restore that was decoded before, as the archived timeline has it."""
    try:
        if "hoodieRestoreMetadata" not in body:
            return RollbackMetadata(frozenset(_list(body["commitsRollback"])))
        undone = set(_list(body.get("instantsToRollback")))
        for parts in (body["hoodieRestoreMetadata"] or {}).values():
            for part in parts:
                undone.update(_list(part["commitsRollback"]))
        return RollbackMetadata(frozenset(undone))
    except (AttributeError, KeyError, TypeError) as error:
        raise _corrupt(name, error) from error


def commit_of(body: Any, name: str) -> CommitMetadata:
    """A commit whose body was decoded before, as the archived timeline has it."""
    try:
        return _commit(body)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise _corrupt(name, error) from error


def _commit(body: Any) -> CommitMetadata:
    partitions: list[str] = []
    counts: list[int] = []
    names: list[str] = []
    sizes: list[int] = []
    previous: set[str] = set()
    appends = False
    for key, stats in _object(body["partitionToWriteStats"]).items():
        written, before, lengths, offsets, groups = _fields(stats)
        partition = _partition(key, written)
        own = _names(partition, written, groups)
        names += own
        sizes += map(int, lengths)
        previous.update(base or "" for base in before)
        appends |= any(offsets)
        if own:
            partitions.append(partition)
            counts.append(len(own))
    ids = _object(body.get("partitionToReplaceFileIds"))
    replaced = {partition: _list(each) for partition, each in ids.items()}
    extra = {k: v for k, v in _object(body.get("extraMetadata")).items() if v is not None}
    operation = body.get("operationType") or ""
    told = (partitions, names, extra.values(), previous, replaced, chain(*replaced.values()))
    _require_texts([operation, *chain(*told)])
    if wrong := [size for size in sizes if not 0 <= size < 2**63]:
        raise ValueError(f"a file has {wrong[0]} bytes")
    return CommitMetadata(
        operation,
        extra,
        partitions,
        counts,
        names,
        sizes,
        frozenset(previous - _NO_COMMIT),
        appends,
        replaced,
    )


def _object(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, dict | None):
        raise TypeError(f"a {type(found).__name__} where an object is")
    return found or {}


def _list(found: Any) -> list[Any]:
    """Errors: TypeError: it is something else. A text would be one of its letters."""
    if not isinstance(found, list | None):
        raise TypeError(f"a {type(found).__name__} where a list is")
    return found or []


def _require_texts(found: Sequence[Any]) -> None:
    """Errors: TypeError: some are no texts. ValueError: some have no form in UTF-8."""
    "".join(found).encode()


def _partition(key: str | None, written: Sequence[str]) -> str:
    """The path of a partition. Some writers name that of a table without partitions ``null``,
    which may be a partition's path too.
    """
    if key == "null" and any(_is_in(path.rpartition("/")[0], key) for path in written):
        return key
    return "" if key is None or key == "null" else key


def _names(partition: str, written: Sequence[str], groups: Sequence[str | None]) -> list[str]:
    """The names of files from their paths.

    Writers spell paths relative to the table, absolute, of another scheme, or with the scheme and
    authority of the table glued before the partition: ``file:dt=1/name``,
    ``hdfs://host:8020dt=1/name``. Only the file's name counts, as long as the partition is before
    it.

    Errors:
        ValueError: another partition, or none, is before the name.
    """
    prefix = f"{partition}/" if partition else ""
    own = [path[len(prefix) :] for path in written]
    together = "".join(own)
    plain = "/" not in together and ":" not in together
    if plain and all(path.startswith(prefix) for path in written):
        return own
    found = []
    for path, group in zip(written, groups, strict=True):
        before, _, name = path.rpartition("/")
        if not partition and ":" in name:
            # The authority's port and the name may both be digits: the file group tells.
            start = name.find(group) if group else -1
            if start < 0:
                raise ValueError(f"the name of a file is not in {path!r}")
            name = name[start - (name[start - 1 : start] == ".") :]
        elif not _is_in(before, partition):
            raise ValueError(f"{path!r} is not in partition {partition!r}")
        found.append(name)
    return found


def _is_in(directory: str, partition: str) -> bool:
    before = directory.removesuffix(partition)
    whole = not before or before.endswith("/") or ":" in before
    return directory.endswith(partition) and (whole or not partition)


def _fields(stats: Sequence[Any]) -> tuple[Sequence[Any], ...]:
    """Path, previous commit, size, offset in a log and file group, of the statistics that have a
    path.
    """
    if stats and type(stats[0]) is tuple:
        written = [(*stat, None) for stat in stats if stat[0]]
        return tuple(zip(*written, strict=True)) if written else ((), (), (), (), ())
    told = [stat for stat in stats if stat["path"]]  # without one, the handle wrote no file
    return (
        [stat["path"] for stat in told],
        [stat.get("prevCommit") for stat in told],
        [stat["fileSizeInBytes"] for stat in told],
        [stat.get("logOffset") for stat in told],
        [stat.get("fileId") for stat in told],
    )


def _fast_commit(content: bytes) -> dict[str, Any] | None:
    """A commit's body in Avro; None if it is anything else, also if it is damaged."""
    import fastavro

    if content[:4] != MAGIC:
        return None
    try:
        container = Container(io.BytesIO(content), len(content))
        decoder, rest = _compiled(container.schema.text)
        ((count, block),) = container.blocks()
        if count != 1:
            return None
        stats, at = decoder.decode(block, 1) if block[0] else ({}, 1)
        if any(":" in (stat[0] or "") for key in ("", "null") for stat in stats.get(key, ())):
            return None  # the file group is needed to find the name
        require_few(rest, block, at)
        source = io.BytesIO(block)
        source.seek(at)
        body = fastavro.schemaless_reader(source, rest, None)
        if source.tell() != len(block):
            return None
    except MemoryError:
        raise
    except Exception:  # the whole reader tells what is wrong, or knows how to read it
        return None
    body["partitionToWriteStats"] = stats
    return body  # type: ignore[no-any-return]


@lru_cache(64)
def _compiled(schema: str | bytes) -> tuple[StatsDecoder, Any]:
    import fastavro

    whole = checked_schema(schema).document
    first = whole["fields"][0]
    if first["name"] != "partitionToWriteStats" or first["type"][0] != "null":
        raise ValueError("write statistics are not the first field")
    decoder = StatsDecoder(first["type"][1]["values"]["items"])
    rest = without_logical({**whole, "fields": whole["fields"][1:]})
    return decoder, fastavro.parse_schema(rest)


def _record(content: bytes, name: str) -> dict[str, Any]:
    try:
        if content[:4] == MAGIC:
            (body,) = read_avro(content)
        else:
            body = _json(content)
    except MemoryError:
        raise
    except Exception as error:  # the libraries raise whatever a cut or damaged body makes of them
        raise _corrupt(name, error) from error
    if not isinstance(body, dict):
        raise _corrupt(name, TypeError(f"it holds a {type(body).__name__}"))
    return body


def _json(content: bytes) -> Any:
    """As Python's own module reads it, which takes three times as long."""
    import orjson

    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:  # it takes no NaN and no lone surrogates
        return json.loads(content)


def read_avro(content: bytes) -> Iterator[Any]:
    """The records of an Avro file.

    Errors:
        ValueError and others: it is damaged, or its schema is none that is decoded here.
    """
    import fastavro

    container = Container(io.BytesIO(content), len(content))
    for count, block in container.blocks():
        source = io.BytesIO(block)
        require_few(container.schema.parsed, block)
        for _ in range(count):
            yield fastavro.schemaless_reader(source, container.schema.parsed, None)


def _corrupt(name: str, error: Exception) -> FileCorrupt:
    return FileCorrupt(
        f"the body of the instant {name} cannot be read ({type(error).__name__}: {error})",
        "the file was cut or rewritten: restore it, or roll the instant back with Hudi's CLI",
    )
