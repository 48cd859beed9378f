"""SequenceFile of delimited text: recognised by its Hive classes. Not indexed."""

from bridge.formats.file_format import FileFormat, HiveClasses

FORMAT = FileFormat(
    name="sequencefile",
    spelled="SequenceFile",
    hive=HiveClasses(
        input_formats=("org.apache.hadoop.mapred.SequenceFileInputFormat",),
        output_format="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
        serdes=("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",),
    ),
    described=True,
    trino_reader="sequencefile",
)
