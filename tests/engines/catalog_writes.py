"""The law of writes: a DELETE, an ``EXECUTE optimize`` or an INSERT that overwrites does through a
catalog that also reads natively what it does through the hive connector in the same server, to an
identical copy.

A table is written once by the hive connector. Its copies have the same files under the same names,
so what a statement left can be compared file by file.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import trino

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from tests.engines.catalog_shapes import (
    ABSENT,
    DATA_CONDITIONS,
    EXPRESSIONS,
    NO_STATISTICS,
    SHAPES,
    STEP,
    WHOLE,
    Shape,
)
from tests.engines.catalogs import Catalogs
from tests.engines.stack import ask

OPTIMIZE = {"non_transactional_optimize_enabled": "true"}
WRITES = {**OPTIMIZE, **NO_STATISTICS}
OVERWRITES = {**WRITES, "insert_existing_partitions_behavior": "OVERWRITE"}


@dataclass(slots=True)
class Pair:
    """Two copies of one table: that of the catalog under test, and the oracle's."""

    ours: str
    theirs: str
    directories: dict[str, Path]
    files: frozenset[str]
    indexed: bool

    def left(self, table: str) -> frozenset[str]:
        """Which of the files that were copied are still there."""
        return self.files & Copies.files(self.directories[table])


@dataclass(slots=True)
class Copies:
    """Makes copies of the shapes, each with a name of its own."""

    catalogs: Catalogs
    schema: str = "writes"
    _made: int = 0
    _shapes: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalogs.hive(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
        past = time.time() - 3600  # entries of files written a moment ago are not trusted
        with MetastoreClient(self.catalogs.metastore_uri) as client:
            for shape in SHAPES:
                shape.create(self.catalogs, self.schema)
                location = client.get_table(self.schema, shape.name).sd.location
                self._shapes[shape.name] = directory = Path(location.removeprefix("file:"))
                for file in directory.rglob("*"):
                    os.utime(file, (past, past))

    def pair(
        self, shape: Shape, indexed: bool = False, properties: Mapping[str, str] | None = None
    ) -> Pair:
        names = [self._copy(shape, properties or {}) for _ in range(2)]
        ours, theirs = names
        if indexed:
            config = Config({"metastore.uri": Setting(self.catalogs.metastore_uri, "test")})
            index_table(config, ours, local=True, progress=lambda d, t: None, say=lambda text: None)
        directories = {name: self._directory(shape, name) for name in names}
        return Pair(ours, theirs, directories, self.files(self._shapes[shape.name]), indexed)

    def _directory(self, shape: Shape, name: str) -> Path:
        return self._shapes[shape.name].with_name(name.partition(".")[2])

    def _copy(self, shape: Shape, properties: Mapping[str, str]) -> str:
        self._made += 1
        name = f"{self.schema}.{shape.name}_{self._made}"
        directory = self._directory(shape, name)
        shutil.copytree(self._shapes[shape.name], directory)
        with MetastoreClient(self.catalogs.metastore_uri) as client:
            table = deepcopy(client.get_table(self.schema, shape.name))
            table.tableName = directory.name
            table.sd.location = f"file:{directory}"
            table.parameters.update(properties)
            client.create_table(table)
            if shape.keys:
                parts = client.get_partitions_by_names(
                    self.schema, shape.name, client.get_partition_names(self.schema, shape.name)
                ).partitions
                moved = [deepcopy(part) for part in parts]
                for part in moved:
                    part.tableName = table.tableName
                    part.sd.location = part.sd.location.replace(
                        str(self._shapes[shape.name]), str(directory), 1
                    )
                client.add_partitions(self.schema, table.tableName, moved)
        return name

    @staticmethod
    def files(directory: Path) -> frozenset[str]:
        """Names of the files that a reader sees."""
        found = (file.relative_to(directory) for file in directory.rglob("*") if file.is_file())
        return frozenset(
            str(f) for f in found if not any(p.startswith((".", "_")) for p in f.parts)
        )

    def partitions(self, name: str) -> list[str]:
        with MetastoreClient(self.catalogs.metastore_uri) as client:
            return sorted(client.get_partition_names(self.schema, name.partition(".")[2]))


@dataclass(frozen=True, slots=True)
class Told:
    """What a statement answered; empty: it succeeded."""

    error: str = ""
    message: str = ""


def tell(port: int, sql: str, catalog: str, table: str) -> Told:
    """Runs a statement. Names of the table and of plan nodes are left out of its message."""
    try:
        # an INSERT overwrites partitions; ``optimize`` refuses to be told so
        ask(port, sql, catalog, OVERWRITES if sql.startswith("INSERT") else WRITES)
    except trino.exceptions.TrinoQueryError as error:
        text = re.sub(r"\w+Node\b", "Node", (error.message or "").replace(table, "T"))
        return Told(error.error_name, text.replace(table.partition(".")[2], "T"))
    return Told()


@dataclass(slots=True)
class Law:
    """Asks one statement of both copies. Counts what succeeded and what was refused."""

    copies: Copies
    catalog: str = "front"
    succeeded: int = 0
    refused: int = 0
    message: str = ""
    dead_locks: list[Told] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def tell(self, shape: Shape, statement: str, pair: Pair) -> dict[str, Told]:
        """What each copy's catalog answered, while the table is read natively."""
        assert self._native(pair)
        told = {}
        for table, catalog in ((pair.theirs, "hive"), (pair.ours, self.catalog)):
            sql = statement.format(t=table, o=f"{self.copies.schema}.{shape.name}_o")
            told[table] = tell(self.copies.catalogs.port, sql, catalog, table)
        self.texts.append(f"{told[pair.theirs].error or 'done'}: {statement}")
        return told

    def _native(self, pair: Pair) -> bool:
        return self.copies.catalogs.side(f"SELECT * FROM {pair.ours}", self.catalog) == "native"

    def ask(self, shape: Shape, statement: str, pair: Pair) -> bool:
        """Whether the statement was refused, so that the copies can be asked again."""
        told = self.tell(shape, statement, pair)
        if failed := [each for each in told.values() if each.error == "HIVE_METASTORE_ERROR"]:
            # The test's metastore keeps its tables in an embedded database, which may dead-lock.
            self.dead_locks += failed
            assert len(self.dead_locks) < 4, self.dead_locks
            return self.ask(shape, statement, self.copies.pair(shape, pair.indexed))
        ours, theirs = told[pair.ours], told[pair.theirs]
        assert ours == theirs, (statement, pair)
        self.compare(pair, statement)
        if ours.error:
            self.refused += 1
            assert pair.left(pair.ours) == pair.files, statement
            self.message = ours.message
            return self._native(pair)
        self.succeeded += 1
        return False

    def compare(self, pair: Pair, statement: str) -> None:
        """The same rows, partitions and untouched files are left; both catalogs read them."""
        catalogs = self.copies.catalogs
        rows = _rows(catalogs, pair.theirs, "hive")
        assert _rows(catalogs, pair.ours, "hive") == rows, statement
        assert _rows(catalogs, pair.ours, self.catalog) == rows, statement
        assert self.copies.partitions(pair.ours) == self.copies.partitions(pair.theirs), statement
        assert pair.left(pair.ours) == pair.left(pair.theirs), statement


def _rows(catalogs: Catalogs, table: str, catalog: str) -> list[str]:
    return sorted(map(repr, ask(catalogs.port, f"SELECT * FROM {table}", catalog)))


class Draw:
    """Draws statements, with ``{t}`` for the table and ``{o}`` for another one."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def shape(self) -> Shape:
        return self._random.choice(SHAPES)

    def yes(self, chance: float) -> bool:
        return self._random.random() < chance

    def statement(self, shape: Shape) -> str:
        condition = self._condition(shape)
        where = f" WHERE {condition}" if condition else ""
        if self.yes(0.2):
            return f"INSERT INTO {{t}} {self._query(shape, where)}"
        if self.yes(0.55):
            return f"DELETE FROM {{t}}{where}"
        size = self._random.choice(("", "(file_size_threshold => '1GB')", "('600B')", "('1B')"))
        return f"ALTER TABLE {{t}} EXECUTE optimize{size}{where}"

    def _query(self, shape: Shape, where: str) -> str:
        """What overwrites partitions, out of the table itself."""
        every = ", ".join(("a", "b", "x", *shape.data, *shape.keys))
        by = ", ".join(shape.keys) or "b"
        rank = f"row_number() OVER (PARTITION BY {by} ORDER BY a DESC) AS rank"
        query = self._random.choice(
            (
                f"SELECT {every} FROM {{t}}{where}",
                f"SELECT {every} FROM {{t}}{where} ORDER BY a LIMIT {self._random.randrange(9)}",
                f"SELECT {every} FROM (SELECT *, {rank} FROM {{t}}) WHERE rank = 1",
                f"WITH q AS (SELECT {every} FROM {{t}}{where}) SELECT * FROM q"
                f" WHERE a IN (SELECT max(a) FROM {{t}} GROUP BY {by})",
            )
        )
        grouped = f"SELECT min(a), count(*), {by} FROM {{t}}{where} GROUP BY {by}"
        return f"(a, x, {by}) {grouped}" if self.yes(0.25) else query

    def _condition(self, shape: Shape) -> str:
        if self.yes(0.08):
            return ""
        kinds = [self._data] * 2 + [self._hidden, self._always]
        if shape.keys:
            kinds += [self._key] * 10 + [self._keys] * 5 + [self._expression] * 2
            kinds += [self._subquery] * 2
        count = self._random.choice((1, 1, 1, 2, 2, 3))
        parts = [self._random.choice(kinds)(shape) for _ in range(count)]
        if self.yes(0.25):
            parts = [self._key(shape) if shape.keys else part for part in parts]
        if len(parts) > 1 and self.yes(0.2):
            return " OR ".join(f"({part})" for part in parts)
        text = " AND ".join(f"({part})" for part in parts)
        return f"NOT ({text})" if self.yes(0.06) else text

    def _one(self, shape: Shape) -> tuple[str, str, list[str]]:
        key = self._random.choice(list(shape.keys))
        kind, values = shape.keys[key]
        return key, kind, [value for value in values if value != "NULL"]

    def _key(self, shape: Shape) -> str:
        key, kind, values = self._one(shape)
        value = self._random.choice(values)
        absent = ABSENT.get(kind, "77")
        some = ", ".join(self._random.sample([*values, absent], 2))
        return self._random.choice(
            (
                f"{key} = {value}",
                f"{key} = {value}",
                f"{value} = {key}",
                f"{key} <> {value}",
                f"{key} >= {value}",
                f"{key} < {value}",
                f"{key} BETWEEN {min(values)} AND {max(values)}",
                f"{key} IN ({some})",
                f"{key} IN ({some}, NULL)",
                f"{key} NOT IN ({some})",
                f"{key} IS NULL",
                f"{key} IS NOT NULL",
                f"{key} IS DISTINCT FROM {value}",
                f"{key} = {value} OR {key} IS NULL",
                f"{key} = {absent}",
                f"{key} = {value} AND {key} = {absent}",
                f"{key} = NULL",
                f"NOT ({key} = {value})",
            )
        )

    def _keys(self, shape: Shape) -> str:
        return " AND ".join(f"({self._key(shape)})" for _ in range(2))

    def _expression(self, shape: Shape) -> str:
        key, kind, values = self._one(shape)
        value = self._random.choice(values)
        of_kind = (text.format(k=key) for text in EXPRESSIONS.get(kind, WHOLE))
        return self._random.choice(
            (
                *of_kind,
                f"CAST({key} AS varchar) = CAST({value} AS varchar)",
                f"CAST(CAST({value} AS varchar) AS {kind}) = {key}",
                f"coalesce({key}, {value}) = {value}",
                f"{key} = {value} AND random() < 2",
                f"CASE WHEN {key} = {value} THEN true ELSE false END",
            )
        )

    def _data(self, shape: Shape) -> str:
        count = max(1, len(shape.partitions()))
        bound = STEP * self._random.randrange(count + 1)
        return self._random.choice(
            (
                f"a < {bound}",
                f"a >= {bound}",
                f"a BETWEEN {bound} AND {bound + STEP - 1}",
                f"a = {bound}",
                f"a IN ({bound}, {bound + 1})",
                "a >= 0",
                "a IS NOT NULL",
                "a IS NULL",
                "b LIKE 'b%'",
                "b = 'b1'",
                "x > 0 OR x <= 0",
                f"CAST(a AS double) < {bound}.5",
                *(text for column in shape.data for text in DATA_CONDITIONS[column]),
            )
        )

    def _hidden(self, shape: Shape) -> str:
        key = next(iter(shape.keys), "k")
        named = f"\"$partition\" LIKE '{key.lower()}=%'" if shape.keys else "\"$path\" <> ''"
        return self._random.choice(
            ("\"$path\" LIKE '%'", '"$file_size" > 0', named, '"$file_modified_time" IS NOT NULL')
        )

    def _always(self, shape: Shape) -> str:
        return self._random.choice(("true", "1 = 1", "false", "NULL", "a = a"))

    def _subquery(self, shape: Shape) -> str:
        key = next(iter(shape.keys))
        value = shape.keys[key][1][0]
        return self._random.choice(
            (
                f"{key} IN (SELECT v FROM {{o}})",
                f"{key} NOT IN (SELECT v FROM {{o}} WHERE v IS NOT NULL)",
                f"{key} IN (SELECT v FROM {{o}} WHERE false)",
                f"{key} = (SELECT max(v) FROM {{o}})",
                f"{key} = (SELECT min({key}) FROM {{t}})",
                f"{key} IN (SELECT {key} FROM {{t}} WHERE {key} = {value} AND a >= 0)",
                f"EXISTS (SELECT 1 FROM {{o}} WHERE v = {key})",
                f"{key} IN (VALUES {value})",
                "a IN (SELECT w FROM {o})",
                f"{key} = (SELECT {value})",
            )
        )
