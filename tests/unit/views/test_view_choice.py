"""Which view stands for a segment's facts, and which columns count as read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bridge.expression.builders import eq, is_null
from bridge.expression.nodes import And
from bridge.kernel.types import BIGINT, DATE, INTEGER, STRING
from bridge.planner.request import ScanRequest, SortKey
from bridge.service.handler import _projected
from bridge.table.model import Column
from bridge.table.segments.manifest import (
    FileReader,
    FileSet,
    LogFile,
    Segment,
    SegmentColumn,
    Status,
    TableDefinition,
    ViewFiles,
    ViewRecord,
)
from bridge.table.segments.views import built_for, choose, up_to_date_files, uses
from tests.support.lake import NAME, Lake

READERS = (FileReader("csv", (("csv.bad_values", "null"),), ("a", "b")),)
FACTS = FileSet(LogFile("_segments/files/f.parquet", 1, "aa"), 3, 300)
COLUMNS = tuple(SegmentColumn(i, name, INTEGER) for i, name in enumerate("abc"))
SMALL = ViewRecord("small", "id1", ("a",))
LARGE = ViewRecord("large", "id2", ("a", "b"))
DEFINITION = TableDefinition("t", COLUMNS, "csv", views=(SMALL, LARGE))


def files(view: ViewRecord, size: int, stamp: str | None = None) -> ViewFiles:
    held = FileSet(LogFile(f"_segments/files/{view.id}.parquet", 1, view.id), 1, size)
    return ViewFiles(view.name, view.id, held, stamp or built_for(DEFINITION, view, READERS, FACTS))


def segment(*held: ViewFiles) -> Segment:
    return Segment("0", Status.SUCCESS, 0, 0, (), READERS, FACTS, held)


def chosen(definition: TableDefinition, one: Segment, *columns: str) -> str | None:
    found = choose(definition, one, frozenset(columns))
    return None if found is None else found.view


def test_the_smallest_view_that_holds_all_columns() -> None:
    both = segment(files(LARGE, 20), files(SMALL, 10))
    assert chosen(DEFINITION, both, "a") == "small"
    assert chosen(DEFINITION, both, "a", "b") == "large"
    assert chosen(DEFINITION, both) == "small"
    assert chosen(DEFINITION, both, "c") is None
    assert chosen(DEFINITION, both, "a", "$path") is None
    assert choose(DEFINITION, both, None) is None


def test_disabled_and_hidden_views_are_not_used() -> None:
    both = segment(files(LARGE, 20), files(SMALL, 10))
    off = replace(DEFINITION, views=(replace(SMALL, enabled=False), LARGE))
    assert chosen(off, both, "a") == "large"
    hidden = replace(DEFINITION, views=(replace(SMALL, hidden=True), LARGE))
    assert chosen(hidden, both, "a") == "large"


def test_a_view_is_of_exactly_what_it_was_built_from() -> None:
    one = segment(files(SMALL, 10))
    assert up_to_date_files(DEFINITION, SMALL, one) is not None
    wide = replace(COLUMNS[0], type=BIGINT)
    others = [
        (replace(DEFINITION, columns=(wide, *COLUMNS[1:])), one),
        (replace(DEFINITION, columns=(replace(COLUMNS[0], id=9), *COLUMNS[1:])), one),
        (replace(DEFINITION, columns=COLUMNS[1:]), one),
        (replace(DEFINITION, properties=(("csv.quote", "'"),)), one),
        (DEFINITION, replace(one, readers=(replace(READERS[0], properties=()),))),
        (DEFINITION, replace(one, readers=(replace(READERS[0], fields=("b", "a")),))),
        (DEFINITION, replace(one, files=replace(FACTS, blob=replace(FACTS.blob, sha256="bb")))),
        (DEFINITION, replace(one, views=(files(SMALL, 10, "other"),))),
        (DEFINITION, replace(one, views=(replace(one.views[0], view_id="id3"),))),
        (DEFINITION, replace(one, views=(replace(one.views[0], reason="not certain"),))),
    ]
    for definition, changed in others:
        assert up_to_date_files(definition, SMALL, changed) is None
        assert chosen(definition, changed, "a") is None
    unrelated = replace(DEFINITION, columns=(COLUMNS[0], replace(COLUMNS[1], type=BIGINT)))
    assert up_to_date_files(unrelated, SMALL, one) is not None


def test_reports_tell_what_each_view_is_worth() -> None:
    built, bare = segment(files(SMALL, 10)), replace(segment(), id="1")
    small, large = uses(DEFINITION, [built, bare], frozenset({"a"}))
    assert (small.segments, small.facts, small.files, small.not_built) == (1, 3, 1, 1)
    assert (large.segments, large.not_built) == (0, 2)
    (_, lacking) = uses(DEFINITION, [built], frozenset({"b", "c"}))
    assert lacking.lacking == ("c",)


def test_columns_that_are_compared_count_as_read(tmp_path: Path) -> None:
    names = {"a": INTEGER, "b": STRING, "c": DATE, "d": INTEGER, "e": INTEGER, "f": INTEGER}
    lake = Lake(tmp_path, tuple(Column(n, t) for n, t in names.items()))
    planner = lake.planner()
    asked = ScanRequest(
        NAME,
        predicate=And((eq("B", "x"), is_null("c"))),
        columns=frozenset({"a"}),
        limit=3,
        order=(SortKey("D"),),
        dynamic_filter_columns=frozenset({"e"}),
    )
    plan = planner.plan(asked)
    assert plan.context.columns == frozenset("abcde")
    plan.apply_dynamic_filter(eq("e", 1))
    for other in (
        replace(asked, columns=None),
        replace(asked, enforced=True),
        replace(asked, pruning=False),
    ):
        assert planner.plan(other).context.columns is None


def test_a_filter_on_a_column_that_was_not_announced_is_ignored(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("a", INTEGER), Column("b", INTEGER)))
    plan = lake.planner().plan(ScanRequest(NAME, columns=frozenset({"a"})))
    plan.apply_dynamic_filter(And((eq("a", 1), eq("b", 2))))
    (kept,) = plan.context.dynamic_filters
    assert "b" not in repr(kept)
    plan.apply_dynamic_filter(eq("b", 2))
    assert len(plan.context.dynamic_filters) == 1


def test_a_scan_of_no_column_sends_an_empty_name() -> None:
    assert _projected([]) is None
    assert _projected(None) is None
    assert _projected([""]) == frozenset()
    assert _projected(["A", "$path"]) == frozenset({"a", "$path"})
