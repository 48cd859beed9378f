"""Statements over the log of a table of segments and its record in a real metastore, any of which
fails, dies or loses an answer half-way.

The law: afterwards the table is as it was, or as the statement makes it, and the statement says
which if it can know. No name is taken that cannot be read, and the next statement finds nothing
broken. Fact files stay.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import bridge
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import (
    BridgeError,
    MetastoreFailure,
    MetastoreUnavailable,
    StorageFailure,
    TableExists,
    TableNotFound,
)
from bridge.metastore.client import MetastoreClient
from bridge.segments.commands import tables
from bridge.storage.local_disk.local import LocalStorage
from tests.engines.conftest import RunningMetastore
from tests.support.relay import Relay
from tests.tiers import examples, seed

pytestmark = pytest.mark.rule("49")

SCHEMA = "two_stores"
NAME = f"{SCHEMA}.t"
CREATED = f"CREATE TABLE {NAME} (a string, b string) STORED AS csv"
State = tuple[tuple[str, ...], int] | None
"""Columns' types and the number of segments; None: there is no such table."""


class Died(BaseException):
    """The process ended here: nothing that it would have done runs."""


class World:
    def __init__(self, uri: str, root: Path) -> None:
        self.config = Config({"metastore.uri": Setting(uri, "test")})
        self.facts = root / "facts"
        self.facts.mkdir()
        self.uri, self.files = uri, 0

    def sql(self, text: str) -> list[Any]:
        with bridge.connect(metastore_uri=self.uri) as session:
            return list(session.sql(text, local=True))

    def add(self) -> str:
        self.files += 1
        path = self.facts / f"{self.files}.csv"
        path.write_text(f"{self.files},x\n")
        return f"ALTER TABLE {NAME} ADD SEGMENT '{path}'"

    def state(self) -> State:
        try:
            found = tables.describe(self.config, NAME)
        except TableNotFound:
            return None
        return tuple(c["type"] for c in found["columns"]), found["segments"]


@pytest.fixture
def world(metastore: RunningMetastore, tmp_path: Path) -> Iterator[World]:
    found = World(metastore.uri, tmp_path)
    with metastore.client() as client:
        client.create_database(SCHEMA)
    found.sql(f"DROP TABLE IF EXISTS {NAME}")
    yield found
    found.sql(f"DROP TABLE IF EXISTS {NAME}")


FAULTS = ("refused", "lost", "lost after", "died", "died after")
CALLS = ("create_table", "alter_table", "drop_table", "get_table")
WRITES = ("put_if_absent", "put", "delete")


@contextmanager
def fault(kind: str, method: str, at: int) -> Iterator[list[str]]:
    """The ``at``-th call of a method ends in a fault; yields what happened."""
    happened: list[str] = []
    owner: Any = MetastoreClient if method in CALLS else LocalStorage
    real: Callable[..., Any] = getattr(owner, method)
    calls = 0

    def faulty(self: Any, *given: Any, **named: Any) -> Any:
        nonlocal calls
        if happened and happened[0].startswith("died"):
            raise Died
        calls += 1
        if calls != at:
            return real(self, *given, **named)
        happened.append(kind)
        if kind.endswith("after"):
            real(self, *given, **named)
        if kind.startswith("died"):
            raise Died
        if owner is LocalStorage:
            raise StorageFailure("the disk says no", "ask")
        if kind == "refused":
            raise MetastoreFailure("Permission denied: user x may not", "ask")
        raise MetastoreUnavailable("read timed out", "again")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, faulty)
        yield happened


def after(state: State, statement: str) -> State:
    """The table after a statement that succeeds."""
    if statement.startswith("CREATE"):
        return (("string", "string"), 0) if state is None else state
    if statement.startswith("DROP") or state is None:
        return None
    if "ADD SEGMENT" in statement:
        return state[0], state[1] + 1
    if "CHANGE" in statement:
        return (statement.rsplit(" ", 1)[1], *state[0][1:]), state[1]
    return state


