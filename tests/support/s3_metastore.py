"""A metastore for tables on S3: PySpark's jars hold no file system for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bridge.servers.embedded_metastore import MetastoreSpec

_SCHEME = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"


def s3_metastore(directory: Path, bucket: str, tables: Iterable[str]) -> MetastoreSpec:
    """One that takes s3://BUCKET/TABLE for an existing directory; it only asks whether it is."""
    properties = {"fs.s3.impl": _SCHEME, "fs.viewfs.overload.scheme.target.s3.impl": _SCHEME}
    for table in tables:
        place = directory / "bucket" / table
        place.mkdir(parents=True)
        properties[f"fs.viewfs.mounttable.{bucket}.link./{table}"] = place.as_uri()
    return MetastoreSpec(directory, port=0, in_memory=True, properties=properties)
