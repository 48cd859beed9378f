"""Tables for the law of writes: partition keys and data columns of all kinds of types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from tests.engines.catalogs import Catalogs
from tests.engines.stack import ask

NO_STATISTICS = {"collect_column_statistics_on_write": "false"}
"""Of many columns and partitions at once: the test's embedded database would dead-lock."""
STEP = 100
"""Values of ``a`` in one partition lie below those of the next, so an index tells them apart."""
ABSENT = {
    "varchar": "'none'",
    "varchar(6)": "'none'",
    "char(4)": "'none'",
    "date": "DATE '1999-01-01'",
    "decimal(5,2)": "DECIMAL '77.25'",
    "boolean": "NULL",
    "double": "77e0",
}
"""A value of a key's type that no partition has; 77 of any other type."""
EXPRESSIONS = {
    "varchar": ("length({k}) = 1", "upper({k}) = 'X'", "{k} LIKE 'x%'"),
    "varchar(6)": ("{k} = 'a'", "rtrim({k}) = 'a'", "{k} LIKE 'a%'", "length({k}) = 2"),
    "char(4)": (
        "{k} = 'ab'",
        "CAST({k} AS varchar) = 'ab'",
        "CAST({k} AS varchar) = 'ab  '",
        "length({k}) = 4",
        "{k} IN ('ab  ', 'zz')",
        "{k} = CAST('ab' AS varchar(2))",
    ),
    "date": (
        "month({k}) = 1",
        "CAST({k} AS varchar) LIKE '2024-02%'",
        "{k} = TIMESTAMP '2024-01-01'",
    ),
    "decimal(5,2)": ("{k} = 1.5", "{k} * 2 > 3", "CAST({k} AS double) = 1.5", "{k} < 1.505"),
    "boolean": ("{k}", "NOT {k}", "{k} IS TRUE", "{k} OR a < 0"),
    "double": ("{k} = 1", "{k} + 1 > 2", "CAST({k} AS varchar) = '1.5E0'", "is_nan({k})"),
}
"""Conditions on a key ``{k}`` that are no comparison with a value; see below for any other type."""
WHOLE = ("{k} % 2 = 0", "{k} + 1 = 3", "{k} % 2 = 5", "abs({k}) < 5", "{k} < 1.5", "{k} = 1e0")
DATA = {
    "t": (
        "timestamp(6)",
        "TIMESTAMP '2024-01-01 00:00:00.123456'",
        "TIMESTAMP '1969-12-31 23:59:59.999999'",
    ),
    "m": ("decimal(12,3)", "DECIMAL '1.500'", "DECIMAL '-99.125'"),
    "big": (
        "decimal(38,4)",
        "DECIMAL '1234567890123456789012345678901234.5678'",
        "DECIMAL '-0.0001'",
    ),
    "c": ("char(5)", "'ab'", "''"),
    "e": ("boolean", "true", "false"),
    "g": ("date", "DATE '1582-10-04'", "DATE '2024-02-29'"),
    "h": ("varbinary", "X'00ff'", "X''"),
    "r": ("row(p bigint, q varchar)", "ROW(1, 'u')", "ROW(NULL, 'v')"),
    "s": ("array(varchar)", "ARRAY['u', NULL]", "ARRAY[]"),
    "j": (
        "map(varchar, bigint)",
        "MAP(ARRAY['u'], ARRAY[1])",
        "MAP(ARRAY['u', 'v'], ARRAY[2, NULL])",
    ),
}
"""Further data columns: the type and two values; every third row has none."""
DATA_CONDITIONS = {
    "t": ("t < TIMESTAMP '2024-01-01 00:00:00'", "t IS NULL", "year(t) = 2024"),
    "m": ("m > 0", "m = 1.5"),
    "big": ("big < 0",),
    "c": ("c = 'ab'", "CAST(c AS varchar) = 'ab'", "c <> ''"),
    "e": ("e", "e IS NOT NULL"),
    "g": ("g < DATE '2000-01-01'",),
    "h": ("h = X''",),
    "r": ("r.p = 1", "r IS NOT NULL", "r = ROW(BIGINT '1', VARCHAR 'u')"),
    "s": ("cardinality(s) >= 0", "s IS NULL", "contains(s, 'u')"),
    "j": ("element_at(j, 'u') = 1",),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A table: data columns ``a bigint, b varchar, x double`` and more, then the keys.

    Attributes:
        keys: the type and the values of each partition key, as SQL.
        data: further data columns, by name of `DATA`.
    """

    name: str
    format: str
    keys: Mapping[str, tuple[str, tuple[str, ...]]]
    data: tuple[str, ...] = ()

    def partitions(self) -> list[tuple[str, ...]]:
        return list(product(*(values for _, values in self.keys.values())))

    def create(self, catalogs: Catalogs, schema: str) -> None:
        """Two files to each partition, by the hive connector."""
        types = {"a": "bigint", "b": "varchar", "x": "double"}
        types |= {name: DATA[name][0] for name in self.data}
        types |= {key: kind for key, (kind, _) in self.keys.items()}
        columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
        names = ", ".join(f"'{key}'" for key in self.keys)
        table = f"{schema}.{self.name}"
        by = f", partitioned_by = ARRAY[{names}]" if names else ""
        catalogs.hive(f"CREATE TABLE {table} ({columns}) WITH (format = '{self.format}'{by})")
        for half in (0, 1):
            rows = ", ".join(
                self._row(list(types.values()), STEP * number + 2 * k + half, k, values)
                for number, values in enumerate(self.partitions())
                for k in range(4)
            )
            ask(catalogs.port, f"INSERT INTO {table} VALUES {rows}", "hive", NO_STATISTICS)
        if self.keys:
            kind, values = next(iter(self.keys.values()))
            told = f"({values[0]}, 1), ({values[1]}, 2), (CAST(NULL AS {kind}), 3)"
            catalogs.hive(f"CREATE TABLE {table}_o AS SELECT * FROM (VALUES {told}) AS o (v, w)")

    def _row(self, types: list[str], a: int, k: int, keys: tuple[str, ...]) -> str:
        data = ((*DATA[name][1:], "NULL")[(a + k) % 3] for name in self.data)
        values = (str(a), f"'b{k % 3}'", f"{k}.5", *data, *keys)
        pairs = zip(values, types, strict=True)
        return f"({', '.join(f'CAST({value} AS {kind})' for value, kind in pairs)})"


WORDS = Shape(
    "words",
    "PARQUET",
    {
        "k": ("varchar", ("'x'", "'y z/=1'", "NULL")),
        "d": ("date", ("DATE '2024-01-01'", "DATE '2024-02-01'")),
    },
)
NUMBERS = Shape("numbers", "ORC", {"n": ("bigint", ("1", "2", "10", "NULL"))})
SHAPES = (
    WORDS,
    NUMBERS,
    Shape("lines", "TEXTFILE", {"n": ("integer", ("1", "-2", "30"))}),
    Shape("plain", "PARQUET", {}, tuple(DATA)),
    Shape(
        "moments",
        "PARQUET",
        {
            "Flag": ("boolean", ("true", "false")),
            "Day": ("date", ("DATE '2024-01-01'", "DATE '1582-10-04'")),
        },
        tuple(DATA),
    ),
    Shape(
        "padded",
        "ORC",
        {
            "Ch": ("char(4)", ("'ab'", "'b%'", "NULL")),
            "V": ("varchar(6)", ("'a '", "'A'")),
        },
        tuple(DATA),
    ),
    Shape(
        "amounts",
        "PARQUET",
        {
            "dec": (
                "decimal(5,2)",
                ("DECIMAL '1.50'", "DECIMAL '0.00'", "NULL"),
            ),
            "y": ("tinyint", ("TINYINT '1'", "TINYINT '-1'")),
        },
        ("t", "m", "c", "s"),
    ),
    Shape(
        "halves", "AVRO", {"f": ("double", ("1e0", "1.5e0", "-0.1e0"))}, ("m", "e", "r", "s", "j")
    ),
)
