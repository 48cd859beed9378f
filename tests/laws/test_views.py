"""The law of views: files of a view hold, bit for bit, the rows that readers find in the facts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.app.api.file_reader import ScannedFile, read_file
from bridge.kernel.errors import FileCorrupt, SchemaConflict, UnsupportedType
from bridge.kernel.types import INTEGER, STRING, TIMESTAMP, Field, Type, array, map_of, struct
from bridge.segments.views import build as building
from bridge.segments.views.build import Built, ViewFile, ViewTarget, build, in_threads, merge
from bridge.segments.views.definition import define_view
from bridge.segments.views.facts import FactFile
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.model import Column
from tests.support.arrow import arrow_type
from tests.support.exact_rows import exact_rows
from tests.support.strategies import TYPES, table

STORAGE = open_storage()
NESTED: tuple[Type, ...] = (
    struct(Field("a", INTEGER), Field("b", STRING)),
    array(INTEGER),
    map_of(STRING, INTEGER),
    array(struct(Field("x", STRING), Field("y", array(INTEGER)))),
)
asked: Counter[str] = Counter()


def nested(rng: random.Random, type: Type) -> pa.Array:
    def one(kind: Type, depth: int = 0) -> Any:
        if rng.random() < 0.2:
            return None
        match kind.kind.value:
            case "struct":
                return {f.name: one(f.type, depth + 1) for f in kind.fields}
            case "array":
                return [one(kind.fields[0].type, depth + 1) for _ in range(rng.randint(0, 3))]
            case "map":
                return [(str(i), one(kind.fields[1].type)) for i in range(rng.randint(0, 2))]
            case "string":
                return rng.choice(("", "a", "é" * 3))
        return rng.choice((0, -1, 2**31 - 1, -(2**31)))

    return lambda rows: pa.array([one(type) for _ in range(rows)], _nested_type(type))


def _nested_type(type: Type) -> pa.DataType:
    match type.kind.value:
        case "struct":
            return pa.struct([(f.name, _nested_type(f.type)) for f in type.fields])
        case "array":
            return pa.list_(_nested_type(type.fields[0].type))
        case "map":
            return pa.map_(*(_nested_type(f.type) for f in type.fields))
    return arrow_type(type)


def read(files: Sequence[Any], columns: Sequence[Column], wanted: Sequence[Column]) -> pa.Table:
    """What the Python API reads of some files, or the error that it raises."""
    parts = []
    for file in files:
        data = ScannedFile(file.uri, file.size, file.modified, getattr(file, "format", "parquet"))
        for found, rows in read_file(STORAGE, data, wanted, columns, "trino"):
            arrays = [found[c.name] for c in wanted]
            parts.append(pa.table(arrays, names=[c.name for c in wanted]))
            assert len(parts[-1]) == rows
    return pa.concat_tables(parts) if parts else pa.table({})


def fact(path: Path, columns: tuple[Column, ...], format: str = "parquet") -> FactFile:
    stat = STORAGE.stat(canonical(str(path)))
    assert stat is not None
    return FactFile(stat.uri, stat.size, stat.modified, stat.etag, format, columns)


@settings(max_examples=60 if settings().max_examples < 1000 else 2000)
@given(seed=st.integers(0, 2**48))
def test_a_view_holds_the_rows_of_its_facts(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = random.Random(seed)
    root = tmp_path_factory.mktemp("view")
    kinds = tuple(rng.sample(TYPES, rng.randint(2, 5)))
    drawn = table(rng, kinds, rng.randint(1, 4))
    extra = [(f"n{i}", rng.choice(NESTED)) for i in range(rng.randint(0, 2))]
    columns = (
        *(Column(c.name.lower(), c.type) for c in drawn.columns),
        *(Column(name, type) for name, type in extra),
    )
    if len({c.name for c in columns}) < len(columns):
        return
    facts = []
    for number, rows in enumerate(drawn.files):
        written = _file(rng, drawn, rows)
        for name, type in extra:
            if rng.random() < 0.9:
                written = written.append_column(name, nested(rng, type)(len(rows)))
        path = root / f"{number}.parquet"
        _write(rng, written, path)
        facts.append(fact(path, columns))
    held = [c for c in columns if rng.random() < 0.7] or [columns[0]]
    rng.shuffle(held)
    sort = [c.name for c in held if not c.type.is_nested and rng.random() < 0.5]
    scope = {"SORT_SCOPE": rng.choice(("local_sort", "global_sort"))} if sort else {}
    size = rng.choice(("64KB", "1", "128MB"))
    try:
        view = define_view(
            "v", columns, [c.name for c in held], sort, {**scope, "TABLE_BLOCKSIZE": size}
        ).view
    except UnsupportedType:
        return  # CHAR, or a timestamp with zone
    target = ViewTarget(view, tuple(held), canonical(str(root / "view")))
    (built,) = build(
        facts, [target], STORAGE, in_threads(STORAGE), chunk_bytes=rng.choice((1, 1 << 20))
    )
    asked["refused" if built.reason else "built"] += 1
    if built.reason:
        assert not built.files
        assert not list((root / "view").glob("*")) if (root / "view").exists() else True
        return
    _same(facts, built, columns, held)
    again = merge([built], target, STORAGE)
    _same(facts, again, columns, held)
    if sort and again.files:
        _in_order(again, sort)


def _same(
    facts: list[FactFile], built: Built, columns: tuple[Column, ...], held: list[Column]
) -> None:
    try:
        expected = exact_rows(read(facts, columns, held))
    except SchemaConflict:  # then the view must fail as well
        with pytest.raises(SchemaConflict):
            read(built.files, columns, held)
        return
    assert exact_rows(read(built.files, columns, held)) == expected


def _in_order(built: Built, sort: list[str]) -> None:
    by_schema: dict[Any, list[pa.Table]] = {}
    for file in built.files:
        found = pq.read_table(file.uri.removeprefix("file://"))
        by_schema.setdefault(found.schema, []).append(found)
    for parts in by_schema.values():
        whole = pa.concat_tables(parts)
        keys = [(c, "ascending") for c in sort if c in whole.column_names]
        if keys:
            order = pc.sort_indices(whole, sort_keys=keys)
            assert whole.select([k for k, _ in keys]).take(order).equals(
                whole.select([k for k, _ in keys])
            ) or _has_nan(whole)


def _has_nan(whole: pa.Table) -> bool:
    floats = [c for c in whole.columns if pa.types.is_floating(c.type)]
    return any(pc.any(pc.is_nan(c)).as_py() for c in floats)


def _file(rng: random.Random, drawn: Any, rows: list[Any]) -> pa.Table:
    from tests.support.arrow import arrow_table

    return arrow_table(drawn, rows, rng if rng.random() < 0.5 else None)


def _write(rng: random.Random, written: pa.Table, path: Path) -> None:
    options: dict[str, Any] = {}
    if rng.random() < 0.1:
        options["use_deprecated_int96_timestamps"] = True
    elif rng.random() < 0.2:
        options["version"] = "1.0"
    if rng.random() < 0.3:
        options["store_decimal_as_integer"] = True
    try:
        pq.write_table(written, path, row_group_size=rng.choice((1, 3, 1000)), **options)
    except pa.ArrowInvalid:  # a timestamp that INT96 or the old version cannot hold
        pq.write_table(written, path)


def test_most_of_these_tables_have_views() -> None:
    if asked:
        assert asked["built"] > asked["refused"] / 2, asked


def _one(path: Path, type: Type, format: str = "parquet") -> Built:
    columns = (Column("c", type),)
    view = define_view("v", columns, ["c"]).view
    target = ViewTarget(view, columns, canonical(str(path.parent / "view")))
    (built,) = build([fact(path, columns, format)], [target], STORAGE, in_threads(STORAGE))
    return built


def test_int96_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    values = pa.table({"c": pa.array([0, None], pa.timestamp("us"))})
    pq.write_table(values, path, use_deprecated_int96_timestamps=True)
    assert "column c" in _one(path, TIMESTAMP).reason and "INT96" in _one(path, TIMESTAMP).reason


@pytest.mark.parametrize(
    ("unit", "zone"), [("ms", None), ("us", "UTC"), ("ns", "UTC"), ("ns", None)]
)
def test_timestamps_keep_unit_and_zone(tmp_path: Path, unit: str, zone: str | None) -> None:
    """An engine converts UTC timestamps in its own zone, which the view must not anticipate."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": pa.array([1, None, -1], pa.timestamp(unit, zone))}), path)
    (file,) = _one(path, TIMESTAMP).files
    copied = pq.ParquetFile(file.uri.removeprefix("file://"))
    assert str(copied.schema.column(0).logical_type) == str(
        pq.ParquetFile(path).schema.column(0).logical_type
    )


