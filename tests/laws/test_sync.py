"""Random histories of directories, syncs, and other people's hands in the metastore: after each
sync, the metastore says what lies on storage.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from bridge.kernel.errors import InvalidRequest, TableNotFound
from bridge.metastore.calls import RolledBack
from bridge.table.partition import escape, partition_name
from tests.support.sync_lake import (
    JUNK,
    MUTATIONS,
    SCHEMAS,
    VALUES,
    Meddle,
    Remove,
    Step,
    SyncLake,
    Write,
)

_SOME = settings(max_examples=max(20, settings.default.max_examples // 5))
_FEW = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # an example is a hundred syncs
    max_examples=max(10, settings.default.max_examples // 15),
)


def _spelled(values: tuple[str | None, str | None]) -> st.SearchStrategy[str]:
    """The directory as writers escape it, and as some do not."""
    proper = partition_name(("p", "q"), values)
    loose = "/".join(
        f"{k}={escape(v or '__HIVE_DEFAULT_PARTITION__').replace('%20', ' ')}"
        if v != "a b"
        else f"{k}=a%20b"
        for k, v in zip("pq", values, strict=True)
    )
    return st.sampled_from(sorted({proper, loose}))


# Mostly the same few, so that histories meet themselves.
_VALUES: st.SearchStrategy[tuple[str | None, str | None]] = st.one_of(
    st.tuples(st.sampled_from(["1", "a b"]), st.just("1")),
    st.tuples(st.sampled_from(["1", "a b"]), st.just("1")),
    st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES[:4])),
)
_DIRECTORIES = st.one_of(_VALUES.flatmap(_spelled), st.sampled_from(JUNK))
_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        Write,
        _DIRECTORIES,
        st.sampled_from(sorted(SCHEMAS)),
        st.sampled_from(["f.parquet", "g.parquet", "_hidden", ".hidden"]),
    ),
    st.builds(Remove, _DIRECTORIES, st.booleans()),
    st.builds(
        Meddle,
        st.sampled_from(["forget", "columns", "elsewhere", "nowhere", "outside", "void", "beside"]),
        _VALUES,
    ),
)
_HISTORIES = st.lists(st.lists(_STEPS, max_size=6), min_size=1, max_size=4)


def _sync(lake: SyncLake, **options: object) -> bool:
    """False where there is nothing yet that could be a table."""
    try:
        lake.sync(**options)
    except (InvalidRequest, TableNotFound):  # no directory with data is a partition
        assert not lake.expected()[0]
        return False
    return True


def _begun(directory: str) -> SyncLake:
    lake = SyncLake(Path(directory))
    lake.take(Write("p=1/q=1", "first"))
    return lake


@given(_HISTORIES)
@_SOME
def test_the_metastore_says_what_lies_on_storage(history: list[list[Step]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        lake = _begun(directory)
        for steps in history:
            for step in steps:
                lake.take(step)
            # Whoever alters single partitions behind the state's back is found by a full run.
            full = any(isinstance(s, Meddle) and s.what != "forget" for s in steps)
            places = lake.places()
            if not _sync(lake, full=full):
                continue
            lake.check(places)
            before = lake.metastore.contents()
            assert lake.sync().outcome == "in step"
            assert lake.sync(full=True).outcome == "in step"
            assert lake.metastore.contents() == before


class Killed(BaseException):
    """The process is gone."""


@given(_HISTORIES, st.data())
@_FEW
def test_a_killed_sync_is_completed_by_the_next(
    history: list[list[Step]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        lake = _begun(directory)
        for number, steps in enumerate(history):
            for step in steps:
                lake.take(step)
            if number < len(history) - 1:
                _sync(lake, full=True)
        start = lake.metastore
        lake.metastore = start.copy()
        writes: list[str] = []
        lake.metastore.interfere = lambda method, moment: (
            writes.append(method) if method in MUTATIONS and moment == "before" else None
        )
        if not _sync(lake, full=True):
            return
        uninterrupted = lake.metastore.contents()
        for k in range(len(writes)):
            moment = data.draw(st.sampled_from(["before", "after"]))
            lake.metastore = start.copy()
            left = [k]

            def kill(method: str, now: str, moment: str = moment, left: list[int] = left) -> None:
                if method in MUTATIONS and now == moment:
                    left[0] -= 1
                    if left[0] < 0:
                        raise Killed

            lake.metastore.interfere = kill
            with pytest.raises(Killed):
                lake.sync(full=True)
            lake.metastore.interfere = lambda method, moment: None
            lake.sync()
            assert lake.metastore.contents() == uninterrupted
            lake.check()


@given(_HISTORIES)
@_FEW
def test_a_change_that_was_rolled_back_for_another_is_made_again(
    history: list[list[Step]],
) -> None:
    """Two that create a table at once, or alter it while another drops partitions, meet so."""
    with tempfile.TemporaryDirectory() as directory:
        lake = _begun(directory)
        for steps in history:
            for step in steps:
                lake.take(step)
            met: list[str] = []

            def interfere(method: str, moment: str, met: list[str] = met) -> None:
                if method in MUTATIONS and moment == "before" and method not in met:
                    met.append(method)
                    raise RolledBack("deadlock", "try again")

            lake.metastore.interfere = interfere
            try:
                report = lake.sync(full=True)
            except (InvalidRequest, TableNotFound):
                continue
            finally:
                lake.metastore.interfere = lambda method, moment: None
            assert not report.failed
            lake.check()


_WRITES = _STEPS.filter(lambda s: not isinstance(s, Meddle))


@given(
    st.lists(_STEPS, max_size=5),
    st.lists(_WRITES, max_size=4),
    st.lists(_WRITES, min_size=1, max_size=4),
)
@example([Remove("p=1/q=1")], [Write("p=1/q=1", "first")], [Remove("p=1/q=1")])
@example([], [Remove("p=1/q=1")], [Write("p=1/q=1", "first")])
@example([Remove("p=1/q=1")], [Write("p=1/q=1", "first")], [Write("p=1/q=1", "longer")])
@_FEW
@pytest.mark.rule("44")
def test_two_syncs_at_once_come_to_what_lies_on_storage(
    before: list[Step], seen: list[Step], between: list[Step]
) -> None:
    """The second runs, whole, within the first, at each of its calls; files change in between."""
    at = 0
    reached = True
    while reached:
        with tempfile.TemporaryDirectory() as directory:
            lake = _begun(directory)
            for step in before:
                lake.take(step)
            _sync(lake, full=True)
            for step in seen:
                lake.take(step)
            reached = _interleaved(lake, between, at)
            at += 1


def _interleaved(lake: SyncLake, between: list[Step], at: int) -> bool:
    """Runs a sync, and within it, at its n-th call, another; False if it makes no such call."""
    calls = 0

    def interfere(method: str, moment: str) -> None:
        nonlocal calls
        if moment == "before":
            calls += 1
            if calls == at + 1:
                lake.metastore.interfere = lambda method, moment: None
                for step in between:
                    lake.take(step)
                _sync(lake, full=True)

    lake.metastore.interfere = interfere
    # One without a second afterwards: what the first finds may be what was there when it looked.
    done = _sync(lake, full=True)
    lake.metastore.interfere = lambda method, moment: None
    if calls <= at:
        return False
    if done:
        lake.check()
    return True


@pytest.mark.rule("44")
@pytest.mark.parametrize("gone", [False, True])
def test_a_location_that_another_sets_meanwhile_stays(tmp_path: Path, gone: bool) -> None:
    """It is set between the comparison and the write: of a partition that has moved, or is gone."""
    lake = _begun(str(tmp_path))
    lake.take(Write("p=2/q=1", "first"))
    lake.sync()
    values = ("1", "1")
    if gone:
        lake.take(Remove("p=1/q=1"))
    else:
        lake.take(Meddle("void", values))
    reads: list[str] = []

    def interfere(method: str, moment: str) -> None:
        if moment == "after" and method == "get_partitions_by_names" and not reads:
            reads.append(method)
            lake.take(Meddle("outside", values))

    lake.metastore.interfere = interfere
    lake.sync(full=True)
    assert reads and lake.places()[values] == tmp_path / "outside"


def test_what_others_set_while_columns_change_stays(tmp_path: Path) -> None:
    lake = _begun(str(tmp_path))
    lake.sync()
    lake.take(Write("p=2/q=1", "longer"))
    calls: list[str] = []

    def interfere(method: str, moment: str) -> None:
        record = lake.metastore.record
        if moment == "before" and method == "alter_table" and len(calls) < 3:
            calls.append(method)
            time_ = str(int(record.parameters["transient_lastDdlTime"]) + 1)
            more = {f"other{len(calls)}": "x", "transient_lastDdlTime": time_}
            record.parameters = {**record.parameters, **more}

    lake.metastore.interfere = interfere
    lake.sync()
    assert len(calls) == 3
    said = lake.metastore.record.parameters
    assert all(f"other{i + 1}" in said for i in range(len(calls)))
    lake.check()
