"""HDFS through hdfs-native: Hadoop's protocols without a JVM.

High availability of name nodes, Kerberos and so on are configured as for Hadoop's client, in
``HADOOP_CONF_DIR`` or ``HADOOP_HOME/etc/hadoop``. Kerberos tickets come from the usual cache.

The library waits for an answer for ever, so every operation has a deadline of ours. A connection
on which nothing came is not used again.

pyarrow's HadoopFileSystem is not used: its ``move`` replaces an existing file, so two builders
could both believe that they have committed.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from bridge.kernel.errors import (
    BridgeError,
    EnvironmentMissing,
    FileShort,
    FileUnreadable,
    StorageFailure,
    StorageFull,
)
from bridge.storage import retry
from bridge.storage.bounded import Late, Progress, call_with_deadline
from bridge.storage.local_disk.local_errors import refuse_exhausted
from bridge.storage.port import (
    EMPTY,
    DirectoryListings,
    FileStat,
    FileTable,
    Range,
    join_listings,
    sort,
)
from bridge.storage.reading.requests import carry_count, count_requests
from bridge.storage.uri import Location, parse

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus

_MILLISECOND = 1_000
_LIST_ATTEMPTS = 3
# The delays between attempts grow to 15 s: with these attempts a name node that refuses connections
# is given up after a minute. The library's default of 15 attempts takes 3 minutes.
_PATIENT = {"dfs.client.failover.max.attempts": "7"}
_IMPATIENT = {"dfs.client.failover.max.attempts": "2"}
"""Each name node of two is asked, within 4 s."""
_REFUSED = "Connection refused"
_AT_ONCE, _IMPATIENTLY = 5.0, 60.0
"""Seconds after a name node refused connections for which calls fail at once, and for which it is
asked with little patience first. A plan makes several calls, and Trino waits for it for 30 s."""
_CHECK = "check the name node, and HADOOP_CONF_DIR if its name is a name service"
_PAGE = 1_000
_PIECE = 4 * 1024**2
"""Bytes that are read in one call of the library; larger ranges come as a stream of packets."""
_CONNECTING = 30.0
"""Seconds beyond `retry.DEADLINE`. Linux gives up connecting to a machine that is off after 127 s,
and only then the library asks the other name node of a name service."""
T = TypeVar("T")


class HdfsStorage:
    """`Storage` on one name node or name service.

    A file is written under a hidden name in the same directory and renamed when it is complete. The
    name node renames atomically, and refuses to rename onto a file unless told to replace it.

    Errors:
        EnvironmentMissing: hdfs-native is not installed.
        StorageFailure: the name service is not configured.
    """

    def __init__(self, place: Location) -> None:
        try:
            from hdfs_native import Client, WriteOptions
        except ImportError as error:
            raise EnvironmentMissing(
                f"hdfs://{place.authority} needs the package hdfs-native: {error}",
                "pip install 'skipbridge[hdfs]'",
            ) from error
        self._base = f"hdfs://{place.authority}"
        self._options = WriteOptions(overwrite=False, create_parent=True)
        # Without an authority the client uses fs.defaultFS.
        url = self._base if place.authority else None
        self._connect: Callable[[], Client] = partial(Client, url, dict(_PATIENT))
        self._connect_once: Callable[[], Client] = partial(Client, url, dict(_IMPATIENT))
        self._renewing = threading.Lock()
        self._refused: tuple[float, str] = (-math.inf, "")
        with _translated(f"{self._base}/"):
            self._client = self._connect()

    def _bounded(self, uri: str, ask: Callable[[Progress], T], reading: bool = False) -> T:
        client = self._client
        with _translated(uri, reading):
            try:
                return call_with_deadline(retry.DEADLINE + _CONNECTING, ask)
            except Late:
                with self._renewing:
                    if self._client is client:
                        self._client = self._connect()
                raise

    def _name_node(self, uri: str, ask: Callable[[Progress], T]) -> T:
        """`_bounded`, of what the name node alone answers."""
        since, said = self._refused
        if (age := time.monotonic() - since) < _AT_ONCE:
            raise StorageFailure(f"{uri}: {said}", _CHECK)
        with self._remembered(uri):
            if age < _IMPATIENTLY:
                self._ask_once(uri)
            return self._bounded(uri, ask)

    def _ask_once(self, uri: str) -> None:
        """Fails if the name node still refuses connections."""
        try:
            self._bounded(uri, lambda _: self._connect_once().get_file_info("/"))
        except StorageFailure as error:
            if _REFUSED in error.message:
                raise

    @contextlib.contextmanager
    def _remembered(self, uri: str) -> Iterator[None]:
        """Remembers that the name node refused connections."""
        try:
            yield
        except StorageFailure as error:
            if _REFUSED in error.message:
                self._refused = (time.monotonic(), error.message.removeprefix(f"{uri}: "))
            raise
        self._refused = (-math.inf, "")

    def pages(
        self,
        prefix: str,
        *,
        start_after: str | None = None,
        recursive: bool = True,
        hints: pa.Array | None = None,
    ) -> Iterator[FileTable]:
        listing = self.list_all(prefix, recursive=recursive)
        if start_after is not None:
            keys = listing.paths.to_numpy(zero_copy_only=False)
            listing = listing.slice(int(np.searchsorted(keys, start_after, "right")), len(listing))
        if len(listing):
            yield listing

    def list_all(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> FileTable:
        files = [entry for entry in self._entries(prefix, recursive) if not entry.isdir]
        if not files:
            return EMPTY
        count = len(files)
        return sort(
            FileTable(
                pa.array([self._base + entry.path for entry in files], pa.large_string()),
                np.fromiter((entry.length for entry in files), np.int64, count),
                np.fromiter((entry.modification_time for entry in files), np.int64, count)
                * _MILLISECOND,
            )
        )

    def list_many(
        self, directories: Sequence[str], pool: Executor, *, recursive: bool = True
    ) -> DirectoryListings:
        one = partial(self.list_all, recursive=recursive)
        return join_listings(list(pool.map(carry_count(one), directories)))

    def has_directories(self, uri: str) -> bool:
        return True

    def list_directories(self, prefix: str) -> list[str]:
        found = self._entries(prefix, recursive=False)
        return sorted(self._base + entry.path for entry in found if entry.isdir)

    def _entries(self, prefix: str, recursive: bool) -> list[FileStatus]:
        path = _path(prefix)

        def ask(progress: Progress) -> list[FileStatus]:
            for _ in range(_LIST_ATTEMPTS):
                found: list[FileStatus] = []
                try:
                    count_requests("list")
                    entries = iter(self._client.list_status(path, recursive))
                    while page := list(islice(entries, _PAGE)):
                        found += page
                        progress.step()
                except FileNotFoundError:
                    if self._status(path) is None:
                        return []
                    # A subdirectory was deleted during the listing, so the result is incomplete.
                    continue
                return [entry for entry in found if entry.path != path]  # a file lists itself
            raise StorageFailure(
                f"{prefix}: directories are deleted while it is listed",
                "try again when no job deletes directories there",
            )

        return self._name_node(prefix, ask)

    def directory_exists(self, uri: str) -> bool:
        found = self._name_node(uri, lambda _: self._status(_path(uri)))
        return found is not None and found.isdir

    def stat(self, uri: str) -> FileStat | None:
        return self._name_node(uri, lambda _: self._look(uri))

    def _look(self, uri: str) -> FileStat | None:
        found = self._status(_path(uri))
        if found is None or found.isdir:
            return None
        return FileStat(uri, found.length, found.modification_time * _MILLISECOND)

    def _status(self, path: str) -> FileStatus | None:
        try:
            count_requests("look")
            return self._client.get_file_info(path)
        except FileNotFoundError:
            return None

    def read(self, uri: str) -> bytes:
        def ask(progress: Progress) -> bytes:
            count_requests("read")
            file = self._client.read(_path(uri))
            return _part(uri, file, 0, len(file), progress)

        return self._bounded(uri, ask, reading=True)

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        return self._bounded(uri, partial(self._ranges, uri, ranges), reading=True)

    def _ranges(self, uri: str, ranges: Sequence[Range], progress: Progress) -> list[bytes]:
        file = self._client.read(_path(uri))
        for _, end in ranges:
            if end > len(file):  # otherwise the library panics
                raise _ends_before(uri, end)
        count_requests("read", len(ranges))
        return [_part(uri, file, start, end, progress) for start, end in ranges]

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        def ask(progress: Progress) -> tuple[list[bytes], FileStat | None]:
            return self._ranges(uri, ranges, progress), self._look(uri)

        return self._bounded(uri, ask, reading=True)

    def is_remote(self, uri: str) -> bool:
        return True

    def put(self, uri: str, content: bytes) -> None:
        self._put(uri, content, replace=True)

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        # The rename decides. This check only avoids a useless write.
        return self.stat(uri) is None and self._put(uri, content, replace=False)

    def copy(self, source: FileStat, target: str) -> bool:
        if self.stat(source.uri) != source:
            return False

        def whole(size: int) -> bool:
            return size == source.size and self.stat(source.uri) == source

        path = _path(source.uri)
        content = self._bounded(source.uri, lambda _: self._client.read(path), reading=True)
        return self._write(target, content, replace=True, check=whole)

    def _put(self, uri: str, content: bytes, replace: bool) -> bool:
        view = memoryview(content)
        pieces = (view[at : at + _PIECE] for at in range(0, len(view), _PIECE))
        return self._write(uri, pieces, replace=replace)

    def _write(
        self,
        uri: str,
        content: Iterable[bytes | memoryview],
        *,
        replace: bool,
        check: Callable[[int], bool] = lambda size: True,
    ) -> bool:
        """Whether the file is there. ``check`` gets the size, and says whether to keep it."""
        path = _path(uri)
        directory, _, name = path.rpartition("/")
        temporary = f"{directory}/.{name}.{uuid.uuid4().hex}.tmp"

        def ask(progress: Progress) -> bool:
            try:
                count_requests("write")
                size = 0
                with self._client.create(temporary, self._options) as file:
                    for part in content:
                        file.write(part)
                        size += len(part)
                        progress.step()
                if not check(size):
                    self._forget(temporary)
                    return False
                progress.step()
                self._client.rename(temporary, path, replace)
            except BaseException as error:
                self._forget(temporary)
                if isinstance(error, FileExistsError) and not replace:
                    return False
                raise
            return True

        return self._bounded(uri, ask)

    def _forget(self, temporary: str) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # otherwise an index cleanup deletes it
            self._client.delete(temporary)

    def delete(self, uri: str) -> None:
        def ask(progress: Progress) -> None:
            if self._look(uri) is not None:
                progress.step()
                count_requests("delete")
                self._client.delete(_path(uri))

        self._bounded(uri, ask)


def _part(uri: str, file: FileReader, start: int, end: int, progress: Progress) -> bytes:
    if end - start <= _PIECE:
        part = bytes(file.read_range(start, end - start))
    else:
        pieces = []
        for piece in file.read_range_stream(start, end - start):
            pieces.append(piece)
            progress.step()
        part = b"".join(pieces)
    if len(part) != end - start:
        raise _ends_before(uri, end)
    return part


def _ends_before(uri: str, end: int) -> FileShort:
    # The name node knows the length of a block that is being written; the library does not read it.
    return FileShort(
        f"{uri} ends before byte {end}",
        "the file is being written, or was cut or rewritten: refresh the index",
    )


def _path(uri: str) -> str:
    return "/" + parse(uri).path


# RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: …\n\tat …")
_REFUSAL = re.compile(
    r'RPCError\("(?:[\w$]+\.)*(?P<name>[\w$]+)", "(?P<text>.*?)(?:\\n|"\)|$)', re.S
)
# DataTransferError("All DataNodes failed: [DatanodeInfoProto { id: DatanodeIdProto { ip_addr: …
_NO_DATA_NODE = "All DataNodes failed"
_DATA_NODE = re.compile(r'ip_addr: \\*"([^"\\]*)\\*".*?xfer_port: (\d+)', re.S)


@contextlib.contextmanager
def _translated(uri: str, reading: bool = False) -> Iterator[None]:
    """Turns errors of the library into errors of the storage port."""
    try:
        yield
    except BridgeError:
        raise
    except Late as error:
        raise StorageFailure(f"{uri}: HDFS gave {error}", _CHECK) from None
    except FileNotFoundError as error:
        if reading:
            raise FileUnreadable(f"{uri} does not exist", "refresh the index") from error
        raise StorageFailure(f"{uri}: {_first(error)}", _CHECK) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise _failure(error, uri, reading) from error
    except BaseException as error:
        # A Rust panic is a BaseException, but only this call failed: the process is intact.
        if type(error).__name__ != "PanicException":
            raise
        raise _failure(error, uri, reading) from error


def _failure(error: BaseException, uri: str, reading: bool) -> BridgeError:
    refused = _REFUSAL.search(str(error))
    name, text = (refused["name"], refused["text"]) if refused else ("", _first(error))
    text = text.replace('\\"', '"')
    refuse_exhausted(error)
    kind = FileUnreadable if reading else StorageFailure
    if _NO_DATA_NODE in text:
        nodes = ", ".join(f"{host}:{port}" for host, port in _DATA_NODE.findall(text))
        return kind(
            f"{uri}: no data node that holds its bytes answers{f' ({nodes})' if nodes else ''}",
            "hdfs dfsadmin -report shows the data nodes; check the network to them",
        )
    if name == "AccessControlException":
        return kind(f"no permission for {uri}: {text}", "check its owner and HADOOP_USER_NAME")
    if name.endswith("QuotaExceededException"):
        return StorageFull(f"no space left to write {uri}: {text}", "raise its quota in HDFS")
    if name == "SafeModeException":
        return StorageFailure(f"{uri}: {text}", "wait until the name node leaves safe mode")
    if "GSS_S" in text or name == "SaslException":
        return StorageFailure(
            f"{uri}: Kerberos refused: {text}", "klist shows the tickets, kinit gets one"
        )
    if "fs.defaultFS" in text:
        return StorageFailure(
            f"{uri} names no name node, and no fs.defaultFS is configured",
            "set HADOOP_CONF_DIR, or write hdfs://host:port/path",
        )
    return kind(f"{uri}: {name}{': ' if name else ''}{text}", _CHECK)


def _first(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].partition("\\n")[0] or type(error).__name__
