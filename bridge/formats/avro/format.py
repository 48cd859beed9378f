"""Avro: recognised by its Hive classes and magic bytes. Indexed by one pass over its values."""

from bridge.formats.column_chunks import ColumnChunks
from bridge.formats.file_format import FileFormat, HiveClasses
from bridge.formats.lines.recipe import Recipe
from bridge.storage.port import Storage

_HIVE = "org.apache.hadoop.hive."


def _chunks(storage: Storage, uri: str, size: int, recipe: Recipe) -> ColumnChunks:
    from bridge.formats.avro.columns import avro_columns

    return avro_columns(storage, uri, size, recipe)


FORMAT = FileFormat(
    name="avro",
    spelled="Avro",
    hive=HiveClasses(
        input_formats=(f"{_HIVE}ql.io.avro.AvroContainerInputFormat",),
        output_format=f"{_HIVE}ql.io.avro.AvroContainerOutputFormat",
        serdes=(f"{_HIVE}serde2.avro.AvroSerDe",),
        hook="io.skipbridge.hive.BridgeAvroInputFormat",
    ),
    recognise=lambda head, tail: head.startswith(b"Obj\x01"),
    splittable=True,
    described=True,
    trino_reader="avro",
    collect=lambda entry: entry.from_columns(_chunks),
    chunks=_chunks,
    index_kinds=True,
)
