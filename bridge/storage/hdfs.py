"""HDFS through pyarrow (libhdfs, which needs a JVM and Hadoop's configuration on the machine)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyarrow import fs

from bridge.errors import FileUnreadable, StorageFailure
from bridge.storage.port import EMPTY, FileListing, FileStat, Range, sort
from bridge.storage.uri import Location, parse


class HdfsStorage:
    """`Storage` over one HDFS name node."""

    def __init__(self, place: Location) -> None:
        self._base = f"hdfs://{place.authority}"
        try:
            self._fs = fs.HadoopFileSystem.from_uri(
                self._base if place.authority else "hdfs://default"
            )
        except (OSError, pa.ArrowInvalid) as error:
            raise StorageFailure(
                f"cannot reach {self._base}: {error}", "set HADOOP_HOME, CLASSPATH and JAVA_HOME"
            ) from error

    def pages(
        self,
        prefix: str,
        *,
        start_after: str | None = None,
        recursive: bool = True,
        hints: pa.Array | None = None,
    ) -> Iterator[FileListing]:
        listing = self.list_all(prefix, recursive=recursive)
        if start_after is not None:
            keys = listing.paths.to_numpy(zero_copy_only=False)
            listing = listing.slice(int(np.searchsorted(keys, start_after, "right")), len(listing))
        if len(listing):
            yield listing

    def list_all(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> FileListing:
        files = [i for i in self._entries(prefix, recursive) if i.type == fs.FileType.File]
        if not files:
            return EMPTY
        count = len(files)
        return sort(
            FileListing(
                pa.array([self._base + info.path for info in files], pa.large_string()),
                np.fromiter((info.size for info in files), np.int64, count),
                np.fromiter((info.mtime_ns // 1000 for info in files), np.int64, count),
            )
        )

    def list_directories(self, prefix: str) -> list[str]:
        found = self._entries(prefix, recursive=False)
        return sorted(self._base + i.path for i in found if i.type == fs.FileType.Directory)

    def _entries(self, prefix: str, recursive: bool) -> list[fs.FileInfo]:
        selector = fs.FileSelector(_path(prefix), allow_not_found=True, recursive=recursive)
        try:
            return list(self._fs.get_file_info(selector))
        except OSError as error:
            raise StorageFailure(f"{prefix}: {error}", "check the name node") from error

    def stat(self, uri: str) -> FileStat | None:
        try:
            info = self._fs.get_file_info(_path(uri))
        except OSError as error:
            raise StorageFailure(f"{uri}: {error}", "check the name node") from error
        if info.type != fs.FileType.File:
            return None
        return FileStat(uri, info.size, info.mtime_ns // 1000)

    def read(self, uri: str) -> bytes:
        try:
            with self._fs.open_input_stream(_path(uri)) as stream:
                return bytes(stream.read())
        except OSError as error:
            raise FileUnreadable(f"{uri} cannot be read: {error}", "refresh the index") from error

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        try:
            with self._fs.open_input_file(_path(uri)) as file:
                parts = [bytes(file.read_at(end - start, start)) for start, end in ranges]
        except OSError as error:
            raise FileUnreadable(f"{uri} cannot be read: {error}", "refresh the index") from error
        for (start, end), part in zip(ranges, parts, strict=True):
            if len(part) != end - start:
                raise FileUnreadable(f"{uri} ends before byte {end}", "refresh the index")
        return parts

    def put(self, uri: str, content: bytes) -> None:
        temporary = self._write_aside(uri, content)
        try:
            self.delete(uri)  # HDFS does not rename over a file
            self._fs.move(temporary, _path(uri))
        except OSError as error:
            raise StorageFailure(f"{uri}: {error}", "check the name node") from error

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        if self.stat(uri) is not None:
            return False
        temporary = self._write_aside(uri, content)
        try:
            self._fs.move(temporary, _path(uri))  # fails if the name was taken meanwhile
        except OSError as error:
            self._fs.delete_file(temporary)
            if self.stat(uri) is not None:
                return False
            raise StorageFailure(f"{uri}: {error}", "check the name node") from error
        return True

    def _write_aside(self, uri: str, content: bytes) -> str:
        path = _path(uri)
        directory, _, name = path.rpartition("/")
        temporary = f"{directory}/.{name}.{uuid.uuid4().hex}.tmp"
        try:
            self._fs.create_dir(directory, recursive=True)
            with self._fs.open_output_stream(temporary) as stream:
                stream.write(content)
        except OSError as error:
            raise StorageFailure(f"{uri}: {error}", "check the name node") from error
        return temporary

    def delete(self, uri: str) -> None:
        try:
            if self._fs.get_file_info(_path(uri)).type == fs.FileType.File:
                self._fs.delete_file(_path(uri))
        except OSError as error:
            raise StorageFailure(f"{uri}: {error}", "check the name node") from error


def _path(uri: str) -> str:
    return "/" + parse(uri).path
