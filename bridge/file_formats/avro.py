"""Avro: recognised by its Hive classes and magic bytes. Not indexed."""

from bridge.file_formats.file_format import FileFormat, HiveClasses

_HIVE = "org.apache.hadoop.hive."
FORMAT = FileFormat(
    name="avro",
    spelled="Avro",
    hive=HiveClasses(
        input_formats=(f"{_HIVE}ql.io.avro.AvroContainerInputFormat",),
        output_format=f"{_HIVE}ql.io.avro.AvroContainerOutputFormat",
        serdes=(f"{_HIVE}serde2.avro.AvroSerDe",),
    ),
    recognise=lambda head, tail: head.startswith(b"Obj\x01"),
    splittable=True,
)