def test_49_a_fault_leaves_the_table_as_it_was_or_as_it_is_to_be(world: World) -> None:
    rng = random.Random(seed(49))
    told = 0
    for _ in range(examples(12, 100, 1500)):
        before = world.state()
        if before is None:
            statement = rng.choice([CREATED, CREATED.replace("TABLE", "TABLE IF NOT EXISTS", 1)])
        else:
            statement = rng.choice(
                [
                    f"DROP TABLE {NAME}",
                    f"DROP TABLE IF EXISTS {NAME}",
                    world.add(),
                    f"ALTER TABLE {NAME} CHANGE a a {rng.choice(['int', 'string', 'bigint'])}",
                    f"ALTER TABLE {NAME} REFRESH SEGMENTS",
                    CREATED.replace("TABLE", "TABLE IF NOT EXISTS", 1),
                ]
            )
        own = {"CREATE": "create_table", "DROP": "drop_table", "ALTER": "alter_table"}
        method = rng.choice([own[statement.split()[0]]] * 5 + [*CALLS, *WRITES])
        kind, at = rng.choice(FAULTS), rng.choice([1, 1, 1, 1, 2, 3])
        what = f"{statement}: {kind} at call {at} of {method}, with {before} before"
        error: BaseException | None = None
        with fault(kind, method, at) as happened:
            try:
                world.sql(statement)
            except (BridgeError, Died) as raised:
                error = raised
        told += len(happened)
        now, wanted = world.state(), after(before, statement)
        if error is None:
            assert now == wanted, what
        else:
            assert happened, f"{what}: {error!r}"
            assert now in (before, wanted), f"{what}: {error!r}, now {now}"
            if kind == "refused" and method in CALLS:
                assert now == before, f"{what}: {error!r}, now {now}"
        if rng.random() < 0.3:  # whatever is left of it is no hindrance
            for again in (f"DROP TABLE IF EXISTS {NAME}", CREATED, f"DROP TABLE {NAME}", CREATED):
                world.sql(again)
            world.sql(world.add())
            assert world.state() == (("string", "string"), 1), what
    assert told
    assert len(list(world.facts.iterdir())) == world.files


def test_a_new_table_takes_the_name_of_one_that_was_renamed(world: World) -> None:
    world.sql(f"{CREATED}; {world.add()}; ALTER TABLE {NAME} RENAME TO {NAME}_old")
    (made,) = world.sql(CREATED)
    assert "DROP TABLE" in made.notices[0]
    assert world.state() == (("string", "string"), 0)
    world.sql(world.add())
    old = tables.describe(world.config, f"{NAME}_old")
    assert (old["segments"], world.state()) == (1, (("string", "string"), 1))
    world.sql(f"DROP TABLE {NAME}")
    assert world.state() is None
    assert tables.describe(world.config, f"{NAME}_old")["files"] == 1
    world.sql(f"ALTER TABLE {NAME}_old RENAME TO {NAME}")
    assert world.state() == (("string", "string"), 1)


@pytest.mark.parametrize("create", ["CREATE TABLE", "CREATE TABLE IF NOT EXISTS"])
def test_what_another_engine_dropped_is_not_there(
    world: World, metastore: RunningMetastore, create: str
) -> None:
    """Its directory is: it holds what was dropped, and is told of, for whoever wants it back."""
    world.sql(f"{CREATED}; {world.add()}")
    before = tables.describe(world.config, NAME)["location"]
    with metastore.client() as client:
        client.drop_table(SCHEMA, "t")
    with pytest.raises(TableNotFound):
        world.sql(f"DROP TABLE {NAME}")
    (dropped,) = world.sql(f"DROP TABLE IF EXISTS {NAME}")
    assert "was not there" in dropped.summary
    (made,) = world.sql(CREATED.replace("CREATE TABLE", create))
    assert made.summary == f"created {NAME} of csv" and f"`{before}`" in made.notices[0]
    assert world.state() == (("string", "string"), 0)
    with pytest.raises(TableExists):
        world.sql(CREATED)
    assert tables.describe(world.config, before)["segments"] == 1
    world.sql(f"DROP TABLE `{before}`; DROP TABLE {NAME}")
    assert world.state() is None
    (made,) = world.sql(CREATED)
    assert not made.notices and tables.describe(world.config, NAME)["location"] == before


