"""Files in subdirectories, which no planner reads unless it is set to: builds and doctor say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bridge.app.api.session import Session
from bridge.app.cli.main import cli
from bridge.app.doctor import examine
from bridge.kernel.config import Config, load
from bridge.kernel.types import BIGINT, STRING
from bridge.runtime.diagnostic import Diagnostic
from bridge.runtime.nested_files import find_nested
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.model import Column
from tests.support.lake import NAME, Lake
from tests.support.memory_store import MemoryStore

SETTING = "SKIPBRIDGE_PLANNER_RECURSIVE"


@pytest.fixture
def plain(tmp_path: Path) -> Lake:
    return Lake(tmp_path, (Column("x", BIGINT),))


def found(lake: Lake) -> str | None:
    return find_nested(lake.storage, lake, lake.table())


@pytest.mark.parametrize(
    ("place", "read"),
    [("a/f", False), ("a/b/f", False), ("f", True), ("_temporary/f", True), (".a/f", True),
     ("a/_b/f", True), ("a/.f", True), ("_k=1/f", False)],
)  # fmt: skip
def test_a_file_that_engines_may_read_is_found(plain: Lake, place: str, read: bool) -> None:
    plain.write("0", {"x": [1]})
    path = plain.write(place, {"x": [2]})
    assert found(plain) == (None if read else canonical(str(path)))


def test_an_empty_file_and_an_empty_directory_are_none(plain: Lake) -> None:
    (plain.path("a/b")).mkdir(parents=True)
    plain.path("a/f").touch()
    assert found(plain) is None


def test_partitions_are_looked_at_and_one_within_another_is_none(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", BIGINT),), (Column("k", STRING),))
    lake.partition_values = [(f"{i}",) for i in range(2_500)]
    for inside in ("1", "2", "1249"):
        lake.locations[f"k={inside}"] = tmp_path / "t" / "k=0" / inside
        lake.write("f", {"x": [1]}, (inside,))
    lake.write("f", {"x": [1]}, ("0",))
    assert found(lake) is None
    last = lake.write("deep/f", {"x": [1]}, ("2499",))
    assert found(lake) == canonical(str(last))


def test_a_link_that_leads_outside_hides_no_other_directory(plain: Lake, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    plain.path("link").symlink_to(tmp_path / "elsewhere")
    path = plain.write("z/f", {"x": [1]})
    assert found(plain) == canonical(str(path))


class _Bucket(Lake):
    """The table in a bucket."""

    @property
    def location(self) -> str:
        return "s3://lake/t"

    def _uri(self, path: Path) -> str:
        return f"s3://lake/{path.relative_to(self.root)}"


def test_an_object_store_is_asked_for_the_first_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryStore() as store:
        lake = _Bucket(tmp_path, storage=open_storage(options=store.options))
        for name in (".skipbridge/g/a", "_logs/b", "c", "d"):
            store.put(f"t/{name}", b"x")
        assert found(lake) is None
        store.put("t/e/f", b"x")
        assert found(lake) == "s3://lake/t/e/f"
        for number in range(3_000):
            store.put(f"t/b{number:04}", b"x")
        assert found(lake) == "s3://lake/t/e/f"
        monkeypatch.setattr("bridge.runtime.nested_files._KEYS", 1_000)
        assert found(lake) is None
        lake = _Bucket(tmp_path, (), (Column("k", STRING),), storage=lake.storage)
        lake.partition_values = [("1",), ("2",)]
        store.put("t/k=2/a/f", b"x")
        assert found(lake) == "s3://lake/t/k=2/a/f"


@pytest.fixture
def registered(plain: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A table of a catalog, as those of a metastore are."""
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", "thrift://127.0.0.1:1")
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_TIMEOUT", "250ms")
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(plain.root / "home"))
    for place in ("bridge.indexing.table", "bridge.runtime.nested_files", "bridge.app.doctor"):
        monkeypatch.setattr(f"{place}.resolve", lambda *_: (plain, NAME))
    return plain


def test_a_build_says_it_and_its_remedy(registered: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    path = registered.write("a/f", {"x": [1]})

    def build() -> tuple[int, list[str]]:
        said: list[str] = []
        with Session(load()) as session:
            return session.table("db.t").index.build(say=said.append).files, said

    files, said = build()
    assert files == 0
    assert said == [
        f"files in subdirectories of db.t, as {canonical(str(path))}, are neither indexed nor "
        f"read: if your engines read them, set planner.recursive ({SETTING}=true) for every "
        "command and `serve`"
    ]
    monkeypatch.setenv(SETTING, "true")
    assert build() == (1, [])
    path.unlink()
    monkeypatch.delenv(SETTING)
    registered.write("f", {"x": [1]})
    assert build() == (1, [])


def test_explain_says_it_where_it_finds_no_file(
    registered: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.app.api.context.hive_catalog_of", lambda _: registered)
    path = registered.write("a/f", {"x": [1]})
    told = f"files in subdirectories of db.t, as {canonical(str(path))}, are neither"
    done = CliRunner().invoke(cli, ["explain", "db.t", "x = 1"])
    assert done.exit_code == 0 and told in done.stderr and SETTING in done.stderr, done.output
    registered.write("f", {"x": [1]})
    assert told not in CliRunner().invoke(cli, ["explain", "db.t", "x = 1"]).stderr


def test_doctor_says_it_and_its_remedy(registered: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    registered.write("f", {"x": [1]})
    path = registered.write("a/f", {"x": [1]})
    registered.build()

    def told() -> list[tuple[str, str, str]]:
        every = examine(load(), "db.t", None)
        return [(d.status, d.detail, d.remedy) for d in every if d.check.startswith("subdir")]

    # No metastore answers, so doctor would not ask further.
    monkeypatch.setattr("bridge.app.doctor._metastore", _answered)
    ((status, detail, remedy),) = told()
    assert (status, canonical(str(path)) in detail) == ("warning", True) and SETTING in remedy
    monkeypatch.setenv(SETTING, "true")
    assert told() == []


def _answered(_: Config) -> Diagnostic:
    return Diagnostic("metastore", "ok", "")
