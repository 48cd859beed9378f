"""The timeline and the file slices of Hudi tables that Spark wrote are those that Hudi tells."""

from __future__ import annotations

import pytest

from bridge.app.timeline import timeline, timeline_files
from bridge.kernel.config import Config
from tests.support.hudi_fixtures import HudiFixture, Slice, few, hudi_fixtures

pytestmark = pytest.mark.full

ALL = [
    pytest.param(fixture, id=fixture.id)
    for fixture in few(hudi_fixtures())
    if fixture.answers().snapshot.schema.names  # else nothing tells its columns
]


@pytest.mark.parametrize("fixture", ALL)
def test_the_timeline_is_hudis(fixture: HudiFixture) -> None:
    found = timeline(Config(), str(fixture.path()))
    told = [(e["instant"], e["completion"], e["action"], e["state"]) for e in found]
    answers = fixture.answers()
    kept = answers.table_version > 6
    wanted = [
        (i.requested, i.completed if kept else None, i.action, i.state.lower())
        for i in answers.timeline
    ]
    assert sorted(told, key=str) == sorted(wanted, key=str)
    assert [e["instant"] for e in found] == sorted((i for i, *_ in told), reverse=True)
    assert all(e["size"] >= 0 and e["modified"] > 0 for e in found if e["size"] is not None)


@pytest.mark.parametrize("fixture", ALL)
def test_the_files_of_each_version_are_hudis_slices(fixture: HudiFixture) -> None:
    answers = fixture.answers()
    assert files(fixture, None) == expected(fixture, answers.slices)
    for old in answers.as_of:
        if old.answer.slices is None or old.answer.error is not None:
            continue
        # Hudi's view names later logs too; its readers leave out their blocks.
        found = [(base, size, commit) for base, size, *_, commit in files(fixture, old.instant)]
        told = [(base, s, commit) for base, s, *_, commit in expected(fixture, old.answer.slices)]
        assert found == told, old.instant


Told = list[tuple[str, int, int, int, str]]


def files(fixture: HudiFixture, at: str | None) -> Told:
    found = timeline_files(Config(), str(fixture.path()), at)
    return sorted(
        (
            (row["path"] or "").rpartition("/")[2],
            row["size"] or 0,
            row["logs"],
            row["log_bytes"],
            row["commit"] or "",
        )
        for row in found
    )


def expected(fixture: HudiFixture, slices: tuple[Slice, ...]) -> Told:
    found = []
    for each in slices:
        folder = fixture.path() / each.partition
        base = each.base_file or ""
        size = (folder / base).stat().st_size if base else 0
        names = [name for name in each.logs if not name.endswith(".cdc")]
        logs = sum((folder / name).stat().st_size for name in names)
        commit = base.rpartition("_")[2].partition(".")[0]
        found.append((base, size, len(names), logs, commit))
    return sorted(found)
