"""No file decides for another: neither by its schema (rule 23) nor by its damage (rule 27)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kinds
from bridge.kernel.types import BIGINT, STRING, decimal
from tests.support.lake import Lake, age


def _struct(**fields: Any) -> pa.Array:
    return pa.array([fields])


def _known(lake: Lake, path: tuple[str, ...], kind: Any) -> dict[str, tuple[Any, Any, int]]:
    """By the file's name its bounds and its count of NULL."""
    serving = lake.snapshot()
    found = lake.column(path, kind)
    names = [uri.rpartition("/")[2] for uri in serving.paths.to_pylist()]
    bounds = []
    for values, known in ((found.lower, found.lower_known), (found.upper, found.upper_known)):
        held = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
        bounds.append([v if known is None or known[i] else None for i, v in enumerate(held)])
    return dict(zip(names, zip(*bounds, found.null_count.tolist(), strict=True), strict=True))


def test_23_structs_in_another_order(lake: Lake) -> None:
    home, work = _struct(city="A1"), _struct(city="B1")
    lake.write("1", {"home": home, "work": work})
    lake.write("2", {"work": _struct(city="B2"), "home": _struct(city="A2")})
    lake.build()
    home_city = _known(lake, ("home", "city"), STRING)
    assert home_city == {"1": (b"A1", b"A1", 0), "2": (b"A2", b"A2", 0)}
    work_city = _known(lake, ("work", "city"), STRING)
    assert work_city == {"1": (b"B1", b"B1", 0), "2": (b"B2", b"B2", 0)}


def test_23_a_struct_that_other_files_lack(lake: Lake) -> None:
    lake.write("1", {"pickup": _struct(lat=1, lon=2)})
    lake.write("2", {"dropoff": _struct(lat=3, lon=4)})
    lake.write("3", {"delivery": _struct(lat=5, lon=6)})
    lake.build()
    for place, (name, low) in enumerate((("pickup", 1), ("dropoff", 3), ("delivery", 5)), 1):
        found = _known(lake, (name, "lat"), BIGINT)
        for file, (lower, upper, nulls) in found.items():
            mine = file == str(place)
            assert (lower, upper, nulls) == ((low, low, 0) if mine else (None, None, 1))


def test_23_names_with_dots_and_names_in_another_case(lake: Lake) -> None:
    lake.write("1", {"St": _struct(a=1), "x.y": [2]})
    lake.write("2", {"st": _struct(a=3), "x": _struct(y=4)})
    settings = IndexSettings((kinds()["values"].define("st.a"), kinds()["bloom"].define("st.a")))
    report = lake.build(nan="scan", settings=lambda _: settings)
    assert report.failed == ()
    assert _known(lake, ("st", "a"), BIGINT) == {"1": (1, 1, 0), "2": (3, 3, 0)}
    assert _known(lake, ("x.y",), BIGINT) == {"1": (2, 2, 0), "2": (None, None, 1)}
    assert _known(lake, ("x", "y"), BIGINT) == {"1": (None, None, 1), "2": (4, 4, 0)}


def test_23_a_schema_that_the_writer_keeps_beside_the_columns(lake: Lake) -> None:
    """Arrow's own schema, in the writer's keys, does not change what a footer's bytes mean."""
    values = pa.array([1, 2], pa.duration("us"))
    for name, store in (("1", True), ("2", False)):
        lake.write(name, {"d": values}, store_schema=store, write_statistics=False)
    report = lake.build(nan="scan")
    assert report.failed == ()
    assert _known(lake, ("d",), BIGINT) == {"1": (1, 2, 0), "2": (1, 2, 0)}


def _changed(path: Path, old: bytes, new: bytes) -> None:
    raw = path.read_bytes()
    assert raw.count(old) and len(old) == len(new)
    path.write_bytes(raw.replace(old, new))


