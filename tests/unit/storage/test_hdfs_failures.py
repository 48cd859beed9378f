"""What HDFS's library says of failures, in the words of whoever runs the cluster."""

from __future__ import annotations

import pytest

from bridge.errors import FileUnreadable, StorageFailure
from bridge.storage.hdfs import _translated

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
