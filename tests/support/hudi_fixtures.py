"""Hudi tables that Spark wrote, and what Spark itself answers about them.

The archives are in ``tests/fixtures/hudi``; the README there says how they are made and what each
is for. A test that changes a table unpacks a copy of its own.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.fixtures.hudi.text import arrow_fields, decode
from tests.tiers import nightly

ARCHIVES = Path(__file__).parents[1] / "fixtures" / "hudi"
BUNDLES = ("0.15.0", "1.0.2", "1.2.0")


@dataclass(frozen=True, slots=True)
class Slice:
    """A file slice as Hudi's own file-system view gives it; ``logs`` in the order of merging."""

    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    logs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Instant:
    """An instant of the active timeline. ``completed`` is None while it is pending."""

    requested: str
    completed: str | None
    action: str
    state: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Spark's answer to one query: rows in no order, or the error that Spark raised.

    ``rows`` hold values in the form of ``tests/fixtures/hudi/text.py``. ``options`` are those the
    query was asked with. ``slices`` is None where they were not asked for.
    """

    options: dict[str, str]
    schema: pa.Schema
    rows: tuple[list[Any], ...]
    error: str | None
    slices: tuple[Slice, ...] | None = None

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with Arrow's types; by default all columns but Hudi's own (``_hoodie_…``).

        Errors:
            AssertionError: Spark raised an error, so there are no rows to compare with.
        """
        assert self.error is None, self.error
        arrays, fields = [], []
        for place, field in enumerate(self.schema):
            wanted = not field.name.startswith("_hoodie_") if columns is None else None
            if wanted or (columns is not None and field.name in columns):
                values = [decode(row[place], field.type) for row in self.rows]
                arrays.append(pa.array(values, field.type))
                fields.append(field)
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@dataclass(frozen=True, slots=True)
class AsOf:
    """A time-travel query. ``instant`` is the requested time of a completed write."""

    instant: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Incremental:
    """An incremental query. ``by`` tells what its bounds are: ``requested`` or ``completion``.

    Whether the bounds belong to the window depends on the bundle: the README says how.
    """

    by: str
    begin: str
    end: str | None
    answer: Answer


@dataclass(frozen=True, slots=True)
class Answers:
    """All that Spark and Hudi say of one table."""

    about: str
    bundle: str
    zone: str
    table_version: int
    table_type: str
    timeline: tuple[Instant, ...]
    snapshot: Answer
    read_optimized: Answer
    as_of: tuple[AsOf, ...]
    incremental: tuple[Incremental, ...]
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class HudiFixture:
    """One table. ``id`` is a readable name for ``pytest.param``."""

    bundle: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.name}-{self.bundle}"

    def path(self) -> Path:
        """The table in a directory that all tests of the process share: only read it."""
        return _shared(self)

    def unpack(self, into: Path) -> Path:
        """A copy in the directory ``into``, which the test may change."""
        with tarfile.open(ARCHIVES / self.bundle / f"{self.name}.tar.xz") as archive:
            archive.extractall(into, filter="data")
        return into / self.name

    def answers(self) -> Answers:
        return _answers(self)


def hudi_fixtures(
    *, bundle: str | None = None, names: Sequence[str] | None = None, prefix: str = ""
) -> list[HudiFixture]:
    """The tables in the order of bundles and names, all or those asked for.

    Errors:
        AssertionError: a name that no bundle has, so that a test cannot lose its tables.
    """
    found = [
        HudiFixture(directory.name, file.name.removesuffix(".tar.xz"))
        for directory in sorted(ARCHIVES.iterdir())
        if directory.name in BUNDLES
        for file in sorted(directory.glob("*.tar.xz"))
    ]
    missing = set(names or ()) - {one.name for one in found}
    assert not missing, f"no Hudi fixture is named {sorted(missing)}"
    return [
        one
        for one in found
        if bundle in (None, one.bundle)
        and (names is None or one.name in names)
        and one.name.startswith(prefix)
    ]


def few(fixtures: Sequence[HudiFixture]) -> list[HudiFixture]:
    """A third of them, and all of ``--tier=nightly``; each name once at least."""
    if nightly():
        return list(fixtures)
    chosen: dict[str, HudiFixture] = {}
    for one in fixtures:
        places = [b for b in BUNDLES if HudiFixture(b, one.name) in fixtures]
        wanted = places[sum(one.name.encode()) % len(places)]
        if one.bundle == wanted:
            chosen[one.name] = one
    return list(chosen.values())


@cache
def _directory() -> Path:
    made = Path(tempfile.mkdtemp(prefix="hudi-tables-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@cache
def _shared(fixture: HudiFixture) -> Path:
    return fixture.unpack(_directory() / fixture.bundle)


@cache
def _answers(fixture: HudiFixture) -> Answers:
    text = (ARCHIVES / fixture.bundle / f"{fixture.name}.json").read_text(encoding="utf-8")
    found = json.loads(text)

    def answer(one: dict[str, Any], options: dict[str, str]) -> Answer:
        schema = one.get("schema", found["schema"])
        return Answer(
            {**found["read_options"], **options},
            pa.schema(arrow_fields(schema) if schema else []),
            tuple(found["rows"][place] for place in one.get("rows", ())),
            one.get("error"),
            _slices(one["slices"]) if "slices" in one else None,
        )

    read_optimized = {"hoodie.datasource.query.type": "read_optimized"}
    return Answers(
        found["about"],
        found["bundle"],
        found["zone"],
        found["table_version"],
        found["table_type"],
        tuple(Instant(**instant) for instant in found["timeline"]),
        answer({**found["snapshot"], "slices": found["slices"]}, {}),
        answer(found["read_optimized"], read_optimized),
        tuple(
            AsOf(one["instant"], answer(one, {"as.of.instant": one["instant"]}))
            for one in found["as_of"]
        ),
        tuple(
            Incremental(one["by"], one["begin"], one["end"], answer(one, one["options"]))
            for one in found["incremental"]
        ),
        _slices(found["slices"]),
    )


def _slices(found: list[dict[str, Any]]) -> tuple[Slice, ...]:
    return tuple(
        Slice(
            one["partition"],
            one["file_id"],
            one["base_instant"],
            one["base_file"],
            tuple(one["logs"]),
        )
        for one in found
    )
