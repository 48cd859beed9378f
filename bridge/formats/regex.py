"""Lines that match a regular expression: recognised by their Hive classes. Not indexed."""

from bridge.formats.file_format import FileFormat, HiveClasses
from bridge.formats.lines.text_lines import is_whole

FORMAT = FileFormat(
    name="regex",
    spelled="regex",
    hive=HiveClasses(
        input_formats=("org.apache.hadoop.mapred.TextInputFormat",),
        output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdes=("org.apache.hadoop.hive.serde2.RegexSerDe",),
        hook="io.skipbridge.hive.BridgeTextInputFormat",
    ),
    splittable=True,
    whole=is_whole,
    described=True,
    trino_reader="regex",
)