def test_an_old_annotation_of_timestamps_counts_as_utc(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    values = pa.table({"c": pa.array([1], pa.timestamp("ms"))})
    pq.write_table(values, path, version="1.0", store_schema=False)
    before = pq.ParquetFile(path).schema.column(0)
    (file,) = _one(path, TIMESTAMP).files
    after = pq.ParquetFile(file.uri.removeprefix("file://")).schema.column(0)
    utc = "isAdjustedToUTC=true"
    assert (utc in str(before.logical_type)) == (utc in str(after.logical_type))


def test_orc_text_that_may_be_padded_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    po.write_table(pa.table({"c": ["a", "b "]}), str(path))
    assert "ends with spaces" in _one(path, STRING, "orc").reason
    po.write_table(pa.table({"c": ["a", None]}), str(path))
    (file,) = _one(path, STRING, "orc").files
    assert pq.read_table(file.uri.removeprefix("file://"))["c"].to_pylist() == ["a", None]


def test_a_damaged_file_leaves_no_view(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 nothing PAR1")
    built = _one(path, INTEGER)
    assert "cannot be read" in built.reason and not built.files


def test_runs_are_merged_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "RUN_BYTES", 1 << 16)
    rng = random.Random(5)
    columns = (Column("c", INTEGER), Column("s", STRING))
    numbers = [None if rng.random() < 0.1 else rng.randint(-1000, 1000) for _ in range(30_000)]
    texts = [rng.choice("abc") * rng.randint(0, 9) for _ in numbers]
    path = tmp_path / "a.parquet"
    written = pa.table({"c": pa.array(numbers, pa.int32()), "s": texts})
    pq.write_table(written, path, row_group_size=2000)
    view = define_view("v", columns, ["c", "s"], ["c", "s"], {"SORT_SCOPE": "GLOBAL_SORT"}).view
    target = ViewTarget(view, columns, canonical(str(tmp_path / "view")))
    making = building._ViewBuild(target, STORAGE, 1 << 20)
    making.take(fact(path, columns))
    built = making.finish()
    found = pa.concat_tables(pq.read_table(f.uri.removeprefix("file://")) for f in built.files)
    keys = [("c", "ascending"), ("s", "ascending")]
    assert found.equals(written.take(pc.sort_indices(written, sort_keys=keys)))


def test_32_pages_of_a_view_are_decoded_by_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"c": pa.array(range(5000), pa.int32())}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[30:60] = b"\xff" * 30
    path.write_bytes(content)
    columns = (Column("c", INTEGER),)
    view = define_view("v", columns, ["c"], ["c"], {"SORT_SCOPE": "GLOBAL_SORT"}).view
    target = ViewTarget(view, columns, canonical(str(tmp_path / "view")))
    built = Built((ViewFile(canonical(str(path)), len(content), 0, None),), 5000)
    monkeypatch.setattr(pq, "ParquetFile", None)
    with pytest.raises(FileCorrupt, match=r"v\.parquet cannot be read"):
        merge([built], target, STORAGE)
