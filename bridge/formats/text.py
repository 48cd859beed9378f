"""Delimited text, Hive's default: indexed by one pass over its values."""

from bridge.formats.column_chunks import ColumnChunks
from bridge.formats.file_format import FileFormat, HiveClasses
from bridge.formats.lines.recipe import Recipe
from bridge.formats.lines.text_lines import is_whole
from bridge.storage.port import Storage


def _chunks(storage: Storage, uri: str, size: int, recipe: Recipe) -> ColumnChunks:
    from bridge.formats.lines.delimited_columns import text_columns

    return text_columns(storage, uri, size, recipe)


FORMAT = FileFormat(
    name="text",
    spelled="text",
    hive=HiveClasses(
        input_formats=("org.apache.hadoop.mapred.TextInputFormat",),
        output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdes=("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",),
        hook="io.skipbridge.hive.BridgeTextInputFormat",
    ),
    splittable=True,
    whole=is_whole,
    described=True,
    trino_reader="text",
    collect=lambda entry: entry.from_columns(_chunks),
    chunks=_chunks,
    index_kinds=True,
)
