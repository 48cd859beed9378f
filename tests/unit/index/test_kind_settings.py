"""What an index is told to hold, and that it holds to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.expression.nodes import BoundExpression, BoundPredicate, BoundReference, Op
from bridge.index.building.build import build_index
from bridge.index.generations.manifest import Manifest
from bridge.index.kinds import evaluate_indexes
from bridge.index.kinds.definition import IndexSettings, KindDefinition, parse_definition
from bridge.index.kinds.modes import next_prefix, parse_mode
from bridge.index.kinds.registry import kind
from bridge.index.kinds.request import RequestedIndexes, by_properties
from bridge.kernel.errors import ColumnNotFound, InvalidConfiguration
from bridge.kernel.types import BIGINT, STRING, TRINO
from bridge.table.model import CatalogTable, Column, TableName
from tests.support.directories import in_directories
from tests.support.lake import Lake


def test_definitions_have_all_their_options() -> None:
    found = kind("bloom").define(" id : fpp=0.1")
    assert found == KindDefinition("bloom", "id", (("fpp", "0.1"), ("max_bytes", "131072")))
    assert found.name == "bloom(id)"
    assert parse_definition("k", "f(a:b)", {}).on == "f(a:b)"
    for text in ("", ":fpp=1", "id:limit=3"):
        with pytest.raises(InvalidConfiguration):
            kind("bloom").define(text)


@pytest.mark.parametrize(
    "text",
    ("10 % id", "substring(name, 0)", "date_trunc('eon', day)", "json_extract_scalar(doc, '$')",
     "lower(substring(name, 0))", "reverse(name)", "name"),
)  # fmt: skip
def test_functions_that_could_never_be_asked_are_refused(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="no function of a column"):
        kind("expression").define(text)
    if "(" in text:
        with pytest.raises(InvalidConfiguration, match="no function of a column"):
            kind("bloom").define(text)


def test_settings_add_replace_drop_and_hide() -> None:
    one, other = kind("bloom").define("a"), kind("bloom").define("a:fpp=0.1")
    held = IndexSettings().adding([one, kind("values").define("b")])
    assert held.adding([other]).definitions == (other, kind("values").define("b"))
    assert held.without("BLOOM(a)").definitions == (kind("values").define("b"),)
    assert held.with_visibility("bloom(a)", False).find("bloom(a)").visible is False
    assert held.with_visibility("bloom(a)", False).find("bloom(a)").signature == one.signature
    for change in (held.without, lambda name: held.with_visibility(name, True)):
        with pytest.raises(InvalidConfiguration, match=r"values\(b\)"):
            change("bloom(z)")


def test_modes() -> None:
    held = IndexSettings().with_modes({"A": "none", "b": "truncate(3)"})
    assert held.modes == (("a", "none"), ("b", "truncate(3)"))
    assert held.with_modes({"a": "full"}).modes == (("b", "truncate(3)"),)
    assert held.with_modes({"*": "counts", "a": "full"}).modes[:2] == (
        ("*", "counts"),
        ("a", "full"),
    )
    for text in ("all", "truncate(0)", "truncate(x)", ""):
        with pytest.raises(InvalidConfiguration):
            parse_mode(text)
    assert next_prefix(b"\xff\xff", False) is None
    assert next_prefix(b"a\xff", False) == b"b"
    assert next_prefix("\U0010ffff".encode(), True) is None


def test_what_a_table_asks_for() -> None:
    asked = by_properties(
        {"skipbridge.index.bloom": "a; b:fpp=0.1", "skipbridge.index.modes": "c=none", "other": "x"}
    )
    assert asked == RequestedIndexes((("bloom", "a"), ("bloom", "b:fpp=0.1")), ("c=none",))
    columns = tuple(Column(n, BIGINT) for n in "abc")
    table = CatalogTable(TableName("s", "t"), columns, (Column("p", STRING),), "file:///t")
    asked.check(table)
    with pytest.raises(ColumnNotFound, match="zz"):
        RequestedIndexes((("values", "zz"),)).check(table)
    with pytest.raises(InvalidConfiguration, match="partition key"):
        RequestedIndexes((("values", "p"),)).check(table)
    with pytest.raises(InvalidConfiguration, match="no index kind"):
        RequestedIndexes((("nothing", "a"),)).check(table)
    with pytest.raises(InvalidConfiguration, match="no mode"):
        RequestedIndexes(modes=("none",)).check(table)


def test_manifests_keep_settings(lake: Lake) -> None:
    lake.write("f", {"x": [1], "s": ["abc"]})
    wanted = IndexSettings().adding([kind("bloom").define("x"), kind("values").define("s")])
    wanted = wanted.with_modes({"s": "truncate(1)"}).with_visibility("values(s)", False)
    lake.build(settings=lambda held: wanted)
    manifest = lake.store().latest()
    assert manifest is not None and manifest.settings == wanted
    assert [opened.name for opened in lake.snapshot().kinds] == ["bloom(x)"]  # the other is hidden


def test_modes_of_min_and_max(lake: Lake) -> None:
    data = {"a": [1, 2], "b": [1, None], "c": ["hello", "world"], "d": ["hello", "help"]}
    lake.write("f", data)
    modes = {"a": "none", "b": "counts", "c": "truncate(2)"}
    lake.build(settings=lambda held: held.with_modes(modes))
    assert lake.bounds("a", BIGINT) == (None, None)
    assert lake.column("a", BIGINT).null_count.tolist() == [-1]  # there, but nothing is said
    assert lake.bounds("b", BIGINT) == (None, None)
    assert lake.column("b", BIGINT).null_count.tolist() == [1]
    assert lake.bounds("c", STRING) == (b"he", b"wp")
    assert lake.bounds("d", STRING) == (b"hello", b"help")
    again = lake.build(settings=lambda held: held.with_modes({"a": "full"}))
    assert again.read == 1
    assert lake.bounds("a", BIGINT) == (1, 2)


def never(lake: Lake, op: Op, name: str, type: Any, *values: Any) -> list[bool]:
    serving = lake.snapshot()
    predicate: BoundExpression = BoundPredicate(op, BoundReference((name,), type), values)
    asks = [lambda e, o, k=k: k.never(e, o, TRINO) for k in serving.kinds]
    return evaluate_indexes.never(predicate, np.arange(serving.num_files), asks).tolist()


def test_value_lists(lake: Lake) -> None:
    lake.write("a", {"s": ["DE", "FR", None], "n": [0.0, float("nan"), 2.0]})
    lake.write("b", {"s": ["DE", "DE", "DE"], "n": [-0.0, 1.0, 1.0]})
    lake.write("c", {"s": [f"v{i}" for i in range(100)], "n": [1.0] * 100})
    lake.write("d", {"n": [1.0]})
    definitions = [kind("values").define(c) for c in ("S", "n")]
    lake.build(settings=lambda held: held.adding(definitions))
    assert never(lake, Op.EQ, "s", STRING, b"FR") == [False, True, False, False]
    assert never(lake, Op.NE, "s", STRING, b"DE") == [False, True, False, False]
    assert never(lake, Op.NOT_IN, "s", STRING, b"DE", b"FR") == [True, True, False, False]
    assert never(lake, Op.STARTS_WITH, "s", STRING, b"F") == [False, True, False, False]
    assert never(lake, Op.NOT_STARTS_WITH, "s", STRING, b"D") == [False, True, False, False]
    assert never(lake, Op.IN, "s", STRING, b"ES", b"IT") == [True, True, False, False]
    from bridge.kernel.types import DOUBLE

    assert never(lake, Op.EQ, "n", DOUBLE, 0.0) == [False, False, True, True]
    assert never(lake, Op.NE, "n", DOUBLE, 1.0) == [False, False, True, True]
    assert never(lake, Op.GT, "n", DOUBLE, 2.0) == [True, True, True, True]


def test_a_definition_of_a_kind_that_is_not_installed_is_kept(lake: Lake) -> None:
    lake.write("f", {"x": [1]})
    foreign = KindDefinition("elsewhere", "x")
    lake.build(settings=lambda held: held.adding([foreign]))
    assert lake.snapshot().kinds == ()
    assert lake.build().committed is False
    manifest = lake.store().latest()
    assert manifest is not None and manifest.settings.definitions == (foreign,)


def test_two_builders_who_add_different_indexes_both_get_theirs(lake: Lake) -> None:
    lake.write("f", {"x": [1], "y": [2]})
    lake.build()
    store = lake.store()

    class Late(type(store)):  # type: ignore[misc]
        """Another builder commits while this one reads."""

        asked = False

        def commit(self, manifest: Manifest) -> Manifest:
            if not Late.asked:
                Late.asked = True
                lake.build(settings=lambda held: held.adding([kind("bloom").define("y")]))
            found: Manifest = super().commit(manifest)
            return found

    from bridge.index.building.collect import ThreadCollector

    build_index(
        lake.table(),
        in_directories(lake.all_partitions(), lake.storage),
        Late(lake.storage, store.root),
        collector=ThreadCollector(lake.storage),
        settings=lambda held: held.adding([kind("bloom").define("x")]),
    )
    names = [opened.name for opened in lake.snapshot().kinds]
    assert sorted(names) == ["bloom(x)", "bloom(y)"]
    assert never(lake, Op.EQ, "y", BIGINT, 3) == [True]
    lake.build()  # what the loser read before it knew of the winner's index is read again
    assert never(lake, Op.EQ, "x", BIGINT, 3) == [True]
    assert never(lake, Op.EQ, "y", BIGINT, 3) == [True]


def test_m14_a_column_with_a_dot_is_not_a_field(lake: Lake) -> None:
    lake.write("f", {"st": [{"a": 1}], "st.a": [2], "y": [0.5]})
    lake.build(
        settings=lambda held: held.adding([kind(k).define("st.a") for k in ("values", "bloom")])
    )
    serving = lake.snapshot()
    for path, value in ((("st.a",), 2), (("st", "a"), 1)):
        predicate = BoundPredicate(Op.EQ, BoundReference(path, BIGINT), (value,))
        for opened in serving.kinds:
            answer = opened.never(predicate, np.array([0]), TRINO)
            assert answer is None or not answer[0], path


@pytest.mark.parametrize("name", ["values", "bloom"])
def test_m14_columns_and_fields_of_one_spelling_are_skipped_by_their_own_values(
    lake: Lake, name: str
) -> None:
    """``x.y`` in one file, x{y} in another, both in a third, neither in a fourth."""
    lake.write("0", {"x.y": [2, 4]})
    lake.write("1", {"x": [{"y": 2}, {"y": 4}]})
    lake.write("2", {"x.y": [1, 5], "x": [{"y": 2}, {"y": 4}]})
    lake.write("3", {"z": [2, 4]})
    texts = ('"X.y"', '"x"."y"')
    lake.build(settings=lambda held: held.adding([kind(name).define(text) for text in texts]))
    held = {("x.y",): {0: {2, 4}, 2: {1, 5}}, ("x", "y"): {1: {2, 4}, 2: {2, 4}}}
    skipped = 0
    for path, files in held.items():
        for value in range(7):
            predicate = BoundPredicate(Op.EQ, BoundReference(path, BIGINT), (value,))
            for opened in lake.snapshot().kinds:
                answer = opened.never(predicate, np.arange(4), TRINO)
                if answer is None:
                    continue
                for file, never in enumerate(answer.tolist()):
                    assert not never or value not in files[file], (path, value, file)
                    skipped += never
    assert skipped >= 14  # all but what collides in a filter
