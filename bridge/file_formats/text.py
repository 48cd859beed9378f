"""Delimited text, Hive's default: recognised by its Hive classes. Not indexed."""

from bridge.file_formats.file_format import FileFormat, HiveClasses

FORMAT = FileFormat(
    name="text",
    spelled="text",
    hive=HiveClasses(
        input_formats=("org.apache.hadoop.mapred.TextInputFormat",),
        output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdes=("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",),
        hook="io.skipbridge.hive.BridgeTextInputFormat",
    ),
)
