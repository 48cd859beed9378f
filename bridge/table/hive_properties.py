"""Properties of Hive's records by which readers of text, Avro and similar files read them."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.formats.registry import hive_hooks

ROOT_PROPERTY = "skipbridge.sync.root"
"""Marks a table that `skipbridge sync` maintains, and records its root."""
SERDE = "serialization.lib"
INPUT_FORMAT = "file.inputformat"
DELIMITER = "field.delim"
HEADER_LINES = "skip.header.line.count"
FOOTER_LINES = "skip.footer.line.count"
OPEN_CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
"""Its columns are texts, whatever types are declared."""
BY_PLACE = {
    "parquet": "parquet.column.index.access",
    "orc": "orc.force.positional.evolution",
}
"""By format: where the property is true, Hive finds the columns of files by their places."""

_TABLE_PARAMETERS = frozenset(
    {
        HEADER_LINES,
        FOOTER_LINES,
        "separatorChar",
        "quoteChar",
        "escapeChar",
        DELIMITER,
        "collection.delim",
        "colelction.delim",  # as Hive spells it
        "mapkey.delim",
        "line.delim",
        "escape.delim",
        "serialization.format",
        "serialization.null.format",
        "serialization.encoding",
        "serialization.escape.crlf",
        "serialization.last.column.takes.rest",
        "serialization.extend.nesting.levels",
        "serialization.extend.additional.nesting.levels",
        "hive.serialization.extend.nesting.levels",
        "hive.serialization.extend.additional.nesting.levels",
        "timestamp.formats",
        "case.insensitive",
        "ignore.malformed.json",
        "dots.in.keys",
        "explicit.null",
    }
)
_PREFIXES = (
    "mapping.",
    "input.regex",
    "output.format.string",
    "avro.",
    "textinputformat.",
    "textfile.",
    "csv.",
    "skipbridge.csv.",
)


def relevant(parameters: Mapping[str, str] | None) -> dict[str, str]:
    """The parameters of a table or a partition that readers heed."""
    return {
        k: v
        for k, v in (parameters or {}).items()
        if v is not None and (k in _TABLE_PARAMETERS or k.startswith(_PREFIXES))
    }


def is_by_place(properties: Mapping[str, str], format: str) -> bool:
    """Whether Hive finds the columns of files of a format in `BY_PLACE` by their places."""
    return properties.get(BY_PLACE[format], "").strip().lower() == "true"


def without_hook(input_format: str) -> str:
    """Hive's own class in place of the hook that extends it: files are read alike."""
    return next((of for of, hook in hive_hooks().items() if hook == input_format), input_format)
