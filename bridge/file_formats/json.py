"""JSON, one object per line: recognised by its Hive classes. Not indexed."""

from bridge.file_formats.file_format import FileFormat, HiveClasses

FORMAT = FileFormat(
    name="json",
    spelled="JSON",
    hive=HiveClasses(
        input_formats=("org.apache.hadoop.mapred.TextInputFormat",),
        output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdes=(
            "org.apache.hive.hcatalog.data.JsonSerDe",
            "org.apache.hadoop.hive.serde2.JsonSerDe",
        ),
        hook="io.skipbridge.hive.BridgeTextInputFormat",
    ),
)
