from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.kernel.errors import MetastoreFailure
from bridge.metastore.adaptive_batch_size import AdaptiveBatchSize
from bridge.metastore.batches import BatchSettings, BatchStream, batch_sizes, fetch_partitions
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.client import FoundPartitions, MetastoreClient
from bridge.metastore.connection import Cancellation

LADDER = BatchSettings(adapt=False)
NAMES = [f"p={i}" for i in range(200)]


def no_thread_left() -> bool:
    deadline = time.monotonic() + 5
    while any(t.name.startswith("skipbridge-partitions") for t in threading.enumerate()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_the_ladder() -> None:
    assert list(itertools.islice(batch_sizes(), 7)) == [10, 20, 40, 80, 100, 100, 100]
    assert list(itertools.islice(batch_sizes(1, 1, 1), 3)) == [1, 1, 1]
    assert list(itertools.islice(batch_sizes(10, 1.5, 30), 5)) == [10, 15, 22, 30, 30]


@given(st.integers(1, 50), st.floats(1, 4), st.integers(0, 100), st.integers(0, 5_000))
def test_batches_above_the_cap_hold_at_most_a_fifth_of_those_before_them(
    start: int, growth: float, more: int, largest: int
) -> None:
    cap = start + more
    sizes = list(itertools.islice(batch_sizes(start, growth, cap, largest), 100))
    plain = itertools.islice(batch_sizes(start, growth, cap), 100)
    asked = 0
    for size, least in zip(sizes, plain, strict=True):
        assert size == max(least, min(asked // 5, largest))
        asked += size


def test_a_long_scan_makes_few_calls_even_if_it_is_the_first() -> None:
    sizes = itertools.accumulate(batch_sizes(largest=1000))
    assert len(list(itertools.takewhile(lambda asked: asked < 20_000, sizes))) < 40


class Recorder:
    """A client that notes the batches asked for, one call at a time."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def get_partitions_by_names(
        self, database: str, table: str, names: Sequence[str], cancellation: Cancellation
    ) -> FoundPartitions:
        self.asked.append(len(names))
        return FoundPartitions(list(names), [], [])


def test_by_default_the_first_calls_double_from_10_to_100() -> None:
    client: Any = Recorder()
    names = [f"p={i}" for i in range(600)]
    with fetch_partitions(client, "d", "t", names, BatchSettings(parallelism=1)) as stream:
        assert [n for found in stream for n in found.names] == names
    assert client.asked == [10, 20, 40, 80, 100, 100, 100, 100, 50]


def test_earlier_calls_only_raise_the_first_size_and_the_cap() -> None:
    adaptive = AdaptiveBatchSize(0.1)

    def sizes(settings: BatchSettings, adaptive: AdaptiveBatchSize | None) -> list[int]:
        asked: list[int] = []

        def fetch(names: Sequence[str], _: Cancellation) -> None:
            asked.append(len(names))

        list(BatchStream(fetch, NAMES * 10, settings, adaptive))
        return asked

    one_at_a_time = BatchSettings(parallelism=1)
    cold = [10, 20, 40, 80] + [100] * 18 + [50]
    assert sizes(replace(one_at_a_time, largest=100), adaptive) == cold
    # That stream has taught it. From here on its calls cost 20 ms and 0.1 ms for each partition.
    for n in [10, 20, 40, 80, 160] * 10:
        adaptive.took(n, 0.020 + 0.0001 * n)
    warm = sizes(one_at_a_time, adaptive)
    assert warm[:5] == [30, 60, 120, 240, 480]
    assert warm[5:] == pytest.approx([800, 270], abs=10)
    assert sizes(replace(one_at_a_time, adapt=False), adaptive) == cold


@settings(deadline=None)
@given(
    st.integers(0, 500),
    st.integers(1, 20),
    st.floats(1, 5),
    st.integers(0, 100),
    st.integers(1, 5),
    st.booleans(),
    st.floats(0.0001, 1),
)
def test_every_name_once_and_in_order(
    count: int,
    start: int,
    growth: float,
    more: int,
    parallelism: int,
    adapt: bool,
    target: float,
) -> None:
    settings = BatchSettings(start, growth, start + more, parallelism, adapt, target)
    names = [str(i) for i in range(count)]
    adaptive = AdaptiveBatchSize(target)
    for _ in range(2):
        with BatchStream(lambda b, _: list(b), names, settings, adaptive) as stream:
            assert [n for answer in stream for n in answer] == names


def test_the_first_batch_does_not_wait_for_the_next() -> None:
    release = threading.Event()

    def fetch(names: Sequence[str], _: Cancellation) -> int:
        if names[0] != NAMES[0]:
            assert release.wait(5)
        return len(names)

    with BatchStream(fetch, NAMES, replace(LADDER, parallelism=3)) as stream:
        assert next(stream) == 10
        release.set()
        assert list(stream) == [20, 40, 80, 50]
    assert no_thread_left()


def test_the_first_batch_is_alone_under_way() -> None:
    asked: list[int] = []

    def fetch(names: Sequence[str], _: Cancellation) -> int:
        asked.append(len(names))
        if len(asked) == 1:
            time.sleep(0.1)
            assert asked == [10]
        return len(names)

    with BatchStream(fetch, NAMES, LADDER) as stream:
        assert list(stream) == [10, 20, 40, 80, 50]


def test_order_is_kept_and_no_more_than_parallelism_run_ahead() -> None:
    asked: list[str] = []

    def fetch(names: Sequence[str], _: Cancellation) -> str:
        asked.append(names[0])
        time.sleep(0.02 if len(asked) % 2 else 0)
        return names[0]

    with BatchStream(fetch, NAMES, BatchSettings(5, 1, 5, 3, adapt=False)) as stream:
        assert asked == []  # lazy
        first = next(stream)
        time.sleep(0.2)
        assert first == NAMES[0]
        assert len(asked) == 4
        assert list(stream) == NAMES[5::5]


def test_an_error_comes_in_its_place() -> None:
    def fetch(names: Sequence[str], _: Cancellation) -> str:
        if names[0] == NAMES[30]:  # the third batch, and it fails before the second is ready
            raise MetastoreFailure("third")
        time.sleep(0.05)
        return names[0]

    stream = BatchStream(fetch, NAMES, replace(LADDER, parallelism=3))
    assert [next(stream), next(stream)] == [NAMES[0], NAMES[10]]
    with pytest.raises(MetastoreFailure, match="third"):
        next(stream)
    assert list(stream) == []
    assert no_thread_left()


def test_closing_ends_an_iteration_that_waits_for_a_silent_metastore() -> None:
    """It shakes hands and then says nothing: the worst a call can meet."""
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.Thrift import TMessageType
    from thrift.transport.TSocket import TSocket

    from bridge.metastore._gen import ThriftHiveMetastore

    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                accepted.append(connection)
                transport = TSocket()
                transport.setHandle(connection)
                protocol = TBinaryProtocol(transport)
                protocol.writeMessageBegin("getVersion", TMessageType.REPLY, 0)
                ThriftHiveMetastore.getVersion_result(success="3.0").write(protocol)
                protocol.writeMessageEnd()

        threading.Thread(target=serve, daemon=True).start()
        settings = MetastoreSettings(call_timeout=60, retry_deadline=60)
        client = MetastoreClient(f"127.0.0.1:{server.getsockname()[1]}", settings)

        def fetch(names: Sequence[str], cancellation: Cancellation) -> object:
            return client.get_partitions_by_names("d", "t", names, cancellation)

        stream = BatchStream(fetch, NAMES, BatchSettings())
        threading.Timer(0.3, stream.close).start()
        started = time.monotonic()
        assert list(stream) == []
        assert time.monotonic() - started < 5
        assert no_thread_left()
        for connection in accepted:
            connection.close()
