"""Golden frames: the bytes of each message of bridge.thrift beside what they say.

`tests/vectors/wire/frames.json` tells what each frame says, a `.bin` file beside it holds its
bytes. Python, the Trino connector and the Hive hooks read and write the same files. ``python -m
tests.support.frames`` writes the bytes anew from what the JSON says.
"""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

from thrift.protocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport import TTransport

from bridge.service._gen import Planner

FOLDER = Path(__file__).parents[1] / "vectors" / "wire"
_KINDS = {
    "call": TMessageType.CALL,
    "reply": TMessageType.REPLY,
    "exception": TMessageType.EXCEPTION,
}


def frames() -> list[dict[str, Any]]:
    """What each frame says: file, kind, method, sequence and its struct as JSON."""
    found: list[dict[str, Any]] = json.loads((FOLDER / "frames.json").read_text())
    return found


def to_bytes(frame: dict[str, Any]) -> bytes:
    """The frame with its length in front."""
    out = TTransport.TMemoryBuffer()
    writer = TBinaryProtocol.TBinaryProtocol(out)
    writer.writeMessageBegin(frame["method"], _KINDS[frame["kind"]], frame["sequence"])
    body = _body(frame["kind"], frame["method"])
    _fill(body, frame["body"])
    body.write(writer)
    writer.writeMessageEnd()
    data: bytes = out.getvalue()
    return struct.pack("!i", len(data)) + data


def to_json(data: bytes) -> dict[str, Any]:
    """What a frame says, without the name of its file."""
    (length,) = struct.unpack_from("!i", data)
    assert length == len(data) - 4
    reader = TBinaryProtocol.TBinaryProtocol(TTransport.TMemoryBuffer(data[4:]))
    method, kind, sequence = reader.readMessageBegin()
    name = next(word for word, number in _KINDS.items() if number == kind)
    body = _body(name, method)
    body.read(reader)
    return {"kind": name, "method": method, "sequence": sequence, "body": _tell(body)}


def _body(kind: str, method: str) -> Any:
    if kind == "exception":
        return TApplicationException()
    return getattr(Planner, f"{method}_{'args' if kind == 'call' else 'result'}")()


def _fill(target: Any, said: dict[str, Any]) -> None:
    """Only what is said is set: a default of bridge.thrift is no field of the frame."""
    for name, field in _fields(target).items():
        value = said.get(name)
        setattr(target, name, None if value is None else _value(field[1], field[3], value))
    assert set(said) <= set(_fields(target)), said


def _fields(target: Any) -> dict[str, Any]:
    if isinstance(target, TApplicationException):
        return {
            "message": (1, TType.STRING, "message", "UTF8"),
            "type": (2, TType.I32, "type", None),
        }
    return {field[2]: field for field in type(target).thrift_spec if field}


def _value(kind: int, detail: Any, value: Any) -> Any:
    if kind == TType.STRUCT:
        made = detail[0]()
        _fill(made, value)
        return made
    if kind == TType.LIST:
        return [_value(detail[0], detail[1], each) for each in value]
    if kind == TType.STRING and detail == "BINARY":
        return base64.b64decode(value)
    return value


def _tell(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [_tell(each) for each in value]
    if isinstance(value, TApplicationException) or hasattr(value, "thrift_spec"):
        told = {name: getattr(value, name) for name in _fields(value)}
        return {name: _tell(each) for name, each in told.items() if each is not None}
    return value


if __name__ == "__main__":
    for frame in frames():
        (FOLDER / frame["file"]).write_bytes(to_bytes(frame))