@pytest.mark.full
@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize(
    ("statement", "call"),
    [(CREATED, b"create_table_with"), (f"ALTER TABLE {NAME} CHANGE a a int", b"alter_table_with"),
     (f"DROP TABLE {NAME}", b"drop_table_with"),
     (f"ALTER TABLE {NAME} RENAME TO {NAME}2", b"alter_table_with")],
)  # fmt: skip
def test_49_answers_that_are_lost_on_the_wire(
    world: World, metastore: RunningMetastore, statement: str, call: bytes, answered: bool
) -> None:
    if statement != CREATED:
        world.sql(CREATED)
    before = world.state()
    with Relay(("127.0.0.1", metastore.server.port)) as relay:
        relay.lose(call, answered=answered)
        uri = f"thrift://127.0.0.1:{relay.port}"
        with bridge.connect(metastore_uri=uri) as session:
            if statement == CREATED and not answered:
                with pytest.raises(MetastoreUnavailable):
                    list(session.sql(statement, local=True))
                assert world.state() is None
            list(session.sql(statement, local=True))
    if "RENAME" in statement:
        assert world.state() is None
        world.sql(f"DROP TABLE {NAME}2")
    else:
        assert world.state() == after(before, statement)


def test_49_a_refused_drop_keeps_segments_views_and_rows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.sql(f"{CREATED}; CREATE MATERIALIZED VIEW v ON {NAME} (a); {world.add()}; {world.add()}")
    shown = f"SHOW SEGMENTS ON {NAME}; SHOW MATERIALIZED VIEWS ON {NAME}"
    before = [result.rows for result in world.sql(shown)]

    def refuse(*_: object, **__: object) -> None:
        raise MetastoreFailure("Permission denied: user x may not drop", "ask")

    with monkeypatch.context() as patch:
        patch.setattr(MetastoreClient, "drop_table", refuse)
        with pytest.raises(MetastoreFailure, match="may not drop"):
            world.sql(f"DROP TABLE {NAME}")
    assert [result.rows for result in world.sql(shown)] == before
    with bridge.connect(metastore_uri=world.uri) as session:
        assert len(session.table(NAME).scan().files()) == 2


def test_49_if_not_exists_says_what_is_there(world: World) -> None:
    """Also if the name is free, and the place that is asked for is not: then nothing is there."""
    world.sql(CREATED)
    again = CREATED.replace("TABLE", "TABLE IF NOT EXISTS", 1)
    (found,) = world.sql(again)
    assert found.summary == f"{NAME} was there already: csv segments, columns a string, b string"
    place = tables.describe(world.config, NAME)["location"]
    world.sql(f"ALTER TABLE {NAME} RENAME TO {NAME}2")
    with pytest.raises(TableExists, match="holds a table of segments already"):
        world.sql(f"{again} LOCATION '{place}'")
    world.sql(f"DROP TABLE {NAME}2; {again}; DROP TABLE {NAME}")


def test_49_of_two_commands_that_make_a_table_one_wins(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second takes the record of the first, which has not come to its end, for a rest."""
    real = MetastoreClient.create_table

    def paused(self: MetastoreClient, *given: Any) -> None:
        real(self, *given)
        monkeypatch.setattr(MetastoreClient, "create_table", real)
        world.sql(CREATED.replace("a string", "a int"))

    monkeypatch.setattr(MetastoreClient, "create_table", paused)
    with pytest.raises(TableExists, match="another command"):
        world.sql(CREATED)
    assert world.state() == (("int", "string"), 0)


def test_49_an_alteration_whose_record_lags_says_so_and_the_next_statement_mends_it(
    world: World, metastore: RunningMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.sql(CREATED)

    def lost(*_: object, **__: object) -> None:
        raise MetastoreUnavailable("read timed out", "again")

    def recorded() -> list[str]:
        with metastore.client() as client:
            return [c.type for c in client.get_table(SCHEMA, "t").sd.cols]

    with monkeypatch.context() as patch:
        patch.setattr(MetastoreClient, "alter_table", lost)
        (found,) = world.sql(f"ALTER TABLE {NAME} CHANGE a a int")
    assert "record of it has not: read timed out" in found.notices[0]
    assert world.state() == (("int", "string"), 0) and recorded() == ["string", "string"]
    world.sql(world.add())
    assert recorded() == ["int", "string"]
