"""Client and planner of different protocols refuse each other and say what to upgrade.

The frames of protocol 1 in `tests/vectors/wire` were recorded from the release that spoke it.
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

import pytest
from thrift.protocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport import TTransport

from bridge import __version__
from bridge.kernel.errors import ProtocolMismatch, ReadVersionUnsupported
from bridge.service._gen import Planner
from bridge.service.codec import PROTOCOL
from tests.support.frames import FOLDER
from tests.support.planner_client import PlannerClient
from tests.support.service import Service


def ask(endpoint: str, frame: bytes) -> bytes:
    host, port = endpoint.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(frame)
        reader = raw.makefile("rb")
        (length,) = struct.unpack("!i", reader.read(4))
        return reader.read(length)


def read(answer: bytes, into: Any) -> int:
    reader = TBinaryProtocol.TBinaryProtocol(TTransport.TMemoryBuffer(answer))
    kind: int = reader.readMessageBegin()[1]
    into.read(reader)
    return kind


@pytest.mark.parametrize(
    "method", ["list_schemas", "list_tables", "list_views", "get_table", "plan"]
)
def test_a_connector_of_protocol_1_is_told_to_be_upgraded(method: str, service: Service) -> None:
    answer = ask(service.endpoint, (FOLDER / f"protocol1_{method}.call.bin").read_bytes())
    result = getattr(Planner, f"{method}_result")()
    assert read(answer, result) == TMessageType.REPLY
    assert result.success is None and result.failure.code == "PROTOCOL_MISMATCH"
    assert "protocol 1" in result.failure.message and f"speaks {PROTOCOL}" in result.failure.message
    assert "upgrade the client" in result.failure.hint
    assert "skipbridge plugin build" in result.failure.hint
    assert len(service.handler.plans) == 0


@pytest.mark.parametrize("method", ["select_files", "answer"])
def test_methods_of_protocol_1_are_not_served(method: str, service: Service) -> None:
    """Its hooks then warn once for the whole planner, and Hive reads every file."""
    answer = ask(service.endpoint, (FOLDER / f"protocol1_{method}.call.bin").read_bytes())
    refusal = TApplicationException()
    assert read(answer, refusal) == TMessageType.EXCEPTION
    assert refusal.type == TApplicationException.UNKNOWN_METHOD


def test_a_planner_of_protocol_1_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall((FOLDER / "protocol1_health.reply.bin").read_bytes())

        thread = threading.Thread(target=answer)
        thread.start()
        refused = pytest.raises(ProtocolMismatch, match=r"0\.1\.0 .* speaks protocol 1")
        endpoint = f"127.0.0.1:{listening.getsockname()[1]}"
        with PlannerClient(endpoint) as client, refused as error:
            client.health()
        thread.join()
    assert "upgrade the planner" in error.value.hint


@pytest.mark.parametrize("protocol", [0, 1, PROTOCOL + 1])
def test_both_sides_are_named(protocol: int, service: Service) -> None:
    with PlannerClient(service.endpoint) as client, pytest.raises(ProtocolMismatch) as error:
        client.call("list_tables", "db", protocol)
    assert f"protocol {protocol}, this planner {__version__} speaks" in error.value.message
    older = "planner" if protocol > PROTOCOL else "client"
    assert error.value.hint.startswith(f"upgrade the {older} ")


def test_a_directory_has_no_older_versions(service: Service) -> None:
    with PlannerClient(service.endpoint) as client:
        for version in ("version:17", "time:1700000000000"):
            with pytest.raises(ReadVersionUnsupported, match=rf"db\.t .*'{version}'"):
                client.get_table("db", "t", read_version=version)
            with pytest.raises(ReadVersionUnsupported, match="read its newest version"):
                client.plan("db", "t", read_version=version)
