"""Files whose meaning the table declares: indexed in one pass, pruned, unknown after a change."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pytest

from bridge.expression.builders import literal
from bridge.expression.function_catalog import call
from bridge.expression.nodes import Op, Predicate, Reference
from bridge.kernel.types import BIGINT, DATE, DOUBLE, HIVE, INTEGER, STRING, Type
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.request import ScanRequest
from bridge.storage.port import Range
from bridge.table.model import Column
from bridge.table.reader_spec import ReaderSpec
from tests.support.declared import Declared
from tests.support.lake import NAME, age

LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
CSV = {"serialization.lib": "org.apache.hadoop.hive.serde2.OpenCSVSerde"}
JSON = {"serialization.lib": "org.apache.hive.hcatalog.data.JsonSerDe"}
TEXT = {"serialization.lib": LAZY, "field.delim": ","}


def column(name: str, op: Op, *values: Any) -> Predicate:
    return Predicate(op, Reference((name,)), tuple(literal(value) for value in values))


def day(year: int, month: int) -> Any:
    days = (datetime.date(year, month, 1) - datetime.date(1970, 1, 1)).days
    return literal(days, DATE)


def declared(path: Path, format: str, properties: dict[str, str], **types: Type) -> Declared:
    columns = tuple(Column(name, type) for name, type in types.items())
    return Declared(path, columns, format=format, properties=dict(properties))


def csv(path: Path) -> Declared:
    lake = declared(path, "csv", CSV, id=STRING, city=STRING)
    lake.put("a", "1,Ulm\n2,Bonn\n")
    lake.put("b", '"7","Köln"\n"8","Mainz, a city"\n')
    lake.put("odd", "3,Ulm\n4,\0\n")
    return lake


def test_csv_is_pruned_and_an_ambiguous_file_is_read(tmp_path: Path) -> None:
    lake = csv(tmp_path)
    report = lake.bring_up()
    assert [uri.rpartition("/")[2] for uri, _ in report.failed] == ["odd"]
    assert "FILE_AMBIGUOUS" in report.failed[0][1]
    assert lake.read(column("id", Op.GT, "5")) == {"b", "odd"}
    assert lake.read(column("city", Op.EQ, "Ulm")) == {"a", "odd"}
    assert lake.read(column("city", Op.EQ, "Zug")) == {"odd"}
    assert lake.read(column("id", Op.IS_NULL)) == {"odd"}
    assert lake.bring_up().read == 0  # the ambiguous file is not tried again


@pytest.mark.parametrize(
    ("name", "text"),
    [("separatorChar", ";"), ("skip.header.line.count", "1"), ("quoteChar", "'"), ("new", "")],
)
def test_a_changed_property_makes_entries_unknown(tmp_path: Path, name: str, text: str) -> None:
    lake = csv(tmp_path)
    lake.bring_up()
    assert lake.read(column("city", Op.EQ, "Zug")) == {"odd"}
    lake.properties[name] = text
    assert lake.read(column("city", Op.EQ, "Zug")) == {"a", "b", "odd"}
    assert lake.bring_up().read == 3
    if name == "separatorChar":  # one field, and no city
        assert lake.read(column("city", Op.EQ, "Zug")) == {"odd"}
        assert lake.read(column("id", Op.EQ, "1,Ulm")) == {"a", "odd"}
        assert lake.read(column("id", Op.EQ, '7,"Köln')) == {"b", "odd"}
    if name == "new":
        assert lake.read(column("city", Op.EQ, "Zug")) == {"a", "b", "odd"}
    del lake.properties[name]
    assert lake.read(column("city", Op.EQ, "Zug")) == {"a", "b", "odd"}


def test_a_changed_type_or_order_of_columns_makes_entries_unknown(tmp_path: Path) -> None:
    lake = declared(tmp_path, "text", TEXT, n=INTEGER, s=STRING)
    lake.put("a", "3000000000,x\n5,y\n")
    lake.bring_up()
    # 3000000000 is NULL as an integer, so nothing is known of it.
    assert lake.read(column("n", Op.GT, 100)) == {"a"}
    assert lake.read(column("s", Op.EQ, "z")) == set()
    lake.columns = (Column("n", BIGINT), Column("s", STRING))
    assert lake.read(column("s", Op.EQ, "z")) == {"a"}
    lake.bring_up()
    assert lake.read(column("n", Op.GT, 3_000_000_000)) == set()
    assert lake.read(column("n", Op.EQ, 3_000_000_000)) == {"a"}
    lake.columns = (Column("s", STRING), Column("n", BIGINT))
    assert lake.read(column("s", Op.EQ, "zz")) == {"a"}


def test_every_kind_is_built_in_one_read(tmp_path: Path) -> None:
    lake = declared(tmp_path, "json", JSON, id=BIGINT, name=STRING, price=DOUBLE, day=DATE)
    for i in range(4):
        rows = [
            {
                "id": 10 * n + i,
                "name": f"Name{n}-{i}",
                "price": n + i / 4,
                "day": f"2024-0{i + 1}-0{n + 1}",
            }
            for n in range(5)
        ]
        lake.put(f"f{i}", "".join(json.dumps(row) + "\n" for row in rows))
    counting = Counting(lake.storage)
    report = lake.bring_up(
        "bloom=id", "bloom=name", "values=id", "values=price", "expression=lower(name)",
        "expression=month(day)", "ndv=*", storage=counting,
    )  # fmt: skip
    assert not report.failed and not report.untrusted
    assert counting.bytes == sum(p.stat().st_size for p in (tmp_path / "t").glob("f*"))
    assert lake.read(column("id", Op.EQ, 12)) == {"f2"}
    assert lake.read(column("price", Op.EQ, 1.25)) == {"f1"}
    assert lake.read(column("name", Op.EQ, "Name3-3")) == {"f3"}
    month = call("month", [Reference(("day",))])
    assert month is not None
    month_is_2 = Predicate(Op.EQ, month, (literal(2),))
    assert lake.read(month_is_2) == {"f1"}


@dataclass
class Counting:
    """A storage that counts the bytes read from data files."""

    storage: Any
    bytes: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)

    def read_state(self, uri: str, ranges: Sequence[Range]) -> Any:
        self.bytes += sum(end - start for start, end in ranges)
        return self.storage.read_state(uri, ranges)


def test_a_doubtful_value_makes_its_column_unknown_in_all_kinds(tmp_path: Path) -> None:
    lake = declared(tmp_path, "text", TEXT, a=BIGINT, b=BIGINT)
    lake.put("sure", "1,1\n2,2\n")
    lake.put("doubt", "1,1\n+2,2\n")
    lake.bring_up("bloom=a", "values=a", "bloom=b", "values=b")
    assert lake.read(column("a", Op.EQ, 9)) == {"doubt"}
    assert lake.read(column("b", Op.EQ, 9)) == set()
    assert lake.read(column("a", Op.IS_NULL)) == {"doubt"}


def test_a_json_column_of_mixed_values_is_unknown_and_the_others_skip_its_file(
    tmp_path: Path,
) -> None:
    lake = declared(tmp_path, "json", JSON, a=BIGINT, m=BIGINT)
    lake.put("sure", '{"a": 1, "m": 1}\n')
    lake.put("mixed", '{"a": 2, "m": 2}\n{"a": 3, "m": "three"}\n')
    lake.put("nested", '{"a": 4, "m": {"a": 1}}\n')
    report = lake.bring_up("bloom=a", "bloom=m", "values=a", "values=m")
    ((uri, reason),) = report.failed
    assert uri.endswith("nested") and "'m' holds an object or a list" in reason
    assert lake.read(column("a", Op.EQ, 1)) == {"sure", "nested"}
    assert lake.read(column("m", Op.EQ, 1)) == {"sure", "mixed", "nested"}
    assert lake.read(column("m", Op.EQ, 9)) == {"mixed", "nested"}
    assert lake.read(column("m", Op.IS_NULL)) == {"mixed", "nested"}
    lake.columns = (Column("a", BIGINT),)
    lake.bring_up()
    assert lake.read(column("a", Op.EQ, 1)) == {"sure"}


def test_a_column_that_is_mixed_in_all_files_is_told_with_a_remedy(tmp_path: Path) -> None:
    lake = declared(tmp_path, "json", JSON, a=BIGINT, m=BIGINT)
    lake.put("mixed", '{"a": 2, "m": 2}\n{"a": 3, "m": "three"}\n')
    lake.bring_up()
    plan = lake.planner().plan(ScanRequest(NAME, column("m", Op.EQ, 1)))
    list(plan.batches())
    (told,) = plan.report().not_used
    assert (told.index, told.reason) == ("minmax(m)", "NO_STATISTICS")
    assert "write each of its values as bigint" in told.remedy.text


def test_partitions_are_bound_to_their_own_declaration(tmp_path: Path) -> None:
    lake = declared(tmp_path, "text", TEXT, a=STRING, b=STRING)
    lake.keys = (Column("p", STRING),)
    lake.partition_values = [("1",), ("2",)]
    other = {**TEXT, "field.delim": ";"}
    lake.readers["p=2"] = ReaderSpec("text", tuple(sorted(other.items())))
    lake.put("f1", "x,1\n", ("1",))
    lake.put("f2", "y;2\n", ("2",))
    assert not lake.bring_up().failed
    assert lake.read(column("b", Op.EQ, "2")) == {"f2"}
    assert lake.read(column("a", Op.EQ, "z")) == set()
    lake.readers["p=2"] = ReaderSpec("text", tuple(sorted(TEXT.items())))
    assert lake.read(column("a", Op.EQ, "z")) == {"f2"}
    assert lake.bring_up().read == 1
    assert lake.read(column("a", Op.EQ, "y;2")) == {"f2"}
    # Columns of a partition's own: engines convert values, so nothing is known.
    own = (Column("a", BIGINT), Column("b", STRING))
    lake.readers["p=2"] = ReaderSpec("text", tuple(sorted(TEXT.items())), own)
    lake.bring_up()
    assert lake.read(column("a", Op.EQ, "z")) == {"f2"}


@pytest.mark.parametrize("freshness", ["live", "cached(60s)", "snapshot"])
def test_no_partition_is_left_out_by_entries_of_another_declaration(
    tmp_path: Path, freshness: str
) -> None:
    """Under ``snapshot`` no record is fetched that could tell of it before."""
    lake = declared(tmp_path, "csv", CSV, n=STRING, s=STRING)
    lake.keys = (Column("p", INTEGER),)
    lake.partition_values = [("1",), ("2",)]
    for p in ("1", "2"):
        lake.put(f"f{p}", f"{p},x;y\n", (p,))
    lake.bring_up()
    lake.properties["separatorChar"] = ";"
    planner = lake.planner()
    request = ScanRequest(NAME, column("s", Op.EQ, "y"), freshness=freshness)
    assert sum(map(len, planner.plan(request).batches())) == 2
    planner.lister.close()


def test_fields_by_name_are_cast_to_the_declared_types(tmp_path: Path) -> None:
    cast = {**CSV, "skipbridge.cast": "try", "skipbridge.csv.fields": "When,more,n"}
    cast["skip.header.line.count"] = "1"
    lake = declared(tmp_path, "csv", cast, n=BIGINT, when=DATE)
    lake.put("a", "When,more,n\n2024-01-05,x,1\n2024-01-07,y,\n")
    lake.put("b", "When,more,n\n2024-02-05,x,10\n2024-02-07,y,oops\n")
    assert not lake.bring_up("bloom=n").failed
    assert lake.read(column("n", Op.EQ, 2)) == {"b"}
    assert lake.read(column("n", Op.IS_NULL)) == {"a", "b"}
    assert lake.read(column("when", Op.GT, day(2024, 2))) == {"b"}
    lake.properties["skipbridge.cast"] = "fail"
    report = lake.bring_up("bloom=n")
    # A file with what may be an error is read by each query, whatever it asks for.
    assert len(report.failed) == 2
    assert lake.read(column("when", Op.GT, day(2024, 3))) == {"a", "b"}


def test_avro_is_pruned_where_names_and_types_agree(tmp_path: Path) -> None:
    lake = declared(tmp_path, "avro", {}, id=BIGINT, name=STRING, n=INTEGER, Day=DATE)
    fields = [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "n", "type": ["null", "long"]},
    ]
    schema = {"type": "record", "name": "r", "fields": fields}
    for i in (1, 2):
        path = lake.path(f"f{i}")
        rows = [{"id": 10 * i + k, "name": f"x{i}" if k else None, "n": k} for k in range(3)]
        with path.open("wb") as sink:
            fastavro.writer(sink, fastavro.parse_schema(schema), rows)
        age(path)
    whole = lake.path("f1").read_bytes()
    lake.put("cut", whole[:-5])
    report = lake.bring_up("bloom=name")
    assert [uri.rpartition("/")[2] for uri, _ in report.failed] == ["cut"]
    assert lake.read(column("id", Op.LT, 15)) == {"f1", "cut"}
    assert lake.read(column("name", Op.EQ, "x2")) == {"f2", "cut"}
    assert lake.read(column("name", Op.IS_NULL)) == {"f1", "f2", "cut"}
    # Wider than declared, and not in the file under this name: engines may differ.
    assert lake.read(column("n", Op.EQ, 99)) == {"f1", "f2", "cut"}
    assert lake.read(column("Day", Op.IS_NOT_NULL)) == {"f1", "f2", "cut"}


def test_an_engine_that_lists_files_itself_reads_them_all(tmp_path: Path) -> None:
    """It may read by a newer declaration than the planner's."""
    lake = csv(tmp_path)
    lake.bring_up()
    planner = lake.planner()
    request = ScanRequest(NAME, column("city", Op.EQ, "Zug"), semantics=HIVE)
    found = list_skippable_files(lake.table(), planner.views.view(lake.table()), request)
    planner.lister.close()
    assert found.generation == 1 and not len(found.paths)


def test_counts_are_answered_only_where_lines_are_certain(tmp_path: Path) -> None:
    lake = csv(tmp_path)
    lake.bring_up()
    index = lake.snapshot()
    rows = dict(zip(index.paths.to_pylist(), index.rows.tolist(), strict=True))
    assert {uri.rpartition("/")[2]: n for uri, n in rows.items()} == {"a": 2, "b": 2, "odd": -1}