def test_27_statistics_of_a_wrong_width(lake: Lake) -> None:
    """pyarrow ends the process where it is asked for these."""
    path = lake.write("1", {"x": pa.array([7, 9], pa.int32())}, use_dictionary=False)
    lake.write("2", {"x": pa.array([1, 2], pa.int32())})
    good = b"\x18\x04" + (9).to_bytes(4, "little") + b"\x18\x04" + (7).to_bytes(4, "little")
    _changed(path, good, b"\x18\x02\x00\x00\x18\x06" + bytes(6))
    age(path)
    report = lake.build()
    ((uri, reason),) = report.failed
    assert uri.endswith("/1") and reason.startswith("FILE_CORRUPT") and "a bound of INT32" in reason
    assert _known(lake, ("x",), BIGINT) == {"1": (None, None, -1), "2": (1, 2, 0)}


def test_27_a_decimal_of_more_digits_than_its_type_has(lake: Lake) -> None:
    """A file that holds one leaves no room to add digits: only it is unknown."""
    most, more = 10**18 - 1, 9 * 10**18
    for name, number in (("a", 5), ("b", most), ("c", 7)):
        column = pa.array([number], pa.decimal128(18, 0))
        options = {"use_dictionary": False, "compression": "none"}
        path = lake.write(name, {"d": column}, store_decimal_as_integer=True, **options)
        if name == "b":
            raw = path.read_bytes()
            old, new = (n.to_bytes(8, "little") for n in (most, more))
            assert old in raw
            path.write_bytes(raw.replace(old, new))
            age(path)
    lake.build()
    found = _known(lake, ("d",), decimal(38, 20))
    assert found == {"a": (5, 5, 0), "b": (None, None, -1), "c": (7, 7, 0)}  # NULL to Hive


def test_27_names_that_are_not_utf_8(lake: Lake) -> None:
    path = lake.write("1", {"né": [1]}, store_schema=False)
    _changed(path, "né".encode(), b"n\xff\xfe")
    age(path)
    writer = lake.write("2", {"x": [1]})
    _changed(writer, b"parquet-cpp-arrow", b"parquet-\xff\xff\xff-arrow")
    age(writer)
    lake.write("3", {"x": [3]})
    report = lake.build()
    ((uri, reason),) = report.failed
    assert uri.endswith("/1") and "not UTF-8" in reason
    # The second file was read, because its writer is not known.
    assert _known(lake, ("x",), BIGINT) == {"1": (None, None, -1), "2": (1, 1, 0), "3": (3, 3, 0)}


class _Panic(BaseException):
    """What Rust's panics are in Python: no Exception."""


@pytest.mark.parametrize("error", [_Panic("x"), MemoryError(), RecursionError(), KeyError(b"\xff")])
def test_27_whatever_one_file_raises(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    lake.write("1", {"x": [1]})
    lake.write("2", {"x": [2]})
    read = lake.storage.read_state

    def reading(uri: str, ranges: Any) -> Any:
        if uri.endswith("/1"):
            raise error
        return read(uri, ranges)

    monkeypatch.setattr(lake.storage, "read_state", reading)
    report = lake.build()
    ((uri, reason),) = report.failed
    assert uri.endswith("/1") and type(error).__name__ in reason
    assert _known(lake, ("x",), BIGINT) == {"1": (None, None, -1), "2": (2, 2, 0)}


def test_27_a_footer_that_lies_about_itself(lake: Lake) -> None:
    """Bounds the wrong way round, and more NULL than rows, say nothing."""
    path = lake.write("1", {"x": [7, 9]}, use_dictionary=False)
    low, high = (7).to_bytes(8, "little"), (9).to_bytes(8, "little")
    _changed(path, b"\x08" + high + b"\x18\x08" + low, b"\x08" + low + b"\x18\x08" + high)
    age(path)
    other = lake.write("2", {"x": [None, 9]}, use_dictionary=False)
    _changed(other, b"\x16\x02\x28\x08" + high, b"\x16\x08\x28\x08" + high)
    age(other)
    assert lake.build().failed == ()
    assert pq.read_table(path)["x"].to_pylist() == [7, 9]
    assert _known(lake, ("x",), BIGINT) == {"1": (None, None, 0), "2": (9, 9, -1)}
