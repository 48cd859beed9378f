"""The faults: each would lose a row, or give one twice, and each has the laws that catch it.

A fault is an exact replacement of source text. A law draws its examples at random and compares with
what the rows themselves say; a case that was written for the fault does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutations.laws import Java, Law, Python


@dataclass(frozen=True, slots=True)
class Fault:
    """One wrong source.

    Attributes:
        text: what stands in the file, exactly once.
        wrong: what is planted in its place.
    """

    name: str
    file: str
    text: str
    wrong: str
    law: Law


_PRUNING = Python(("tests/laws/test_pruning_law.py::test_never_and_always_keep_the_law",))
_SPLITS = Python(("tests/unit/splits/test_source.py::test_exactly_once",))
_RANGES = Python(("tests/unit/splits/test_coalesce.py::test_every_byte_once",))
_CHANGES = Python(
    ("tests/behaviour/test_planner_law.py::test_live_loses_nothing_while_files_change",)
)
_HISTORIES = Python(
    ("tests/behaviour/test_build_law.py::test_27_no_history_skips_a_matching_file_or_leaks",)
)
_PLANNER = Python(("tests/behaviour/test_planner_law.py::test_no_matching_file_is_lost",))
_KINDS = Python(("tests/laws/test_kinds.py::test_every_kind_keeps_the_law",))
_FOOTERS = Python(
    ("tests/unit/index/test_index_law.py::test_the_law_holds_of_footers_and_of_scans",)
)
_ORC = Python(
    ("tests/laws/test_orc.py::test_the_law_holds_of_orc_files_found_by_place_and_by_name",)
)
_BY_ID = Python(("tests/laws/test_hudi_by_id.py::test_rows_are_those_of_the_ids",))
_MERGED = Python(
    ("tests/laws/test_hudi_merged_pruning.py::test_skipping_and_merging_is_merging_and_filtering",)
)
_ICEBERG = Python(("tests/laws/test_iceberg_expressions.py::test_53_no_matching_file_is_lost",))
_CONNECTOR = Java(
    "trino_plugin_gen/template",
    "TestPushdown",
    "target/plugin/trino-skipbridge-0.1.0.jar",
    jdk=(25, 0),
)
_HIVE = Java(
    "hive_hooks/java", "TestFilteredListings", "target/skipbridge-hive-0.1.0.jar", jdk=(17, 24)
)

FAULTS = (
    Fault(
        "not-weakened",  # an unknown part was made true before NOT came to it
        "bridge/expression/rewrite.py",
        "    return expression  # Unknown: its negation is Unknown, too",
        "    return AlwaysFalse()",
        _PRUNING,
    ),
    Fault(
        "half-an-or",
        "bridge/expression/rewrite.py",
        "            return unknown[0] if unknown else Or(weakened)",
        "            return Or(tuple(c for c in weakened if c not in unknown))",
        _PRUNING,
    ),
    Fault(
        "null-count-unknown-is-0",
        "bridge/expression/prune.py",
        "                no_null: Mask = np.equal(column.null_count, 0)",
        "                no_null: Mask = np.less_equal(column.null_count, 0)",
        _PRUNING,
    ),
    Fault(
        "nan-ignored",
        "bridge/expression/prune.py",
        "np.logical_and(mask, counts == 0)",
        "np.logical_and(mask, counts <= 0)",
        _PRUNING,
    ),
    Fault(
        "end-for-the-end",  # no splits yet, taken for no more splits
        "bridge/planner/splits/source.py",
        "finished = drained and self._loader.finished",
        "finished = drained",
        _SPLITS,
    ),
    Fault(
        "range-lost",
        "bridge/planner/splits/source.py",
        "        self._offset = end\n",
        "        self._offset = min(end + 1, pending.num_splits - 1)\n",
        _SPLITS,
    ),
    Fault(
        "range-twice",
        "bridge/planner/splits/source.py",
        "            self._pending = None\n            return pending\n",
        "            self._pending = None if end == 1 else pending\n"
        "            self._offset = end - 1\n            return pending\n",
        _SPLITS,
    ),
    Fault(
        "range-cut-short",
        "bridge/planner/splits/coalesce.py",
        "    end[last] = sizes[owner[last]]\n",
        "    end[last] = sizes[owner[last]]\n    end[~last] -= 1\n",
        _RANGES,
    ),
    Fault(
        "stale-entry",
        "bridge/index/reading/snapshot.py",
        "return ordinals if same.all() else np.where(same, ordinals, -1)",
        "return ordinals",
        _CHANGES,
    ),
    Fault(
        "time-ignored",  # an entry of a file that was rewritten at the same size
        "bridge/index/reading/snapshot.py",
        "            same = (self.sizes == files.sizes) & (self.modified == files.modified)\n",
        "            same = self.sizes == files.sizes\n",
        _HISTORIES,
    ),
    Fault(
        "renamed-column-by-place",
        "bridge/index/reading/column_resolution.py",
        "if column.path in (path, NAMELESS) and here and reads_as(column.type, target):",
        "if here and reads_as(column.type, target):",
        _ORC,
    ),
    Fault(
        "upper-not-incremented",
        "bridge/index/kinds/modes.py",
        "            leaf.upper = next_prefix(upper, text)",
        "            leaf.upper = upper",
        _KINDS,
    ),
    Fault(
        "unescaped-twice",
        "bridge/table/partition.py",
        "            text = unescape(raw)\n",
        "            text = unescape(unescape(raw))\n",
        _PLANNER,
    ),
    Fault(
        "deleted-record-read",
        "bridge/table/hudi/merging/merge.py",
        "new = _Version(first + i, values[i], deleted[i])",
        "new = _Version(first + i, values[i], False)",
        _MERGED,
    ),
    Fault(
        "null-is-not-unequal",  # not-eq and not-in hold for NULL in two values
        "bridge/iceberg_rest/expressions.py",
        "            return or_(Predicate(Op.NOT_IN, name, tuple(known)), null)",
        "            return Predicate(Op.NOT_IN, name, tuple(known))",
        _ICEBERG,
    ),
    Fault(
        "not-without-de-morgan",
        "bridge/iceberg_rest/expressions.py",
        'found = kind if not negated else "or" if kind == "and" else "and"',
        "found = kind",
        _ICEBERG,
    ),
    Fault(
        "leaf-not-negated",
        "bridge/iceberg_rest/expressions.py",
        "_NEGATED[kind] if negated else kind, term, values",
        "kind, term, values",
        _ICEBERG,
    ),
    Fault(
        "residual-filter-dropped",
        "trino_plugin_gen/template/src/main/java/io/skipbridge/trino/metadata/Pushdown.java",
        "(table, constraint.getSummary(), constraint.getExpression(), false)",
        "(table, TupleDomain.all(), Constant.TRUE, false)",
        _CONNECTOR,
    ),
    Fault(
        "changed-file-skipped-in-hive",
        "hive_hooks/java/src/main/java/io/skipbridge/hive/wire/SkippableFiles.java",
        "known[0] == size && known[1] == modified",
        "known[0] == size",
        _HIVE,
    ),
)
