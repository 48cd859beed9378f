"""A metastore for tables on object stores: PySpark's jars hold no file systems for them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bridge.servers.embedded_metastore import MetastoreSpec

_SCHEME = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"


def s3_metastore(directory: Path, bucket: str, tables: Iterable[str]) -> MetastoreSpec:
    """One that takes s3://BUCKET/TABLE for an existing directory; it only asks whether it is."""
    return store_metastore(directory, {"s3": bucket}, tables)


def store_metastore(directory: Path, hosts: dict[str, str], tables: Iterable[str]) -> MetastoreSpec:
    """One that takes SCHEME://HOST/TABLE for an existing directory.

    Args:
        hosts: by scheme, a bucket, or a container of Azure as CONTAINER@HOST.
    """
    properties = {}
    for scheme in hosts:
        properties[f"fs.{scheme}.impl"] = _SCHEME
        properties[f"fs.viewfs.overload.scheme.target.{scheme}.impl"] = _SCHEME
    for table in tables:
        place = directory / "bucket" / table
        place.mkdir(parents=True)
        for host in hosts.values():
            properties[f"fs.viewfs.mounttable.{host}.link./{table}"] = place.as_uri()
    return MetastoreSpec(directory, port=0, in_memory=True, properties=properties)
