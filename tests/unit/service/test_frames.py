"""The golden frames, which Python, the Trino connector and the Hive hooks read and write alike."""

from __future__ import annotations

import itertools
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bridge.engines.registry import engine
from bridge.planner.splits.split import SplitBatch
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL, encode_batch
from bridge.table.slices import ReaderSpec
from tests.support.bridge_thrift import METHODS, STRUCTS
from tests.support.frames import FOLDER, _body, _fill, frames, to_bytes, to_json
from tests.support.planner_client import decode_batch

FRAMES = {frame["file"]: frame for frame in frames()}


@pytest.mark.parametrize("name", FRAMES)
def test_what_a_frame_says_and_its_bytes(name: str) -> None:
    frame, data = FRAMES[name], (FOLDER / name).read_bytes()
    assert to_bytes(frame) == data, "run `python -m tests.support.frames`, then read the change"
    said = {key: frame[key] for key in ("kind", "method", "sequence", "body")}
    assert to_json(data) == said


def test_every_method_and_field_that_java_knows_has_a_frame() -> None:
    known = {(frame["kind"], frame["method"]) for frame in FRAMES.values()}
    assert known >= {(k, m) for k in ("call", "reply") for m in METHODS}
    seen: dict[str, set[str]] = {}
    for frame in FRAMES.values():
        if frame["kind"] == "exception":
            continue
        body = _body(frame["kind"], frame["method"])
        _fill(body, frame["body"])
        _collect(body, seen)
    unseen = {name: set(fields) - seen.get(name, set()) for name, fields in STRUCTS.items()}
    assert unseen == {name: set() for name in STRUCTS}


def _collect(value: Any, seen: dict[str, set[str]]) -> None:
    if isinstance(value, list):
        for each in value:
            _collect(each, seen)
    elif hasattr(value, "thrift_spec"):
        fields = {f[2]: getattr(value, f[2]) for f in type(value).thrift_spec if f}
        told = {name for name, each in fields.items() if each is not None}
        seen.setdefault(type(value).__name__, set()).update(told)
        for each in fields.values():
            _collect(each, seen)


def reply(name: str) -> Any:
    frame = FRAMES[f"{name}.reply.bin"]
    body = _body("reply", frame["method"])
    _fill(body, frame["body"])
    return body.success


@pytest.mark.parametrize("name", ["next_splits", "next_splits_last"])
def test_a_batch_of_splits(name: str) -> None:
    said, batch = FRAMES[f"{name}.reply.bin"]["splits"], reply(name)
    found = decode_batch(0, batch)
    if found.splits is not None:
        splits = found.splits
        assert (splits.first.tolist(), splits.weight.tolist()) == (said["first"], said["weight"])
        assert [_file(splits, i) for i in range(splits.num_files)] == said["files"]
    assert encode_batch(found, engine("trino"), batch.report) == batch


def _file(splits: SplitBatch, i: int) -> dict[str, Any]:
    logs: list[dict[str, Any]] = []
    if splits.logs is not None:
        of = splits.logs
        logs = [
            {
                "path": of.files.paths[n].as_py(),
                "size": int(of.files.sizes[n]),
                "modified": int(of.files.modified[n]) // 1000,
            }
            for n in range(of.offsets[i], of.offsets[i + 1])
        ]
    assert splits.reader is not None and splits.etag_hashes is not None
    return {
        "path": splits.paths[i].as_py(),
        "start": int(splits.start[i]),
        "length": int(splits.length[i]),
        "size": int(splits.size[i]),
        "modified": int(splits.modified[i]),
        "partition": int(splits.partition[i]),
        "reader": int(splits.reader[i]),
        "etag_hash": int(splits.etag_hashes[i]),
        "logs": logs,
    }


def test_readers_that_all_files_share_need_no_array() -> None:
    found = decode_batch(0, reply("next_splits"))
    assert found.splits is not None
    one = replace(found.splits, reader=None)
    alike = replace(found.splits, reader=np.zeros(3, np.int32))
    assert encode_batch(replace(found, splits=one), engine("trino"), None) == encode_batch(
        replace(found, splits=alike), engine("trino"), None
    )


def test_a_batch_tells_only_the_readers_of_its_files() -> None:
    found = decode_batch(0, reply("next_splits"))
    splits = found.splits
    assert splits is not None and splits.reader is not None
    unused = ReaderSpec("orc")
    more = replace(splits, readers=(unused, *splits.readers, unused), reader=splits.reader + 1)
    sent = encode_batch(replace(found, splits=more), engine("trino"), None)
    assert sent == encode_batch(found, engine("trino"), None)


def test_skippable_files() -> None:
    found: ttypes.SkippableFiles = reply("list_skippable_files")
    assert found.protocol == PROTOCOL
    sizes = struct.unpack_from(f"<{found.skipped}q", found.files)
    times = struct.unpack_from(f"<{found.skipped}q", found.files, 8 * found.skipped)
    offsets = struct.unpack_from(f"<{found.skipped + 1}i", found.files, 16 * found.skipped)
    text = found.files[16 * found.skipped + 4 * (found.skipped + 1) :]
    paths = [found.root + text[a:b].decode() for a, b in itertools.pairwise(offsets)]
    assert [
        {"path": path, "size": size, "modified": time}
        for path, size, time in zip(paths, sizes, times, strict=True)
    ] == FRAMES["list_skippable_files.reply.bin"]["files"]
