"""What HDFS's library says of failures, in the words of whoever runs the cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.kernel.errors import FileUnreadable, StorageFailure
from bridge.storage import hdfs
from bridge.storage.hdfs import HdfsStorage, _translated
from bridge.storage.uri import parse

_URI = "hdfs://node:8020/t/f"
_NODE = (
    'DatanodeInfoProto { id: DatanodeIdProto { ip_addr: \\"10.0.0.%d\\", host_name: \\"d\\", '
    "xfer_port: 9866, info_port: 9864 }, capacity: Some(5) }"
)


def test_data_nodes_that_do_not_answer_are_named() -> None:
    said = f'DataTransferError("All DataNodes failed: [{_NODE % 1}, {_NODE % 2}]")'
    with pytest.raises(FileUnreadable) as caught, _translated(_URI, reading=True):
        raise RuntimeError(said)
    told = f"{_URI}: no data node that holds its bytes answers (10.0.0.1:9866, 10.0.0.2:9866)"
    assert caught.value.message == told and "dfsadmin -report" in caught.value.hint


def test_quotes_are_not_escaped() -> None:
    said = (
        'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: '
        'user=a, inode=\\"/t\\":root:d---------\\n\\tat org.apache")'
    )
    with pytest.raises(StorageFailure) as caught, _translated(_URI):
        raise RuntimeError(said)
    assert caught.value.message.endswith('user=a, inode="/t":root:d---------')


class _Client:
    """Answers, or refuses, as it is told."""

    def __init__(self) -> None:
        self.refusal: str | None = "Connection refused (os error 111)"
        self.asked = 0

    def list_status(self, path: str, recursive: bool) -> Iterator[object]:
        self.get_file_info(path)
        return iter(())

    def get_file_info(self, path: str) -> None:
        self.asked += 1
        if self.refusal:
            raise OSError(self.refusal)


def _storage() -> tuple[HdfsStorage, _Client, _Client]:
    """A storage with its patient and its impatient client."""
    storage, patient, impatient = HdfsStorage(parse(_URI)), _Client(), _Client()
    storage._client = patient  # type: ignore[assignment]
    storage._connect_once = lambda: impatient  # type: ignore[assignment,return-value]
    return storage, patient, impatient


def test_a_name_node_that_refused_is_asked_with_less_patience_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, patient, impatient = _storage()

    def refused() -> None:
        for directory in ("a", "b", "c"):
            uri = f"hdfs://node:8020/{directory}"
            with pytest.raises(StorageFailure) as caught:
                storage.list_all(uri)
            assert caught.value.message == f"{uri}: Connection refused (os error 111)"
            assert "name node" in caught.value.hint

    refused()
    assert (patient.asked, impatient.asked) == (1, 0)
    monkeypatch.setattr(hdfs, "_AT_ONCE", 0.0)
    refused()
    assert (patient.asked, impatient.asked) == (1, 3)
    patient.refusal, impatient.refusal = None, "StandbyException"
    for asked in (2, 3):
        assert len(storage.list_all("hdfs://node:8020/a")) == 0
        assert (patient.asked, impatient.asked) == (asked, 4)


def test_other_failures_are_those_of_their_call_alone() -> None:
    storage, patient, impatient = _storage()
    patient.refusal = "no permission"
    for _ in range(2):
        with pytest.raises(StorageFailure):
            storage.list_all("hdfs://node:8020/a")
    assert (patient.asked, impatient.asked) == (2, 0)
