"""Bounds of a Hudi log hold every row in it; what is not known for sure is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.formats.hudi import log_statistics
from bridge.formats.hudi.log_statistics import read
from bridge.kernel.errors import FileCorrupt
from bridge.storage.routed import open_storage
from bridge.table.hudi.merging.reader_properties import repairs_times
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures
from tests.support.hudi_writer import avro_block

MERGED = [f for f in hudi_fixtures(prefix="mor_") if f.bundle == "1.2.0"]


@pytest.mark.parametrize("fixture", [pytest.param(f, id=f.id) for f in MERGED])
def test_rows_of_logs_lie_within_their_bounds(fixture: HudiFixture) -> None:
    """Every row that Spark shows and whose file is a log's lies within the bounds of some log."""
    storage = open_storage()
    answers = fixture.answers()
    if answers.snapshot.error is not None:
        pytest.skip("Spark has no answer")
    table = answers.snapshot.table(["_hoodie_file_name", "_hoodie_record_key"])
    known: dict[str, list[tuple[bytes, bytes]]] = {}
    for each in answers.slices:
        for name in each.logs:
            path = fixture.path() / each.partition / name
            try:
                found = read(storage, f"file://{path}", path.stat().st_size)
            except FileCorrupt as error:
                assert "partial" in str(error) or "HFile" in str(error)
                known.setdefault(each.file_id, []).append((b"", b"\xff"))
                continue
            bounds = {leaf.column.path[0]: (leaf.lower, leaf.upper) for leaf in found.leaves}
            if "_hoodie_record_key" in bounds:
                known.setdefault(each.file_id, []).append(bounds["_hoodie_record_key"])
            assert found.rows > 0 or not found.leaves
    rows = zip(
        table["_hoodie_file_name"].to_pylist(),
        table["_hoodie_record_key"].to_pylist(),
        strict=True,
    )
    for name, key in rows:
        if name is None or name.endswith(".parquet") or key is None:
            continue
        text = key.encode()
        assert any(low <= text <= high for low, high in known[name]), (name, key)


def test_a_damaged_log_has_no_statistics(tmp_path: object) -> None:
    (fixture,) = hudi_fixtures(names=["mor_upserts"], bundle="1.2.0")
    storage = open_storage()
    logs = sorted(fixture.path().rglob(".*.log.*"))
    data = bytearray(logs[0].read_bytes())
    data[len(data) // 2] ^= 0xFF
    damaged = logs[0].parent / ".damaged.log.1_0-0-0"
    damaged.write_bytes(bytes(data[:-20]))
    try:
        try:
            found = read(storage, f"file://{damaged}", len(data) - 20)
        except FileCorrupt:
            return
        assert found.rows == 0 and not found.leaves
    finally:
        damaged.unlink()


def _log(tmp_path: Path, type: str, *values: float) -> tuple[str, int]:
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": type}]}
    log = tmp_path / ".f_1.log.1_0-0-0"
    log.write_bytes(avro_block("1", schema, [{"c": value} for value in values]))
    return f"file://{log}", log.stat().st_size


def test_bounds_of_floats_hold_the_double_of_their_text(tmp_path: Path) -> None:
    """Spark and Hudi read the float 0.1 as the double 0.1, which is less than that float."""
    for value in (0.1, 0.2, 0.3, -0.1, 3.4e38, 1e-45, 0.0):
        (leaf,) = read(open_storage(), *_log(tmp_path, "float", value)).leaves
        assert leaf.lower <= value <= leaf.upper
        assert not leaf.exact


def test_a_large_log_has_no_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, size = _log(tmp_path, "double", 1.0)
    monkeypatch.setattr(log_statistics, "_MOST", size)
    assert read(open_storage(), uri, size).rows == 1
    monkeypatch.setattr(log_statistics, "_MOST", size - 1)
    with pytest.raises(FileCorrupt, match="at most"):
        read(open_storage(), uri, size)


def test_times_that_a_reader_may_repair() -> None:
    assert repairs_times('{"type": "long", "logicalType": "timestamp-millis"}')
    assert repairs_times('{"type": "long", "logicalType": "local-timestamp-millis"}')
    assert not repairs_times('{"type": "long", "logicalType": "timestamp-micros"}')
