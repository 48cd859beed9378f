"""CSV in Hive's OpenCSVSerde: recognised by its Hive classes. Not indexed."""

from bridge.file_formats.file_format import FileFormat, HiveClasses

FORMAT = FileFormat(
    name="csv",
    spelled="CSV",
    hive=HiveClasses(
        input_formats=("org.apache.hadoop.mapred.TextInputFormat",),
        output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdes=("org.apache.hadoop.hive.serde2.OpenCSVSerde",),
        hook="io.skipbridge.hive.BridgeTextInputFormat",
    ),
)
