"""What both mergers of Hudi's slices hold: tables of one slice, and their rows or refusal.

Python's merger (`bridge.table.hudi.merging`) and the connector's, which is Hudi's own reader with
guards, are asked the same: tests/behaviour/test_hudi_merge_cases.py and
tests/engines/test_hudi_merge_law.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring

from bridge.formats.hudi.log_format import MAGIC, BlockType, Header
from tests.support.hudi_tables import HudiTable
from tests.support.hudi_writer import avro_block, avro_content, log_block
from tests.unit.hudi.test_merge import deletes

KEY = "_hoodie_record_key"
EVENT, COMMIT = "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"
BASE_AT = "20260101000000000"
COLUMNS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("name", pa.string())])
_TYPES = {KEY: "string", "id": "string", "ts": "long", "name": "string"}
Row = tuple[str | None, str]


def header(at: Sequence[int] | str | None, of: str = BASE_AT) -> dict[str, str]:
    """What a block says of the places of its rows in a base file; a text: its bitmap as it is."""
    if at is None:
        return {}
    told = at
    if not isinstance(told, str):
        told = base64.b64encode(pyroaring.BitMap64(at).serialize()).decode()
    return {"record_positions": told, "base_file_instant_time_of_record_positions": of}


@dataclass(frozen=True, slots=True)
class Block:
    """Rows, or with ``gone`` deleted keys."""

    rows: tuple[Row, ...] = ()
    gone: tuple[str, ...] = ()
    at: Sequence[int] | str | None = None
    of: str = BASE_AT

    def write(self, instant: str, names: Sequence[str]) -> bytes:
        told = header(self.at, self.of)
        if self.gone:
            numbered = {Header[name.upper()]: text for name, text in told.items()}
            return deletes(instant, *((key, None) for key in self.gone), header=numbered)
        return avro_block(instant, _avro(names), [_row(row, names) for row in self.rows], **told)


@dataclass(frozen=True, slots=True)
class Case:
    """``shown``: the names of all rows; ``refused``: what the error says, in either language.

    Attributes:
        logs: each of one instant.
        bend: what becomes of the bytes of the last log.
    """

    base: tuple[Row, ...]
    logs: tuple[tuple[Block, ...], ...]
    shown: tuple[str, ...] = ()
    refused: str = ""
    mode: str = COMMIT
    generator: str | None = None
    bend: Callable[[bytes], bytes] = bytes

    def write(self, root: Path) -> HudiTable:
        """A table of this slice alone."""
        virtual = {
            "hoodie.populate.meta.fields": "false",
            "hoodie.table.keygenerator.class": self.generator or "",
        }
        table = HudiTable(
            root,
            9,
            **{
                "hoodie.table.recordkey.fields": "id",
                "hoodie.table.ordering.fields": "ts",
                "hoodie.record.merge.mode": self.mode,
                **({} if self.generator is None else virtual),
            },
        )
        names = [name for name in _TYPES if self.generator is None or name != KEY]
        kinds = {"string": pa.string(), "long": pa.int64()}
        schema = pa.schema([(name, kinds[_TYPES[name]]) for name in names])
        base = table.base("", "f-0", BASE_AT)
        pq.write_table(
            pa.Table.from_pylist([_row(row, names) for row in self.base], schema), root / base.name
        )
        told = json.dumps(_avro(names))
        size = (root / base.name).stat().st_size
        table.commit(BASE_AT, [replace(base, size=size)], schema=told, operation="INSERT")
        for number, blocks in enumerate(self.logs, 1):
            instant = str(int(BASE_AT) + number)
            log = table.log("", "f-0", instant, previous=BASE_AT)
            content = b"".join(block.write(instant, names) for block in blocks)
            if number == len(self.logs):
                content = self.bend(content)
            (root / log.name).write_bytes(content)
            table.commit(instant, [replace(log, size=len(content))], schema=told)
        return table


def _avro(names: Sequence[str]) -> dict[str, Any]:
    fields = [{"name": n, "type": ["null", _TYPES[n]], "default": None} for n in names]
    return {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": fields}


def _row(row: Row, names: Sequence[str]) -> dict[str, Any]:
    whole = {KEY: row[0], "id": row[0], "ts": 1, "name": row[1]}
    return {name: whole[name] for name in names}


def _flip(at: Callable[[bytes], int], bit: int = 0) -> Callable[[bytes], bytes]:
    def bend(log: bytes) -> bytes:
        bent = bytearray(log)
        bent[at(log)] ^= 1 << bit
        return bytes(bent)

    return bend


def _second(log: bytes) -> int:
    """Where the second block begins."""
    return log.index(MAGIC, 1)


def _no_schema() -> bytes:
    content = avro_content(_avro(list(_TYPES)), [_row(("a", "x"), list(_TYPES))])
    return log_block(BlockType.AVRO_DATA, {Header.INSTANT_TIME: str(int(BASE_AT) + 1)}, content)


TWO: tuple[Row, ...] = (("a", "one"), ("a", "two"))
OTHER: tuple[Row, ...] = (("a", "one"), ("b", "two"))
_MANY: tuple[Row, ...] = tuple((f"k{i % 17}", f"b{i}") for i in range(20))
_X = Block((("a", "x"),), at=(1,))
_GONE_AND_NEW = ((Block(gone=("a",)), Block((("c", "c"),))),)

CASES = {
    "the_row_at_the_position_changes": Case(TWO, ((_X,),), ("one", "x")),
    "the_row_at_the_position_goes": Case(TWO, ((_X,), (Block(gone=("a",), at=(0,)),)), ("x",)),
    "without_positions_keys_decide": Case(
        (*TWO, ("b", "b")), ((_X,), (Block((("b", "y"),)),)), ("two", "x", "y")
    ),
    "of_another_base_file": Case(TWO, ((replace(_X, at=(7,), of="00"),),), ("two", "x")),
    "two_rows_of_a_key": Case(
        _MANY,
        ((Block((("k0", "x"), ("k0", "y")), at=(0, 17)),),),
        ("x", "y", *(name for key, name in _MANY if key != "k0")),
        mode=EVENT,
    ),
    "two_rows_of_a_key_and_another_by_key": Case(
        _MANY,
        ((Block((("k0", "x"), ("k0", "y")), at=(0, 17)), Block((("k9", "z"),))),),
        refused="several rows with the key 'k0'",
    ),
    **{
        f"no_such_row_at_{place}{'_or_by_key' if mixed else ''}": Case(
            OTHER,
            ((replace(_X, at=(place,)), *([Block((("b", "y"),))] if mixed else [])),),
            refused=f"at position {place} ",
            mode=EVENT,
        )
        for place in (1, 2, 1 << 33)
        for mixed in (False, True)
    },
    "a_deletion_meets_no_row": Case(
        OTHER, ((Block(gone=("key:a",), at=(0,)),),), refused="holds 'a'"
    ),
    "more_positions": Case(OTHER, ((replace(_X, at=(0, 1)),),), refused="position"),
    "more_records": Case(OTHER, ((replace(_X, rows=OTHER, at=(0,)),),), refused="position"),
    "no_bitmap": Case(OTHER, ((replace(_X, at="AQA="),),), refused="positions cannot be read"),
    **{
        f"spelled_{key}_{generator.rpartition('.')[2] or 'unsaid'}{'_at' if at else ''}".replace(
            ":", "_"
        ).lower(): Case(
            (("1", "one"), ("2", "two")),
            ((Block(gone=(key,), at=at),),),
            ("one",),
            "",
            generator=generator,
        )
        for generator in ("org.apache.hudi.keygen.ComplexKeyGenerator", "COMPLEX", "")
        for key in ("2", "id:2")
        for at in (None, (1,))
    },
    **{
        f"bare_{generator.rpartition('.')[2]}".lower(): Case(
            (("id:2", "one"), ("2", "two")),
            ((Block(gone=("id:2",)),),),
            ("two",),
            generator=generator,
        )
        for generator in (
            "a.SimpleKeyGenerator",
            "SIMPLE",
            "CUSTOM_AVRO",
            "b.NonpartitionedKeyGenerator",
        )
    },
    "in_doubt_by_the_base": Case(
        (("id:2", "one"), ("2", "two")),
        ((Block(gone=("id:2",)),),),
        refused="not sure which rows",
        generator="COMPLEX",
    ),
    "in_doubt_by_a_log": Case(
        (("3", "one"), ("2", "two")),
        ((Block((("id:2", "x"),)),), (Block(gone=("id:2",)),)),
        refused="not sure which rows",
        generator="COMPLEX",
    ),
    "a_block_is_cut_off": Case(
        OTHER,
        ((Block(gone=("b",)),), (Block((("b", "y"),)),)),
        ("one",),
        bend=lambda log: log[:-5],
    ),
    "a_closing_length_is_damaged": Case(
        OTHER, _GONE_AND_NEW, refused="damaged", bend=_flip(lambda log: _second(log) - 1)
    ),
    "a_length_is_damaged": Case(
        OTHER, _GONE_AND_NEW, refused="damaged", bend=_flip(lambda _: len(MAGIC) + 7)
    ),
    "a_beginning_is_damaged": Case(OTHER, _GONE_AND_NEW, refused="damaged", bend=_flip(_second)),
    "no_schema": Case(OTHER, ((Block(),),), refused="(?i)schema", bend=lambda _: _no_schema()),
    "no_key_in_a_log": Case(OTHER, ((Block(((None, "x"),)),),), refused="no record key"),
    "no_key_in_the_base": Case(
        (("a", "one"), (None, "two")), ((Block((("a", "x"),)),),), refused="no record key"
    ),
    "no_virtual_key_in_a_log": Case(
        OTHER, ((Block(((None, "x"),)),),), refused="(?i)key", generator="COMPLEX"
    ),
    "an_unknown_type": Case(
        OTHER,
        ((Block(),),),
        refused="(?i)type|block",
        bend=lambda _: log_block(77, {Header.INSTANT_TIME: str(int(BASE_AT) + 1)}, bytes(8)),
    ),
}
