"""RCFile: recognised by its Hive classes. Not indexed."""

from bridge.formats.file_format import FileFormat, HiveClasses

FORMAT = FileFormat(
    name="rcfile",
    spelled="RCFile",
    hive=HiveClasses(
        input_formats=("org.apache.hadoop.hive.ql.io.RCFileInputFormat",),
        output_format="org.apache.hadoop.hive.ql.io.RCFileOutputFormat",
        serdes=(
            "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe",
            "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe",
        ),
    ),
    described=True,
    trino_reader="rcfile",
)
